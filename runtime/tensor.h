// Tensors at run time: views of the caller's memory, and memory of krait's own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "dsl/dtype.h"
#include "dsl/evaluate.h"
#include "runtime/memory.h"

namespace krait {

using Shape = std::vector<std::int64_t>;

/// Strides, in elements, of a tensor whose last dimension is contiguous.
Shape dense_strides(const Shape& shape);
/// Bytes of a dense tensor. Throws UsageError for more than 63 bits can count.
std::int64_t bytes_of(DType dtype, const Shape& shape);
/// Elements. Throws UsageError for a size below 1, and for more than 63 bits can count.
std::int64_t count_of(const Shape& shape);

/// The dtype of a C++ type; bf16 and f16 have none and are named outright.
template <typename T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                std::is_same_v<T, std::int32_t>);
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  return DType::i32;
}

/// Memory of someone else, as a tensor: of this process, or of a GPU, as a framework's tensor has
/// it (data_ptr, shape, strides), which is read and written where it is. It must outlive what uses
/// the view.
struct TensorRef {
  void* data = nullptr;  ///< of the element with all positions 0
  DType dtype = DType::f32;
  Shape shape;
  Shape strides;  ///< elements from one position of a dimension to the next

  /// Tensors are read only where they are inputs, so memory that may not be written can be given
  /// there. Without strides: dense.
  TensorRef() = default;
  TensorRef(const void* memory, DType type, Shape sizes, Shape steps = {});
  template <typename T>
  TensorRef(T* memory, Shape sizes, Shape steps = {})
      : TensorRef(static_cast<const void*>(memory), dtype_of<std::remove_const_t<T>>(),
                  std::move(sizes), std::move(steps)) {}

  std::int64_t count() const { return count_of(shape); }
  /// Whether elements lie one after the other, the last dimension fastest.
  bool is_dense() const;
};

/// Tensors by name.
using TensorMap = std::map<std::string, TensorRef>;

class Device;

/// Dense memory, aligned to 64 bytes, zero to begin with: of this process, or of a device, whose
/// elements are read and written by way of it (device.h). The memory goes back in the order of the
/// stream that it was made in: let work that uses it in another stream end before.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape);
  /// Zero when the constructor returns, so that any stream may use it.
  Tensor(DType dtype, Shape shape, Device& device);
  /// Zero for what follows in the order of `stream`.
  Tensor(DType dtype, Shape shape, Device& device, Stream stream);
  /// Takes `memory`, large enough, with the elements that are there.
  Tensor(DType dtype, Shape shape, Memory memory);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t count() const { return data() ? count_of(shape_) : 0; }
  void* data() { return memory_.data(); }
  const void* data() const { return memory_.data(); }
  /// The elements, of a tensor in memory of this process. Throws UsageError where T is not the
  /// tensor's dtype.
  template <typename T>
  T* data_as() {
    require_dtype(dtype_of<T>());
    return static_cast<T*>(data());
  }
  template <typename T>
  const T* data_as() const {
    require_dtype(dtype_of<T>());
    return static_cast<const T*>(data());
  }
  TensorRef ref() const { return {memory_.data(), dtype_, shape_}; }

 private:
  void require_dtype(DType wanted) const;

  DType dtype_ = DType::f32;
  Shape shape_;
  Memory memory_;
};

using Tensors = std::map<std::string, Tensor>;

/// Views of all of them.
TensorMap refs(const Tensors& tensors);

/// Copies, or adds, element by element, converting between dtypes. Throws UsageError for shapes
/// that differ; `what` names the destination in its message.
void copy(const TensorRef& from, const TensorRef& to, const std::string& what = "tensor");
void add(const TensorRef& from, const TensorRef& to, const std::string& what = "tensor");

/// To and from what `evaluate` takes, rounded to nearest; i32 takes whole numbers only.
Tensor64 to_float64(const TensorRef& tensor);
Tensor from_float64(const Tensor64& tensor, DType dtype);

/// "(2, 129, 16)".
std::string shape_text(const Shape& shape);

}  // namespace krait
