// Graph: what is computed, over named axes. The one structure that the language writes, `evaluate`
// runs, and every rewrite takes and gives.
//
// Values carry a dtype and a set of axes; inside a graph axes have no order. Adding a node that
// stands in the graph already returns that node (inputs excepted), so that common subexpressions
// are one node, and ids depend only on how the graph was built. `add` infers the types of the
// results and checks the operands; it throws UsageError with the op's name, the field and what is
// allowed.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "dsl/axis.h"
#include "dsl/dtype.h"
#include "dsl/scalar.h"

namespace krait {

/// Result number `result` of node number `node`.
struct Value {
  int node = -1;
  int result = 0;
  bool valid() const { return node >= 0; }
  auto operator<=>(const Value&) const = default;
};

struct Type {
  DType dtype = DType::f32;
  AxisNames axes;  // in the order of Graph::axes()
  bool operator==(const Type&) const = default;
};

enum class Role : std::uint8_t { data, parameter, state };

/// How a parameter is drawn when a layer is built. Sources: the public constructors of Mamba.
struct Init {
  enum class Kind : std::uint8_t {
    zero,
    one,
    constant,             // a
    uniform,              // U(a, b)
    log_uniform,          // log U(a, b)                        (A_log of Mamba-2)
    log_arange,           // log(1 + position along the last stored axis)   (A_log of Mamba-1)
    inverse_softplus_dt,  // dt + log(-expm1(-dt)), dt log-uniform in [a, b], at least `floor`
    fan_in,               // U(-k, k), k = a^-1/2: nn.Linear and nn.Conv1d with a inputs per output
    normal,               // N(0, a^2)
  };
  Kind kind = Kind::zero;
  double a = 0, b = 0;
  double floor = 1e-4;  // of inverse_softplus_dt
  bool operator==(const Init&) const = default;
};

// ---------------------------------------------------------------------------------------- the ops

/// A named tensor. Its axes are stored in `order`, outermost first.
struct Input {
  std::string name;
  AxisNames order;
  DType dtype = DType::f32;
  Role role = Role::data;
  Init init{};  // of a parameter
  bool operator==(const Input&) const = default;
};

/// A literal, the same everywhere; `axes` lets it stand where a value must vary.
struct Constant {
  double value = 0;
  DType dtype = DType::f32;
  AxisNames axes;
  bool operator==(const Constant&) const = default;
};

/// A scalar expression over the operands and axis indices; the axes of the result are the union of
/// theirs. The dtype is i32 where the expression is integer or boolean, else the accumulator of the
/// widest float operand.
struct Map {
  Scalar expression;
  bool operator==(const Map&) const = default;
};

/// Sum over `sum` of the product of the operands (einsum by name). `sum` may be empty: a product.
/// The dtype of this, of sums and of recurrences is the accumulator of the widest operand; ops that
/// only move values keep the dtype.
struct Contract {
  AxisNames sum;
  bool operator==(const Contract&) const = default;
};

struct Reduce {
  enum class Kind : std::uint8_t { sum, max };
  Kind kind = Kind::sum;
  AxisNames axes;
  bool operator==(const Reduce&) const = default;
};

/// Running sum y[t] = (reset[t] ? 0 : y[t-1]) + x[t] along `axis`, y[-1] = initial.
/// reverse: the same from the end, where reset[t] separates t-1 from t: y[t] = x[t] + (reset[t+1] ?
/// 0 : y[t+1]).
/// Operands: x, initial if has_initial, reset (i32, nonzero: reset) if has_reset.
/// Results: the running value (exclusive: before x[t] is added: y[t-1], without the reset at t),
/// and the last y, without `axis`. wrap: every value is kept in [-1/2, 1/2) (turns); integer x
/// gives i32. Reverse with a reset: `initial` enters at the end.
/// late (with reverse): the forward recurrence run from the end, y[t] = (reset[t] ? 0 : y[t+1]) +
/// x[t]; it has no derivative of its own.
///
/// parts: an axis of constant size K. Part i of the running axis, of size C, holds the positions
/// from i ceil(C / K) on, ceil(C / K) of them or as many as there are; each part runs for itself.
/// The last y varies along `parts` (in an empty part it is what entered), and `initial` may. No
/// reset is seen across parts: with reverse and a reset only where late. It has no derivative of
/// its own.
struct Cumsum {
  std::string axis;
  bool reverse = false;
  bool exclusive = false;
  bool wrap = false;
  bool has_initial = false;
  bool has_reset = false;
  bool late = false;
  std::string parts{};
  bool operator==(const Cumsum&) const = default;
};

/// S[t] = exp(log_decay[t]) S[t-1] + u[t], S[-1] = initial; where reset[t] is nonzero S[t-1] counts
/// as zero. Operands: log_decay, u, initial if has_initial, reset if has_reset. The axes of S are
/// the union of the axes of u and of log_decay. Results: 0 the entering value S[t-1] (as it is
/// before the reset at t), 1 the leaving value S[t], 2 the last S, without `axis`. reverse: the
/// adjoint's recurrence. R[t] = u[t] + (reset[t+1] ? 0 : exp(log_decay[t+1]) R[t+1]) for t from the
/// end, with `initial` entering where t+1 is past the end (undecayed). Results: 0 the entering
/// value, i.e. R[t] - u[t]; 1 the leaving value R[t]; 2 (reset[0] ? 0 : exp(log_decay[0]) R[0]),
/// the gradient of an initial state.
/// late (with reverse): the forward recurrence run from the end, S[t] = (reset[t] ? 0 :
/// exp(log_decay[t]) S[t+1]) + u[t], S past the end = initial; results as forwards. It is what the
/// adjoint is for a u that is shifted by one; it has no derivative of its own.
/// parts: as of Cumsum; result 2 varies along it, and `initial` may.
struct Scan {
  std::string axis;
  bool reverse = false;
  bool has_initial = false;
  bool has_reset = false;
  bool late = false;
  std::string parts{};
  bool operator==(const Scan&) const = default;
};

/// Sums of log decays a along `axis` (positions q): what a chunked scan exponentiates; always <= 0.
/// between: for each pair of q (later) and k on the axis `other` (earlier): sum over k < j <= q of
///          a[j]; 0 where k > q.
/// from_start: sum over j <= q. to_end: sum over j > q. total: sum over all, without `axis`.
/// Its adjoint is a sum over spanned pairs, made of prefix sums, never a difference of row sums.
struct Gap {
  enum class Kind : std::uint8_t { between, from_start, to_end, total };
  Kind kind = Kind::total;
  std::string axis;
  std::string other;  // between: an axis of the same extent
  bool operator==(const Gap&) const = default;
};

/// Running sum of operand 0 along `axis`, each value kept as a pair: high + low, high the rounded
/// sum, low what rounding lost (two-sum; low is 0 in f64 graphs). What Gaps are lowered to:
/// differences of pairs are as good as sums of what lies between. Results: high, low. Has no
/// derivative of its own.
struct PairSum {
  std::string axis;
  bool operator==(const PairSum&) const = default;
};

/// y[t] = x[t - steps] along `axis`; steps < 0 looks ahead. Positions before the start read `fill`,
/// or the carried state, operand 1 if has_state: its axis `state_axis` of extent K >= steps holds
/// the K values before the window, oldest first. has_state is for steps > 0 only.
struct Shift {
  std::string axis;
  std::int64_t steps = 0;
  double fill = 0;
  bool has_state = false;
  std::string state_axis{};
  bool operator==(const Shift&) const = default;
};

/// Rows of operand 0 along `axis` (removed) picked by operand 1 (i32); the axes of the result are
/// the others of operand 0 and those of operand 1, which have none in common. An index out of range
/// is the caller's error.
struct Gather {
  std::string axis;
  bool operator==(const Gather&) const = default;
};

/// The adjoint of Gather: sums operand 0 into rows of a new axis `axis` by operand 1 (i32), over
/// the axes of operand 1.
struct ScatterSum {
  std::string axis;
  bool operator==(const ScatterSum&) const = default;
};

/// Position i along `axis` becomes (i / size of inner, i % size of inner). inner is constant;
/// outer = ceil(extent / inner); positions past the end read 0.
struct Split {
  std::string axis, outer, inner;
  bool operator==(const Split&) const = default;
};

/// The inverse of Split: axis position = outer * size of inner + inner, cut at the extent of
/// `axis`.
struct Merge {
  std::string outer, inner, axis;
  bool operator==(const Merge&) const = default;
};

/// Positions start .. start + extent of `result` along `axis`, which is replaced by `result`
/// (empty: one position, the axis goes). from_end: start counts back from the end: position size -
/// start.
struct Slice {
  std::string axis;
  std::int64_t start = 0;
  bool from_end = false;
  std::string result{};
  bool operator==(const Slice&) const = default;
};

/// Operands one after the other along `result`: operand i along its axis axes[i], in order.
/// The extent of `result` is the sum of theirs (at most one of them symbolic).
struct Concat {
  AxisNames axes;
  std::string result;
  bool operator==(const Concat&) const = default;
};

struct Rename {
  std::string from, to;
  bool operator==(const Rename&) const = default;
};

using Op = std::variant<Input, Constant, Map, Contract, Reduce, Cumsum, Scan, Gap, PairSum, Shift,
                        Gather, ScatterSum, Split, Merge, Slice, Concat, Rename>;

/// "Input", "Map", ...
std::string_view name(const Op& op);

struct Node {
  Op op;
  std::vector<Value> operands;
  std::vector<Type> results;
};

struct Output {
  std::string name;
  Value value;
  AxisNames order;  // storage order, outermost first
};

/// What a window takes with what it leaves: an input's and an output's name.
struct StatePair {
  std::string in, out;
};

class Graph {
 public:
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int id) const { return nodes_[id]; }
  const Type& type(Value value) const { return nodes_[value.node].results[value.result]; }
  const std::vector<Axis>& axes() const { return axes_; }
  /// Throws UsageError for a name that the graph does not know.
  const Axis& axis(const std::string& name) const;
  bool has_axis(const std::string& name) const;
  /// Makes an axis known. The same name with another extent is the caller's error.
  void declare(const Axis& axis);
  /// Sorts names in the order of axes() and drops doubles.
  AxisNames sorted(AxisNames names) const;
  /// `base`, or `base` with the smallest number that makes it new.
  std::string fresh_axis_name(const std::string& base) const;

