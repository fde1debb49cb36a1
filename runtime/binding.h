// What a plan asks of the tensors that it is given.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/tensor.h"
#include "schedules/plan.h"

namespace krait {

/// Tensors of a call, one per object of the plan; null for temporaries.
using BoundTensors = std::span<const TensorRef* const>;

/// A pair of dims that some view reads as one: the outer one's stride is the inner one's times its
/// size.
struct MergedDims {
  int object = -1;
  int outer = 0;  // the inner one is the next
};
/// Of the caller's tensors.
std::vector<MergedDims> merged_dims(const Plan& plan);

/// The sizes of the plan's symbols, as the shapes of its inputs give them. Throws UsageError that
/// names the tensor, its dimension, its axis and both sizes where shapes do not fit the plan or one
/// another, and the tensor where one is missing or has another dtype. Outputs are checked alike.
/// all = false: tensors that are missing are passed over.
Sizes bind_sizes(const Plan& plan, BoundTensors tensors, bool all = true);

/// Throws UsageError that names tensor, dimension, stride and what is allowed: strides that were
/// compiled in, dims that are read as one, outputs whose elements overlap; and for memory that is
/// missing or not aligned to its elements.
void check_layout(const Plan& plan, const std::vector<MergedDims>& merged, BoundTensors tensors);

/// The shape of an object.
Shape shape_of(const MemoryObject& object, const Sizes& sizes);

}  // namespace krait
