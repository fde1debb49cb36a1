// The scans of Mamba-3: single input single output, and several inputs a head (MIMO). The equations
// stand in dsl/blocks/mamba3_core.h.
#pragma once

#include "dsl/blocks/mamba3_core.h"
#include "dsl/blocks/spec.h"

namespace krait {

/// Inputs q and k (b, t, g, n), v and [z] (b, t, h, p), adt, dt and trap (b, t, h), angles
/// (b, t, h, a), [seq_idx (b, t)]; parameters q_bias and k_bias (h, n), [D (h)]; states state.angle
/// (b, h, a) in radians, state.ssm (b, h, p, n), state.k (b, h, n), state.v (b, h, p), left under
/// the same names; output y (b, t, h, p). trap is before its sigmoid, angles before tanh, and adt,
/// the log decay, must be <= 0. a = floor(n rope_fraction) / 2, rounded down.
struct Mamba3ScanSpec {
  std::int64_t nheads = 4, headdim = 64, d_state = 128, ngroups = 1;
  double rope_fraction = 0.5;  // 0.5 or 1
  bool D = true;
  bool z = false;
  bool initial_state = false;  // the states are inputs
  bool seq_idx = false;
  bool operator==(const Mamba3ScanSpec&) const = default;
};

/// As Mamba3ScanSpec, but q and k (b, t, r, g, n), biases (h, r, n), state.k (b, h, r, n), further
/// parameters mimo_x, mimo_o and, with z, mimo_z (h, r, p), [norm_weight (h, p)].
struct Mamba3MimoScanSpec {
  std::int64_t nheads = 4, headdim = 64, d_state = 128, ngroups = 1, mimo_rank = 4;
  double rope_fraction = 0.5;
  bool D = true;
  bool z = true;
  bool norm = false;
  double eps = 1e-5;  // of the norm
  bool initial_state = false;
  bool seq_idx = false;
  bool operator==(const Mamba3MimoScanSpec&) const = default;
};

void check(const Mamba3ScanSpec& spec);
void check(const Mamba3MimoScanSpec& spec);
void mamba3_scan(Scope& s, const Mamba3ScanSpec& spec);
void mamba3_mimo_scan(Scope& s, const Mamba3MimoScanSpec& spec);

}  // namespace krait