  /// The float dtype of a Map that has no float operand (an index times 0.5, a constant).
  DType accumulator() const { return accumulator_; }
  void set_accumulator(DType dtype) { accumulator_ = krait::accumulator(dtype); }

  /// Adds a node, or finds the equal one. Every axis named by the op must have been declared.
  int add(Op op, std::vector<Value> operands);

  // One result each.
  Value input(Input op) { return {add(std::move(op), {})}; }
  Value constant(double value, DType dtype, AxisNames axes = {});
  /// A Map, simplified first: operands that are not read go unless the axes or the dtype need
  /// them, doubles become one, literals without axes move into the expression, what is constant
  /// becomes a Constant, and an expression that is its operand becomes that operand.
  Value map(Scalar expression, std::vector<Value> operands);
  /// A Map of one operator.
  Value map(ScalarOp op, Value a, Value b = {}, Value c = {});
  Value contract(AxisNames sum, std::vector<Value> operands);
  Value reduce(Reduce::Kind kind, AxisNames axes, Value x);

  void add_output(std::string name, Value value, AxisNames order);
  void add_state(std::string in, std::string out) { states_.push_back({in, out}); }
  const std::vector<Output>& outputs() const { return outputs_; }
  const std::vector<StatePair>& states() const { return states_; }
  std::vector<Value> inputs() const;  // in the order in which they were added
  const Input& input_of(Value value) const;
  std::optional<Value> find_input(const std::string& name) const;
  /// A name to print a value with; does not change what is computed. Last call wins.
  void set_label(Value value, std::string label);
  /// The label, an input's name, or "%ID" with ".RESULT" where a node has several.
  std::string label(Value value) const;
  const std::unordered_map<int, std::vector<std::string>>& labels() const { return labels_; }

