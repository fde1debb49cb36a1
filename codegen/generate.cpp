#include "codegen/generate.h"

#include <algorithm>
#include <set>

#include "codegen/build.h"
#include "codegen/cuda/emit_cuda.h"
#include "codegen/in_place.h"
#include "codegen/llvm/emit_llvm.h"
#include "codegen/passes/passes.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// Without the number that tells kernels of one plan apart: so the text of a kernel is the same in
/// every layer that is equal, and is compiled once.
std::string without_number(const std::string& name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  const bool numbered =
      end != std::string::npos && end > 0 && end + 1 < name.size() && name[end] == '_';
  return numbered ? name.substr(0, end) : name;
}

/// The keys of the plan's schedule that this kernel obeys, those that are its target's left out.
Schedule obeyed(const Plan& plan, const PlannedKernel& kernel) {
  std::set<std::string> positions, parts, axes;
  for (const Node& node : plan.graph.nodes()) {
    const auto* split = std::get_if<Split>(&node.op);
    if (split != nullptr && !plan.graph.axis(split->axis).extent.is_constant())
      positions.insert(split->inner);
    if (const auto* scan = std::get_if<Scan>(&node.op)) parts.insert(scan->parts);
    if (const auto* cumsum = std::get_if<Cumsum>(&node.op)) parts.insert(cumsum->parts);
  }
  const auto add = [&](Value value) {
    for (const auto& axis : plan.graph.type(value).axes) axes.insert(axis);
  };
  for (int node : kernel.nodes)
    for (Value operand : plan.graph.node(node).operands) add(operand);
  for (const auto& store : kernel.stores) add(store.first);
  const auto touches = [&](const std::set<std::string>& wanted) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](const auto& axis) { return wanted.count(axis) != 0; });
  };
  const Schedule given = plan.schedule.of(plan.pass);
  Schedule keys;
  if (touches(positions)) keys.chunk = given.chunk;
  if (touches(parts)) keys.segments = given.segments;
  if (touches(std::set<std::string>(plan.tiles.begin(), plan.tiles.end()))) keys.tile = given.tile;
  if (kernel.rows) keys.width = given.width;
  if (!kernel.digits.empty()) keys.save_every = given.save_every;
  return keys;
}

/// What a kernel is before any pass of a device: its program and what stands behind its pointers.
BuiltKernel begin(const Plan& plan, int index, const ProductBlocks& blocks,
                  GeneratedKernel& kernel) {
  BuiltKernel built = build(plan, index, blocks);
  for (const StatePair& state : plan.graph.states()) {
    const auto pointer = [&](MemoryObject::Kind kind, const std::string& name) {
      const int object = plan.find_object(kind, name);
      const auto found = std::find(built.objects.begin(), built.objects.end(), object);
      return found == built.objects.end() ? -1 : static_cast<int>(found - built.objects.begin());
    };
    const int read = pointer(MemoryObject::Kind::input, state.in);
    const int written = pointer(MemoryObject::Kind::output, state.out);
    if (read < 0 || written < 0 || !may_share(built.program, read, written)) continue;
    kernel.in_place.push_back({built.objects[read], built.objects[written]});
    built.program.in_place.push_back({read, written});
  }
  built.program.name = without_number(built.program.name);
  return built;
}

void end(BuiltKernel built, GeneratedKernel& kernel) {
  kernel.objects = std::move(built.objects);
  for (int var : built.program.grid) kernel.grid.push_back(built.program.vars[var].extent);
  kernel.arguments = std::move(built.program.arguments);
  kernel.scratch_bytes = built.program.scratch_bytes;
  kernel.threads = 32 * built.program.warps;
}

