// The Mamba-2 block, arXiv 2405.21060; names and defaults as the public constructor.
//
//   [z0, x0,] z, x, B, C, dt = split(W_in u);   x, B, C = silu(conv([x, B, C]) + bias)
//   y = scan of dsl/blocks/ssd.h with A = -exp(A_log);   y = gated RMS norm of y, or y silu(z)
//   out = W_out [silu(z0) x0,] y
#pragma once

#include <utility>
#include <vector>

#include "dsl/blocks/pieces.h"
#include "dsl/blocks/spec.h"

namespace krait {

/// Input u (b, t, d_model), [seq_idx (b, t)]; output y (b, t, d_model). Parameters, under "w.":
/// in_proj (rows, d_model), conv_weight (c, d_conv), [conv_bias (c)], dt_bias and A_log (h), D (h)
/// or (h, p), [norm_weight (d_ssm)], out_proj (d_model, d_inner), [in_proj_bias (rows),
/// out_proj_bias (d_model)], [init_states (h, p, n)], with c = d_ssm + 2 g n. States: conv_state
/// (b, c, d_conv) and h0 (b, h, p, n), left as conv_state and h.
struct Mamba2Spec {
  std::int64_t d_model = 256, d_state = 128, d_conv = 4, expand = 2, headdim = 64, ngroups = 1;
  std::int64_t d_ssm = 0;  // channels of the scan, the others are a gated MLP; 0: all of d_inner
  std::pair<double, double> A_init_range{1, 16};
  bool D_has_hdim = false;
  bool rmsnorm = true;
  bool norm_before_gate = false;
  std::int64_t norm_group_size = 0;  // channels a mean of squares runs over; 0: d_ssm / ngroups
  double dt_min = 0.001, dt_max = 0.1, dt_init_floor = 1e-4;
  std::pair<double, double> dt_limit{0, kInfinity};
  bool learnable_init_states = false;
  bool bias = false;
  bool conv_bias = true;
  double eps = 1e-5;
  std::int64_t chunk_size = 0;  // a wish to the scheduler, 0: none; changes no value
  bool initial_state = false;   // conv_state and h0 are inputs; h0 takes the place of init_states
  bool seq_idx = false;
  bool operator==(const Mamba2Spec&) const = default;

  std::int64_t d_inner() const { return expand * d_model; }
  std::int64_t scan_channels() const { return d_ssm == 0 ? d_inner() : d_ssm; }
  std::int64_t nheads() const { return scan_channels() / headdim; }
  std::int64_t conv_channels() const { return scan_channels() + 2 * ngroups * d_state; }
  std::int64_t mlp_channels() const { return d_inner() - scan_channels(); }
  std::int64_t projection_rows() const {
    return 2 * mlp_channels() + scan_channels() + conv_channels() + nheads();
  }
};

void check(const Mamba2Spec& spec);
void mamba2(Scope& s, const Mamba2Spec& spec);
std::vector<CheckpointName> checkpoint_names(const Mamba2Spec& spec);

/// u (b, t, d) -> (b, t, d), d the axis "d"; starts from document_starts, or undefined.
Expr mamba2_mixer(Scope& s, const Mamba2Spec& spec, const Expr& u, const Expr& starts,
                  const MixerPlace& place);

}  // namespace krait
