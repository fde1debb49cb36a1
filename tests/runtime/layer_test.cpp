#include "runtime/layer.h"

#include <thread>

#include "dsl/blocks/blocks.h"
#include "dsl/error.h"
#include "runtime/file.h"
#include "tests/runtime/layers.h"
#include "tests/runtime/scratch_directory.h"

namespace krait {
namespace {

using Catch::Contains;

const Axis b("b"), t("t");

/// Retention with a decay per head, its state carried.
void retention(Scope& s) {
  const Axis h("h", 3), n("n", 8), p("p", 5);
  const Expr q = s.input("q", {b, t, h, n}), k = s.input("k", {b, t, h, n});
  const Expr v = s.input("v", {b, t, h, p});
  const Expr rate = s.param("rate", {h}, {Init::Kind::uniform, -3, -1});
  const Expr before = s.state("h0", "h", {b, h, n, p});
  const ScanResult state = scan(t, -exp(rate), k * v, {.initial = before});
  s.output("y", sum(state * q, n), {b, t, h, p});
  s.leave("h", state.last);
}

LayerOptions options(DType dtype = DType::f64, const std::string& schedule = "chunk=16") {
  LayerOptions options;
  options.dtype = dtype;
  options.schedule = parse_schedule(schedule);
  options.on = test_device();
  return options;
}

TEST_CASE("a user's recurrence runs forward and backward at any length") {
  for (DType dtype : {DType::f64, DType::f32}) {
    const Layer layer(retention, options(dtype));
    for (std::int64_t length : {1, 15, 16, 17, 53}) {
      INFO(name(dtype) << " t " << length);
      const Tensors64 inputs = random_inputs(layer.graph(), {{"b", 2}, {"t", length}}, 4);
      check_layer(layer, inputs, dtype == DType::f64 ? 1e-12 : 1e-5);
    }
  }
}

TEST_CASE("chunk sizes of forward and backward are free of one another") {
  for (const char* schedule :
       {"chunk=16 backward.chunk=24", "chunk=50 backward.chunk=16", "chunk=1", "chunk=64"}) {
    INFO(schedule);
    const Layer layer(retention, options(DType::f64, schedule));
    check_layer(layer, random_inputs(layer.graph(), {{"b", 1}, {"t", 70}}, 9), 1e-12);
  }
}

TEST_CASE("a call compiles nothing") {
  const LayerOptions with = options();
  const Layer layer(retention, with);
  CHECK(layer.counters().compiled > 0);
  const Compiler::Counters built = with.on->compiler().counters();
  check_layer(layer, random_inputs(layer.graph(), {{"b", 1}, {"t", 20}}, 4), 1e-12);
  check_layer(layer, random_inputs(layer.graph(), {{"b", 3}, {"t", 33}}, 4), 1e-12);
  const Compiler::Counters after = with.on->compiler().counters();
  CHECK(after.compiled == built.compiled);
  CHECK(after.shared == built.shared);
  const Layer again(retention, with);
  CHECK(again.counters().compiled == 0);
  CHECK(again.counters().shared > 0);
}

TEST_CASE("several tapes live at once; gradients are added when asked") {
  const Layer layer(retention, options());
  std::vector<Tensors> inputs;
  std::vector<Layer::Forward> forwards;
  for (int i = 0; i < 2; ++i) {
    inputs.push_back(tensors_for(
        layer.graph(), random_inputs(layer.graph(), {{"b", 1}, {"t", 20 + 11 * i}}, 50 * i)));
    forwards.push_back(layer.forward(refs(inputs.back())));
  }
  const auto backward = [&](int i, const TensorMap& gradients, bool accumulate) {
    const Tensors cotangents = [&] {
      Tensors all;
      all["y"] = from_float64(random_tensor(forwards[i].outputs.at("y").shape(), 5), DType::f64);
      return all;
    }();
    return layer.backward(forwards[i].tape, refs(cotangents), gradients, accumulate);
  };
  const Tensors first = backward(0, {}, false), second = backward(1, {}, false);
  Tensor rate(DType::f64, {3});
  const Tensors rest = backward(0, {{"rate", rate.ref()}}, false);
  CHECK(rest.count("rate") == 0);
  CHECK(rest.count("q") == 1);
  backward(1, {{"rate", rate.ref()}}, true);
  for (int i = 0; i < 3; ++i) {
    const double expected =
        first.at("rate").data_as<double>()[i] + second.at("rate").data_as<double>()[i];
    CHECK(rate.data_as<double>()[i] == expected);
  }
}

TEST_CASE("a cotangent that is not given is zero, and so is a state") {
  const Layer layer(retention, options());
  Tensors64 inputs = random_inputs(layer.graph(), {{"b", 2}, {"t", 20}}, 4);
  inputs["h0"] = Tensor64({2, 3, 8, 5});
  Tensors given = tensors_for(layer.graph(), inputs);
  given.erase("h0");
  const Layer::Forward forward = layer.forward(refs(given));
  const Tensors64 reference = evaluate(layer.graph(), inputs);
  check_close(to_float64_all(forward.outputs), reference, 1e-12);
  Tensors64 cotangents;
  cotangents["y"] = Tensor64(reference.at("y").shape);
  cotangents["h"] = random_tensor(reference.at("h").shape, 1);
  const Tensor h = from_float64(cotangents.at("h"), DType::f64);
  const Tensors gradients = layer.backward(forward.tape, {{"h", h.ref()}});
  check_close(to_float64_all(gradients), reference_gradients(layer.graph(), inputs, cotangents),
              1e-12);
}

TEST_CASE("gradients that were not wanted are not there") {
  LayerOptions with = options();
  with.wanted = {"rate", "h0"};
  with.cotangents = {"y"};
  const Layer layer(retention, with);
  const Tensors inputs =
      tensors_for(layer.graph(), random_inputs(layer.graph(), {{"b", 1}, {"t", 20}}, 4));
  const Layer::Forward forward = layer.forward(refs(inputs));
  const TensorRef y = forward.outputs.at("y").ref();
  const Tensors gradients = layer.backward(forward.tape, {{"y", y}});
  CHECK(gradients.size() == 2);
  CHECK_THROWS_WITH(layer.backward(forward.tape, {{"h", y}}),
                    Contains("cotangent is h; allowed: y"));
  CHECK_THROWS_WITH(layer.backward(forward.tape, {{"y", y}}, {{"q", y}}),
                    Contains("gradient is q; allowed: rate, h0"));
  with.wanted = std::vector<std::string>{};
  const Layer none(retention, with);
  CHECK(none.plan(Pass::backward) == nullptr);
  CHECK_THROWS_WITH(none.backward(none.forward(refs(inputs)).tape, {{"y", y}}),
                    Contains("built without gradients"));
  CHECK_THROWS_WITH(layer.backward(none.forward(refs(inputs)).tape, {{"y", y}}),
                    Contains("tape is of another layer"));
}

TEST_CASE("parameters: drawn from a seed by name, read and set by name") {
  LayerOptions with = options(DType::f32);
  with.seed = 5;
  Layer layer(retention, with);
  CHECK(layer.parameters() == std::vector<std::string>{"rate"});
  const float* rate = static_cast<const float*>(layer.parameter("rate").data);
  const std::vector<float> drawn(rate, rate + 3);
  for (float x : drawn) CHECK((x >= -3 && x < -1));
  CHECK(drawn[0] != drawn[1]);
  layer.draw_parameters(6);
  CHECK(rate[0] != drawn[0]);
  layer.draw_parameters(5);
  CHECK(std::vector<float>(rate, rate + 3) == drawn);
  const double value[] = {-1, -2, -3};
  layer.set_parameter("rate", TensorRef(value, {3}));
  CHECK(rate[2] == -3);
  CHECK_THROWS_WITH(layer.set_parameter("rate", TensorRef(value, {2})),
                    Contains("shape of parameter rate is (2); allowed: (3)"));
  CHECK_THROWS_WITH(layer.parameter("ratio"), Contains("parameter is ratio; allowed: rate"));
}

TEST_CASE("what cannot be run is refused with the reason") {
  LayerOptions with = options();
  with.device = "cuda:0";
  CHECK_THROWS_WITH(Layer(retention, with), Contains("device is cuda:0; allowed: host"));
  with = options(DType::bf16);
  CHECK_THROWS_WITH(Layer(retention, with), Contains("dtype is bf16"));
  with = options(DType::f32, "plan=recurrent");
  CHECK_THROWS_WITH(Layer(retention, with), Contains("recurrent"));
  with = options();
  with.wanted = {"nobody"};
  CHECK_THROWS_WITH(Layer(retention, with), Contains("wanted gradient is nobody; allowed: q, k"));
  with = options(DType::f32);
  const auto undeclared = [](Scope& s) {
    const Expr a = s.input("a", {b, t}), u = s.input("u", {b, t});
    s.output("y", scan(t, a, u).leaving, {b, t});
  };
  CHECK_THROWS_AS(Layer(undeclared, with), UsageError);
  const auto open = [](Scope& s) {
    const Expr x = s.input("x", {b, t});
    s.output("y", cumsum(t, x * s.param("w", {b})).values, {b, t});
  };
  CHECK_THROWS_WITH(Layer(open, with), Contains("parameter w has axis b"));
  const Layer layer(retention, options());
  CHECK_THROWS_WITH(layer.forward({{"u", TensorRef()}}), Contains("input is u; allowed: q"));
  CHECK_THROWS_WITH(layer.forward({}), Contains("size of axis"));
}

TEST_CASE("threads may share a layer") {
  const Layer layer(retention, options());
  const Tensors64 inputs = random_inputs(layer.graph(), {{"b", 1}, {"t", 40}}, 4);
  const Tensors given = tensors_for(layer.graph(), inputs);
  const Tensors64 first = to_float64_all(layer.forward(refs(given)).outputs);
  std::vector<Tensors64> results(4);
  std::vector<std::thread> threads;
  for (Tensors64& result : results)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) result = to_float64_all(layer.forward(refs(given)).outputs);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Tensors64& result : results)
    for (const auto& [name, tensor] : first) CHECK(result.at(name).data == tensor.data);
}

