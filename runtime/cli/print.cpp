// krait print: what a block becomes, stage by stage.
#include <fnmatch.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>

#include "codegen/build.h"
#include "codegen/generate.h"
#include "codegen/llvm/emit_llvm.h"
#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passes.h"
#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "runtime/cli/print_stats.h"
#include "runtime/cli/shape_flags.h"
#include "runtime/cuda/defaults.h"
#include "runtime/cuda/device.h"
#include "runtime/environment.h"
#include "runtime/host/device.h"
#include "runtime/host/orc.h"
#include "schedules/candidates.h"
#include "schedules/chunk.h"
#include "schedules/lower.h"
#include "schedules/one_step.h"

namespace krait {
namespace {

struct Flags {
  ShapeFlags shape;
  std::string stage = "graph", pass = "forward", format = "text", schedule, after, kernel;
  std::optional<std::int64_t> chunk;
  std::string arch;
  bool no_gradients = false, json = false;
};

constexpr std::int64_t kUsualChunk = 64;
/// The name under which --after takes a program that no pass has seen.
constexpr const char* kBuilt = "build";

void require_one_of(const std::string& flag, const std::string& value,
                    const std::vector<std::string>& allowed) {
  std::string names;
  for (const std::string& name : allowed) {
    if (value == name) return;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw UsageError(flag, value, names);
}

bool is_graph_stage(const std::string& stage) { return stage == "graph" || stage == "chunked"; }

void check_flags(const Flags& flags) {
  require_one_of("--stage", flags.stage,
                 {"graph", "chunked", "plan", "tile", "llvm", "asm", "stats", "cuda", "ptx"});
  require_one_of("--pass", flags.pass, {"forward", "backward", "step"});
  require_one_of("--format", flags.format, {"text", "dot"});
  const std::string here = " with --stage " + flags.stage;
  const bool of_gpu = flags.stage == "cuda" || flags.stage == "ptx";
  KRAIT_REQUIRE(flags.arch.empty() || of_gpu || flags.stage == "tile" || flags.stage == "plan",
                "--arch is ", flags.arch, "; allowed: none", here);
  KRAIT_REQUIRE(!of_gpu || !flags.arch.empty(), "--arch is missing; allowed: 7.5 to 12.1", here);
  if (flags.format == "dot" && !is_graph_stage(flags.stage))
    throw UsageError("--format", flags.format, "text" + here);
  if (flags.stage == "chunked") require_one_of("--pass", flags.pass, {"forward", "backward"});
  if (!flags.after.empty()) {
    KRAIT_REQUIRE(flags.stage == "tile", "--after is ", flags.after, "; allowed: none", here);
    std::vector<std::string> names{kBuilt};
    if (flags.arch.empty())
      for (const TilePass& pass : host_passes()) names.push_back(pass.name);
    else
      for (const CudaPass& pass : cuda_passes()) names.push_back(pass.name);
    require_one_of("--after", flags.after, names);
  }
  KRAIT_REQUIRE(flags.kernel.empty() || (!is_graph_stage(flags.stage) && flags.stage != "plan"),
                "--kernel is ", flags.kernel, "; allowed: none", here);
  KRAIT_REQUIRE(!flags.json || flags.stage == "stats", "--json is given; allowed: not", here);
  KRAIT_REQUIRE(!flags.no_gradients || flags.pass == "forward", "--pass is ", flags.pass,
                "; allowed: forward with --no-gradients");
  KRAIT_REQUIRE(!flags.chunk || *flags.chunk >= 1, "--chunk is ", *flags.chunk,
                "; allowed: 1 and up");
}

/// That of the flag, --chunk for both passes, else what the spec wishes for.
Schedule schedule_of(const Flags& flags, const Problem& problem) {
  Schedule schedule = parse_schedule(flags.schedule);
  const PlanKind wanted = flags.pass == "step" ? PlanKind::step : PlanKind::chunks;
  if (schedule.plan.value_or(wanted) != wanted)
    throw UsageError("--schedule", flags.schedule,
                     text("plan=", name(wanted), " with --pass ", flags.pass));
  if (flags.chunk) {
    schedule.chunk = flags.chunk;
    schedule.backward_chunk.reset();
  }
  if (!schedule.chunk && problem.chunk_wish > 0) schedule.chunk = problem.chunk_wish;
  return schedule;
}

Graph graph_of(const Flags& flags, const Problem& problem) {
  const Schedule schedule = schedule_of(flags, problem);
  Graph graph = problem.graph();
  if (flags.pass == "step") return one_step(graph);
  const bool backward = flags.pass == "backward";
  if (flags.stage == "chunked")
    graph =
        chunk(graph, backward && schedule.backward_chunk ? *schedule.backward_chunk
                                                         : schedule.chunk.value_or(kUsualChunk));
  return backward ? differentiate(graph) : graph;
}

CudaTarget gpu_of(const Flags& flags) {
  int major = 0, minor = 0;
  char end = 0;
  if (std::sscanf(flags.arch.c_str(), "%2d.%1d%c", &major, &minor, &end) != 2)
    throw UsageError("--arch", flags.arch, "a compute capability, such as 8.0 or 9.0");
  return cuda_target(10 * major + minor);
}

/// As a layer of this block and shape has it that is asked for every gradient.
Plan plan_of(const Flags& flags, const Problem& problem) {
  if (problem.dtype != DType::f32 && problem.dtype != DType::f64)
    throw UsageError("--dtype", std::string(name(problem.dtype)),
                     "f32, f64 with --stage " + flags.stage);
  const Graph graph = problem.graph();
  const Environment environment = read_environment();
  const Schedule given =
      merge(HostDeviceOptions::from(environment).schedule, schedule_of(flags, problem));
  if (flags.pass == "step") return lower_step(graph, given);
  std::vector<std::string> cotangents, wanted;
  if (!flags.no_gradients) {
    for (const Output& output : graph.outputs())
      if (is_float(graph.type(output.value).dtype)) cotangents.push_back(output.name);
    for (const Value value : graph.inputs())
      if (is_float(graph.type(value).dtype)) wanted.push_back(graph.input_of(value).name);
  }
  const Target target = machine_target(host_target(environment.host_cpu).vector_bits);
  const ScheduleRequest request{graph, problem.sizes, cotangents, wanted};
  const Schedule schedule = flags.arch.empty()
                                ? with_defaults(given, request, target)
                                : cuda_defaults(given, request, target, gpu_of(flags));
  Lowered lowered = lower(graph, schedule, cotangents, wanted);
  return flags.pass == "forward" ? std::move(lowered.forward) : std::move(lowered.backward);
}

/// Numbers of the kernels whose name fits --kernel.
std::vector<int> chosen(const Flags& flags, const Plan& plan) {
  std::vector<int> kernels;
  std::string names;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const std::string& name = plan.kernels[k].name;
    names += (names.empty() ? "" : ", ") + name;
    if (flags.kernel.empty() || ::fnmatch(flags.kernel.c_str(), name.c_str(), 0) == 0)
      kernels.push_back(static_cast<int>(k));
  }
  if (kernels.empty()) throw UsageError("--kernel", flags.kernel, "a pattern for one of " + names);
  return kernels;
}

/// The program after the pass of that name, after all where it is empty.
TileProgram program_of(const Plan& plan, int kernel, const VectorTarget& target,
                       const std::string& after) {
  TileProgram program = build(plan, kernel).program;
  if (after == kBuilt) return program;
  std::vector<TilePass> passes = host_passes();
  const auto last = std::find_if(passes.begin(), passes.end(),
                                 [&](const TilePass& pass) { return pass.name == after; });
  if (last != passes.end()) passes.erase(last + 1, passes.end());
  run_passes(program, target, passes);
  return program;
}

/// The stages of a GPU: its tile programs, CUDA C++, PTX.
int print_for_gpu(const Flags& flags, const Plan& plan) {
  const CudaTarget target = gpu_of(flags);
  const char* between = "";
  for (const int kernel : chosen(flags, plan)) {
    std::cout << between;
    between = "\n";
    if (flags.stage == "tile") {
      TileProgram program = build(plan, kernel, gpu_product_block).program;
      std::vector<CudaPass> passes = cuda_passes();
      const auto last = std::find_if(passes.begin(), passes.end(), [&](const CudaPass& pass) {
        return pass.name == flags.after;
      });
      if (flags.after == kBuilt)
        passes.clear();
      else if (last != passes.end())
        passes.erase(last + 1, passes.end());
      run_passes(program, target, passes);
      std::cout << to_text(program);
      continue;
    }
    const KernelSource source = generate_cuda(plan, kernel, target).source;
    std::cout << (flags.stage == "cuda" ? source.text : ptx_of(source));
  }
  return kOk;
}

int print_kernels(const Flags& flags, const Problem& problem) {
  const Plan plan = plan_of(flags, problem);
  if (flags.stage == "plan") {
    std::cout << to_text(plan);
    return kOk;
  }
  if (!flags.arch.empty()) return print_for_gpu(flags, plan);
  const HostTarget host = host_target(read_environment().host_cpu);
  const VectorTarget target{host.vector_bits, host.vector_registers};
  const std::vector<int> kernels = chosen(flags, plan);
  Sizes sizes = problem.sizes;
  if (flags.pass == "step") sizes["t"] = 1;
  if (flags.stage == "stats") {
    std::vector<KernelStats> stats;
    for (const int kernel : kernels) {
      stats.push_back(kernel_stats(program_of(plan, kernel, target, ""), sizes));
      stats.back().name = plan.kernels[static_cast<std::size_t>(kernel)].name;
      stats.back().kind = name(plan.kernels[static_cast<std::size_t>(kernel)].kind);
    }
    const std::int64_t temporaries = arena(plan, sizes).bytes;
    std::cout << (flags.json ? stats_json(plan, sizes, stats, temporaries)
                             : stats_text(plan, sizes, stats, temporaries));
    return kOk;
  }
  const HostJit jit(host);
  const char* between = "";
  for (const int kernel : kernels) {
    const TileProgram program = program_of(plan, kernel, target, flags.after);
    std::cout << between;
    between = "\n";
    if (flags.stage == "tile") {
      std::cout << to_text(program);
      continue;
    }
    const KernelSource source = emit_llvm(program, target);
    std::cout << (flags.stage == "llvm" ? source.text : jit.assembly(source));
  }
  return kOk;
}

int run_print(const Flags& flags, const std::vector<CliBlock>& blocks) {
  check_flags(flags);
  const Problem problem = problem_of(flags.shape, blocks);
  if (!is_graph_stage(flags.stage)) return print_kernels(flags, problem);
  const Graph graph = graph_of(flags, problem);
  std::cout << (flags.format == "dot" ? to_dot(graph) : to_text(graph));
  return kOk;
}

}  // namespace

void add_print(CLI::App& program, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const print = program.add_subcommand("print", "Print what a block becomes");
  add_shape_flags(*print, flags->shape);
  print
      ->add_option("--stage", flags->stage,
                   "graph, chunked, plan, tile, llvm, asm, stats, cuda, ptx")
      ->capture_default_str();
  print->add_option("--pass", flags->pass, "forward, backward, step")->capture_default_str();
  print->add_option("--after", flags->after,
                    "Tile programs after this pass: build (none), simplify, guard, pack, ...");
  print->add_option("--kernel", flags->kernel, "Kernels whose name fits this pattern (*, ?)");
  print->add_option("--arch", flags->arch,
                    "Compute capability of a GPU, such as 8.0: for cuda and ptx; plan and tile as "
                    "they are there");
  print->add_flag("--no-gradients", flags->no_gradients,
                  "Forward of a layer that keeps nothing for backward");
  print->add_option("--format", flags->format, "Of graphs: text, dot (Graphviz)")
      ->capture_default_str();
  print->add_option("--chunk", flags->chunk,
                    "Positions a chunk (else what the spec names, or what fits the shape)");
  print->add_option("--schedule", flags->schedule, "\"chunk=64 backward.chunk=32\"");
  print->add_flag("--json", flags->json, "Stats as one JSON object");
  print->callback([flags, &command] {
    command.run = [flags, &command] { return run_print(*flags, command.blocks); };
  });
}

}  // namespace krait
