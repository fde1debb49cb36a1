// Calls: device functions that are not inlined, a switch that becomes an indirect branch, and
// function pointers.

__device__ __noinline__ unsigned rotated(unsigned value, unsigned by) {
  return by % 32 == 0 ? value : (value << (by % 32)) | (value >> (32 - by % 32));
}

struct Pair {
  unsigned first, second;
  double third;
};

// A structure as argument and as result.
__device__ __noinline__ Pair swapped(Pair pair, unsigned extra) {
  return {pair.second + extra, rotated(pair.first, 7), pair.third * 0.5};
}

__device__ __noinline__ void into(unsigned* where, unsigned value) { *where = value ^ 0x5a5a5a5au; }

// One step of a small machine.
__device__ __noinline__ unsigned stepped(unsigned code, unsigned a, unsigned b) {
  switch (code) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a & b;
    case 4: return a | b;
    case 5: return a ^ b;
    case 6: return rotated(a, b);
    case 7: return b == 0 ? a : a / b;
    case 8: return b == 0 ? a : a % b;
    case 9: return __popc(a) + b;
    case 10: return __clz(a) * 3 + b;
    case 11: return __brev(a) ^ b;
    case 12: return __byte_perm(a, b, 0x5140);
    case 13: return __umulhi(a, b);
    case 14: return unsigned(min(int(a), int(b)));
    case 15: return __ffs(a) + (b << 3);
    default: return a ^ 0xdeadbeefu;
  }
}

extern "C" __global__ void machine(const unsigned char* codes, int steps, const unsigned* in,
                                   unsigned* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned a = in[i], b = in[(i + 1) % count];
  for (int step = 0; step < steps; ++step) {
    const unsigned next = stepped(codes[(i + step) % steps], a, b);
    b = a;
    a = next;
  }
  out[i] = a;
}

__device__ __noinline__ unsigned doubled(unsigned value) { return value * 2; }
__device__ __noinline__ unsigned squared(unsigned value) { return value * value; }
__device__ __noinline__ unsigned flipped(unsigned value) { return ~value; }
using Function = unsigned (*)(unsigned);
__device__ Function functions[3] = {doubled, squared, flipped};

extern "C" __global__ void pointers(const unsigned* in, unsigned* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = functions[in[i] % 3](in[i]);
}

extern "C" __global__ void structures(const unsigned* in, unsigned* out, double* halves, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Pair pair{in[i], unsigned(i), double(in[i]) + 0.25};
  pair = swapped(pair, 3);
  if (i % 3 == 1) pair = swapped(pair, 11);
  unsigned cell;
  into(&cell, pair.first);
  out[2 * i] = cell;
  out[2 * i + 1] = pair.second;
  halves[i] = pair.third;
}
