// The scan of Mamba-2 (state space duality), arXiv 2405.21060.
//
//   dt = clamp(softplus(dt + dt_bias), dt_limit)
//   S_t = exp(dt_t A) S_{t-1} + dt_t x_t (outer) B_t;   y_t = S_t C_t + D x_t, times silu(z_t)
#pragma once

#include <string>
#include <utility>

#include "dsl/blocks/pieces.h"
#include "dsl/blocks/spec.h"

namespace krait {

/// Inputs x (b, t, h, p), dt (b, t, h), B and C (b, t, g, n), [z (b, t, h, p)], [seq_idx (b, t)];
/// parameters A (h), [dt_bias (h)], [D (h) or (h, p)]; state h0 (b, h, p, n), left as h; output y
/// (b, t, h, p). dt A must be <= 0.
struct SsdSpec {
  std::int64_t nheads = 4, headdim = 64, d_state = 128, ngroups = 1;
  std::string D = "head";  // none, head, channel
  bool z = false;
  bool dt_bias = true;
  bool dt_softplus = true;
  std::pair<double, double> dt_limit{0, kInfinity};
  bool initial_state = false;  // h0 is an input
  bool seq_idx = false;
  bool operator==(const SsdSpec&) const = default;
};

void check(const SsdSpec& spec);
void ssd(Scope& s, const SsdSpec& spec);

/// The recurrence alone. x (b, t, g, j, p); step, the time step after its softplus, and log_decay
/// (b, t, g, j); B, C (b, t, g, n); initial (b, g, j, p, n) and starts or undefined.
struct SsdCore {
  Expr x, step, log_decay, B, C, initial, starts;
};
struct SsdResult {
  Expr y;     // (b, t, g, j, p), without D and gate
  Expr last;  // (b, g, j, p, n)
};
SsdResult ssd_core(const SsdCore& in, const Axis& n);

}  // namespace krait
