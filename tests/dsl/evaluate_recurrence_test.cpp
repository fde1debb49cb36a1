// Cumsum, Scan and Gap of the oracle against closed forms: sums over all earlier positions, which
// share no recurrence with the code under test.
#include "evaluate_testing.h"

namespace krait {
namespace {

double wrapped(double x) { return x - std::floor(x + 0.5); }

// Sum over the positions that reach position t: those from which no reset separates it.
double running(const Numbers& x, const Numbers& reset, double initial, bool reverse, int t) {
  const int size = static_cast<int>(x.size());
  double sum = 0;
  if (reverse) {
    bool reaches = true;
    for (int j = t; j < size; ++j) {
      if (j > t && !reset.empty() && reset[j] != 0) reaches = false;
      if (reaches) sum += x[j];
    }
    return sum + (reaches ? initial : 0);
  }
  bool reaches = true;
  for (int j = t; j >= 0; --j) {
    if (reaches) sum += x[j];
    if (!reset.empty() && reset[j] != 0) reaches = false;
  }
  return sum + (reaches ? initial : 0);
}

TEST_CASE("cumsum in every combination of its flags") {
  const int size = 7;
  for (int flags = 0; flags < 32; ++flags) {
    Cumsum op{"t",
              (flags & 1) != 0,
              (flags & 2) != 0,
              (flags & 4) != 0,
              (flags & 8) != 0,
              (flags & 16) != 0};
    INFO("reverse " << op.reverse << " exclusive " << op.exclusive << " wrap " << op.wrap
                    << " initial " << op.has_initial << " reset " << op.has_reset);
    Bench bench;
    bench.graph.declare(Axis("t"));
    bench.graph.declare(Axis("h", 2));
    std::vector<Value> operands{bench.random_input("x", {"t", "h"}, {size, 2}, -1, 1)};
    if (op.has_initial) operands.push_back(bench.input("start", {"h"}, {2}, {0.375, -0.25}));
    Numbers reset;
    if (op.has_reset) {
      reset = {0, 0, 3, 0, 0, 1, 0};
      operands.push_back(bench.input("reset", {"t"}, {size}, reset, DType::i32));
    }
    const int node = bench.graph.add(op, operands);
    const Numbers y = bench.data({node, 0}, {"h", "t"}), last = bench.data({node, 1}, {"h"});
    for (int h = 0; h < 2; ++h) {
      Numbers x;
      for (int t = 0; t < size; ++t) x.push_back(bench.inputs["x"].data[t * 2 + h]);
      const double initial = op.has_initial ? bench.inputs["start"].data[h] : 0;
      Numbers expected;
      for (int t = 0; t < size; ++t) {
        const int from = !op.exclusive ? t : op.reverse ? t + 1 : t - 1;
        expected.push_back(from < 0 || from >= size ? initial
                                                    : running(x, reset, initial, op.reverse, from));
      }
      double end = running(x, reset, initial, op.reverse, op.reverse ? 0 : size - 1);
      if (op.wrap) {
        for (double& value : expected) value = wrapped(value);
        end = wrapped(end);
      }
      require_close({y.begin() + h * size, y.begin() + (h + 1) * size}, expected);
      require_close({last[h]}, {end});
    }
  }
}

TEST_CASE("cumsum by hand") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  Value x = bench.input("x", {"t"}, {4}, {1, 2, 4, 8}, DType::i32);
  Value reset = bench.input("reset", {"t"}, {4}, {1, 0, 1, 0}, DType::i32);
  Value start = bench.input("start", {}, {}, {100}, DType::i32);
  const auto run = [&](bool reverse, bool exclusive, int result) {
    const int node =
        bench.graph.add(Cumsum{"t", reverse, exclusive, false, true, true}, {x, start, reset});
    REQUIRE(bench.graph.type({node, result}).dtype == DType::i32);
    return bench.data({node, result}, result == 0 ? AxisNames{"t"} : AxisNames{});
  };
  REQUIRE(run(false, false, 0) == Numbers{1, 3, 4, 12});
  REQUIRE(run(false, true, 0) == Numbers{100, 1, 3, 4});
  REQUIRE(run(false, false, 1) == Numbers{12});
  REQUIRE(run(true, false, 0) == Numbers{3, 2, 112, 108});
  REQUIRE(run(true, true, 0) == Numbers{2, 112, 108, 100});
  REQUIRE(run(true, false, 1) == Numbers{3});
}

TEST_CASE("a wrapped cumsum keeps even its initial value in half a turn") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  Value x = bench.input("x", {"t"}, {4}, {0.4, 0.4, 0.4, -0.9});
  Value start = bench.input("start", {}, {}, {1.25});
  const int node = bench.graph.add(Cumsum{"t", false, true, true, true, false}, {x, start});
  require_close(bench.data({node, 0}, {"t"}), {0.25, -0.35, 0.05, 0.45});
  require_close(bench.data({node, 1}, {}), {-0.45});
}

