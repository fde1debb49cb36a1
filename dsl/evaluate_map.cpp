// Map: node after node of the scalar expression over whole arrays, each over its own axes only, so
// that what depends on a head alone is computed once a head.
#include <algorithm>

#include "dsl/error.h"
#include "dsl/evaluate_ops.h"

namespace krait::evaluation {
namespace {

// One row. The operators that fill most graphs have loops of their own; `f` is inlined into them.
template <typename F>
void row(F f, std::int64_t length, double* out, const double* a, std::int64_t a_step,
         const double* b, std::int64_t b_step, const double* c, std::int64_t c_step) {
  if (a_step == 1 && b_step == 1) {
    for (std::int64_t i = 0; i < length; ++i) out[i] = f(a[i], b[i], c[i * c_step]);
  } else {
    for (std::int64_t i = 0; i < length; ++i)
      out[i] = f(a[i * a_step], b[i * b_step], c[i * c_step]);
  }
}

AxisNames united(const Graph& graph, const AxisNames& a, const AxisNames& b, const AxisNames& c) {
  AxisNames all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return graph.sorted(std::move(all));
}

void check_nonpositive(const Call& call, const ScalarNode& argument, const Array& data) {
  const double* found =
      std::find_if(data.begin(), data.begin() + data.count(), [](double x) { return x > 0; });
  if (found == data.begin() + data.count()) return;
  std::string what;
  if (argument.op == ScalarOp::operand) {
    what = call.operand_label(argument.operand);
  } else {
    what = call.space.graph().label({call.id, 0});
    for (std::size_t i = 0; i < call.node.operands.size(); ++i)
      what += (i == 0 ? ", made of " : ", ") + call.operand_label(static_cast<int>(i));
  }
  throw UsageError("log decay " + what, text(*found), "0 and below, as its block declares");
}

}  // namespace

Array apply(const Space& space, ScalarOp op, const AxisNames& axes, Array a, const Array& b,
            const Array& c) {
  const bool in_place =
      a.axes == axes && a.data.use_count() == 1 && b.data != a.data && c.data != a.data;
  Array out = in_place ? a : make_array(space, axes);
  for_each_row<4>(
      out.shape, {out.strides(axes), a.strides(axes), b.strides(axes), c.strides(axes)},
      [&](const auto& at, std::int64_t n, const auto& step) {
        auto go = [&](auto f) {
          row(f, n, out.begin() + at[0], a.begin() + at[1], step[1], b.begin() + at[2], step[2],
              c.begin() + at[3], step[3]);
        };
        switch (op) {
          case ScalarOp::add: return go([](double x, double y, double) { return x + y; });
          case ScalarOp::sub: return go([](double x, double y, double) { return x - y; });
          case ScalarOp::mul: return go([](double x, double y, double) { return x * y; });
          case ScalarOp::neg: return go([](double x, double, double) { return -x; });
          case ScalarOp::nonpositive: return go([](double x, double, double) { return x; });
          case ScalarOp::select:
            return go([](double x, double y, double z) { return x != 0 ? y : z; });
          default:
            return go([op](double x, double y, double z) { return apply_scalar(op, x, y, z); });
        }
      });
  return out;
}

Array run(const Map& op, Call& call) {
  const auto& nodes = op.expression.nodes();
  const Graph& graph = call.space.graph();
  std::vector<int> last_reader(nodes.size(), -1);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (int k = 0; k < arity(nodes[i].op); ++k)
      last_reader[nodes[i].args[k]] = static_cast<int>(i);

  const Array none = scalar_array(0);
  std::vector<Array> values(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ScalarNode& node = nodes[i];
    switch (node.op) {
      case ScalarOp::constant: values[i] = scalar_array(node.value); continue;
      case ScalarOp::operand: values[i] = std::move(call.operands[node.operand]); continue;
      case ScalarOp::extent:
        values[i] = scalar_array(static_cast<double>(call.space.value(node.extent)));
        continue;
      case ScalarOp::index:
        values[i] = make_array(call.space, {node.axis});
        for (std::int64_t k = 0; k < values[i].count(); ++k)
          values[i].data[k] = static_cast<double>(k);
        continue;
      default: break;
    }
    if (node.op == ScalarOp::nonpositive)
      check_nonpositive(call, nodes[node.args[0]], values[node.args[0]]);
    std::array<Array, 3> args{none, none, none};
    for (int k = 0; k < arity(node.op); ++k) args[k] = values[node.args[k]];
    for (int k = 0; k < arity(node.op); ++k)
      if (last_reader[node.args[k]] == static_cast<int>(i)) values[node.args[k]] = {};
    const AxisNames axes = united(graph, args[0].axes, args[1].axes, args[2].axes);
    values[i] = apply(call.space, node.op, axes, std::move(args[0]), args[1], args[2]);
  }
  return arranged(call.space, values.back(), call.axes());
}

}  // namespace krait::evaluation
