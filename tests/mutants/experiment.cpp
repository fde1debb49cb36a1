#include "tests/mutants/experiment.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dsl/blocks/blocks.h"
#include "dsl/error.h"
#include "runtime/binding.h"
#include "runtime/cuda/nvrtc.h"
#include "schedules/lower.h"
#include "tests/dsl/blocks_testing.h"
#include "tests/runtime/layers.h"

namespace krait::mutants {
namespace {

using emulator_test::Buffer;

constexpr double wrong_from = 1e-5;

const Axis b("b"), t("t");

/// Two inputs that share a state, a gate, and a running sum that carries one beside it.
void gated(Scope& s) {
  const Axis h("h", 2), n("n", 24), p("p", 12);
  const Expr q = s.input("q", {b, t, h, n}), k = s.input("k", {b, t, h, n});
  const Expr v = s.input("v", {b, t, h, p}), f = s.input("f", {b, t, h});
  const Expr decay = -softplus(f + s.param("bias", {h}));
  const ScanResult state = scan(t, decay, k * v, {.initial = s.state("h0", "h", {b, h, n, p})});
  const ScanResult level = scan(t, decay, f, {.initial = s.state("m0", "m", {b, h})});
  s.output("y", (sum(state.leaving * q, n) + level.leaving) * silu(v), {b, t, h, p});
  s.leave("h", state.last);
  s.leave("m", level.last);
}

std::vector<std::byte> bytes_of(const Tensor64& tensor, DType dtype) {
  const Tensor made = from_float64(tensor, dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(made.count() * size_in_bytes(dtype)));
  if (!bytes.empty()) std::memcpy(bytes.data(), made.data(), bytes.size());
  return bytes;
}

Tensor64 numbers_of(const std::vector<std::byte>& bytes, const MemoryObject& object,
                    const Sizes& sizes) {
  Tensor tensor(object.dtype, shape_of(object, sizes));
  if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), bytes.size());
  return to_float64(tensor.ref());
}

std::string ptx_of(const KernelSource& source) {
  return nvrtc_compile(source.name, source.text, source.options).ptx;
}

struct Launched {
  std::string report;  // "" where it ran
  Memory after;
};

/// One kernel over memory of its own an object; objects that nothing was written to are undefined.
Launched launched(emulator_test::Device& device, const KernelCase& one,
                  const GeneratedKernel& kernel, const std::string& ptx) {
  const Plan& plan = *one.plan;
  std::vector<Buffer> buffers;
  std::vector<CUdeviceptr> pointers;
  for (const int number : kernel.objects) {
    const MemoryObject& object = plan.objects[static_cast<std::size_t>(number)];
    const std::vector<std::byte>& content = one.before[static_cast<std::size_t>(number)];
    buffers.emplace_back(static_cast<std::uint64_t>(object.bytes(one.sizes)));
    buffers.back().write(content.data(), content.size());
    pointers.push_back(buffers.back().address());
  }
  std::vector<std::int64_t> numbers;
  for (const TileProgram::Argument& argument : kernel.arguments) {
    if (argument.kind == TileProgram::Argument::Kind::size) {
      numbers.push_back(one.sizes.at(argument.symbol));
      continue;
    }
    const int object = kernel.objects.at(static_cast<std::size_t>(argument.pointer));
    numbers.push_back(dense_strides(shape_of(plan.objects[static_cast<std::size_t>(object)],
                                             one.sizes))[static_cast<std::size_t>(argument.dim)]);
  }
  std::int64_t blocks = 1;
  for (const Extent& extent : kernel.grid) blocks *= extent.value(one.sizes);
  std::vector<void*> arguments;
  for (CUdeviceptr& pointer : pointers) arguments.push_back(&pointer);
  for (std::int64_t& number : numbers) arguments.push_back(&number);

  const CUfunction function = device.load(ptx, kernel.source.entry);
  device.allow_shared(function, static_cast<unsigned>(kernel.scratch_bytes));
  Launched result;
  if (device.launch_with(
          function, {static_cast<unsigned>(blocks)}, {static_cast<unsigned>(kernel.threads)},
          static_cast<unsigned>(kernel.scratch_bytes), arguments.data()) != CUDA_SUCCESS) {
    result.report = device.report();
    device.revive();
    return result;
  }
  result.after = one.before;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    result.after[static_cast<std::size_t>(kernel.objects[i])] = buffers[i].read<std::byte>();
  device.unload();
  return result;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What an internal error says behind the words that all of them begin with.
std::string said_by(const InternalError& error) {
  const std::string all = first_line(error.what());
  const std::size_t at = all.find("text: ");
  return at == std::string::npos ? all : all.substr(at + 6);
}

Lowered lowered_of(const Experiment& experiment, const Graph& graph) {
  return lower(graph, parse_schedule(experiment.schedule), floating_outputs(graph),
               floating_inputs(graph));
}

/// Runs the kernels of a plan one after the other; what they leave goes to the outputs by name.
void run_plan(const std::string& name, const Plan& plan, const Tensors64& inputs,
              const Sizes& sizes, emulator_test::Device& device, std::vector<KernelCase>& cases,
              Tensors64& outputs) {
  const auto shared = std::make_shared<const Plan>(plan);
  Memory memory(plan.objects.size());
  for (std::size_t i = 0; i < plan.objects.size(); ++i)
    if (plan.objects[i].kind == MemoryObject::Kind::input)
      memory[i] = bytes_of(inputs.at(plan.objects[i].name), plan.objects[i].dtype);
  for (int k = 0; k < static_cast<int>(plan.kernels.size()); ++k) {
    KernelCase one{
        name + " " + plan.kernels[static_cast<std::size_t>(k)].name, shared, k, sizes, memory, {}};
    INFO(one.name);
    const GeneratedKernel kernel = generate_cuda(plan, k, target_of_experiments());
    Launched run = launched(device, one, kernel, ptx_of(kernel.source));
    REQUIRE(run.report == "");
    one.after = memory = std::move(run.after);
    cases.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < plan.objects.size(); ++i)
    if (plan.objects[i].kind == MemoryObject::Kind::output)
      outputs[plan.objects[i].name] = numbers_of(memory[i], plan.objects[i], sizes);
}

}  // namespace