struct ScanCase {
  int b, t, h, p;
  bool reverse, has_initial, has_reset;
};

struct ScanResults {
  Numbers entering, leaving, last;
};

// Every value as a sum over all positions of the input times the product of the decays between.
ScanResults closed_form(const ScanCase& c, const Numbers& log_decay, const Numbers& u,
                        const Numbers& initial, const Numbers& reset) {
  const int inner = c.h * c.p;
  ScanResults results;
  const auto count = static_cast<std::size_t>(c.b * c.t * inner);
  results.entering.resize(count);
  results.leaving.resize(count);
  results.last.resize(static_cast<std::size_t>(c.b * inner));
  for (int b = 0; b < c.b; ++b)
    for (int h = 0; h < c.h; ++h)
      for (int p = 0; p < c.p; ++p) {
        const auto factor = [&](int i) {
          if (c.has_reset && reset[b * c.t + i] != 0) return 0.0;
          return std::exp(log_decay[i * c.h + h]);
        };
        const auto at = [&](int t) { return ((b * c.t + t) * c.h + h) * c.p + p; };
        const int slot = (b * c.h + h) * c.p + p;
        const double start = c.has_initial ? initial[slot] : 0;
        // The value that leaves position t, in the direction of the scan.
        const auto leaves = [&](int t) {
          double sum = 0;
          if (c.reverse) {
            for (int j = t; j < c.t; ++j) {
              double weight = 1;
              for (int i = t + 1; i <= j; ++i) weight *= factor(i);
              sum += weight * u[at(j)];
            }
            double weight = 1;
            for (int i = t + 1; i < c.t; ++i) weight *= factor(i);
            return sum + weight * start;
          }
          for (int j = 0; j <= t; ++j) {
            double weight = 1;
            for (int i = j + 1; i <= t; ++i) weight *= factor(i);
            sum += weight * u[at(j)];
          }
          double weight = 1;
          for (int i = 0; i <= t; ++i) weight *= factor(i);
          return sum + weight * start;
        };
        for (int t = 0; t < c.t; ++t) {
          results.leaving[at(t)] = leaves(t);
          results.entering[at(t)] = c.reverse ? leaves(t) - u[at(t)]
                                    : t == 0  ? start
                                              : leaves(t - 1);
        }
        results.last[slot] = c.reverse ? factor(0) * leaves(0) : leaves(c.t - 1);
      }
  return results;
}

TEST_CASE("scan forwards and in reverse, with and without initial value and resets") {
  for (int flags = 0; flags < 8; ++flags)
    for (int t : {1, 2, 9}) {
      const ScanCase c{2, t, 3, 2, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0};
      INFO("t " << t << " reverse " << c.reverse << " initial " << c.has_initial << " reset "
                << c.has_reset);
      Bench bench;
      for (const Axis& axis : {Axis("b"), Axis("t"), Axis("h", 3), Axis("p", 2)})
        bench.graph.declare(axis);
      std::vector<Value> operands{
          bench.random_input("log_decay", {"t", "h"}, {t, 3}, -2, 0),
          bench.random_input("u", {"b", "t", "h", "p"}, {2, t, 3, 2}, -1, 1)};
      if (c.has_initial)
        operands.push_back(bench.random_input("start", {"b", "h", "p"}, {2, 3, 2}, -1, 1));
      if (c.has_reset) operands.push_back(bench.random_flags("reset", {"b", "t"}, {2, t}, 3));
      const int node = bench.graph.add(Scan{"t", c.reverse, c.has_initial, c.has_reset}, operands);
      const ScanResults expected =
          closed_form(c, bench.inputs["log_decay"].data, bench.inputs["u"].data,
                      bench.inputs["start"].data, bench.inputs["reset"].data);
      require_close(bench.data({node, 0}, {"b", "t", "h", "p"}), expected.entering);
      require_close(bench.data({node, 1}, {"b", "t", "h", "p"}), expected.leaving);
      require_close(bench.data({node, 2}, {"b", "h", "p"}), expected.last);
    }
}

TEST_CASE("scan by hand: a reset hides the state from its position, not from the entering value") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  const double half = std::log(0.5);
  Value decay = bench.input("log_decay", {"t"}, {3}, {half, half, half});
  Value u = bench.input("u", {"t"}, {3}, {1, 2, 4});
  Value start = bench.input("start", {}, {}, {16});
  Value reset = bench.input("reset", {"t"}, {3}, {0, 1, 0}, DType::i32);
  const int forward = bench.graph.add(Scan{"t", false, true, true}, {decay, u, start, reset});
  require_close(bench.data({forward, 0}, {"t"}), {16, 9, 2});
  require_close(bench.data({forward, 1}, {"t"}), {9, 2, 5});
  require_close(bench.data({forward, 2}, {}), {5});
  const int back = bench.graph.add(Scan{"t", true, true, true}, {decay, u, start, reset});
  require_close(bench.data({back, 0}, {"t"}), {0, 10, 16});
  require_close(bench.data({back, 1}, {"t"}), {1, 12, 20});
  require_close(bench.data({back, 2}, {}), {0.5});
}

