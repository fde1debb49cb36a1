// The selective scan of Mamba-1, arXiv 2312.00752.
//
//   delta = softplus(delta + delta_bias)
//   h_t = exp(delta_t A) h_{t-1} + delta_t B_t u_t;   y_t = <C_t, h_t> + D u_t, times silu(z_t)
#pragma once

#include "dsl/blocks/pieces.h"
#include "dsl/blocks/spec.h"

namespace krait {

/// Inputs u, delta, [z] (b, t, d), B and C (b, t, g, n) or, constant in time, (d, n), [seq_idx
/// (b, t)]; parameters A (d, n), [delta_bias (d)], [D (d)]; state h0 (b, d, n), left as h; output y
/// (b, t, d). delta A must be <= 0.
struct SelectiveScanSpec {
  std::int64_t channels = 64, d_state = 16, ngroups = 1;
  bool is_variable_B = true, is_variable_C = true;
  bool D = true;
  bool z = false;
  bool delta_bias = true;
  bool delta_softplus = true;
  bool initial_state = false;  // h0 is an input
  bool seq_idx = false;
  bool operator==(const SelectiveScanSpec&) const = default;
};

void check(const SelectiveScanSpec& spec);
void selective_scan(Scope& s, const SelectiveScanSpec& spec);

/// The recurrence alone; channels are heads of width 1. u and step, the time step after its
/// softplus, (b, t, g, j); log_decay (b, t, g, j, n); B, C (b, t, g, n) or (g, j, n); initial
/// (b, g, j, n) and starts or undefined.
struct SelectiveCore {
  Expr u, step, log_decay, B, C, initial, starts;
};
struct SelectiveResult {
  Expr y;     // (b, t, g, j), without D and gate
  Expr last;  // (b, g, j, n)
};
SelectiveResult selective_core(const SelectiveCore& in, const Axis& n);

}  // namespace krait