/// The text of a program that is through the passes, and the rest of its kernel.
GeneratedKernel emitted(const Plan& plan, int index, const CudaTarget& target, BuiltKernel built,
                        GeneratedKernel kernel) {
  Schedule keys = obeyed(plan, plan.kernels[index]);
  keys.warps = built.program.warps;
  for (const Buffer& buffer : built.program.buffers)
    if (buffer.stages > 1) keys.stages = buffer.stages;
  built.program.title = to_text(keys);
  kernel.source = emit_cuda(built.program, target);
  kernel.source.name = plan.kernels[index].name;
  kernel.source.file = file_of(plan, index);
  end(std::move(built), kernel);
  return kernel;
}

}  // namespace

std::string file_of(const Plan& plan) {
  return (plan.name.empty() ? "" : plan.name + ".") + std::string(name(plan.pass));
}

std::string file_of(const Plan& plan, int kernel) {
  return file_of(plan) + "." + plan.kernels[kernel].name;
}

GeneratedKernel generate_host(const Plan& plan, int index, const VectorTarget& target,
                              const PassObserver& after) {
  GeneratedKernel kernel;
  BuiltKernel built = begin(plan, index, host_product_blocks, kernel);
  if (after) after("build", built.program);
  run_passes(built.program, target, host_passes(), after);
  built.program.title = to_text(obeyed(plan, plan.kernels[index]));
  kernel.source = emit_llvm(built.program, target);
  kernel.source.name = plan.kernels[index].name;
  kernel.source.file = file_of(plan, index);
  end(std::move(built), kernel);
  return kernel;
}

CudaTarget target_of(const Plan& plan, const CudaTarget& device) {
  CudaTarget target = device;
  const Schedule schedule = plan.schedule.of(plan.pass);
  if (schedule.math) target.exact = *schedule.math == MathKind::exact;
  if (const auto warps = schedule.warps) target.warps = static_cast<int>(*warps);
  if (const auto stages = schedule.stages) {
    if (*stages > device.stages)
      throw UsageError(
          "schedule: stages", std::to_string(*stages),
          text(device.stages, " on ", device.architecture,
               ": copies that run beside other work came with compute capability 8.0"));
    target.stages = static_cast<int>(*stages);
    target.stages_asked = target.stages > 1;
  }
  return target;
}

namespace {

/// Programs of kernels that are alike have one name: of an error it is told which one has it.
template <typename F>
auto named(const Plan& plan, int index, const F& f) {
  try {
    return f();
  } catch (const UsageError& error) {
    throw UsageError(text(error.what(), " (", file_of(plan, index), ")"));
  }
}

}  // namespace

GeneratedKernel generate_cuda(const Plan& plan, int index, const CudaTarget& device,
                              const std::vector<CudaPass>& passes, const PassObserver& after) {
  const CudaTarget target = target_of(plan, device);
  GeneratedKernel kernel;
  BuiltKernel built = begin(plan, index, gpu_product_blocks(plan, index, target.warps), kernel);
  if (after) after("build", built.program);
  named(plan, index, [&] { return run_passes(built.program, target, passes, after), true; });
  return emitted(plan, index, target, std::move(built), std::move(kernel));
}

void CudaKernels::require_fit(const Plan& plan, int index) {
  const CudaTarget target = target_of(plan, device_);
  GeneratedKernel kernel;
  BuiltKernel built = begin(plan, index, gpu_product_blocks(plan, index, target.warps), kernel);
  named(plan, index, [&] { return passed_.get(std::move(built.program), target); });
}

GeneratedKernel CudaKernels::generate(const Plan& plan, int index) {
  const CudaTarget target = target_of(plan, device_);
  GeneratedKernel kernel;
  BuiltKernel built = begin(plan, index, gpu_product_blocks(plan, index, target.warps), kernel);
  PassedPrograms::Passed passed =
      named(plan, index, [&] { return passed_.get(std::move(built.program), target); });
  built.program = std::move(passed.program);
  kernel = emitted(plan, index, target, std::move(built), std::move(kernel));
  kernel.source.verify = std::move(passed.verify);
  return kernel;
}

}  // namespace krait