  /// What the value can be, by intervals over the scalar expressions. Remembered: not for calls
  /// from several threads at once.
  Interval interval(Value value) const;
  /// For each node: the nodes that read it, in order, without doubles.
  std::vector<std::vector<int>> users() const;

 private:
  friend class Rewriter;
  /// `types`: those of the results, where they are known, and the op's sets of axes are in order;
  /// null: they are inferred, and put in order.
  int add(Op op, std::vector<Value> operands, const std::vector<Type>* types);

  DType accumulator_ = DType::f32;
  std::vector<Axis> axes_;
  std::vector<Node> nodes_;
  std::vector<Output> outputs_;
  std::vector<StatePair> states_;
  std::unordered_map<int, std::vector<std::string>> labels_;  // node to a label per result
  std::unordered_map<std::size_t, std::vector<int>> known_;   // op, operands hashed, to nodes
  mutable std::vector<std::vector<Interval>> intervals_;      // of the first nodes, as far as asked
};

/// Result types of `op` over operands of these types. Throws UsageError as Graph::add.
std::vector<Type> infer(const Graph& graph, const Op& op, const std::vector<Value>& operands);

/// Checks every rule of the ops and that operands come before their readers and outputs and states
/// are sound; throws InternalError that names the node. For use after every rewrite.
void verify(const Graph& graph);

/// One line a node, stable; "%7 (b t h) f32 = Map exp(a)".
std::string to_text(const Graph& graph);
/// Graphviz.
std::string to_dot(const Graph& graph);

/// The part of the graph that outputs need, rebuilt in order: dead nodes go, inputs stay.
Graph prune(Graph graph);

/// Copies nodes from one graph to another, one at a time, under new operands: what rewrites are
/// made of. Value `from` of the old graph is `at(from)` in the new one.
class Rewriter {
 public:
  Rewriter(const Graph& from, Graph& to);
  /// Declares the axes of the old graph in the new one, and takes its accumulator over.
  void copy_axes();
  Value at(Value from) const;
  bool has(Value from) const { return values_[place(from)].valid(); }
  void set(Value from, Value to);
  /// Copies node `id` with its operands replaced, and its labels; every result is then known.
  void copy(int id);
  /// Copies outputs and states, in order.
  void copy_interface();

 private:
  const Graph& from_;
  Graph& to_;
  bool same_axes_ = false;  // the new graph has those of the old one first, in their order
  std::size_t place(Value from) const {
    return first_[static_cast<std::size_t>(from.node)] + static_cast<std::size_t>(from.result);
  }
  std::vector<std::size_t> first_;  // of each old node: the place of its first result
  std::vector<Value> values_;       // by place
};

}  // namespace krait
