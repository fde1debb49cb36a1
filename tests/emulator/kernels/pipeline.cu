// Warp 0 copies tiles to shared memory, the others add them up; mbarriers say when a stage is full
// and when it is empty again. For parts from 8.0.

using u32 = unsigned;
constexpr int kStages = 3, kTile = 256, kConsumers = 3;

__device__ void init(u32 barrier, u32 count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ void arrive(u32 barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier)
               : "memory");
}

// Once this thread's copies have landed.
__device__ void arrive_after_copies(u32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ void wait(u32 barrier, u32 parity) {
  u32 done = 0;
  while (!done) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
#else
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
#endif
  }
}

__device__ void copy(u32 to, const float* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
               "r"(inside ? 4 : 0)
               : "memory");
}

// Sum of squares of each tile of 256 values, by 128 threads a block.
extern "C" __global__ void __launch_bounds__(128)
    pipeline(const float* values, int count, float* sums) {
  __shared__ float tiles[kStages][kTile];
  __shared__ unsigned long long barriers[2 * kStages];
  __shared__ float partial[kConsumers];
  const u32 full = u32(__cvta_generic_to_shared(barriers)), empty = full + kStages * 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      init(full + stage * 8, 32);
      init(empty + stage * 8, kConsumers * 32);
    }
  }
  __syncthreads();
  const int all = (count + kTile - 1) / kTile;
  const int mine = all > (int)blockIdx.x ? (all - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
  if (warp == 0) {
    for (int turn = 0; turn < mine; ++turn) {
      const int stage = turn % kStages, first = (blockIdx.x + turn * gridDim.x) * kTile;
      if (turn >= kStages) wait(empty + stage * 8, (turn / kStages - 1) & 1);
      for (int i = lane; i < kTile; i += 32) {
        const bool inside = first + i < count;
        copy(u32(__cvta_generic_to_shared(&tiles[stage][i])), inside ? values + first + i : values,
             inside);
      }
      arrive_after_copies(full + stage * 8);
    }
  } else {
    for (int turn = 0; turn < mine; ++turn) {
      const int stage = turn % kStages;
      wait(full + stage * 8, (turn / kStages) & 1);
      float sum = 0;
      for (int i = threadIdx.x - 32; i < kTile; i += kConsumers * 32) {
        sum += tiles[stage][i] * tiles[stage][i];
      }
      arrive(empty + stage * 8);
      for (int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
      }
      if (lane == 0) partial[warp - 1] = sum;
      asm volatile("bar.sync 1, 96;" ::: "memory");  // the consumers alone
      if (threadIdx.x == 32) {
        float total = 0;
        for (int i = 0; i < kConsumers; ++i) total += partial[i];
        sums[blockIdx.x + turn * gridDim.x] = total;
      }
      asm volatile("bar.sync 1, 96;" ::: "memory");
    }
  }
}
