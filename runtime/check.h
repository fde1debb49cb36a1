// Fixtures: a block's inputs and cotangents with the outputs and gradients that they must give.
//
// A fixture is a safetensors file. in.NAME, out.NAME, cot.NAME (the cotangent of out.NAME) and
// grad.NAME (the gradient of in.NAME, one for every floating input); metadata "op", the block, and
// "options", its options as JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dsl/dtype.h"
#include "dsl/evaluate.h"
#include "schedules/schedule.h"

namespace krait {

struct Fixture {
  std::string op, options;
  Tensors64 inputs, outputs, cotangents, gradients;  // by name without the prefix
};

/// Reads a fixture and checks that it is whole: an output at least, a cotangent for every output, a
/// gradient for every floating input, shapes that agree. Throws UsageError, or EnvironmentError
/// where the file cannot be read.
Fixture load_fixture(const std::string& path);

struct CheckOptions {
  std::string device = "evaluate";
  DType dtype = DType::f64;  // of activations
  /// plan=step: windows of one position, states carried, and zeroed where a document starts;
  /// outputs only.
  Schedule schedule;
};

/// One output or gradient. In a backbone the gradients of one parameter are one row, pooled over
/// the layers.
struct CheckRow {
  std::string name;  // "out.y", "grad.x"
  double error = 0, bound = 0;
  bool passed() const { return error <= bound; }  // NaN fails
};

struct CheckReport {
  std::string op;
  std::vector<std::string> notes;
  std::vector<CheckRow> rows;
  /// SHA-256 of what the device gave, by "out.NAME" and "grad.NAME", for comparisons of bits.
  std::map<std::string, std::string> digests;
  bool passed() const;  // a report without rows has not passed
};

/// Runs a fixture. Throws UsageError where the block, the device or the schedule cannot.
CheckReport check_fixture(const Fixture& fixture, const CheckOptions& options);

/// |got - ref| / max(|ref|, 1e-3 sqrt(count)), L2 norms; NaN where a shape differs.
double tensor_error(const Tensor64& got, const Tensor64& reference);
/// |wrapped difference| / (pi sqrt(count)), of angles in radians.
double angle_error(const Tensor64& got, const Tensor64& reference);

/// What the error of an output or a gradient may be, for a device that computes in `dtype`.
double output_bound(const std::string& op, DType dtype);
double gradient_bound(const std::string& op, const std::string& input, DType dtype);

}  // namespace krait
