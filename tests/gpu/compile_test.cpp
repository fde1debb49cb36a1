// What NVRTC and ptxas make of every kernel: no include path, no warning, no spill, no shared
// memory beside the planned.
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <mutex>
#include <regex>
#include <set>

#include "codegen/generate.h"
#include "dsl/blocks/blocks.h"
#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "runtime/cuda/defaults.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/host/pool.h"
#include "schedules/lower.h"
#include "tests/run_program.h"

namespace krait {
namespace {

struct Case {
  std::string name;
  BlockSpec spec;
};

/// A Mamba2Spec or a Mamba3Spec.
template <typename Spec>
Case block_case(const char* name, std::int64_t d_model, std::int64_t headdim, std::int64_t d_state,
                std::int64_t ngroups = 1) {
  return {text(name, " ", d_model, " ", headdim, " ", d_state), Spec{.d_model = d_model,
                                                                     .d_state = d_state,
                                                                     .headdim = headdim,
                                                                     .ngroups = ngroups,
                                                                     .initial_state = true}};
}
constexpr auto mamba2_case = [](auto... sizes) {
  return block_case<Mamba2Spec>("mamba2", sizes...);
};
constexpr auto mamba3_case = [](auto... sizes) {
  return block_case<Mamba3Spec>("mamba3", sizes...);
};

std::vector<Plan> plans_of(const BlockSpec& spec, const std::string& given,
                           const CudaTarget& cuda) {
  const Graph graph = build_graph(block_function(spec), DType::f32);
  const Schedule schedule = parse_schedule(given);
  Prepared prepared;
  if (schedule.plan == PlanKind::step) return {cuda_step(graph, schedule, cuda, prepared)};
  const std::vector<std::string> cotangents = floating_outputs(graph),
                                 wanted = floating_inputs(graph);
  const Target target = gpu_target(cuda.architecture, 108, std::int64_t{40} << 30);
  cuda_defaults(schedule, {graph, {}, cotangents, wanted}, target, cuda, &prepared);
  Lowered& lowered = *prepared.plans;
  std::vector<Plan> plans;
  plans.push_back(std::move(lowered.forward));
  plans.push_back(std::move(lowered.backward));
  return plans;
}

/// What is wrong with the kernel as it was compiled, "" where nothing is.
std::string faults(const GeneratedKernel& kernel) {
  std::vector<std::string> options = kernel.source.options;
  options.push_back("--ptxas-options=-v");
  const NvrtcResult made = nvrtc_compile(kernel.source.name, kernel.source.text, options);
  const auto says = [&](const char* what) { return made.log.find(what) != std::string::npos; };
  std::string found;
  if (kernel.source.text.find("#include") != std::string::npos) found += " has an #include";
  if (says("warning")) found += " warns";
  if (!says(" 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads")) found += " spills";
  // Shared memory is dynamic, of the size that the launch asks for; ptxas counts what is static.
  if (says("bytes smem")) found += " has shared memory beside the planned";
  if (made.cubin.empty() || made.ptx.empty()) found += " is not compiled";
  const std::string head =
      std::regex_replace(kernel.source.text.substr(0, kernel.source.text.find("typedef")),
                         std::regex("\\n//\\s+"), " ");
  if (head.find(text(" ", kernel.scratch_bytes, " bytes of shared memory")) == std::string::npos)
    found += " tells another size of shared memory than its launch asks for";
  return found.empty() ? "" : kernel.source.name + found + ":\n" + made.log;
}

class Sweep {
 public:
  void add(const Case& block, const std::string& schedule, int capability) {
    const CudaTarget cuda = cuda_target(capability);
    INFO(block.name << ", " << schedule << ", " << cuda.architecture);
    for (const Plan& plan : plans_of(block.spec, schedule, cuda))
      for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
        GeneratedKernel kernel = generate_cuda(plan, static_cast<int>(k), cuda);
        CHECK(kernel.scratch_bytes <= cuda.shared_limit);
        if (known_.insert(cuda.architecture + kernel.source.text).second)
          kernels_.push_back(
              {text(block.name, ", ", schedule, ", ", cuda.architecture, ": "), std::move(kernel)});
      }
  }

