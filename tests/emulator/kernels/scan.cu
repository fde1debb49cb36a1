// Inclusive scan in one pass: a block publishes the sum of its tile, looks back over the tiles before
// it until one knows its whole prefix, then publishes its own.

constexpr int kThreads = 128, kItems = 4, kTile = kThreads * kItems;
constexpr unsigned kNothing = 0, kAggregate = 1, kPrefix = 2;

struct Tiles {
  unsigned* flag;  // zero before the launch
  unsigned* aggregate;
  unsigned* prefix;
};

__device__ unsigned scanned_in_warp(unsigned value) {
  const unsigned lane = threadIdx.x % 32;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += other;
  }
  return value;
}

// Sum of everything before the tile; by one thread.
__device__ unsigned look_back(const Tiles& tiles, int tile) {
  unsigned sum = 0;
  for (int before = tile - 1; before >= 0; --before) {
    unsigned flag;
    do {
      flag = *(volatile unsigned*)&tiles.flag[before];
    } while (flag == kNothing);
    __threadfence();
    if (flag == kPrefix) return sum + tiles.prefix[before];
    sum += tiles.aggregate[before];
  }
  return sum;
}

__device__ void publish(unsigned* value, unsigned* flag, unsigned what, unsigned state) {
  *value = what;
  __threadfence();
  *(volatile unsigned*)flag = state;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    scan(const unsigned* in, unsigned* out, int count, unsigned* ticket, Tiles tiles) {
  __shared__ int tile_of_block;
  __shared__ unsigned warp_sums[kThreads / 32], before_tile;
  // Tiles go by the order in which blocks start, so that those before have started too.
  if (threadIdx.x == 0) tile_of_block = atomicAdd(ticket, 1u);
  __syncthreads();
  const int tile = tile_of_block, first = tile * kTile + threadIdx.x * kItems;
  unsigned items[kItems], total = 0;
  for (int i = 0; i < kItems; ++i) {
    total += first + i < count ? in[first + i] : 0;
    items[i] = total;
  }
  const unsigned in_warp = scanned_in_warp(total);
  if (threadIdx.x % 32 == 31) warp_sums[threadIdx.x / 32] = in_warp;
  __syncthreads();
  unsigned before_thread = in_warp - total, all = 0;
  for (int warp = 0; warp < kThreads / 32; ++warp) {
    if (warp < threadIdx.x / 32) before_thread += warp_sums[warp];
    all += warp_sums[warp];
  }
  if (threadIdx.x == 0) {
    if (tile > 0) publish(&tiles.aggregate[tile], &tiles.flag[tile], all, kAggregate);
    before_tile = look_back(tiles, tile);
    publish(&tiles.prefix[tile], &tiles.flag[tile], before_tile + all, kPrefix);
  }
  __syncthreads();
  for (int i = 0; i < kItems; ++i) {
    if (first + i < count) out[first + i] = before_tile + before_thread + items[i];
  }
}
