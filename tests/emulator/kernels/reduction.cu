// Sums, smallest and largest of an array: shuffles within a warp, shared memory within a block, and
// across blocks the last one to finish, which a ticket finds.

struct Partial {
  long long sum;
  int smallest, largest;
};

__device__ Partial combined(Partial a, Partial b) {
  return {a.sum + b.sum, min(a.smallest, b.smallest), max(a.largest, b.largest)};
}

__device__ Partial reduced_in_warp(Partial value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    Partial other;
    other.sum = __shfl_down_sync(0xffffffffu, value.sum, distance);
    other.smallest = __shfl_down_sync(0xffffffffu, value.smallest, distance);
    other.largest = __shfl_down_sync(0xffffffffu, value.largest, distance);
    value = combined(value, other);
  }
  return value;
}

// The block's value in thread 0.
__device__ Partial reduced_in_block(Partial value) {
  __shared__ Partial warps[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = (blockDim.x + 31) / 32;
  value = reduced_in_warp(value);
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < count ? warps[lane] : Partial{0, 0x7fffffff, -0x7fffffff - 1};
    value = reduced_in_warp(value);
  }
  return value;
}

// blockDim.x is a multiple of 32; ticket is zero before and after.
extern "C" __global__ void reduce(const int* values, int count, Partial* partials,
                                  unsigned* ticket, Partial* result) {
  Partial mine{0, 0x7fffffff, -0x7fffffff - 1};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    mine = combined(mine, Partial{values[i], values[i], values[i]});
  }
  mine = reduced_in_block(mine);
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = mine;
    __threadfence();
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  mine = Partial{0, 0x7fffffff, -0x7fffffff - 1};
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) mine = combined(mine, partials[i]);
  mine = reduced_in_block(mine);
  if (threadIdx.x == 0) {
    *result = mine;
    *ticket = 0;
  }
}

#if __CUDA_ARCH__ >= 800
// The same within one warp by one instruction each.
extern "C" __global__ void reduce_warp(const unsigned* values, unsigned* results) {
  const unsigned value = values[threadIdx.x];
  const unsigned sum = __reduce_add_sync(0xffffffffu, value);
  const unsigned least = __reduce_min_sync(0xffffffffu, value);
  const int most = __reduce_max_sync(0xffffffffu, int(value));
  const unsigned bits = __reduce_xor_sync(0xffffffffu, value);
  if (threadIdx.x == 0) {
    results[0] = sum;
    results[1] = least;
    results[2] = unsigned(most);
    results[3] = bits;
  }
}
#endif
