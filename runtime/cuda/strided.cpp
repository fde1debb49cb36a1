#include "runtime/cuda/strided.h"

#include <algorithm>

#include "dsl/error.h"

namespace krait {

StridedCall strided_call(const TensorRef& from, const TensorRef& to, bool adds) {
  if (from.shape != to.shape)
    throw UsageError("shape", shape_text(from.shape), shape_text(to.shape));
  if (from.dtype != to.dtype)
    throw UsageError("dtype", std::string(name(from.dtype)), std::string(name(to.dtype)));
  if (static_cast<int>(from.shape.size()) > StridedCall::most_dims)
    throw UsageError("rank of a tensor", std::to_string(from.shape.size()), "at most 16");
  std::string type;
  switch (to.dtype) {
    case DType::f32: type = "float"; break;
    case DType::f64: type = "double"; break;
    case DType::i32: type = "int"; break;
    default:
      if (adds) throw UsageError("dtype of a sum", std::string(name(to.dtype)), "f32, f64, i32");
      type = "unsigned short";
  }
  StridedCall call;
  const std::string entry = adds ? "add_strided" : "copy_strided";
  call.source.name = call.source.entry = entry;
  call.source.backend = KernelSource::Backend::cuda;
  call.source.options = {"--std=c++17"};
  call.source.text =
      "// Element by element, whatever the strides.\n"
      "typedef long long i64;\n"
      "struct Dims { i64 rank, shape[16], to[16], from[16]; };\n"
      "extern \"C\" __global__ void " +
      entry + "(" + type + "* to, const " + type +
      "* from, Dims dims, i64 count) {\n"
      "  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < count;\n"
      "       i += gridDim.x * (i64)blockDim.x) {\n"
      "    i64 rest = i, at = 0, source = 0;\n"
      "    for (int d = (int)dims.rank - 1; d >= 0; --d) {\n"
      "      const i64 position = rest % dims.shape[d];\n"
      "      rest /= dims.shape[d];\n"
      "      at += position * dims.to[d];\n"
      "      source += position * dims.from[d];\n"
      "    }\n"
      "    to[at] " +
      (adds ? "+= " : "= ") +
      "from[source];\n"
      "  }\n"
      "}\n";
  call.from = from.data;
  call.to = to.data;
  call.dims.rank = static_cast<std::int64_t>(to.shape.size());
  for (std::size_t d = 0; d < to.shape.size(); ++d) {
    call.dims.shape[d] = to.shape[d];
    call.dims.to[d] = to.strides[d];
    call.dims.from[d] = from.strides[d];
  }
  call.count = to.count();
  constexpr std::int64_t most_blocks = 4096;
  call.blocks = static_cast<unsigned>(
      std::clamp<std::int64_t>((call.count + call.threads - 1) / call.threads, 1, most_blocks));
  return call;
}

}  // namespace krait
