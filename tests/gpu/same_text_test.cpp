// The text of kernels, and so their keys, depend on the block and the schedule alone.
#include <catch2/catch.hpp>
#include <locale>
#include <sstream>

#include "codegen/generate.h"
#include "dsl/blocks/blocks.h"
#include "dsl/differentiate.h"
#include "runtime/cache_key.h"
#include "runtime/cuda/defaults.h"
#include "schedules/lower.h"
#include "schedules/split_sums.h"
#include "tests/run_program.h"

namespace krait {
namespace {

/// Numbers as in German: 1.234,5.
struct Commas : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

/// Whatever the test ends with, the next one counts as before.
struct GlobalLocale {
  std::locale before = std::locale::global(std::locale(std::locale::classic(), new Commas));
  ~GlobalLocale() { std::locale::global(before); }
};

const BlockSpec block = Mamba2Spec{.d_model = 40, .d_state = 12, .headdim = 16};
const std::vector<std::string> block_flags{
    "--block", "mamba2", "--d-model", "40", "--headdim", "16", "--d-state", "12", "--arch", "8.0"};

struct Texts {
  std::map<Pass, std::string> text;  // of all kernels of a pass, as the command line prints them
  std::vector<std::string> keys;
  bool operator==(const Texts&) const = default;
};

Texts texts_of(const BlockSpec& spec) {
  const Graph graph = build_graph(block_function(spec), DType::f32);
  const std::vector<std::string> cotangents = floating_outputs(graph),
                                 wanted = floating_inputs(graph);
  const CudaTarget cuda = cuda_target(80);
  const Schedule schedule = cuda_defaults({}, {graph, {}, cotangents, wanted},
                                          gpu_target(cuda.architecture, 1, 1 << 30), cuda);
  // As where there is no library of products.
  Lowered lowered = lower(graph, schedule, cotangents, wanted);
  const Plan forward = split_sums(std::move(lowered.forward)),
             backward = split_sums(std::move(lowered.backward)),
             step = split_sums(lower_step(graph, {}));
  Texts made;
  for (const Plan* plan : {&forward, &backward, &step})
    for (std::size_t k = 0; k < plan->kernels.size(); ++k) {
      const KernelSource source = generate_cuda(*plan, static_cast<int>(k), cuda).source;
      std::string& text = made.text[plan->pass];
      text += (text.empty() ? "" : "\n") + source.text;
      made.keys.push_back(cache_key(source, {cuda.architecture, {{"nvrtc", "some build"}}}));
    }
  return made;
}

std::string printed(const std::string& pass, const std::vector<std::string>& environment) {
  std::vector<std::string> arguments{"print", "--stage", "cuda", "--pass", pass};
  arguments.insert(arguments.end(), block_flags.begin(), block_flags.end());
  const ProgramResult result = run_program(arguments, environment);
  INFO(result.err);
  CHECK(result.status == 0);
  return result.out;
}

TEST_CASE("kernels are the same after other blocks, in another process, and on another locale") {
  const Texts first = texts_of(block);
  CHECK(first.text.at(Pass::backward).size() > 10000);
  texts_of(SsdSpec{.nheads = 4, .headdim = 24, .d_state = 20, .seq_idx = true});
  texts_of(Mamba3Spec{.d_model = 32, .d_state = 8, .headdim = 8});
  CHECK(texts_of(block) == first);
  {
    const GlobalLocale german;
    std::ostringstream number;
    number << 1234.5;
    REQUIRE(number.str() == "1.234,5");
    CHECK(texts_of(block) == first);
  }
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::step}) {
    const std::string text = printed(std::string(name(pass)), {});
    CHECK(text == first.text.at(pass));
    CHECK(text == printed(std::string(name(pass)), {"LC_ALL=de_DE.UTF-8"}));
  }
}

}  // namespace
}  // namespace krait
