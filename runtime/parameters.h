// How parameters are drawn when a layer is built.
#pragma once

#include <cstdint>

#include "dsl/graph.h"
#include "runtime/tensor.h"

namespace krait {

/// Fills a parameter's tensor as its Init says (the formulas stand there). What is drawn depends on
/// the seed, the parameter's name and an element's number in storage order, on nothing else: not on
/// other parameters, the machine or the standard library.
void draw_parameter(const Input& parameter, std::uint64_t seed, const TensorRef& tensor);

}  // namespace krait
