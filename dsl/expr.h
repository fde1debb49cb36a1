// The language in which a block is written: expressions over named axes.
//
// An Expr is a value of the graph under construction. Arithmetic broadcasts by axis name. Every
// function throws UsageError for operands that do not fit.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "dsl/graph.h"

namespace krait {

class Scope;

class Expr {
 public:
  Expr() = default;
  Expr(Scope& scope, Value value) : scope_(&scope), value_(value) {}
  bool defined() const { return scope_ != nullptr; }
  Scope& scope() const;
  Value value() const { return value_; }
  /// Axes in the order of the graph.
  AxisNames axes() const;
  DType dtype() const;
  /// Names the value in printed text and in the names of kernels; gives itself back.
  Expr named(const std::string& label) const;

 private:
  Scope* scope_ = nullptr;
  Value value_;
};

/// What a block's function writes into. The activation dtype is that of its data inputs; parameters
/// take the wider of it and f32; states take its accumulator.
class Scope {
 public:
  /// Throws UsageError for i32.
  explicit Scope(DType activation = DType::f32);
  // Values point to their Scope.
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  DType activation() const { return activation_; }
  DType accumulator() const { return krait::accumulator(activation_); }

  /// A data input stored in the order of `axes`, outermost first.
  Expr input(const std::string& name, const std::vector<Axis>& axes);
  /// A data input of another dtype (i32 for indices).
  Expr input(const std::string& name, const std::vector<Axis>& axes, DType dtype);
  Expr param(const std::string& name, const std::vector<Axis>& axes, Init init = {});
  /// A carried state's value at the start of the window. `output` names what the window leaves;
  /// give that value with `leave`.
  Expr state(const std::string& in, const std::string& out, const std::vector<Axis>& axes);
  /// What the window leaves for the state whose output bears this name; axes as given to `state`.
  void leave(const std::string& out, const Expr& value);
  /// An output stored in the order of `axes`, which are exactly the value's.
  void output(const std::string& name, const Expr& value, const AxisNames& axes);
  void output(const std::string& name, const Expr& value, std::initializer_list<Axis> axes);

  Expr constant(double value, const std::vector<Axis>& axes = {});
  /// The position along an axis, an integer; and the size of an axis.
  Expr index(const Axis& axis);
  Expr size(const Axis& axis);

  /// Names made inside bear "PREFIX" in front, so that a block can stand in another one. The prefix
  /// ends with the object.
  class Prefix {
   public:
    Prefix(Scope& scope, const std::string& prefix);
    ~Prefix();
    Prefix(const Prefix&) = delete;
    Prefix& operator=(const Prefix&) = delete;

   private:
    Scope& scope_;
    std::string before_;
  };

  Graph& graph() { return graph_; }
  /// The finished graph, pruned and verified. Throws UsageError where a state was not left or
  /// nothing is output.
  Graph finish();

