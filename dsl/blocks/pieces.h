// Parts that blocks share, written with the language alone. b, t: batch and time, whose sizes are
// given when a program runs; every other axis is constant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dsl/expr.h"

namespace krait {

inline Axis batch_axis() { return Axis("b"); }
inline Axis time_axis() { return Axis("t"); }

/// Heads h as (g, j): head g * J + j reads group g. Inside a block values carry g and j, so that
/// what a group shares never varies along j; h stands in inputs, outputs and states only.
struct HeadAxes {
  HeadAxes(std::int64_t heads, std::int64_t groups, const std::string& name = "h");
  Axis h, g, j;
  Expr split(const Expr& x) const { return krait::split(x, h, g, j); }
  Expr merge(const Expr& x) const { return krait::merge(x, g, j, h); }
};

/// Channels e as (h, p), and h as (g, j).
Expr split_channels(const Expr& x, const Axis& e, const HeadAxes& heads, const Axis& p);
Expr merge_channels(const Expr& x, const HeadAxes& heads, const Axis& p, const Axis& e);

/// x W^T: `weight` is (out, in), `in` is summed.
Expr linear(const Expr& x, const Expr& weight, const Axis& in);

/// What a projection gives, as slices of its rows, one after the other.
class Rows {
 public:
  Rows(const Expr& all, const Axis& rows) : all_(all), rows_(rows) {}
  /// The next rows, as many as `axis` has.
  Expr next(const Axis& axis);

 private:
  Expr all_;
  Axis rows_;
  std::int64_t start_ = 0;
};

/// Where a mixer stands: `weights` goes before the names of its parameters; `layers` is the number
/// of residual layers in which it stands (out_proj is drawn smaller by the root of it).
struct MixerPlace {
  std::string weights = "w.";
  std::int64_t layers = 1;
  Expr param(Scope& s, const std::string& name, const std::vector<Axis>& axes, Init init) const {
    return s.param(weights + name, axes, init);
  }
};

/// A state's value at the start of the window where `given`, else undefined (it starts from zero).
Expr carried(Scope& s, bool given, const std::string& in, const std::string& out,
             const std::vector<Axis>& axes);
/// What the window leaves: the state's partner where `given`, else a plain output.
void leave(Scope& s, bool given, const std::string& out, const Expr& value,
           const std::vector<Axis>& axes);

/// The last position along `axis`; the axis goes.
Expr last_of(const Expr& x, const Axis& axis);

/// The int32 input "seq_idx" (b, t), or undefined where `given` is false.
Expr document_input(Scope& s, bool given);
/// Nonzero at (b, t) where a document starts: where seq_idx changes, never at t = 0, so that an
/// initial state belongs to the first document of its row. Undefined for an undefined seq_idx.
Expr document_starts(const Expr& seq_idx);

/// x / sqrt(mean over `axes` of x^2 + eps).
Expr rms_normalize(const Expr& x, const std::vector<Axis>& axes, double eps);
/// The same times `weight`.
Expr rms_norm(const Expr& x, const Expr& weight, const std::vector<Axis>& axes, double eps);

/// RMS(y silu(z)) weight, or with norm_before_gate RMS(y) weight silu(z). y and z (b, t, g, j, p),
/// weight (e) and the result (b, t, e) with e = (h, p). The mean of squares runs over each run of
/// `group_size` channels, which divides e.
Expr gated_rms_norm(const Expr& y, const Expr& z, const Expr& weight, const Axis& e,
                    const HeadAxes& heads, const Axis& p, std::int64_t group_size, double eps,
                    bool norm_before_gate);

/// A depthwise causal convolution along time, newest tap last; a tap that reaches into another
/// document reads zero.
struct Convolution {
  Expr y;     // (b, t, channel)
  Expr next;  // (b, channel, w): the last w inputs, oldest first; zero for an earlier document
};
/// x (b, t, channel); weight (channel, w); bias (channel) or undefined; past (b, channel, w), the
/// inputs before the window, or undefined; starts from document_starts, or undefined.
Convolution causal_conv(const Expr& x, const Expr& weight, const Expr& bias, const Expr& past,
                        const Expr& starts, const Axis& channel, const Axis& w);

/// Turns each pair (x[.., 0], x[.., 1]) along `pair` by the angle `turns` (in turns).
Expr rotate(const Expr& x, const Expr& turns, const Axis& pair);

/// softplus(dt + bias) clamped to [low, high]; bias may be undefined; 0 and
/// infinity do not clamp.
Expr step_size(const Expr& dt, const Expr& bias, bool softplus, double low, double high);

// How parameters are drawn by the public constructors.
inline Init init_one() { return {Init::Kind::one}; }
inline Init init_fan_in(std::int64_t inputs) {
  return {Init::Kind::fan_in, static_cast<double>(inputs)};
}
inline Init init_dt_bias(double dt_min = 1e-3, double dt_max = 1e-1, double floor = 1e-4) {
  return {Init::Kind::inverse_softplus_dt, dt_min, dt_max, floor};
}

}  // namespace krait
