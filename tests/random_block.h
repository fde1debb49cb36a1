// Blocks drawn at random: recurrences, running sums, shifts and axis algebra in any order, over
// axes (b, t) and a few constant ones. What every rewrite, plan and kernel must keep the value of.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "dsl/expr.h"

namespace krait::testing {

struct RandomBlockOptions {
  int operations = 10;
  bool documents = true;  // draws may ask for the input "reset" (b, t), i32
  bool states = true;     // draws may carry states
  bool rare = false;      // draws may take maxima, and run along constant axes
};

/// Writes a block of about so many operations; the same seed gives the same block.
class RandomBlock {
 public:
  RandomBlock(unsigned seed, RandomBlockOptions options) : random_(seed), options_(options) {}

  void operator()(Scope& s) {
    scope_ = &s;
    pool_ = {s.input("x", {b_, t_, h_, p_}), s.input("a", {b_, t_, h_}),
             s.input("k", {b_, t_, g_, n_}), s.input("v", {b_, t_, p_}),
             s.param("w", {h_, p_}),         s.param("scale", {h_})};
    if (options_.documents && draw(2) == 0)
      reset_ = s.input("reset", {b_, t_}, DType::i32) != s.constant(0);
    for (int i = 0; i < options_.operations; ++i) add();
    int outputs = 0;
    // The last values read most of what came before.
    for (std::size_t i = pool_.size(); i-- > 0 && outputs < 3;) {
      if (!varies(pool_[i], t_)) continue;
      s.output("y" + std::to_string(outputs++), pool_[i], pool_[i].axes());
    }
    s.output("all", sum(square(tanh(pool_.back())), axes_of(pool_.back())), AxisNames{});
  }

 private:
  unsigned draw(unsigned count) { return random_() % count; }
  static bool varies(const Expr& x, const Axis& axis) { return contains(x.axes(), axis.name); }
  Expr pick() { return pool_[draw(static_cast<unsigned>(pool_.size()))]; }
  Expr pick_along(const Axis& axis) {
    for (int i = 0; i < 50; ++i)
      if (Expr x = pick(); varies(x, axis)) return x;
    return pool_[0] * scope_->constant(1, {axis});
  }
  std::vector<Axis> axes_of(const Expr& x) const {
    std::vector<Axis> axes;
    for (const auto& name : x.axes()) axes.push_back(scope_->graph().axis(name));
    return axes;
  }
  /// Small enough a value that what follows stays near 1.
  void keep(const Expr& x) {
    const bool wide = x.axes().size() > 5;
    pool_.push_back(tanh(wide ? sum(x, {axes_of(x).back()}) : x));
  }
  std::string name(const std::string& base) { return base + std::to_string(++names_); }

  void add() {
    switch (draw(options_.rare ? 16 : 13)) {
      case 0: return keep(pick() * sigmoid(pick()));
      case 1: return keep(pick() + pick() * 0.5);
      case 2: return keep(select(scope_->index(t_) < double(draw(5)), pick_along(t_), pick()));
      case 3: return keep(silu(pick()) - pick());
      case 4: return keep(reduced(pick() * pick()));
      case 5: return keep(reduced(pick() * pick() * pick()));
      case 6: return keep(shifted());
      case 7: return keep(running());
      case 8: return keep(outer_product_scan());
      case 9: return keep(plain_scan());
      case 10: return keep(halves());
      case 11: return keep(grouped());
      case 12: return keep(position());
      case 13: return keep(largest());
      case 14: return keep(along_constant());
      default: return keep(sum(pick_along(t_) * 0.25, {t_}) * pick());
    }
  }

  Expr reduced(const Expr& x) {
    std::vector<Axis> axes;
    for (const Axis& axis : axes_of(x))
      if (axis.extent.is_constant() && draw(2) == 0) axes.push_back(axis);
    return axes.empty() ? x : sum(x, axes);
  }

  Expr shifted() {
    const Expr x = pick_along(t_);
    const int steps = static_cast<int>(draw(5)) - 2;
    if (options_.states && steps > 0 && draw(2) == 0) {
      const Axis taps(name("taps"), 2), longer(name("longer"), Extent{"t", 2, 1});
      std::vector<Axis> axes;
      for (const Axis& axis : axes_of(x)) axes.push_back(axis.name == "t" ? taps : axis);
      const std::string state = name("state");
      const Expr before = scope_->state(state, state + ".out", axes);
      scope_->leave(state + ".out", tail(concat({before, x}, {taps, t_}, longer), longer, taps));
      return shift(x, t_, steps, before, taps) + x;
    }
    return shift(x, t_, steps == 0 ? 1 : steps, draw(2) == 0 ? 0.0 : 0.5);
  }