 private:
  DType activation_;
  Graph graph_;
  std::string prefix_;
  struct OpenState {
    std::string in, out;
    AxisNames order;
    bool left = false;
  };
  std::vector<OpenState> open_;
};

/// A block: a function that writes into a Scope.
using BlockFunction = std::function<void(Scope&)>;
/// Builds the block's graph at an activation dtype.
Graph build_graph(const BlockFunction& block, DType activation = DType::f32);

// ------------------------------------------------------------------------------------- arithmetic
Expr operator-(const Expr& a);
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, double b);
Expr operator-(const Expr& a, double b);
Expr operator*(const Expr& a, double b);
Expr operator/(const Expr& a, double b);
Expr operator+(double a, const Expr& b);
Expr operator-(double a, const Expr& b);
Expr operator*(double a, const Expr& b);
Expr operator/(double a, const Expr& b);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator==(const Expr& a, const Expr& b);
Expr operator!=(const Expr& a, const Expr& b);
Expr operator&&(const Expr& a, const Expr& b);
Expr operator||(const Expr& a, const Expr& b);
Expr operator!(const Expr& a);
Expr operator<(const Expr& a, double b);
Expr operator<=(const Expr& a, double b);
Expr operator==(const Expr& a, double b);
Expr select(const Expr& condition, const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr min(const Expr& a, double b);
Expr max(const Expr& a, double b);
Expr clamp(const Expr& a, double low, double high);  // infinite bounds are left out
Expr abs(const Expr& a);
Expr exp(const Expr& a);
Expr log(const Expr& a);
Expr log1p(const Expr& a);
Expr expm1(const Expr& a);
Expr sqrt(const Expr& a);
Expr rsqrt(const Expr& a);
Expr square(const Expr& a);
Expr tanh(const Expr& a);
Expr sigmoid(const Expr& a);
Expr silu(const Expr& a);
Expr softplus(const Expr& a);
Expr sin(const Expr& a);  // of radians
Expr cos(const Expr& a);
Expr sin_turns(const Expr& a);  // of 2 pi a
Expr cos_turns(const Expr& a);
Expr floor(const Expr& a);
Expr wrap(const Expr& a);         // into [-1/2, 1/2)
Expr nonpositive(const Expr& a);  // a promise: a <= 0

// ------------------------------------------------------------------------------------- reductions
/// Sum over axes; of a pure product it is a Contract.
Expr sum(const Expr& a, const std::vector<Axis>& axes);
Expr sum(const Expr& a, const Axis& axis);
Expr mean(const Expr& a, const std::vector<Axis>& axes);
Expr maximum(const Expr& a, const std::vector<Axis>& axes);
/// Sum over `axes` of the product of the operands.
Expr contract(const std::vector<Expr>& operands, const std::vector<Axis>& axes);

// -------------------------------------------------------------------------------- along one axis
struct RunningOptions {
  Expr initial{};  // without the axis
  Expr reset{};    // i32, nonzero where a document starts
  bool reverse = false;
  bool exclusive = false;
  bool wrap = false;
};
struct Running {
  Expr values, last;
};
Running cumsum(const Axis& axis, const Expr& a, const RunningOptions& options = {});

struct ScanOptions {
  Expr initial{};
  Expr reset{};
};
struct ScanResult {
  Expr entering, leaving, last;
  operator Expr() const { return leaving; }  // NOLINT: the state after each step is what is meant
};
/// S[t] = exp(log_decay[t]) S[t-1] + input[t].
ScanResult scan(const Axis& axis, const Expr& log_decay, const Expr& input,
                const ScanOptions& options = {});

/// x[t - steps]; see Shift.
Expr shift(const Expr& a, const Axis& axis, std::int64_t steps, double fill = 0);
/// With the values before the window, oldest first along `state_axis`.
Expr shift(const Expr& a, const Axis& axis, std::int64_t steps, const Expr& state,
           const Axis& state_axis);

// --------------------------------------------------------------------------------- axis algebra
Expr gather(const Expr& table, const Axis& axis, const Expr& index);
Expr split(const Expr& a, const Axis& axis, const Axis& outer, const Axis& inner);
Expr merge(const Expr& a, const Axis& outer, const Axis& inner, const Axis& axis);
/// Positions start .. of `axis`, as the new axis `result`.
Expr slice(const Expr& a, const Axis& axis, std::int64_t start, const Axis& result);
/// The last positions of `axis`, as many as `result`, of constant size, has.
Expr tail(const Expr& a, const Axis& axis, const Axis& result);
/// One position, the axis goes; a negative one counts back from the end.
Expr at(const Expr& a, const Axis& axis, std::int64_t position);
/// Operand i along axes[i], one after the other along `result`.
Expr concat(const std::vector<Expr>& operands, const std::vector<Axis>& axes, const Axis& result);
Expr rename(const Expr& a, const Axis& from, const Axis& to);
/// a, varying (with equal values) along the axes too.
Expr broadcast(const Expr& a, const std::vector<Axis>& axes);

}  // namespace krait