CudaTarget target_of_experiments() { return cuda_target(80); }

std::vector<Experiment> experiments() {
  // Several warps a block; kernels that make scores again, as is usual on a GPU; chunks whose last
  // one is short; extents that are padded.
  const SsdSpec ssd{.nheads = 2, .headdim = 20, .d_state = 24, .initial_state = true};
  SsdSpec documents{.nheads = 4, .headdim = 16, .d_state = 16, .ngroups = 2, .z = true};
  documents.seq_idx = true;
  const Mamba3ScanSpec mamba3{.nheads = 2, .headdim = 20, .d_state = 16};
  Mamba3ScanSpec carried = mamba3;
  carried.initial_state = true;
  return {
      {"ssd", block_function(ssd), "chunk=32 recompute=50", {{"b", 1}, {"t", 70}}},
      {"mamba3_scan", block_function(mamba3), "chunk=32 recompute=50", {{"b", 1}, {"t", 70}}},
      {"gated", gated, "chunk=16 recompute=50", {{"b", 2}, {"t", 37}}},
      {"ssd of documents",
       block_function(documents),
       "chunk=32 segments=2 recompute=50",
       {{"b", 1}, {"t", 70}}},
      {"mamba3_scan in segments",
       block_function(carried),
       "chunk=16 segments=2 recompute=50",
       {{"b", 1}, {"t", 70}}},
  };
}

std::vector<KernelCase> cases_of(const Experiment& experiment) {
  const Graph graph = build_graph(experiment.block);
  const Lowered lowered = lowered_of(experiment, graph);
  std::vector<KernelCase> cases;
  for (const auto& [pass, plan] :
       {std::pair{" forward ", &lowered.forward}, std::pair{" backward ", &lowered.backward}}) {
    const auto shared = std::make_shared<const Plan>(*plan);
    for (std::size_t k = 0; k < plan->kernels.size(); ++k)
      cases.push_back({experiment.name + pass + plan->kernels[k].name,
                       shared,
                       static_cast<int>(k),
                       experiment.sizes,
                       {},
                       {}});
  }
  return cases;
}

std::vector<KernelCase> kernels_of(const Experiment& experiment, emulator_test::Device& device) {
  INFO(experiment.name);
  const Graph graph = build_graph(experiment.block);
  std::mt19937 random(1);
  Tensors64 inputs = testing::block_inputs(graph, experiment.sizes, random, {45});
  for (auto& [name, tensor] : inputs)
    for (double& x : tensor.data) x = static_cast<float>(x);
  const Lowered lowered = lower(graph, parse_schedule(experiment.schedule), floating_outputs(graph),
                                floating_inputs(graph));
  std::vector<KernelCase> cases;
  Tensors64 outputs, gradients;
  run_plan(experiment.name + " forward", lowered.forward, inputs, experiment.sizes, device, cases,
           outputs);
  const Tensors64 reference = evaluate(graph, inputs);
  const Tensors64 cotangents = random_cotangents(graph, reference);
  Tensors64 known = inputs;
  known.insert(outputs.begin(), outputs.end());
  for (const auto& [name, tensor] : cotangents) known["cot." + name] = tensor;
  for (const std::string& saved : lowered.saved) outputs.erase(saved);
  check_outputs(outputs, reference, 1e-5);
  run_plan(experiment.name + " backward", lowered.backward, known, experiment.sizes, device, cases,
           gradients);
  for (const auto& [name, tensor] : reference_gradients(graph, inputs, cotangents)) {
    INFO("gradient of " << name);
    CHECK(relative_error(gradients.at("grad." + name), tensor) <= 5e-5);
  }
  return cases;
}

Outcome outcome_of(const KernelCase& one, const std::vector<CudaPass>& passes,
                   emulator_test::Device& device) {
  GeneratedKernel kernel;
  try {
    kernel = generate_cuda(*one.plan, one.kernel, target_of_experiments(), passes);
  } catch (const InternalError& error) {
    return {Outcome::By::verifier, said_by(error)};
  } catch (const UsageError& error) {  // more shared memory than the part has
    return {Outcome::By::verifier, first_line(error.what())};
  }
  std::string ptx;
  try {
    ptx = ptx_of(kernel.source);
  } catch (const InternalError& error) {
    return {Outcome::By::compiler, said_by(error)};
  }
  const Launched run = launched(device, one, kernel, ptx);
  if (!run.report.empty()) return {Outcome::By::report, first_line(run.report)};
  for (std::size_t i = 0; i < run.after.size(); ++i) {
    const MemoryObject& object = one.plan->objects[i];
    const double error = relative_error(numbers_of(run.after[i], object, one.sizes),
                                        numbers_of(one.after[i], object, one.sizes));
    if (!(error <= wrong_from))
      return {Outcome::By::numbers, text(object.name, " is off by ", error)};
  }
  return {};
}

}  // namespace krait::mutants