TEST_CASE("the state of a scan has the axes of decay and input together") {
  Bench bench;
  for (const Axis& axis : {Axis("t"), Axis("c", 2), Axis("n", 3)}) bench.graph.declare(axis);
  Value decay = bench.random_input("log_decay", {"n", "t"}, {3, 5}, -2, 0);
  Value u = bench.random_input("u", {"t", "c"}, {5, 2}, -1, 1);
  const int node = bench.graph.add(Scan{"t", false, false, false}, {decay, u});
  const Numbers leaving = bench.data({node, 1}, {"c", "n", "t"});
  for (int c = 0; c < 2; ++c)
    for (int n = 0; n < 3; ++n) {
      double state = 0;
      Numbers expected;
      for (int t = 0; t < 5; ++t) {
        state = std::exp(bench.inputs["log_decay"].data[n * 5 + t]) * state +
                bench.inputs["u"].data[t * 2 + c];
        expected.push_back(state);
      }
      const auto begin = leaving.begin() + (c * 3 + n) * 5;
      require_close({begin, begin + 5}, expected);
    }
}

TEST_CASE("the reverse scan is the adjoint of the scan") {
  for (bool has_reset : {false, true})
    for (int t : {1, 2, 17}) {
      INFO("t " << t << " reset " << has_reset);
      Bench bench;
      for (const Axis& axis : {Axis("b"), Axis("t"), Axis("h", 3), Axis("p", 2)})
        bench.graph.declare(axis);
      const AxisNames whole{"b", "t", "h", "p"}, state{"b", "h", "p"};
      Value decay = bench.random_input("log_decay", {"b", "t", "h"}, {2, t, 3}, -1, 0);
      Value u = bench.random_input("u", whole, {2, t, 3, 2}, -1, 1);
      Value start = bench.random_input("start", state, {2, 3, 2}, -1, 1);
      Value v = bench.random_input("v", whole, {2, t, 3, 2}, -1, 1);
      Value end = bench.random_input("end", state, {2, 3, 2}, -1, 1);
      std::vector<Value> forward{decay, u, start}, back{decay, v, end};
      if (has_reset) {
        Value reset = bench.random_flags("reset", {"b", "t"}, {2, t}, 5);
        forward.push_back(reset);
        back.push_back(reset);
      }
      const int s = bench.graph.add(Scan{"t", false, true, has_reset}, forward);
      const int r = bench.graph.add(Scan{"t", true, true, has_reset}, back);
      const double left = inner_product(bench.data({s, 1}, whole), bench.inputs["v"].data) +
                          inner_product(bench.data({s, 2}, state), bench.inputs["end"].data);
      const double right = inner_product(bench.inputs["u"].data, bench.data({r, 1}, whole)) +
                           inner_product(bench.inputs["start"].data, bench.data({r, 2}, state));
      REQUIRE(left == Approx(right).epsilon(1e-12));
    }
}

TEST_CASE("gap of each kind") {
  Bench bench;
  for (const Axis& axis : {Axis("h", 2), Axis("q", 4), Axis("k", 4)}) bench.graph.declare(axis);
  Value a = bench.input("a", {"h", "q"}, {2, 4}, {-1, -2, -4, -8, -3, 0, -5, -7});
  const auto run = [&](Gap::Kind kind, const AxisNames& order) {
    const std::string other = kind == Gap::Kind::between ? "k" : "";
    return bench.data({bench.graph.add(Gap{kind, "q", other}, {a})}, order);
  };
  REQUIRE(run(Gap::Kind::between, {"h", "q", "k"}) ==
          Numbers{0, 0, 0, 0, -2, 0, 0, 0, -6, -4, 0, 0, -14, -12, -8, 0,  //
                  0, 0, 0, 0, 0,  0, 0, 0, -5, -5, 0, 0, -12, -12, -7, 0});
  REQUIRE(run(Gap::Kind::from_start, {"h", "q"}) == Numbers{-1, -3, -7, -15, -3, -3, -8, -15});
  REQUIRE(run(Gap::Kind::to_end, {"h", "q"}) == Numbers{-14, -12, -8, 0, -12, -12, -7, 0});
  REQUIRE(run(Gap::Kind::total, {"h"}) == Numbers{-15, -15});
}

}  // namespace
}  // namespace krait
