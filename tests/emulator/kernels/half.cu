// Packed half precision, one operation a column of the result.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef ELEMENT_BF16
using Element = __nv_bfloat16;
using Two = __nv_bfloat162;
__device__ Two two(float2 v) { return __float22bfloat162_rn(v); }
__device__ float2 wide(Two v) { return __bfloat1622float2(v); }
__device__ float wide(Element v) { return __bfloat162float(v); }
__device__ Element low_of(Two v) { return __low2bfloat16(v); }
__device__ Element high_of(Two v) { return __high2bfloat16(v); }
#else
using Element = __half;
using Two = __half2;
__device__ Two two(float2 v) { return __float22half2_rn(v); }
__device__ float2 wide(Two v) { return __half22float2(v); }
__device__ float wide(Element v) { return __half2float(v); }
__device__ Element low_of(Two v) { return __low2half(v); }
__device__ Element high_of(Two v) { return __high2half(v); }
#endif

constexpr int kColumns = 14;

extern "C" __global__ void packed(const float2* a, const float2* b, const float2* c, float2* out,
                                  int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const Two x = two(a[i]), y = two(b[i]), z = two(c[i]);
  float2* const row = out + (long long)i * kColumns;
  row[0] = wide(x);
  row[1] = wide(__hadd2(x, y));
  row[2] = wide(__hsub2(x, y));
  row[3] = wide(__hmul2(x, y));
  row[4] = wide(__hfma2(x, y, z));
  row[5] = wide(__hmax2(x, y));
  row[6] = wide(__hmin2(x, y));
  row[7] = wide(__hneg2(x));
  row[8] = wide(__habs2(x));
  row[9] = wide(__hgt2(x, y));
  row[10] = wide(__heq2(x, x));
  const Element low = low_of(x), high = high_of(y);
  row[11] = make_float2(wide(__hadd(low, high)), wide(__hmul(low, high)));
  row[12] = make_float2(__hlt(low, high) ? 1.f : 0.f, wide(__hfma(low, high, low)));
  row[13] = wide(__lowhigh2highlow(x));
}

// Conversions of integers and back.
extern "C" __global__ void converted(const int* in, int* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
#ifdef ELEMENT_BF16
  const Element value = __int2bfloat16_rn(in[i]);
  out[i] = __bfloat162int_rz(value) + (__bfloat16_as_ushort(value) << 8);
#else
  const Element value = __int2half_rn(in[i]);
  out[i] = __half2int_rz(value) + (__half_as_ushort(value) << 8);
#endif
}