  void compile() {
    std::mutex mutex;
    std::string all;
    Pool pool;
    pool.parallel_for(static_cast<std::int64_t>(kernels_.size()), 0,
                      [&](std::int64_t begin, std::int64_t end, void*) {
                        for (std::int64_t i = begin; i < end; ++i) {
                          const auto& [where, kernel] = kernels_[static_cast<std::size_t>(i)];
                          const std::string found = faults(kernel);
                          const std::scoped_lock lock(mutex);
                          if (!found.empty()) all += where + found + "\n";
                        }
                      });
    INFO(kernels_.size() << " kernels");
    CHECK(all == "");
  }

 private:
  std::set<std::string> known_;
  std::vector<std::pair<std::string, GeneratedKernel>> kernels_;
};

TEST_CASE("kernels compile without a warning and without a spill") {
  Sweep sweep;
  sweep.add(
      {"ssd 64 128", SsdSpec{.nheads = 4, .headdim = 64, .d_state = 128, .initial_state = true}},
      "segments=1", 90);
  sweep.add(mamba2_case(768, 64, 128), "plan=step", 75);
  for (const int capability : {75, 120})
    sweep.add({"ssd 5 20", SsdSpec{.nheads = 8, .headdim = 5, .d_state = 20}}, "segments=1",
              capability);
  sweep.compile();
}

TEST_CASE("every kernel of every plan compiles for every architecture", "[slow]") {
  Sweep sweep;
  const std::vector<Case> cases{mamba2_case(768, 64, 128), mamba2_case(256, 32, 16, 4),
                                mamba2_case(40, 16, 12),   mamba2_case(20, 5, 20),
                                mamba3_case(768, 64, 128), mamba3_case(256, 32, 16, 4)};
  for (const int capability : {75, 80, 86, 90, 100, 120})
    for (const Case& block : cases)
      for (const std::string schedule :
           {"segments=1", "segments=3", "segments=chunks", "plan=step"})
        sweep.add(block, schedule, capability);
  sweep.compile();
}

TEST_CASE("a schedule that needs more than a part has is refused before it is compiled") {
  const ProgramResult refused =
      run_program({"print", "--block", "ssd", "--headdim", "64", "--d-state", "128", "--stage",
                   "ptx", "--arch", "8.0", "--schedule", "chunk=256"},
                  {"KRAIT_LIBNVRTC=/no/such/library.so"});
  INFO(refused.err);
  CHECK(refused.status == 2);
  CHECK(refused.err.find("at most 166912 on sm_80; a smaller chunk, tile or width takes less") !=
        std::string::npos);
}

TEST_CASE("nvcc compiles the same text") {
  const char* const nvcc = "/usr/local/cuda/bin/nvcc";
  if (::access(nvcc, X_OK) != 0) return;
  const TestFolder folder;
  const BlockSpec spec = SsdSpec{.nheads = 4, .headdim = 8, .d_state = 12, .initial_state = true};
  const CudaTarget cuda = cuda_target(80);
  for (const char* schedule : {"chunk=16", "plan=step", "chunk=16 math=exact"})
    for (const Plan& plan : plans_of(spec, schedule, cuda))
      for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
        if (plan.kernels[k].kind != PlannedKernel::Kind::fused) continue;
        const GeneratedKernel kernel = generate_cuda(plan, static_cast<int>(k), cuda);
        const std::string file = folder.file("kernel.cu");
        std::ofstream(file) << kernel.source.text;
        std::vector<std::string> arguments = kernel.source.options;
        arguments.insert(arguments.end(), {"--Werror", "all-warnings", "--ptx", "--output-file",
                                           folder.file("kernel.ptx"), file});
        const ProgramResult result = run_program(arguments, {}, nvcc);
        INFO(kernel.source.name << "\n" << result.out << result.err);
        CHECK(result.status == 0);
        CHECK(result.out + result.err == "");
      }
}

}  // namespace
}  // namespace krait
