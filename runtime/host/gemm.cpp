#include "runtime/host/gemm.h"

namespace krait {
namespace {

template <typename T>
void run_as(const GemmCalls& calls, const Blas& blas, Pool& pool, void* const* pointers) {
  const T* a = static_cast<const T*>(pointers[calls.a]) + calls.a_offset;
  const T* b = static_cast<const T*>(pointers[calls.b]) + calls.b_offset;
  T* c = static_cast<T*>(pointers[calls.c]) + calls.c_offset;
  std::int64_t total = 1;
  for (const GemmCalls::Loop& loop : calls.loops) total *= loop.count;
  GemmShape shape = calls.shape;
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t rest = i;
    std::int64_t at_a = 0, at_b = 0, at_c = 0;
    shape.accumulate = false;
    for (const GemmCalls::Loop& loop : calls.loops) {
      const std::int64_t position = rest % loop.count;
      rest /= loop.count;
      at_a += position * loop.a;
      at_b += position * loop.b;
      at_c += position * loop.c;
      shape.accumulate |= loop.sum && position > 0;
    }
    blas.gemm(pool, shape, a + at_a, b + at_b, c + at_c);
  }
}

}  // namespace

void run_gemm(const GemmCalls& calls, const Blas& blas, Pool& pool, void* const* pointers) {
  if (calls.dtype == DType::f64)
    run_as<double>(calls, blas, pool, pointers);
  else
    run_as<float>(calls, blas, pool, pointers);
}

}  // namespace krait
