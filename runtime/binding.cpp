#include "runtime/binding.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "dsl/error.h"

namespace krait {
namespace {

constexpr std::size_t most_dims = 16;

std::string title(const MemoryObject& object) {
  return (object.kind == MemoryObject::Kind::input ? "input " : "output ") + object.name;
}

std::string dim_title(const MemoryObject& object, std::size_t d) {
  return text(title(object), ", dimension ", d, " (axis ", object.dims[d].name, ")");
}

std::string axes_text(const MemoryObject& object) {
  std::string names;
  for (const Axis& dim : object.dims) names += (names.empty() ? "" : ", ") + dim.name;
  return "(" + names + ")";
}

bool is_callers(const MemoryObject& object) { return object.kind != MemoryObject::Kind::temporary; }

void check_type(const MemoryObject& object, const TensorRef* tensor) {
  KRAIT_REQUIRE(tensor != nullptr, title(object), " is missing; allowed: a tensor ",
                axes_text(object), " of ", name(object.dtype));
  if (tensor->dtype != object.dtype)
    throw UsageError("dtype of " + title(object), std::string(name(tensor->dtype)),
                     std::string(name(object.dtype)));
  KRAIT_REQUIRE(tensor->shape.size() == object.dims.size(), title(object), " has shape ",
                shape_text(tensor->shape), "; allowed: ", object.dims.size(), " dimensions ",
                axes_text(object));
  KRAIT_REQUIRE(tensor->strides.size() == object.dims.size(), title(object), " has ",
                tensor->strides.size(), " strides; allowed: ", object.dims.size());
  KRAIT_REQUIRE(object.dims.size() <= most_dims, title(object), " has ", object.dims.size(),
                " dimensions; allowed: at most ", most_dims);
}

/// Whether two positions can be one element: sorted by stride, each dim must step over the ones
/// inside it.
bool overlaps(const TensorRef& tensor) {
  std::array<std::pair<std::int64_t, std::int64_t>, most_dims> dims;  // stride, size
  std::size_t count = 0;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.shape[d] > 1) dims[count++] = {tensor.strides[d], tensor.shape[d]};
  std::sort(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count));
  std::int64_t reach = 1;
  for (std::size_t d = 0; d < count; ++d) {
    const auto& [stride, size] = dims[d];
    if (stride < reach) return true;
    reach = stride * (size - 1) + reach;
  }
  return false;
}

}  // namespace

std::vector<MergedDims> merged_dims(const Plan& plan) {
  std::vector<MergedDims> merged;
  auto look_at = [&](const View& view) {
    if (!is_callers(plan.objects[view.object])) return;
    for (const View::Dim& dim : view.dims)
      for (int d = std::max(dim.first, 0); d < dim.last; ++d) {
        const bool known = std::any_of(merged.begin(), merged.end(), [&](const MergedDims& m) {
          return m.object == view.object && m.outer == d;
        });
        if (!known) merged.push_back({view.object, d});
      }
  };
  for (const PlannedKernel& kernel : plan.kernels) {
    for_each_load(kernel, [&](Value, const std::vector<View>& views) {
      for (const View& view : views) look_at(view);
    });
    for (const auto& [value, view] : kernel.stores) look_at(view);
  }
  return merged;
}

Sizes bind_sizes(const Plan& plan, BoundTensors tensors, bool all) {
  Sizes sizes;
  std::map<std::string, std::string> givers;
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    const MemoryObject& object = plan.objects[i];
    if (!is_callers(object) || (!all && tensors[i] == nullptr)) continue;
    check_type(object, tensors[i]);
    for (std::size_t d = 0; d < object.dims.size(); ++d) {
      const std::int64_t size = tensors[i]->shape[d];
      if (size < 1) throw UsageError(dim_title(object, d), std::to_string(size), "1 and up");
      const Extent& extent = object.dims[d].extent;
      if (object.kind != MemoryObject::Kind::input || extent.is_constant() || extent.divisor != 1)
        continue;
      const std::int64_t symbol = size - extent.offset;
      if (symbol < 1)
        throw UsageError(dim_title(object, d), std::to_string(size),
                         text(1 + extent.offset, " and up"));
      const auto [found, first] = sizes.emplace(extent.symbol, symbol);
      if (first)
        givers[extent.symbol] = dim_title(object, d);
      else if (found->second != symbol)
        throw UsageError(
            dim_title(object, d), std::to_string(size),
            text(found->second + extent.offset, ", as ", givers.at(extent.symbol), " has it"));
    }
  }
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    const MemoryObject& object = plan.objects[i];
    if (!is_callers(object) || tensors[i] == nullptr) continue;
    for (std::size_t d = 0; d < object.dims.size(); ++d) {
      const std::int64_t wanted = object.dims[d].extent.value(sizes);
      if (tensors[i]->shape[d] != wanted)
        throw UsageError(dim_title(object, d), std::to_string(tensors[i]->shape[d]),
                         std::to_string(wanted));
    }
  }
  return sizes;
}

void check_layout(const Plan& plan, const std::vector<MergedDims>& merged, BoundTensors tensors) {
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    const MemoryObject& object = plan.objects[i];
    if (!is_callers(object)) continue;
    const TensorRef& tensor = *tensors[i];
    KRAIT_REQUIRE(tensor.data != nullptr, title(object), " has no memory; allowed: a pointer to ",
                  shape_text(tensor.shape), " elements of ", name(object.dtype));
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
    const int bytes = size_in_bytes(object.dtype);
    if (address % bytes != 0)
      throw UsageError("address of " + title(object), std::to_string(address),
                       text("multiples of ", bytes));
    for (std::size_t d = 0; d < object.dims.size(); ++d) {
      const std::int64_t stride = tensor.strides[d];
      if (tensor.shape[d] == 1) continue;  // never stepped over
      if (stride < 0)
        throw UsageError("stride of " + dim_title(object, d), std::to_string(stride), "0 and up");
      if (object.strides[d] != 0 && stride != object.strides[d])
        throw UsageError("stride of " + dim_title(object, d), std::to_string(stride),
                         std::to_string(object.strides[d]));
    }
    if (object.kind == MemoryObject::Kind::output && overlaps(tensor))
      throw UsageError(
          "strides of " + title(object), shape_text(tensor.strides),
          "strides that keep the elements of shape " + shape_text(tensor.shape) + " apart");
  }
  for (const MergedDims& pair : merged) {
    const MemoryObject& object = plan.objects[pair.object];
    const TensorRef& tensor = *tensors[pair.object];
    const std::size_t outer = static_cast<std::size_t>(pair.outer), inner = outer + 1;
    if (tensor.shape[outer] == 1) continue;
    const std::int64_t wanted = tensor.strides[inner] * tensor.shape[inner];
    if (tensor.strides[outer] != wanted)
      throw UsageError("stride of " + dim_title(object, outer),
                       std::to_string(tensor.strides[outer]),
                       text(wanted, ", so that it is dense with the next dimension"));
  }
}

Shape shape_of(const MemoryObject& object, const Sizes& sizes) {
  Shape shape;
  for (const Axis& dim : object.dims) shape.push_back(dim.extent.value(sizes));
  return shape;
}

}  // namespace krait
