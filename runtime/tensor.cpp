#include "runtime/tensor.h"

#include <array>
#include <cmath>
#include <cstring>

#include "dsl/error.h"
#include "runtime/device.h"
#include "runtime/half.h"

namespace krait {
namespace {

constexpr std::size_t most_dims = 16;

double load(const void* data, DType dtype, std::int64_t at) {
  switch (dtype) {
    case DType::f64: return static_cast<const double*>(data)[at];
    case DType::f32: return static_cast<const float*>(data)[at];
    case DType::i32: return static_cast<const std::int32_t*>(data)[at];
    case DType::bf16: return bf16_to_float(static_cast<const std::uint16_t*>(data)[at]);
    case DType::f16: return f16_to_float(static_cast<const std::uint16_t*>(data)[at]);
  }
  return 0;
}

void store(void* data, DType dtype, std::int64_t at, double value) {
  switch (dtype) {
    case DType::f64: static_cast<double*>(data)[at] = value; return;
    case DType::f32: static_cast<float*>(data)[at] = static_cast<float>(value); return;
    case DType::i32:
      if (value != std::floor(value) || std::abs(value) > 0x1p31 - 1)
        throw UsageError("element of an i32 tensor", text(value), "whole numbers of 32 bits");
      static_cast<std::int32_t*>(data)[at] = static_cast<std::int32_t>(value);
      return;
    case DType::bf16: static_cast<std::uint16_t*>(data)[at] = double_to_bf16(value); return;
    case DType::f16: static_cast<std::uint16_t*>(data)[at] = double_to_f16(value); return;
  }
}

/// Calls f(offset in a, offset in b) for every element, the last dimension innermost.
template <typename F>
void for_each_pair(const TensorRef& a, const TensorRef& b, const F& f) {
  const std::size_t rank = a.shape.size();
  if (rank > most_dims)
    throw UsageError("rank of a tensor", std::to_string(rank), text("at most ", most_dims));
  std::array<std::int64_t, most_dims> position{};
  const std::int64_t inner = rank == 0 ? 1 : a.shape[rank - 1];
  const std::int64_t a_step = rank == 0 ? 0 : a.strides[rank - 1];
  const std::int64_t b_step = rank == 0 ? 0 : b.strides[rank - 1];
  for (;;) {
    std::int64_t at_a = 0, at_b = 0;
    for (std::size_t d = 0; d + 1 < rank; ++d) {
      at_a += position[d] * a.strides[d];
      at_b += position[d] * b.strides[d];
    }
    for (std::int64_t i = 0; i < inner; ++i) f(at_a + i * a_step, at_b + i * b_step);
    std::size_t d = rank;
    for (;;) {
      if (d < 2) return;
      if (++position[d - 2] < a.shape[d - 2]) break;
      position[d - 2] = 0;
      --d;
    }
  }
}

void require_same_shape(const TensorRef& from, const TensorRef& to, const std::string& what) {
  if (from.shape != to.shape)
    throw UsageError("shape of " + what, shape_text(from.shape), shape_text(to.shape));
}

/// Adds elements of one type, without a way through double.
template <typename T>
void add_as(const TensorRef& from, const TensorRef& to) {
  const T* source = static_cast<const T*>(from.data);
  T* target = static_cast<T*>(to.data);
  if (from.is_dense() && to.is_dense()) {
    const std::int64_t count = from.count();
    for (std::int64_t i = 0; i < count; ++i) target[i] += source[i];
    return;
  }
  for_each_pair(from, to, [&](std::int64_t a, std::int64_t b) { target[b] += source[a]; });
}

}  // namespace

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t size : shape) {
    if (size < 1) throw UsageError("shape", shape_text(shape), "sizes of 1 and up");
    if (__builtin_mul_overflow(count, size, &count))
      throw UsageError("shape", shape_text(shape), "fewer elements than 2^63");
  }
  return count;
}

std::string shape_text(const Shape& shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += (d > 0 ? ", " : "") + std::to_string(shape[d]);
  return text + ")";
}

TensorRef::TensorRef(const void* memory, DType type, Shape sizes, Shape steps)
    : data(const_cast<void*>(memory)),
      dtype(type),
      shape(std::move(sizes)),
      strides(std::move(steps)) {
  if (strides.empty()) strides = dense_strides(shape);
  if (strides.size() != shape.size())
    throw UsageError("strides", shape_text(strides), text(shape.size(), " numbers, as of shape"));
}

bool TensorRef::is_dense() const {
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

std::int64_t bytes_of(DType dtype, const Shape& shape) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count_of(shape), size_in_bytes(dtype), &bytes))
    throw UsageError("shape", shape_text(shape), "fewer bytes than 2^63");
  return bytes;
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), memory_(host_memory(bytes_of(dtype_, shape_))) {
  std::memset(memory_.data(), 0, static_cast<std::size_t>(bytes_of(dtype_, shape_)));
}

Tensor::Tensor(DType dtype, Shape shape, Device& device)
    : Tensor(dtype, std::move(shape), device, Stream()) {
  device.finish();
}

Tensor::Tensor(DType dtype, Shape shape, Device& device, Stream stream)
    : dtype_(dtype),
      shape_(std::move(shape)),
      memory_(device.allocate(bytes_of(dtype_, shape_), stream)) {
  device.clear(memory_.data(), bytes_of(dtype_, shape_), stream);
}

Tensor::Tensor(DType dtype, Shape shape, Memory memory)
    : dtype_(dtype), shape_(std::move(shape)), memory_(std::move(memory)) {}

void Tensor::require_dtype(DType wanted) const {
  if (wanted != dtype_)
    throw UsageError("type of the elements", std::string(name(wanted)), std::string(name(dtype_)));
}

TensorMap refs(const Tensors& tensors) {
  TensorMap map;
  for (const auto& [name, tensor] : tensors) map[name] = tensor.ref();
  return map;
}

void copy(const TensorRef& from, const TensorRef& to, const std::string& what) {
  require_same_shape(from, to, what);
  if (from.dtype == to.dtype && from.is_dense() && to.is_dense()) {
    std::memmove(to.data, from.data,
                 static_cast<std::size_t>(from.count()) * size_in_bytes(from.dtype));
    return;
  }
  for_each_pair(from, to, [&](std::int64_t a, std::int64_t b) {
    store(to.data, to.dtype, b, load(from.data, from.dtype, a));
  });
}

void add(const TensorRef& from, const TensorRef& to, const std::string& what) {
  require_same_shape(from, to, what);
  if (from.dtype == to.dtype && from.dtype == DType::f32) return add_as<float>(from, to);
  if (from.dtype == to.dtype && from.dtype == DType::f64) return add_as<double>(from, to);
  for_each_pair(from, to, [&](std::int64_t a, std::int64_t b) {
    store(to.data, to.dtype, b, load(to.data, to.dtype, b) + load(from.data, from.dtype, a));
  });
}

Tensor64 to_float64(const TensorRef& tensor) {
  Tensor64 result(tensor.shape);
  copy(tensor, {result.data.data(), DType::f64, result.shape});
  return result;
}

Tensor from_float64(const Tensor64& tensor, DType dtype) {
  Tensor result(dtype, tensor.shape);
  copy({tensor.data.data(), DType::f64, tensor.shape}, result.ref());
  return result;
}

}  // namespace krait
