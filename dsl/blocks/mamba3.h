// The Mamba-3 block (arXiv 2603.15569), of one or several inputs a head; names and defaults as the
// public constructor. The recurrence stands in dsl/blocks/mamba3_core.h.
//
//   z, x, B, C, dd_dt, dd_A, trap, angle = split(W_in u);   B, C = RMS_n(B) w_B, RMS_n(C) w_C
//   A = -max(f(dd_A), A_floor);   dt = softplus(dd_dt + dt_bias);   log decay A dt
//   y = the recurrence with q = C, k = B, v = x;   y silu(z), or RMS_p(y) w silu(z);   out = W_out
//   y
#pragma once

#include <string>
#include <vector>

#include "dsl/blocks/pieces.h"
#include "dsl/blocks/spec.h"

namespace krait {

/// Input u (b, t, d_model), [seq_idx (b, t)]; output y (b, t, d_model). Parameters, under "w.",
/// with e = expand d_model and r = mimo_rank, or 1 without is_mimo: in_proj (rows, d_model),
/// dt_bias (h), B_norm and C_norm (n), B_bias and C_bias (h, r, n), D (h), [norm_weight (e)],
/// [mimo_x, mimo_z, mimo_o (h, r, p)], out_proj (d_model, e). States as Mamba3ScanSpec and
/// Mamba3MimoScanSpec.
struct Mamba3Spec {
  std::int64_t d_model = 256, d_state = 128, expand = 2, headdim = 64, ngroups = 1;
  double rope_fraction = 0.5;  // 0.5 or 1
  double dt_min = 0.001, dt_max = 0.1, dt_init_floor = 1e-4;
  std::string a_activation = "heavy_tail";  // f: heavy_tail or softplus
  double A_floor = 1e-4;
  bool is_outproj_norm = false;
  bool is_mimo = false;
  std::int64_t mimo_rank = 4;  // read where is_mimo
  double eps = 1e-5;
  std::int64_t chunk_size = 0;  // a wish to the scheduler, 0: none; changes no value
  bool initial_state = false;   // the states are inputs
  bool seq_idx = false;
  bool operator==(const Mamba3Spec&) const = default;

  std::int64_t d_inner() const { return expand * d_model; }
  std::int64_t nheads() const { return d_inner() / headdim; }
  std::int64_t rank() const { return is_mimo ? mimo_rank : 1; }
  std::int64_t angles() const { return rope_angles(rope_fraction, d_state); }
  std::int64_t projection_rows() const {
    return 2 * d_inner() + 2 * rank() * ngroups * d_state + 3 * nheads() + angles();
  }
};

void check(const Mamba3Spec& spec);
void mamba3(Scope& s, const Mamba3Spec& spec);
std::vector<CheckpointName> checkpoint_names(const Mamba3Spec& spec);

/// u (b, t, d) -> (b, t, d), d the axis "d"; starts from document_starts, or undefined.
Expr mamba3_mixer(Scope& s, const Mamba3Spec& spec, const Expr& u, const Expr& starts,
                  const MixerPlace& place);

}  // namespace krait
