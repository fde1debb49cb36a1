// What holds for every block that runs on the host: values and gradients, windows, steps,
// documents, the bits, and what is compiled when.
#include <numbers>

#include "tests/runtime/layer_testing.h"

namespace krait::testing {
namespace {

/// Whether the host cannot run the block yet: a decay of both state axes, or a look-up of tokens.
bool is_for_later(const BlockSpec& spec) {
  if (const auto* layers = std::get_if<BackboneSpec>(&spec)) return layers->vocab_size > 0;
  return std::holds_alternative<SelectiveScanSpec>(spec) ||
         std::holds_alternative<Mamba1Spec>(spec);
}

BlockFunction block_of(const BlockSpec& spec, bool states, bool documents) {
  return block_function(with_documents(with_states(spec, states), documents));
}

Tensors64 draw(const Graph& graph, std::int64_t b, std::int64_t t, unsigned seed,
               const std::vector<std::int64_t>& lengths = {}) {
  std::mt19937 random(seed);
  return rounded(block_inputs(graph, {{"b", b}, {"t", t}}, random, lengths));
}

void check_specs(std::size_t from, std::size_t to, DType dtype, const std::string& schedule) {
  const std::vector<BlockSpec> specs = small_specs();
  const auto host = test_device();
  const bool wide = dtype == DType::f64;
  int run = 0;
  for (std::size_t i = from; i < to; ++i) {
    if (is_for_later(specs[i])) continue;
    const bool all = i % 2 == 0;  // states and documents together, or neither
    INFO(title(specs[i], i) << " " << name(dtype) << " " << schedule);
    LayerOptions options = layer_options(dtype, schedule, host);
    options.step = false;
    const Layer layer(block_of(specs[i], all, all), options);
    for (const std::int64_t t : {1, 13}) {
      INFO("t " << t);
      check_layer(layer, draw(layer.graph(), 2, t, 3, {1, 5, 1}), wide ? 1e-10 : 1e-5,
                  wide ? 1e-10 : 5e-5);
    }
    ++run;
  }
  CHECK(run > 0);
}

TEST_CASE("every block at every chunk", "[slow]") {
  for (const char* schedule : {"chunk=1", "chunk=3", "chunk=16 backward.chunk=5", "chunk=64"})
    for (DType dtype : {DType::f64, DType::f32}) check_specs(0, 21, dtype, schedule);
}

TEST_CASE("blocks that the host cannot run yet are refused, and say so") {
  const auto host = test_device();
  int refused = 0;
  for (const BlockSpec& spec : small_specs()) {
    if (!is_for_later(spec)) continue;
    INFO(block_name(spec));
    CHECK_THROWS_AS(Layer(block_of(spec, false, false), layer_options(DType::f32, "", host)),
                    UsageError);
    ++refused;
  }
  CHECK(refused == 5);
}

// ------------------------------------------------------------------------------ windows and steps

SsdSpec scan_spec(std::int64_t headdim, const std::string& D) {
  SsdSpec spec{.nheads = 4, .headdim = headdim, .d_state = 16, .ngroups = 2};
  spec.D = D;
  return spec;
}
Mamba2Spec block_spec(std::int64_t headdim, bool channel) {
  Mamba2Spec spec{.d_model = 2 * headdim, .d_state = 8, .expand = 2, .headdim = headdim};
  spec.D_has_hdim = channel;
  return spec;
}
Mamba3Spec turning_spec(std::int64_t headdim) {
  return {.d_model = headdim, .d_state = 8, .expand = 2, .headdim = headdim};
}
Mamba3ScanSpec turning_scan_spec(std::int64_t headdim) {
  return {.nheads = 2, .headdim = headdim, .d_state = 8};
}

std::map<std::string, std::string> state_inputs(const Graph& graph) {
  std::map<std::string, std::string> inputs;  // by the output's name
  for (const StatePair& pair : graph.states()) inputs[pair.out] = pair.in;
  return inputs;
}

Tensor64 along_time(const AxisNames& order, const Tensor64& tensor, std::int64_t from,
                    std::int64_t length) {
  std::int64_t outer = 1, t = 1, inner = 1;
  bool found = false;
  std::vector<std::int64_t> shape = tensor.shape;
  for (std::size_t d = 0; d < order.size(); ++d) {
    if (order[d] == "t") {
      t = tensor.shape[d], shape[d] = length, found = true;
    } else {
      (found ? inner : outer) *= tensor.shape[d];
    }
  }
  if (!found) return tensor;
  Tensor64 part(shape);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < length * inner; ++i)
      part.data[o * length * inner + i] = tensor.data[(o * t + from) * inner + i];
  return part;
}

bool has_time(const AxisNames& order) { return contains(order, "t"); }

/// One window, and the same in two with the states carried and, backwards, their gradients.
void check_windows(const BlockSpec& spec, bool documents, std::int64_t first, std::int64_t second,
                   double bound) {
  INFO(block_name(spec) << " documents " << documents);
  LayerOptions options = layer_options(DType::f64, "chunk=16");
  options.step = false;
  const Layer layer(block_of(spec, true, documents), options);
  const Graph& graph = layer.graph();
  const std::int64_t length = first + second;
  const Tensors64 inputs = draw(graph, 2, length, 5, {9, 20, 30});  // splits inside a document
  const Tensors64 cotangents = random_cotangents(graph, evaluate(graph, inputs));
  const LayerRun whole = run_layer(layer, inputs, cotangents);

  const auto states = state_inputs(graph);
  const std::int64_t from[] = {0, first}, size[] = {first, second};
  Tensors given[2];
  Layer::Forward forward[2];
  for (int i = 0; i < 2; ++i) {
    given[i] = tensors_for(graph, window(graph, inputs, from[i], size[i]));
    if (i == 1)
      for (auto& [name, tensor] : layer.take_states(forward[0].outputs))
        given[1].insert_or_assign(name, from_float64(to_float64(tensor.ref()), tensor.dtype()));
    forward[i] = layer.forward(refs(given[i]));
  }
  for (const Output& output : graph.outputs()) {
    INFO("output " << output.name);
    if (states.count(output.name) != 0) {
      CHECK(output_error(output.name, to_float64(forward[1].outputs.at(output.name).ref()),
                         whole.outputs.at(output.name)) <= bound);
      continue;
    }
    for (int i = 0; i < 2; ++i)
      CHECK(tensor_error(to_float64(forward[i].outputs.at(output.name).ref()),
                         along_time(output.order, whole.outputs.at(output.name), from[i],
                                    size[i])) <= bound);
  }

  Tensors64 gradients[2];
  for (int i : {1, 0}) {
    Tensors cots;
    for (const Output& output : graph.outputs()) {
      const auto state = states.find(output.name);
      const Tensor64 of = i == 0 && state != states.end() ? gradients[1].at(state->second)
                                                          : cotangents.at(output.name);
      cots[output.name] = from_float64(
          state != states.end() ? of : along_time(output.order, of, from[i], size[i]), DType::f64);
    }
    gradients[i] = to_float64_all(layer.backward(forward[i].tape, refs(cots)));
  }
  for (const auto& [name, expected] : whole.gradients) {
    INFO("gradient " << name);
    const Input& input = graph.input_of(*graph.find_input(name));
    if (input.role == Role::state) {
      CHECK(tensor_error(gradients[0].at(name), expected) <= bound);
    } else if (has_time(input.order)) {
      for (int i = 0; i < 2; ++i)
        CHECK(tensor_error(gradients[i].at(name),
                           along_time(input.order, expected, from[i], size[i])) <= bound);
    } else {
      Tensor64 sum = gradients[0].at(name);
      for (std::size_t k = 0; k < sum.data.size(); ++k)
        sum.data[k] += gradients[1].at(name).data[k];
      CHECK(tensor_error(sum, expected) <= bound);
    }
  }
}

TEST_CASE("a window of 100 equals 37 + 63, gradients of the carried states included") {
  for (const bool documents : {false, true}) {
    check_windows(scan_spec(8, "channel"), documents, 37, 63, 1e-10);
    check_windows(block_spec(8, false), documents, 37, 63, 1e-10);
    check_windows(turning_spec(8), documents, 37, 63, 1e-10);
  }
  check_windows(turning_scan_spec(4), false, 1, 2, 1e-10);
  check_windows(block_spec(4, true), false, 2, 1, 1e-10);  // below the width of the convolution
}

void check_step(const BlockSpec& spec, DType dtype, double bound) {
  INFO(block_name(spec) << " " << name(dtype));
  LayerOptions options = layer_options(dtype, "chunk=8");

  const Layer layer(block_of(spec, true, false), options);
  const Sizes sizes{{"b", 2}, {"t", 19}};
  const Tensors64 inputs = draw(layer.graph(), 2, 19, 8);
  const Tensors64 whole =
      to_float64_all(layer.forward(refs(tensors_for(layer.graph(), inputs))).outputs);
  check_outputs(run_steps(layer, inputs, sizes), whole, bound);
}

void check_widths(std::int64_t headdim, bool channel) {
  INFO("headdim " << headdim << " D " << (channel ? "channel" : "head"));
  const bool wide = headdim == 5 || headdim == 32;
  check_step(scan_spec(headdim, channel ? "channel" : "head"), wide ? DType::f64 : DType::f32,
             wide ? 1e-11 : 1e-5);
  check_step(block_spec(headdim, channel), wide ? DType::f32 : DType::f64, wide ? 1e-5 : 1e-11);
  if (channel) return;
  check_step(turning_scan_spec(headdim), DType::f64, 1e-11);
  check_step(turning_spec(headdim), DType::f32, 1e-5);
}

TEST_CASE("forward over T equals T calls of step, both kinds of D") {
  check_widths(5, true);
  check_widths(32, false);
}
TEST_CASE("forward over T equals T calls of step, every width and both kinds of D", "[slow]") {
  for (const std::int64_t headdim : {5, 8, 32, 64})
    for (const bool channel : {false, true}) check_widths(headdim, channel);
}

TEST_CASE("steps that follow a window go on where it ended") {
  LayerOptions options = layer_options(DType::f64, "chunk=8");

  for (const BlockSpec& spec : {BlockSpec(block_spec(8, false)), BlockSpec(turning_spec(8))}) {
    const Layer layer(block_of(spec, true, false), options);
    const Graph& graph = layer.graph();
    const Tensors64 inputs = draw(graph, 2, 21, 8);
    const Tensors64 whole = to_float64_all(layer.forward(refs(tensors_for(graph, inputs))).outputs);
    const Tensors prefix = tensors_for(graph, window(graph, inputs, 0, 14));
    Layer::Forward begun = layer.forward(refs(prefix));
    Tensors64 rest = window(graph, inputs, 14, 7);
    for (const auto& [name, tensor] : layer.take_states(begun.outputs))
      rest[name] = to_float64(tensor.ref());
    Tensors64 stepped = run_steps(layer, rest, {{"b", 2}, {"t", 7}});
    for (const Output& output : graph.outputs()) {
      INFO("output " << output.name);
      const Tensor64 expected = has_time(output.order)
                                    ? along_time(output.order, whole.at(output.name), 14, 7)
                                    : whole.at(output.name);
      if (state_inputs(graph).count(output.name) != 0)
        CHECK(output_error(output.name, stepped.at(output.name), whole.at(output.name)) <= 1e-11);
      else
        CHECK(tensor_error(stepped.at(output.name), expected) <= 1e-11);
    }
  }
}

TEST_CASE("layers without gradients give the same outputs") {
  for (const BlockSpec& spec : {BlockSpec(block_spec(8, false)), BlockSpec(turning_spec(8)),
                                BlockSpec(scan_spec(8, "channel"))}) {
    INFO(block_name(spec));
    LayerOptions options = layer_options(DType::f64, "chunk=8");
    options.step = false;
    options.wanted = std::vector<std::string>{};
    const Layer layer(block_of(spec, true, true), options);
    for (const std::int64_t t : {1, 21}) {
      const Tensors64 inputs = draw(layer.graph(), 2, t, 3, {5, 6});
      const Tensors given = tensors_for(layer.graph(), inputs);
      check_outputs(to_float64_all(layer.forward(refs(given)).outputs),
                    evaluate(layer.graph(), inputs), 1e-11);
    }
  }
}

// -------------------------------------------------------------------------------------- documents

/// One row of packed documents against a run for each, gradients too.
void check_documents(const BlockSpec& spec, const std::vector<std::int64_t>& lengths,
                     const std::string& schedule) {
  INFO(block_name(spec) << " " << schedule);
  const auto host = test_device();
  LayerOptions options = layer_options(DType::f64, schedule, host);
  options.step = false;
  const Layer packed(block_of(spec, false, true), options);
  const Layer alone(block_of(spec, false, false), options);
  std::int64_t length = 0;
  for (const std::int64_t l : lengths) length += l;
  Tensors64 inputs = draw(packed.graph(), 1, length, 5);
  Tensor64& documents = inputs.at("seq_idx");
  std::int64_t at = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    for (std::int64_t k = 0; k < lengths[i]; ++k) documents.data[at++] = static_cast<double>(i);
  const Tensors64 cotangents = [&] {
    Tensors64 all = random_cotangents(packed.graph(), evaluate(packed.graph(), inputs));
    // Final states are those of the last document alone.
    for (const Output& output : packed.graph().outputs())
      if (!has_time(output.order)) all.erase(output.name);
    return all;
  }();
  const LayerRun whole = run_layer(packed, inputs, cotangents);
  Tensors64 sums;
  std::int64_t from = 0;
  for (const std::int64_t l : lengths) {
    INFO("document from " << from << " to " << from + l);
    Tensors64 cots;
    for (const Output& output : alone.graph().outputs())
      if (cotangents.count(output.name) != 0)
        cots[output.name] = along_time(output.order, cotangents.at(output.name), from, l);
    const LayerRun run = run_layer(alone, window(alone.graph(), inputs, from, l), cots);
    for (const Output& output : alone.graph().outputs())
      if (has_time(output.order))
        CHECK(tensor_error(run.outputs.at(output.name),
                           along_time(output.order, whole.outputs.at(output.name), from, l)) <=
              1e-11);
    for (const auto& [name, gradient] : run.gradients) {
      INFO("gradient " << name);
      const Input& input = alone.graph().input_of(*alone.graph().find_input(name));
      if (has_time(input.order)) {
        CHECK(tensor_error(gradient, along_time(input.order, whole.gradients.at(name), from, l)) <=
              1e-10);
        continue;
      }
      if (sums.count(name) == 0) sums[name] = Tensor64(gradient.shape);
      for (std::size_t k = 0; k < gradient.data.size(); ++k) sums[name].data[k] += gradient.data[k];
    }
    from += l;
  }
  for (const auto& [name, sum] : sums) {
    INFO("gradient " << name);
    CHECK(tensor_error(sum, whole.gradients.at(name)) <= 1e-10);
  }
}

TEST_CASE("packed documents equal separate runs, gradients included") {
  check_documents(scan_spec(8, "head"), {5, 6, 31}, "chunk=8");
  check_documents(block_spec(8, false), {5, 6, 31, 1, 1, 3}, "chunk=8");
  check_documents(turning_spec(8), {5, 6, 31, 1, 1, 3}, "chunk=16 backward.chunk=5");
}

// -------------------------------------------------------------------------- bits and compilations

void check_bits(const BlockSpec& spec, const std::string& libblas) {
  INFO(block_name(spec) << " BLAS " << libblas);
  std::optional<LayerRun> first;
  for (const int threads : {1, 3}) {
    LayerOptions options = layer_options(DType::f32, "chunk=8", test_device(threads, libblas));
    options.step = false;
    const Layer layer(block_of(spec, true, false), options);
    const Tensors64 inputs = draw(layer.graph(), 2, 61, 5);
    const Tensors64 cotangents = random_cotangents(layer.graph(), evaluate(layer.graph(), inputs));
    for (int i = 0; i < 2; ++i) {
      const LayerRun run = run_layer(layer, inputs, cotangents);
      if (!first) first = run;
      for (const auto& [name, tensor] : first->outputs) {
        INFO("output " << name);
        CHECK(tensor.data == run.outputs.at(name).data);
      }
      for (const auto& [name, tensor] : first->gradients) {
        INFO("gradient " << name);
        CHECK(tensor.data == run.gradients.at(name).data);
      }
    }
  }
}

TEST_CASE("two runs give the same bits, with one thread and with three") {
  check_bits(block_spec(16, false), "");
  check_bits(block_spec(16, false), "none");
  check_bits(turning_spec(16), "");
}

TEST_CASE("another length or batch compiles nothing") {
  for (const BlockSpec& spec : {BlockSpec(block_spec(8, false)), BlockSpec(turning_spec(8))}) {
    const auto host = test_device();
    const Layer layer(block_of(spec, true, true), layer_options(DType::f64, "chunk=8", host));
    CHECK(layer.counters().compiled > 0);
    const Compiler::Counters built = host->compiler().counters();
    for (const auto& [b, t] : {std::pair{1, 1}, {1, 8}, {3, 9}, {2, 40}}) {
      INFO("b " << b << " t " << t);
      const Tensors64 inputs = draw(layer.graph(), b, t, 6, {3, 2});
      check_layer(layer, inputs, 1e-10, 1e-10);
      run_steps(layer, inputs, {{"b", b}, {"t", t}});
    }
    const Compiler::Counters after = host->compiler().counters();
    CHECK(after.compiled == built.compiled);
    CHECK(after.from_cache == built.from_cache);
    CHECK(after.shared == built.shared);
  }
}

}  // namespace
}  // namespace krait::testing