  Expr running() {
    RunningOptions options;
    options.reverse = draw(3) == 0;
    options.exclusive = draw(3) == 0;
    if (reset_.defined() && draw(2) == 0) options.reset = reset_;
    const Running sums = cumsum(t_, pick_along(t_) * 0.25, options);
    return draw(3) == 0 ? sums.last * pick() : sums.values;
  }

  ScanOptions scan_options(const std::vector<Axis>& state_axes, std::string* leaves) {
    ScanOptions options;
    if (reset_.defined() && draw(2) == 0) options.reset = reset_;
    if (options_.states && draw(2) == 0) {
      const std::string state = name("state");
      *leaves = state + ".out";
      options.initial = scope_->state(state, *leaves, state_axes);
    }
    return options;
  }

  /// A decay that varies with at most (b, t, h).
  Expr decay() {
    Expr x = pick();
    std::vector<Axis> others;
    for (const Axis& axis : axes_of(x))
      if (axis.name != "b" && axis.name != "t" && axis.name != "h") others.push_back(axis);
    if (!others.empty()) x = sum(x, others);
    return -softplus(x);
  }

  Expr outer_product_scan() {
    const Expr k = pool_[2], q = shift(pool_[2], t_, 1, 0.25);
    Expr v = pick_along(p_);
    if (varies(v, n_)) v = sum(v, n_);
    if (varies(v, g_)) v = sum(v, g_);
    if (varies(v, half_)) v = sum(v, half_);
    const Expr u = v * sum(k, g_) * scope_->constant(1, {h_}) * (1.0 + 0.0 * pool_[1]);
    std::string leaves;
    const ScanResult state = scan(t_, decay(), u, scan_options({b_, h_, n_, p_}, &leaves));
    if (!leaves.empty()) scope_->leave(leaves, state.last);
    const Expr read = draw(4) == 0 ? state.entering : state.leaving;
    return sum(read * sum(q, g_), n_);
  }

  Expr plain_scan() {
    Expr u = pick_along(t_) * scope_->constant(1, {h_}) * (1.0 + 0.0 * pool_[1]);
    std::vector<Axis> state_axes;
    for (const Axis& axis : axes_of(u))
      if (axis.name != "t") state_axes.push_back(axis);
    std::string leaves;
    const ScanResult state = scan(t_, decay(), u, scan_options(state_axes, &leaves));
    if (!leaves.empty()) scope_->leave(leaves, state.last);
    return state.leaving;
  }

  /// The halves of p, changed apart and put together in another order.
  Expr halves() {
    const Expr x = pick_along(p_);
    if (varies(x, half_)) return x;
    const Expr first = slice(x, p_, 0, half_), second = slice(x, p_, 3, half_);
    if (draw(2) == 0) return concat({second, first * 0.5}, {half_, half_}, p_);
    return concat({slice(x, p_, 1, half_), first * second}, {half_, half_}, p_);
  }

  /// Heads as (group, head of the group): what a group shares is added to each.
  Expr grouped() {
    const Expr x = pick_along(h_);
    if (varies(x, g_)) return x;
    const Expr parts = split(x, h_, g_, j_);
    const Expr shared = draw(2) == 0 ? sum(pool_[2], n_) : mean(parts, {j_});
    return merge(parts * (shared + 0.5), g_, j_, h_);
  }

  /// The largest of all times, or along a constant axis or two.
  Expr largest() {
    const Expr x = pick();
    std::vector<Axis> axes;
    for (const Axis& axis : axes_of(x))
      if (axis.name != "b" && draw(2) == 0) axes.push_back(axis);
    return axes.empty() ? x : maximum(x, axes) * pick();
  }

  /// A running sum along heads or rows.
  Expr along_constant() {
    const Axis& axis = draw(2) == 0 ? h_ : p_;
    return cumsum(axis, pick_along(axis) * 0.25,
                  {.reverse = draw(2) == 0, .exclusive = draw(2) == 0})
        .values;
  }

  /// One position for all, the last one or one of the first.
  Expr position() { return at(pick_along(t_), t_, draw(2) == 0 ? -1 : 0) * pick(); }

  std::mt19937 random_;
  RandomBlockOptions options_;
  Scope* scope_ = nullptr;
  std::vector<Expr> pool_;
  Expr reset_;
  int names_ = 0;
  Axis b_{"b"}, t_{"t"}, h_{"h", 4}, g_{"g", 2}, j_{"j", 2}, n_{"n", 5}, p_{"p", 6},
      half_{"half", 3};
};

inline BlockFunction random_block(unsigned seed, RandomBlockOptions options = {}) {
  return [=](Scope& s) { RandomBlock(seed, options)(s); };
}

}  // namespace krait::testing
