// Bytes that a scan moves on a GPU, counted by the emulated driver at a few heads and rows, where
// they are shown to be linear in both, and scaled to a layer of ordinary size.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "dsl/blocks/blocks.h"
#include "runtime/krait.h"
#include "tests/gpu/emulated.h"

namespace krait {
namespace {

/// Global memory that launches touched: 32-byte sectors, each once a launch, read and written.
struct Traffic {
  double bytes = 0;
  std::map<std::string, int> launches;
};

class Counter {
 public:
  /// Of the launches since the last call.
  Traffic take() {
    const nlohmann::json launches = testing::launches();
    Traffic traffic;
    for (; seen_ < launches.size(); ++seen_) {
      const nlohmann::json& sectors = launches[seen_]["global"]["distinct_sectors"];
      traffic.bytes += 32.0 * (sectors["read"].get<double>() + sectors["written"].get<double>());
      ++traffic.launches[launches[seen_]["kernel"].get<std::string>()];
    }
    return traffic;
  }

 private:
  std::size_t seen_ = 0;
};

constexpr std::int64_t headdim = 64, d_state = 128;

struct Passes {
  Traffic forward, backward;
};

/// One forward and one backward pass of a scan whose states start from zero, by default schedules.
Passes moved(Counter& counter, std::int64_t rows, std::int64_t positions, std::int64_t heads) {
  SsdSpec spec{.nheads = heads, .headdim = headdim, .d_state = d_state, .ngroups = 1};
  LayerOptions options;
  options.device = "cuda:0";
  options.step = false;
  const Layer layer(block_function(spec), options);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  const auto tensor = [&](const Shape& shape) {
    Tensor made(DType::f32, shape);
    for (std::int64_t i = 0; i < made.count(); ++i) made.data_as<float>()[i] = normal(random);
    return to_device(made.ref(), *layer.device());
  };
  const Tensor x = tensor({rows, positions, heads, headdim}), dt = tensor({rows, positions, heads}),
               B = tensor({rows, positions, 1, d_state}), C = tensor({rows, positions, 1, d_state}),
               dy = tensor({rows, positions, heads, headdim});
  Passes passes;
  layer.device()->finish();
  counter.take();
  const Layer::Forward forward =
      layer.forward({{"x", x.ref()}, {"dt", dt.ref()}, {"B", B.ref()}, {"C", C.ref()}});
  layer.device()->finish();
  passes.forward = counter.take();
  const Tensors gradients = layer.backward(forward.tape, {{"y", dy.ref()}});
  layer.device()->finish();
  passes.backward = counter.take();
  return passes;
}

/// bytes = rows (a + b heads + c positions + d heads positions), from four measured corners. What
/// does not grow with the rows, a few parameters, is less than what is rounded off here.
class Linear {
 public:
  Linear(double low, double more_heads, double more_positions, double both)
      : d_((both - more_heads - more_positions + low) / step),
        c_((more_positions - low) / step - d_),
        b_(more_heads - low - step * d_),
        a_(low - b_ - step * (c_ + d_)) {}
  /// Positions of the smaller corners, and what the larger ones have more.
  static constexpr std::int64_t step = 128;

  double at(std::int64_t rows, std::int64_t positions, std::int64_t heads) const {
    const auto t = static_cast<double>(positions), h = static_cast<double>(heads);
    return static_cast<double>(rows) * (a_ + b_ * h + c_ * t + d_ * h * t);
  }

 private:
  double d_, c_, b_, a_;
};

struct Model {
  Linear forward, backward;
};

Model fit(Counter& counter) {
  const Passes low = moved(counter, 1, Linear::step, 1), heads = moved(counter, 1, Linear::step, 2),
               positions = moved(counter, 1, 2 * Linear::step, 1),
               both = moved(counter, 1, 2 * Linear::step, 2);
  const auto of = [&](Traffic Passes::*pass) {
    return Linear((low.*pass).bytes, (heads.*pass).bytes, (positions.*pass).bytes,
                  (both.*pass).bytes);
  };
  return {of(&Passes::forward), of(&Passes::backward)};
}

/// That the counts at these sizes are what the model says.
void check(const Model& model, Counter& counter, std::int64_t rows, std::int64_t positions,
           std::int64_t heads) {
  const Passes passes = moved(counter, rows, positions, heads);
  CAPTURE(rows, positions, heads);
  CHECK(passes.forward.bytes == Approx(model.forward.at(rows, positions, heads)).epsilon(0.002));
  CHECK(passes.backward.bytes == Approx(model.backward.at(rows, positions, heads)).epsilon(0.002));
  CHECK(passes.forward.launches == std::map<std::string, int>{{"krait_h", 1}});
  // Loops over chunks each way for the states, then the gradients.
  CHECK(passes.backward.launches ==
        std::map<std::string, int>{{"krait_part", 2}, {"krait_x", 1}, {"krait_finish_A", 1}});
}

/// Every input read and every output written once, no more.
double least_forward(double rows, double positions, double heads) {
  return 4 * rows *
         (positions * (2 * heads * headdim + heads + 2 * d_state) + heads * headdim * d_state);
}
double least_backward(double rows, double positions, double heads) {
  return 4 * rows * positions * (3 * heads * headdim + 2 * heads + 4 * d_state);
}

TEST_CASE("a scan moves little more than its inputs and outputs: forward once, backward thrice") {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  Counter counter;
  const Model model = fit(counter);
  check(model, counter, 2, 256, 2);
  check(model, counter, 1, 384, 3);
  const double forward = model.forward.at(8, 2048, 80) / least_forward(8, 2048, 80),
               backward = model.backward.at(8, 2048, 80) / least_backward(8, 2048, 80);
  INFO("of the least: forward " << forward << ", backward " << backward);
  CHECK(forward >= 1);
  CHECK(forward <= 1.1);
  CHECK(backward >= 1);
  CHECK(backward <= 3);
}

TEST_CASE("what a scan moves is linear up to whole windows", "[slow]") {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  Counter counter;
  const Model model = fit(counter);
  check(model, counter, 1, 2048, 2);
  check(model, counter, 1, 2048, 4);
  check(model, counter, 2, 1024, 5);
}

}  // namespace
}  // namespace krait
