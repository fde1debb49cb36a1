// A block of one's own: written, differentiated, compiled, trained and stepped, with no line in
// krait that knows it.
//
//   S[h] = exp(-exp(log_rate[h])) S[h] + k v^T;   y = W_o (q S silu(z)),   q, k, v, z = W u
//
// The task: u carries random signals and a constant; give each signal's running mean over about
// ten positions. What the block has to find is a decay of 0.9, and what to keep.
#include <krait/krait.h>

#include <cmath>
#include <iostream>
#include <random>
#include <vector>

namespace {

using namespace krait;

constexpr std::int64_t kSignals = 3, kChannels = kSignals + 1;  // the last one is constant

void gated_retention(Scope& s) {
  const Axis b("b"), t("t"), d("d", kChannels), f("f", kSignals);
  const Axis h("h", 2), n("n", 4), p("p", 8);
  const auto weights = [&](const char* name, const std::vector<Axis>& axes, double inputs) {
    return s.param(name, axes, {Init::Kind::fan_in, inputs});
  };
  const Expr u = s.input("u", {b, t, d});
  const Expr q = sum(u * weights("w_q", {h, n, d}, kChannels), d).named("q");
  const Expr k = sum(u * weights("w_k", {h, n, d}, kChannels), d).named("k");
  const Expr v = sum(u * weights("w_v", {h, p, d}, kChannels), d).named("v");
  const Expr z = sum(u * weights("w_z", {h, p, d}, kChannels), d).named("z");
  const Expr rate = exp(s.param("log_rate", {h}, {Init::Kind::uniform, -1, 0}));
  const ScanResult state =
      scan(t, -rate, k * v, {.initial = s.state("start", "end", {b, h, n, p})});
  const Expr y = sum(state.leaving * q, n) * silu(z);
  s.output("y", sum(y * weights("w_o", {f, h, p}, 16), {h, p}), {b, t, f});
  s.leave("end", state.last);
}

struct Batch {
  Tensor u, target;  // (b, t, d), (b, t, f)
};

Batch draw_batch(std::int64_t b, std::int64_t t, std::mt19937_64& random) {
  Batch batch{{DType::f32, {b, t, kChannels}}, {DType::f32, {b, t, kSignals}}};
  std::normal_distribution<float> draw(0, 1);
  float* u = batch.u.data_as<float>();
  float* target = batch.target.data_as<float>();
  for (std::int64_t row = 0; row < b; ++row) {
    float mean[kSignals] = {};
    for (std::int64_t i = 0; i < t; ++i) {
      for (float& m : mean) {
        *u = draw(random);
        m = 0.9f * m + 0.1f * *u++;
        *target++ = m;
      }
      *u++ = 1;
    }
  }
  return batch;
}

/// Adam (arXiv 1412.6980) over every parameter of a layer.
class Adam {
 public:
  Adam(const Layer& layer, double rate) : layer_(layer), rate_(rate) {}

  void step(const Tensors& gradients) {
    ++steps_;
    const double first_size = 1 - std::pow(0.9, steps_), second_size = 1 - std::pow(0.99, steps_);
    for (const auto& name : layer_.parameters()) {
      const TensorRef parameter = layer_.parameter(name);
      auto& moments = moments_[name];
      moments.resize(parameter.count());
      float* value = static_cast<float*>(parameter.data);
      const float* gradient = gradients.at(name).data_as<float>();
      for (std::size_t i = 0; i < moments.size(); ++i) {
        auto& [first, second] = moments[i];
        first += 0.1 * (gradient[i] - first);
        second += 0.01 * (gradient[i] * gradient[i] - second);
        value[i] -= static_cast<float>(rate_ * first / first_size /
                                       (std::sqrt(second / second_size) + 1e-8));
      }
    }
  }

 private:
  const Layer& layer_;
  double rate_;
  int steps_ = 0;
  std::map<std::string, std::vector<std::pair<double, double>>> moments_;
};

}  // namespace

int main() try {
  const Layer layer(gated_retention, {.seed = 3});
  std::cout << "Its gradients, as krait derives them:\n\n"
            << to_text(differentiate(layer.graph())) << '\n';

  constexpr int kSteps = 400;
  Adam adam(layer, 0.01);
  std::mt19937_64 random(1);
  double first = 0, last = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const Batch batch = draw_batch(8, 64, random);
    const auto forward = layer.forward({{"u", batch.u.ref()}});
    const Tensor& y = forward.outputs.at("y");
    // Mean square of what is missed, and its slope.
    Tensor slope(DType::f32, y.shape());
    double loss = 0;
    for (std::int64_t i = 0; i < y.count(); ++i) {
      const double miss = y.data_as<float>()[i] - batch.target.data_as<float>()[i];
      loss += miss * miss / static_cast<double>(y.count());
      slope.data_as<float>()[i] = static_cast<float>(2 * miss / static_cast<double>(y.count()));
    }
    adam.step(layer.backward(forward.tape, {{"y", slope.ref()}}));
    if (step == 0) first = loss;
    last = loss;
    if (step % (kSteps / 8) == 0) std::cout << "step " << step << "   loss " << loss << '\n';
  }
  const float* log_rate = static_cast<const float*>(layer.parameter("log_rate").data);
  std::cout << "decays found: " << std::exp(-std::exp(log_rate[0])) << ' '
            << std::exp(-std::exp(log_rate[1])) << '\n';
  return last < first / 4 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
