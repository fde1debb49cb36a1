// Blocks that wait for each other.

// All blocks at a barrier by hand: the last to arrive moves the phase on.
__device__ void wait_for_grid(unsigned* arrived, unsigned* phase) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned before = *(volatile unsigned*)phase;
    __threadfence();
    if (atomicAdd(arrived, 1u) == gridDim.x - 1) {
      *(volatile unsigned*)arrived = 0;
      __threadfence();
      atomicAdd(phase, 1u);
    } else {
      while (*(volatile unsigned*)phase == before) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

// A smoothing that needs its neighbours' last values, `rounds` times; buffers hold `count` values.
extern "C" __global__ void smoothed(int* a, int* b, int count, int rounds, unsigned* arrived,
                                    unsigned* phase) {
  for (int round = 0; round < rounds; ++round) {
    const int* from = round % 2 ? b : a;
    int* to = round % 2 ? a : b;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
      const int left = from[(i + count - 1) % count], right = from[(i + 1) % count];
      to[i] = left + 3 * from[i] - right;
    }
    wait_for_grid(arrived, phase);
  }
}

// Block 0 writes a message of blockDim.x values and raises a flag, the others read it.
extern "C" __global__ void message(const int* in, int* box, unsigned* flag, int* out) {
  if (blockIdx.x == 0) {
    box[threadIdx.x] = in[threadIdx.x] * 3;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1u);
  } else {
    if (threadIdx.x == 0) {
      while (atomicAdd(flag, 0u) == 0) {
      }
      __threadfence();
    }
    __syncthreads();
    out[(blockIdx.x - 1) * blockDim.x + threadIdx.x] = box[threadIdx.x] + blockIdx.x;
  }
}

// The same between the two halves of a warp and through release and acquire, for parts from 7.0.
extern "C" __global__ void halves(const int* in, int* out) {
  __shared__ int box[16];
  __shared__ unsigned flag;
  const int lane = threadIdx.x;
  if (lane == 0) flag = 0;
  __syncwarp();
  const unsigned where = unsigned(__cvta_generic_to_shared(&flag));
  if (lane < 16) {
    box[lane] = in[lane] + 7;
    __syncwarp(0x0000ffffu);
    if (lane == 0) {
      asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(where), "r"(1u) : "memory");
    }
  } else {
    unsigned seen = 0;
    while (seen == 0) {
      asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(where) : "memory");
    }
    out[lane - 16] = box[lane - 16];
  }
}
