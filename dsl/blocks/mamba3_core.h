// The recurrence of Mamba-3 (arXiv 2603.15569), of one or several inputs a head, as a single scan.
//
//   theta_t = theta_{t-1} + pi tanh(angle_t) dt_t;   k, q = rotate(k + k_bias, q + q_bias; theta)
//   lam = sigma(trap);  alpha = exp(log_decay);  gamma = lam dt
//   S_t = alpha S_{t-1} + (1 - lam) dt alpha V_{t-1} + gamma V_t,   V_t = v_t (outer) k_t
//   y_t = S_t q_t + D v_t
//
// With ahead_t = (1 - lam_{t+1}) dt_{t+1}, zero at the window's end, the sum
// S'_t = S_t + ahead_t V_t follows S'_t = alpha S'_{t-1} + (gamma_t + ahead_t) V_t: one scan. It
// starts from S + (1 - lam_0) dt_0 V_{-1} and ends in S itself. y_t takes ahead_t V_t q_t back out.
#pragma once

#include <string>

#include "dsl/blocks/pieces.h"

namespace krait {

/// Rotation pairs of channels n are (2 i, 2 i + 1), or with several inputs (i, n / 2 + i). Inside,
/// n stands as (i, pair) and is merged in states only. With `rank` inputs a head, q carries r, and
/// k and the values carry s.
struct Mamba3Axes {
  /// rank 0: one input a head. `angles` is the number of angles, at most d_state / 2.
  Mamba3Axes(std::int64_t nheads, std::int64_t headdim, std::int64_t d_state, std::int64_t ngroups,
             std::int64_t angles, std::int64_t rank);
  Axis b, t, p, n, i, pair, a, r, s;
  HeadAxes heads;
  bool several;
  Expr pairs(const Expr& x) const { return several ? split(x, n, pair, i) : split(x, n, i, pair); }
  Expr merged(const Expr& x) const { return several ? merge(x, pair, i, n) : merge(x, i, pair, n); }
  /// x of the outputs' rank axis on that of the inputs.
  Expr on_inputs(const Expr& x) const { return several ? rename(x, r, s) : x; }
};

/// q, k (b, t, g, i, pair) with r and s; biases (g, j, i, pair) with r and s; v (b, t, g, j, p);
/// log_decay, dt, trap (b, t, g, j); angles (b, t, a) with or without (g, j); mimo_x (g, j, r, p)
/// where several; D (g, j) and starts or undefined.
struct Mamba3Core {
  Expr q, k, q_bias, k_bias, v, log_decay, dt, trap, angles, mimo_x, D, starts;
};
/// Reads the states "state.angle" (b, h, a) in radians, "state.ssm" (b, h, p, n), "state.k", after
/// rotation, (b, h, n) or (b, h, r, n), and "state.v" (b, h, p) where `initial_state`, and leaves
/// them (the angle in [0, 2 pi)). Gives y (b, t, g, j, p), with r where several.
Expr mamba3_core(Scope& s, const Mamba3Core& in, const Mamba3Axes& x, bool initial_state);

/// What follows the recurrence: RMS(y) norm_weight over p, times silu(z mimo_z), and the sum over r
/// of mimo_o times that. Each but y may be undefined. z (b, t, g, j, p), norm_weight (g, j, p),
/// mimo_z and mimo_o (g, j, r, p). Gives (b, t, g, j, p).
struct Mamba3Finish {
  Expr z, norm_weight, mimo_z, mimo_o;
  double eps = 1e-5;
};
Expr mamba3_finish(const Expr& y, const Mamba3Finish& in, const Mamba3Axes& x);

}  // namespace krait
