#include "runtime/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "dsl/error.h"
#include "runtime/fixture.h"
#include "runtime/runner.h"
#include "runtime/safetensors.h"
#include "runtime/sha256.h"
#include "runtime/windows.h"

namespace krait {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Sums of which an error is made; those of several tensors add up.
struct Squares {
  double difference = 0, reference = 0;
  std::int64_t count = 0;

  void add(const Tensor64& got, const Tensor64& expected) {
    if (got.shape != expected.shape) difference = kNaN;
    for (std::size_t i = 0; i < std::min(got.data.size(), expected.data.size()); ++i) {
      difference += (got.data[i] - expected.data[i]) * (got.data[i] - expected.data[i]);
      reference += expected.data[i] * expected.data[i];
    }
    count += expected.count();
  }
  double error() const {
    const double least = 1e-3 * std::sqrt(static_cast<double>(count));
    const double scale = std::max(std::sqrt(reference), least);
    return count == 0 && difference == 0 ? 0 : std::sqrt(difference) / scale;
  }
};

bool is_backbone(const std::string& op) { return op == "backbone"; }
bool is_block(const std::string& op) { return op.ends_with("_block"); }

/// "layers.3.mixer.D" is one of "layers.*.mixer.D".
std::string pooled_name(const std::string& op, const std::string& input) {
  const std::string prefix = "layers.";
  const std::size_t dot = input.find('.', prefix.size());
  if (!is_backbone(op) || !input.starts_with(prefix) || dot == std::string::npos) return input;
  return prefix + "*" + input.substr(dot);
}

std::string joined(const std::set<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::set<std::string> keys(const Tensors64& tensors) {
  std::set<std::string> names;
  for (const auto& [name, unused] : tensors) names.insert(name);
  return names;
}

void require_fit(const std::string& path, const std::string& what, const Tensors64& tensors,
                 const std::string& of, const Tensors64& others) {
  KRAIT_REQUIRE(keys(tensors) == keys(others), path, ": tensors ", what, " are of ",
                joined(keys(tensors)), "; allowed: one for each of ", of, ": ",
                joined(keys(others)));
  for (const auto& [name, tensor] : tensors) {
    KRAIT_REQUIRE(tensor.shape == others.at(name).shape, path, ": tensor ", what, name,
                  " has another shape than ", of, name, "; allowed: the same");
  }
}

std::string metadata(const SafeTensors& file, const std::string& path, const std::string& key) {
  const auto found = file.metadata.find(key);
  KRAIT_REQUIRE(found != file.metadata.end(), path, ": __metadata__ has no \"", key,
                "\"; allowed: op and options, both");
  return found->second;
}

CheckRow output_row(const std::string& name, const Tensors64& got, const Tensor64& expected,
                    double bound) {
  const auto found = got.find(name);
  if (found == got.end()) return {"out." + name, kNaN, bound};
  const bool is_angle = name == "state.angle";
  const double error =
      is_angle ? angle_error(found->second, expected) : tensor_error(found->second, expected);
  return {"out." + name, error, bound};
}

/// Of shape and values, where every NaN is the same one.
std::string digest(const Tensor64& tensor) {
  Sha256 hash;
  for (const std::int64_t size : tensor.shape) hash.update(text(size, ' '));
  for (double value : tensor.data) {
    if (std::isnan(value)) value = kNaN;
    hash.update({reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  return hex(hash.finish());
}

/// Neither a tensor of the fixture nor one of the block may go unseen; only the final states of a
/// backbone's layers are not in its fixtures.
void require_same_names(const Graph& graph, const Fixture& fixture) {
  std::set<std::string> in, out;
  for (const Value& value : graph.inputs()) in.insert(graph.input_of(value).name);
  for (const Output& output : graph.outputs()) {
    const bool layer_state = is_backbone(fixture.op) && output.name.starts_with("layers.");
    if (!layer_state) out.insert(output.name);
  }
  KRAIT_REQUIRE(in == keys(fixture.inputs), "inputs are ", joined(keys(fixture.inputs)),
                "; allowed: those of the block: ", joined(in));
  KRAIT_REQUIRE(out == keys(fixture.outputs), "outputs are ", joined(keys(fixture.outputs)),
                "; allowed: those of the block: ", joined(out));
}

/// `evaluate` computes in float64 whatever the dtypes of the graph.
DType computed_dtype(const CheckOptions& options) {
  return options.device == "evaluate" ? DType::f64 : options.dtype;
}

}  // namespace

bool CheckReport::passed() const {
  return !rows.empty() &&
         std::all_of(rows.begin(), rows.end(), [](const CheckRow& row) { return row.passed(); });
}

Fixture load_fixture(const std::string& path) {
  const SafeTensors file = load_safetensors(path);
  Fixture fixture;
  fixture.op = metadata(file, path, "op");
  fixture.options = metadata(file, path, "options");
  Tensors64 floating;
  for (const auto& [name, stored] : file.tensors) {
    const std::size_t dot = name.find('.');
    const std::string prefix = name.substr(0, dot);
    const std::string rest = dot == std::string::npos ? "" : name.substr(dot + 1);
    Tensors64* const tensors = prefix == "in"     ? &fixture.inputs
                               : prefix == "out"  ? &fixture.outputs
                               : prefix == "cot"  ? &fixture.cotangents
                               : prefix == "grad" ? &fixture.gradients
                                                  : nullptr;
    KRAIT_REQUIRE(tensors != nullptr && !rest.empty(), path, ": tensor is called \"", name,
                  "\"; allowed: in.NAME, out.NAME, cot.NAME, grad.NAME");
    (*tensors)[rest] = to_tensor64(stored);
    if (prefix == "in" && is_float(stored.dtype)) floating[rest] = fixture.inputs[rest];
  }
  KRAIT_REQUIRE(!fixture.outputs.empty(), path, ": tensors out. are none; allowed: one at least");
  require_fit(path, "cot.", fixture.cotangents, "out.", fixture.outputs);
  require_fit(path, "grad.", fixture.gradients, "floating in.", floating);
  return fixture;
}

double tensor_error(const Tensor64& got, const Tensor64& reference) {
  Squares squares;
  squares.add(got, reference);
  return squares.error();
}

double angle_error(const Tensor64& got, const Tensor64& reference) {
  if (got.shape != reference.shape) return kNaN;
  if (reference.data.empty()) return 0;
  double sum = 0;
  for (std::size_t i = 0; i < reference.data.size(); ++i) {
    const double wrapped = std::remainder(got.data[i] - reference.data[i], 2 * std::numbers::pi);
    sum += wrapped * wrapped;
  }
  return std::sqrt(sum / static_cast<double>(reference.count())) / std::numbers::pi;
}

double output_bound(const std::string& op, DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-10;
    case DType::f32: return 1e-5;
    case DType::f16: return 2e-3;
    case DType::bf16: return is_backbone(op) ? 2e-2 : is_block(op) ? 1.2e-2 : 6e-3;
    case DType::i32: break;
  }
  throw UsageError("dtype", "i32", "f64, f32, bf16, f16");
}

double gradient_bound(const std::string& op, const std::string& input, DType dtype) {
  const bool carried_angle = input == "state.angle";
  const bool angle = carried_angle || input == "angles";
  switch (dtype) {
    case DType::f64: return 1e-10;
    case DType::f32: return 5e-5;
    case DType::f16: return is_backbone(op) ? 8e-3 : angle ? 6e-3 : 4e-3;
    case DType::bf16:
      if (is_backbone(op)) return 5e-2;
      return carried_angle ? 4e-2 : angle ? 2.5e-2 : 2e-2;
    case DType::i32: break;
  }
  throw UsageError("dtype", "i32", "f64, f32, bf16, f16");
}

CheckReport check_fixture(const Fixture& fixture, const CheckOptions& options) {
  const bool step = options.schedule.plan == PlanKind::step;
  CheckReport report;
  report.op = fixture.op;
  const DType computed = computed_dtype(options);

  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& [name, tensor] : fixture.inputs) shapes[name] = tensor.shape;
  RunRequest request;
  request.name = fixture.op;
  request.graph = fixture_graph(fixture.op, fixture.options, shapes, options.dtype);
  require_same_names(request.graph, fixture);
  request.schedule = options.schedule;
  request.sizes = sizes_from_inputs(request.graph, fixture.inputs);
  Tensors64 inputs = fixture.inputs;
  if (step) {
    // Windows are joined by states, which a fixture need not name.
    const BlockSpec spec = fixture_spec(fixture.op, fixture.options, shapes);
    request.graph = build_graph(block_function(with_states(spec, true)), options.dtype);
    add_zero_states(request.graph, request.sizes, inputs);
    request.sizes["t"] = 1;
  } else {
    for (const auto& [name, unused] : fixture.cotangents) request.cotangents.push_back(name);
    for (const auto& [name, unused] : fixture.gradients) request.wanted.push_back(name);
  }
  const std::unique_ptr<Runner> runner = make_runner(options.device, request);
  const RunResult result = step ? RunResult{run_in_windows(request.graph, *runner, inputs, 1), {}}
                                : runner->run(inputs, fixture.cotangents);
  report.notes = runner->notes();
  for (const auto& [name, tensor] : result.outputs) report.digests["out." + name] = digest(tensor);
  for (const auto& [name, tensor] : result.gradients)
    report.digests["grad." + name] = digest(tensor);

  for (const auto& [name, expected] : fixture.outputs) {
    report.rows.push_back(
        output_row(name, result.outputs, expected, output_bound(fixture.op, computed)));
  }
  if (step) return report;
  std::map<std::string, Squares> pools;
  for (const auto& [name, expected] : fixture.gradients) {
    const auto found = result.gradients.find(name);
    Squares& pool = pools[pooled_name(fixture.op, name)];
    if (found == result.gradients.end()) {
      pool.difference = kNaN;
    } else {
      pool.add(found->second, expected);
    }
  }
  for (const auto& [name, pool] : pools) {
    report.rows.push_back(
        {"grad." + name, pool.error(), gradient_bound(fixture.op, name, computed)});
  }
  return report;
}

}  // namespace krait
