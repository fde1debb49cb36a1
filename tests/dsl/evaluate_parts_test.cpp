// Cumsum and Scan in parts, and late Cumsums: each part is what the op gives for its positions
// alone.
#include "evaluate_testing.h"

namespace krait {
namespace {

struct Part {
  int begin, end;
};

/// The parts of 7 positions, from their meaning.
std::vector<Part> parts_of_seven(int count) {
  if (count == 3) return {{0, 3}, {3, 6}, {6, 7}};
  if (count == 5) return {{0, 2}, {2, 4}, {4, 6}, {6, 7}, {7, 7}};
  return {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}};
}

Numbers slice(const Numbers& x, Part part) {
  return {x.begin() + part.begin, x.begin() + part.end};
}

/// One part alone: runs the op without parts over its positions. Results one after the other.
std::vector<Numbers> alone(Op op, const std::vector<Numbers>& varying, double initial,
                           const Numbers& reset, Part part) {
  Bench bench;
  bench.graph.declare(Axis("t"));
  std::vector<Value> operands;
  for (std::size_t i = 0; i < varying.size(); ++i)
    operands.push_back(bench.input("x" + std::to_string(i), {"t"}, {part.end - part.begin},
                                   slice(varying[i], part)));
  operands.push_back(bench.input("initial", {}, {}, {initial}));
  operands.push_back(
      bench.input("reset", {"t"}, {part.end - part.begin}, slice(reset, part), DType::i32));
  const int node = bench.graph.add(std::move(op), operands);
  std::vector<Numbers> results;
  const auto& types = bench.graph.node(node).results;
  for (std::size_t r = 0; r < types.size(); ++r)
    results.push_back(bench.data({node, static_cast<int>(r)}, types[r].axes));
  return results;
}

template <typename Running>
void check_parts(const Running& whole, const std::vector<Numbers>& varying) {
  const Numbers reset{0, 0, 1, 0, 2, 0, 0};
  for (int count : {3, 5, 7}) {
    INFO(count << " parts, reverse " << whole.reverse << ", late " << whole.late);
    Bench bench;
    bench.graph.declare(Axis("t"));
    bench.graph.declare(Axis("s", count));
    std::vector<Value> operands;
    for (std::size_t i = 0; i < varying.size(); ++i)
      operands.push_back(bench.input("x" + std::to_string(i), {"t"}, {7}, varying[i]));
    const Tensor64 initial = [&] {
      bench.random_input("initial", {"s"}, {count}, -1, 1);
      return bench.inputs.at("initial");
    }();
    operands.push_back(*bench.graph.find_input("initial"));
    operands.push_back(bench.input("reset", {"t"}, {7}, reset, DType::i32));
    Running in_parts = whole;
    in_parts.parts = "s";
    const int node = bench.graph.add(in_parts, operands);
    const auto& types = bench.graph.node(node).results;
    const int last = static_cast<int>(types.size()) - 1;
    CHECK(types[last].axes == AxisNames{"s"});
    const std::vector<Part> parts = parts_of_seven(count);
    for (int r = 0; r <= last; ++r) {
      INFO("result " << r);
      const Numbers got = bench.data({node, r}, types[r].axes);
      for (int i = 0; i < count; ++i) {
        if (parts[i].begin == parts[i].end) {
          if (r == last) CHECK(got[i] == initial.data[i]);
          continue;
        }
        const Numbers expected = alone(whole, varying, initial.data[i], reset, parts[i])[r];
        require_close(r == last ? Numbers{got[i]} : slice(got, parts[i]), expected);
      }
    }
  }
}

const Numbers x{0.5, -1, 2, 0.25, 3, -0.75, 1}, decay{-0.5, -1, -0.1, 0, -2, -0.3, -0.7};

TEST_CASE("each part of a cumsum or a scan runs for itself") {
  Cumsum sum{"t"};
  sum.has_initial = sum.has_reset = true;
  check_parts(sum, {x});
  sum.exclusive = true;
  check_parts(sum, {x});
  sum.reverse = sum.late = true;
  check_parts(sum, {x});
  Scan scan{"t", false, true, true};
  check_parts(scan, {decay, x});
  scan.reverse = true;
  check_parts(scan, {decay, x});
  scan.late = true;
  check_parts(scan, {decay, x});
}

TEST_CASE("a late cumsum is the forward one, run from the end") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  const Value in = bench.input("x", {"t"}, {4}, {1, 2, 4, 8});
  const Value reset = bench.input("reset", {"t"}, {4}, {0, 1, 0, 0}, DType::i32);
  Cumsum op{"t"};
  op.reverse = op.late = op.has_reset = true;
  const int node = bench.graph.add(op, {in, reset});
  CHECK(bench.data({node, 0}, {"t"}) == Numbers{3, 2, 12, 8});
  CHECK(bench.data({node, 1}, {}) == Numbers{3});
}

TEST_CASE("parts that make no sense are named") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  bench.graph.declare(Axis("s"));
  bench.graph.declare(Axis("k", 3));
  const Value in = bench.input("x", {"t", "k"}, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Value reset = bench.input("reset", {"t"}, {2}, {0, 1}, DType::i32);
  using Catch::Contains;
  Cumsum op{.axis = "t", .parts = "s"};
  CHECK_THROWS_WITH(bench.graph.add(op, {in}),
                    Contains("Cumsum.parts") && Contains("a constant size"));
  op.parts = "k";
  CHECK_THROWS_WITH(bench.graph.add(op, {in}),
                    Contains("Cumsum.parts") && Contains("an axis not in"));
  op.parts = "nowhere";
  CHECK_THROWS_WITH(bench.graph.add(op, {in}),
                    Contains("Cumsum.parts") && Contains("a declared axis"));
  bench.graph.declare(Axis("part", 2));
  op.parts = "part";
  op.reverse = op.has_reset = true;
  CHECK_THROWS_WITH(bench.graph.add(op, {in, reset}),
                    Contains("Cumsum.parts") && Contains("not late"));
  op.reverse = false, op.late = true;
  CHECK_THROWS_WITH(bench.graph.add(op, {in, reset}), Contains("Cumsum.late"));
  Scan scan{.axis = "t", .late = true};
  CHECK_THROWS_WITH(bench.graph.add(scan, {in, in}), Contains("Scan.late"));
  scan.late = false, scan.parts = "part";
  const int node = bench.graph.add(scan, {in, in});
  CHECK_THAT(to_text(bench.graph), Contains("in parts part"));
  CHECK(bench.graph.type({node, 2}).axes == AxisNames{"k", "part"});
}

}  // namespace
}  // namespace krait