TEST_CASE("what a schedule leaves open is picked for the shape, whatever the number of threads") {
  LayerOptions with = options(DType::f32, "");
  with.wanted = std::vector<std::string>{};
  with.step = false;
  with.sizes = {{"b", 4}, {"t", 300}};
  const Layer layer(retention, with);
  CHECK(layer.schedule().chunk.has_value());
  CHECK(layer.plan(Pass::forward)->schedule == layer.schedule());
  with.on = test_device(1);
  CHECK(Layer(retention, with).schedule() == layer.schedule());
  with.schedule = parse_schedule("chunk=7");
  CHECK(Layer(retention, with).schedule().chunk == 7);
}

TEST_CASE("a user's file fills what the layer's own schedule leaves open") {
  HostDeviceOptions device = HostDeviceOptions::from();
  device.compiler.use_disk = false;
  device.schedule = parse_schedule("chunk=24 backward.chunk=8");
  LayerOptions with = options(DType::f32, "");
  with.on = std::make_shared<HostDevice>(device);
  with.step = false;
  CHECK(to_text(Layer(retention, with).schedule()) == "chunk=24 backward.chunk=8");
  with.schedule = parse_schedule("backward.chunk=12");
  CHECK(to_text(Layer(retention, with).schedule()) == "chunk=24 backward.chunk=12");
  with.schedule = parse_schedule("chunk=12");
  CHECK(to_text(Layer(retention, with).schedule()) == "chunk=12");
}

