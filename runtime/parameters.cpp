#include "runtime/parameters.h"

#include <cmath>
#include <numbers>

#include "dsl/error.h"

namespace krait {
namespace {

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), read at
/// any place.
class Draws {
 public:
  Draws(std::uint64_t seed, const std::string& name) {
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a of the name
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    key_ = mix(mix(seed) ^ hash);
  }

  /// In [0, 1), in steps of 2^-53.
  double uniform(std::uint64_t number) const {
    return static_cast<double>(mix(key_ + number * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53;
  }
  /// Box and Muller's transformation of two of those.
  double normal(std::uint64_t number) const {
    const double radius = std::sqrt(-2 * std::log1p(-uniform(2 * number)));
    return radius * std::cos(2 * std::numbers::pi * uniform(2 * number + 1));
  }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::uint64_t key_ = 0;
};

double between(double low, double high, double u) { return low + (high - low) * u; }

double element(const Init& init, const Draws& draws, std::int64_t number, std::int64_t last) {
  const auto at = static_cast<std::uint64_t>(number);
  switch (init.kind) {
    case Init::Kind::zero: return 0;
    case Init::Kind::one: return 1;
    case Init::Kind::constant: return init.a;
    case Init::Kind::uniform: return between(init.a, init.b, draws.uniform(at));
    case Init::Kind::log_uniform: return std::log(between(init.a, init.b, draws.uniform(at)));
    case Init::Kind::log_arange: return std::log(1.0 + static_cast<double>(number % last));
    case Init::Kind::inverse_softplus_dt: {
      const double drawn = std::exp(between(std::log(init.a), std::log(init.b), draws.uniform(at)));
      const double dt = std::max(drawn, init.floor);
      return dt + std::log(-std::expm1(-dt));
    }
    case Init::Kind::fan_in: {
      const double bound = 1 / std::sqrt(init.a);
      return between(-bound, bound, draws.uniform(at));
    }
    case Init::Kind::normal: return init.a * draws.normal(at);
  }
  throw InternalError("an Init of no kind");
}

}  // namespace

void draw_parameter(const Input& parameter, std::uint64_t seed, const TensorRef& tensor) {
  const Draws draws(seed, parameter.name);
  Tensor64 drawn(tensor.shape);
  const std::int64_t last = tensor.shape.empty() ? 1 : tensor.shape.back();
  for (std::int64_t i = 0; i < drawn.count(); ++i)
    drawn.data[i] = element(parameter.init, draws, i, last);
  copy({drawn.data.data(), drawn.shape}, tensor, parameter.name);
}

}  // namespace krait
