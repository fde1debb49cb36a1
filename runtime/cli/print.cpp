// krait print: what a block becomes, stage by stage.
#include "runtime/cli/print.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "codegen/build.h"
#include "codegen/generate.h"
#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passes.h"
#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "runtime/cli/print_stats.h"
#include "runtime/environment.h"
#include "runtime/host/orc.h"
#include "schedules/chunk.h"
#include "schedules/one_step.h"

namespace krait {
namespace {

constexpr std::int64_t kUsualChunk = 64;

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

void check_flags(const PrintFlags& flags) {
  require_one_of(
      "--stage", flags.stage,
      {"graph", "chunked", "plan", "tile", "llvm", "asm", "stats", "cuda", "ptx", "sass"});
  require_one_of("--pass", flags.pass, {"forward", "backward", "step"});
  require_one_of("--format", flags.format, {"text", "dot"});
  const std::string here = " with --stage " + flags.stage;
  const bool of_gpu = flags.stage == "cuda" || flags.stage == "ptx" || flags.stage == "sass";
  const bool of_either = flags.stage == "tile" || flags.stage == "plan" || flags.stage == "stats";
  KRAIT_REQUIRE(flags.arch.empty() || of_gpu || of_either, "--arch is ", flags.arch,
                "; allowed: none", here);
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
  KRAIT_REQUIRE(flags.counts.empty() || (flags.stage == "stats" && !flags.arch.empty()),
                "--counts is ", flags.counts, "; allowed: with --stage stats and --arch");
  KRAIT_REQUIRE(flags.into.empty() || (!is_graph_stage(flags.stage) && flags.stage != "plan" &&
                                       flags.stage != "stats"),
                "--into is ", flags.into, "; allowed: none", here);
  KRAIT_REQUIRE(!flags.no_gradients || flags.pass == "forward", "--pass is ", flags.pass,
                "; allowed: forward with --no-gradients");
  KRAIT_REQUIRE(!flags.chunk || *flags.chunk >= 1, "--chunk is ", *flags.chunk,
                "; allowed: 1 and up");
}

Graph graph_of(const PrintFlags& flags, const Problem& problem) {
  const Schedule schedule = print_schedule(flags, problem);
  Graph graph = problem.graph();
  if (flags.pass == "step") return one_step(graph);
  const bool backward = flags.pass == "backward";
  if (flags.stage == "chunked")
    graph =
        chunk(graph, backward && schedule.backward_chunk ? *schedule.backward_chunk
                                                         : schedule.chunk.value_or(kUsualChunk));
  return backward ? differentiate(graph) : graph;
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

int print_stages(const PrintFlags& flags, const Problem& problem) {
  if (flags.stage == "plan") {
    std::optional<CudaTarget> gpu;
    if (!flags.arch.empty()) gpu = cuda_target(flags.arch, "--arch");
    std::cout << to_text(print_plan(flags, problem, gpu ? &*gpu : nullptr));
    return kOk;
  }
  if (!flags.arch.empty()) return print_for_gpus(flags, problem);
  const Plan plan = print_plan(flags, problem, nullptr);
  const HostTarget host = host_target(read_environment().host_cpu);
  const VectorTarget target{host.vector_bits, host.vector_registers};
  const std::vector<int> kernels = print_kernels(flags, plan);
  if (flags.stage == "stats") {
    const Sizes sizes = print_sizes(flags, problem);
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
  KernelTexts texts(flags);
  for (const int kernel : kernels) {
    const TileProgram program = program_of(plan, kernel, target, flags.after);
    const std::string file = file_of(plan, kernel);
    if (flags.stage == "tile") {
      texts.add(file + ".tile" + (flags.after.empty() ? "" : "@" + flags.after) + ".txt",
                to_text(program));
      continue;
    }
    const KernelSource source = generate_host(plan, kernel, target).source;
    if (flags.stage == "llvm")
      texts.add(file + ".ll", source.text);
    else
      texts.add(file + ".s", jit.assembly(source));
  }
  return kOk;
}

int run_print(const PrintFlags& flags, const std::vector<CliBlock>& blocks) {
  check_flags(flags);
  const Problem problem = problem_of(flags.shape, blocks);
  if (!is_graph_stage(flags.stage)) return print_stages(flags, problem);
  const Graph graph = graph_of(flags, problem);
  std::cout << (flags.format == "dot" ? to_dot(graph) : to_text(graph));
  return kOk;
}

}  // namespace

void add_print(CLI::App& program, Command& command) {
  const auto flags = std::make_shared<PrintFlags>();
  CLI::App* const print = program.add_subcommand("print", "Print what a block becomes");
  add_shape_flags(*print, flags->shape);
  print
      ->add_option("--stage", flags->stage,
                   "graph, chunked, plan, tile, llvm, asm, stats, cuda, ptx, sass")
      ->capture_default_str();
  print->add_option("--pass", flags->pass, "forward, backward, step")->capture_default_str();
  print->add_option("--after", flags->after,
                    "Tile programs after this pass: build (none), simplify, guard, pack, ...");
  print->add_option("--kernel", flags->kernel, "Kernels whose name fits this pattern (*, ?)");
  print->add_option(
      "--arch", flags->arch,
      "Compute capability of a GPU, such as 8.0: for cuda, ptx and sass; plan, tile and "
      "stats as they are there; stats take several (\"8.0,9.0\"), and all");
  print->add_option("--counts", flags->counts,
                    "Beside stats of one --arch, what a driver counted in a run of these kernels: "
                    "the file that KRAIT_EMULATOR_STATS names");
  print->add_option("--into", flags->into,
                    "A folder for kernels, a file each, named as KRAIT_OVERRIDE_DIR takes them");
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