TEST_CASE("the user's file is read from where the environment says") {
  const test::ScratchDirectory directory;
  CHECK(read_environment([](const char* variable) {
          return std::string(variable) == "KRAIT_SCHEDULE" ? "mine" : nullptr;
        }).schedule_file == "mine");
  Environment environment;
  CHECK(HostDeviceOptions::from(environment).schedule == Schedule{});
  environment.schedule_file = (directory.path() / "schedule").string();
  CHECK_THROWS_AS(HostDeviceOptions::from(environment), EnvironmentError);
  write_file_atomically(environment.schedule_file, "# mine\nchunk=48\nbackward.chunk=16\n");
  CHECK(to_text(HostDeviceOptions::from(environment).schedule) == "chunk=48 backward.chunk=16");
  write_file_atomically(environment.schedule_file, "chunk=many\n");
  CHECK_THROWS_WITH(HostDeviceOptions::from(environment),
                    Contains("KRAIT_SCHEDULE, file ") && Contains("chunk is many"));
}

TEST_CASE("a chunk that no machine holds is the caller's error, not a crash") {
  CHECK_THROWS_WITH(Layer(retention, options(DType::f32, "chunk=1048576")),
                    Contains("chunk=1048576") && Contains("allowed: a smaller chunk"));
}

}  // namespace
}  // namespace krait
