// Counts of byte values: atomics in shared memory, then one addition a bin to global memory.

extern "C" __global__ void histogram(const unsigned char* values, int count, unsigned* bins) {
  __shared__ unsigned mine[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[values[i]], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) {
    if (mine[i] != 0) atomicAdd(&bins[i], mine[i]);
  }
}

// Every kind of atomic update, on one cell each of a type: cells start as the host set them.
struct Cells {
  int* i32;
  unsigned* u32;
  unsigned long long* u64;
  float* f32;
  double* f64;
};

extern "C" __global__ void atomics(const int* values, int count, Cells cells, unsigned* places) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int value = values[i];
  atomicAdd(&cells.i32[0], value);
  atomicSub(&cells.i32[1], value);
  atomicMin(&cells.i32[2], value);
  atomicMax(&cells.i32[3], value);
  atomicAnd(&cells.u32[0], unsigned(value));
  atomicOr(&cells.u32[1], unsigned(value));
  atomicXor(&cells.u32[2], unsigned(value));
  places[atomicInc(&cells.u32[3], 0xffffffffu)] = i;  // every place once
  atomicDec(&cells.u32[4], 0xffffffffu);
  atomicAdd(&cells.u64[0], (unsigned long long)value);
  atomicMax(&cells.u64[1], (unsigned long long)(unsigned)value);
  atomicAdd(&cells.f32[0], float(value));
  atomicAdd(&cells.f64[0], double(value));
  // A sum of squares by compare and swap.
  unsigned long long old = cells.u64[2], seen;
  do {
    seen = old;
    old = atomicCAS(&cells.u64[2], seen, seen + (unsigned long long)((long long)value * value));
  } while (old != seen);
}
