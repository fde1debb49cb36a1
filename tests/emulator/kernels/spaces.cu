// Local arrays, constant memory, structures as parameters, dynamic shared memory.

__constant__ float coefficients[8];
__device__ unsigned launches;

// Sorts 16 values a thread in local memory, by index.
extern "C" __global__ void sorted(const int* in, int* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int values[16];
  for (int k = 0; k < 16; ++k) {
    const int value = in[i * 16 + k];
    int at = k;
    while (at > 0 && values[at - 1] > value) {
      values[at] = values[at - 1];
      --at;
    }
    values[at] = value;
  }
  for (int k = 0; k < 16; ++k) out[i * 16 + k] = values[k];
}

// A polynomial by coefficients in constant memory, of a degree that the thread decides.
extern "C" __global__ void polynomial(const float* in, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) launches += 1;
  if (i >= count) return;
  float sum = 0;
  for (int k = i % 8; k >= 0; --k) sum = sum * in[i] + coefficients[k];
  out[i] = sum;
}

struct Strided {
  int* base;
  int strides[3];
  unsigned char extents[3];
  double scale;
};

// out[x][y][z] += scale * a table in the parameters, chosen by index.
extern "C" __global__ void strided(Strided p, int which, float4 table) {
  for (int i = threadIdx.x; i < p.extents[0] * p.extents[1] * p.extents[2]; i += blockDim.x) {
    int place = 0, rest = i;
    for (int d = 2; d >= 0; --d) {
      place += rest % p.extents[d] * p.strides[d];
      rest /= p.extents[d];
    }
    const float values[4] = {table.x, table.y, table.z, table.w};
    p.base[place] += int(p.scale * values[(which + i) & 3]);
  }
}

// Reverses as many ints as there is dynamic shared memory for, a block.
extern __shared__ int dynamic[];
extern "C" __global__ void reversed(const int* in, int* out, int count) {
  in += (long long)blockIdx.x * count;
  out += (long long)blockIdx.x * count;
  for (int i = threadIdx.x; i < count; i += blockDim.x) dynamic[i] = in[i];
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = dynamic[count - 1 - i];
}
