// A kernel in LLVM IR, written by hand: y[i] += scale x[i], eight floats a grid point.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "runtime/host/compiler.h"
#include "runtime/host/pool.h"

namespace krait::test {

/// Kernels of different `factor` differ in their text and multiply x by it once more.
inline KernelSource axpy_source(int factor = 1) {
  const std::string text = R"(
define void @axpy(ptr %buffers, ptr %arguments, ptr %scratch, i64 %begin, i64 %end) {
entry:
  %x = load ptr, ptr %buffers
  %y.slot = getelementptr ptr, ptr %buffers, i64 1
  %y = load ptr, ptr %y.slot
  %integer = load i64, ptr %arguments
  %product = mul i64 %integer, )" +
                           std::to_string(factor) + R"(
  %scale = sitofp i64 %product to float
  %one = insertelement <8 x float> poison, float %scale, i64 0
  %scales = shufflevector <8 x float> %one, <8 x float> poison, <8 x i32> zeroinitializer
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %offset = shl i64 %i, 3
  %x.at = getelementptr float, ptr %x, i64 %offset
  %y.at = getelementptr float, ptr %y, i64 %offset
  %x.value = load <8 x float>, ptr %x.at, align 4
  %y.value = load <8 x float>, ptr %y.at, align 4
  %sum = call <8 x float> @llvm.fma.v8f32(<8 x float> %scales, <8 x float> %x.value, <8 x float> %y.value)
  store <8 x float> %sum, ptr %y.at, align 4
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
)";
  return {"axpy", "axpy", text, KernelSource::Backend::llvm, {}};
}

/// Runs it over the pool and says whether every element is what it must be.
inline bool axpy_is_right(const Executable& kernel, int factor, Pool& pool) {
  constexpr int points = 1000;
  std::vector<float> x(8 * points), y(8 * points);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 100, y[i] = i % 7;
  void* const buffers[] = {x.data(), y.data()};
  const std::int64_t arguments[] = {3};
  pool.parallel_for(points, 0, [&](std::int64_t begin, std::int64_t end, void* scratch) {
    host_kernel(kernel)(buffers, arguments, scratch, begin, end);
  });
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (y[i] != static_cast<float>(i % 7 + 3 * factor * (i % 100))) return false;
  }
  return true;
}

}  // namespace krait::test
