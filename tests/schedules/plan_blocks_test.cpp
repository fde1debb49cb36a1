// What the plans of blocks may not do: keep what is large.
#include "dsl/blocks/blocks.h"
#include "dsl/differentiate.h"
#include "schedules/lower.h"
#include "tests/dsl/blocks_testing.h"

namespace krait {
namespace {

using Kind = MemoryObject::Kind;

Lowered lowered_with_gradients(const Graph& graph, const std::string& schedule) {
  return lower(graph, parse_schedule(schedule), floating_outputs(graph), floating_inputs(graph));
}

bool has(const MemoryObject& object, const std::string& axis) {
  return std::any_of(object.dims.begin(), object.dims.end(),
                     [&](const Axis& dim) { return dim.name == axis && dim.extent.offset != 1; });
}

/// Whether it varies with every position: whole time, or chunks and the positions inside.
bool every_position(const MemoryObject& object) {
  bool time = false, chunks = false;
  for (const Axis& dim : object.dims) {
    time |= dim.extent.symbol == "t" && dim.extent.divisor == 1;
    chunks |= dim.extent.symbol == "t" && dim.extent.divisor > 1;
  }
  return time || (chunks && (has(object, "q") || has(object, "k")));
}

/// States of every position, and scores of every head: what a fused scan is there to avoid. What is
/// saved for backward counts too.
void check_objects(const Plan& plan) {
  for (const MemoryObject& object : plan.objects) {
    if (object.kind != Kind::temporary && object.name.rfind("saved.", 0) != 0) continue;
    INFO("object " << object.name << " of plan\n" << to_text(plan));
    const bool heads = has(object, "h") || has(object, "j");
    const bool state = has(object, "p") && (has(object, "n") || has(object, "i"));
    CHECK_FALSE((every_position(object) && state));
    const bool pairs =
        every_position(object) && has(object, "k") && (has(object, "q") || has(object, "t"));
    CHECK_FALSE((pairs && heads));
  }
}

std::vector<BlockSpec> runnable_specs() {
  std::vector<BlockSpec> specs;
  for (const BlockSpec& spec : testing::small_specs()) {
    if (std::holds_alternative<Mamba1Spec>(spec) || std::holds_alternative<SelectiveScanSpec>(spec))
      continue;
    if (const auto* layers = std::get_if<BackboneSpec>(&spec); layers && layers->vocab_size > 0)
      continue;
    specs.push_back(spec);
  }
  REQUIRE(specs.size() == 16);
  for (const char* name : {"ssd", "mamba2", "mamba3_scan", "mamba3"})
    specs.push_back(default_spec(name));
  return specs;
}

TEST_CASE("plans of blocks are sound and keep neither states nor scores of every head") {
  for (const BlockSpec& spec : runnable_specs())
    for (const bool all : {false, true}) {
      INFO(block_name(spec) << " states and documents " << all);
      const Graph graph =
          build_graph(block_function(with_documents(with_states(spec, all), all)), DType::f32);
      const Lowered lowered = lowered_with_gradients(graph, "chunk=64");
      CHECK_NOTHROW(verify(lowered.forward));
      CHECK_NOTHROW(verify(lowered.backward));
      CHECK(!lowered.forward.kernels.empty());
      CHECK(!lowered.backward.kernels.empty());
      check_objects(lowered.forward);
      check_objects(lowered.backward);
      if (!all) continue;
      const Plan step = lower_step(graph, {});
      CHECK_NOTHROW(verify(step));
      check_objects(step);
    }
}

/// The scan as the benchmark has it.
Graph large_scan() {
  SsdSpec spec{.nheads = 24, .headdim = 64, .d_state = 128, .ngroups = 1};
  spec.dt_bias = spec.dt_softplus = false;
  return build_graph(block_function(spec), DType::f32);
}

TEST_CASE("a scan with a decay per head forward: two kernels, and scores per group at most") {
  for (const std::int64_t groups : {1, 4}) {
    SsdSpec spec{.nheads = 8, .headdim = 32, .d_state = 64, .ngroups = groups};
    const Graph graph = build_graph(block_function(spec), DType::f32);
    const Plan plan = lower(graph, parse_schedule("chunk=64"), {}, {}).forward;
    INFO(to_text(plan));
    CHECK(plan.kernels.size() <= 2);
    const Sizes sizes{{"b", 2}, {"t", 640}};
    for (const MemoryObject& object : plan.objects)
      if (object.kind == Kind::temporary)
        CHECK(object.bytes(sizes) <= 2 * 640 * 64 * groups * size_in_bytes(object.dtype));
  }
}

TEST_CASE("a product that heads share is made again by each where it adds little") {
  // Scores take 32 n multiply-adds a position, what each head does beside them 32 p + 2 p n.
  const auto kernels = [](std::int64_t headdim, const std::string& schedule) {
    SsdSpec spec{.nheads = 8, .headdim = headdim, .d_state = 64, .ngroups = 2};
    const Graph graph = build_graph(block_function(spec), DType::f32);
    return lower(graph, parse_schedule("chunk=32 " + schedule), {}, {}).forward.kernels.size();
  };
  CHECK(kernels(64, "") == 2);
  CHECK(kernels(64, "recompute=0") == 2);
  CHECK(kernels(64, "recompute=19") == 2);  // 2048 of 10240
  CHECK(kernels(64, "recompute=20") == 1);
  CHECK(kernels(8, "recompute=100") == 2);  // 2048 of 1280
}

TEST_CASE("temporaries of a scan and its gradients take no more than what they work on") {
  const Graph graph = large_scan();
  const Sizes sizes{{"b", 1}, {"t", 2048}};
  for (const char* schedule : {"", "chunk=64", "chunk=128"}) {
    INFO("schedule \"" << schedule << "\"");
    const Lowered lowered = lowered_with_gradients(graph, schedule);
    std::int64_t given = 0;
    for (const Plan* plan : {&lowered.forward, &lowered.backward})
      for (const MemoryObject& object : plan->objects) {
        if (object.kind == Kind::temporary || object.name.rfind("saved.", 0) == 0) continue;
        // Inputs of both count once: backward adds cotangents and gradients.
        if (plan == &lowered.backward && object.kind == Kind::input &&
            object.name.rfind("cot.", 0) != 0)
          continue;
        given += object.bytes(sizes);
      }
    std::int64_t kept = arena(lowered.forward, sizes).bytes + arena(lowered.backward, sizes).bytes;
    for (const MemoryObject& object : lowered.forward.objects)
      if (object.name.rfind("saved.", 0) == 0) kept += object.bytes(sizes);
    CAPTURE(kept, given);
    CHECK(kept <= given);
  }
}

}  // namespace
}  // namespace krait
