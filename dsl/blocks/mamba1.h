// The Mamba-1 block, arXiv 2312.00752; names and defaults as the public constructor.
//
//   x, z = split(W_in u);   x = silu(conv(x) + bias);   dt, B, C = split(W_x x)
//   y = scan of dsl/blocks/selective_scan.h with delta = softplus(W_dt dt + dt_bias), A =
//   -exp(A_log);   out = W_out (y silu(z))
#pragma once

#include <string>
#include <vector>

#include "dsl/blocks/pieces.h"
#include "dsl/blocks/spec.h"

namespace krait {

/// Input u (b, t, d_model), [seq_idx (b, t)]; output y (b, t, d_model). Parameters, under "w.",
/// with e = expand d_model: in_proj (2 e, d_model), conv_weight (e, d_conv), [conv_bias (e)],
/// x_proj (dt_rank + 2 n, e), dt_proj (e, dt_rank), dt_bias (e), A_log (e, n), D (e), out_proj
/// (d_model, e), [in_proj_bias (2 e), out_proj_bias (d_model)]. States: conv_state (b, e, d_conv)
/// and h0 (b, e, n), left as conv_state and h.
struct Mamba1Spec {
  std::int64_t d_model = 256, d_state = 16, d_conv = 4, expand = 2;
  std::int64_t dt_rank = 0;  // 0 ("auto" in JSON): ceil(d_model / 16)
  double dt_min = 0.001, dt_max = 0.1, dt_scale = 1, dt_init_floor = 1e-4;
  std::string dt_init = "random";  // dt_proj: random, or constant dt_rank^-1/2 dt_scale
  bool conv_bias = true;
  bool bias = false;
  bool bcdt_rms = false;        // B, C and dt are divided by their RMS (Falcon-Mamba)
  double mixer_rms_eps = 1e-6;  // of bcdt_rms
  std::int64_t chunk_size = 0;  // a wish to the scheduler, 0: none; changes no value
  bool initial_state = false;   // conv_state and h0 are inputs
  bool seq_idx = false;
  bool operator==(const Mamba1Spec&) const = default;

  std::int64_t d_inner() const { return expand * d_model; }
  std::int64_t rank() const { return dt_rank == 0 ? (d_model + 15) / 16 : dt_rank; }
};

void check(const Mamba1Spec& spec);
void mamba1(Scope& s, const Mamba1Spec& spec);
std::vector<CheckpointName> checkpoint_names(const Mamba1Spec& spec);

/// u (b, t, d) -> (b, t, d), d the axis "d"; starts from document_starts, or undefined.
Expr mamba1_mixer(Scope& s, const Mamba1Spec& spec, const Expr& u, const Expr& starts,
                  const MixerPlace& place);

}  // namespace krait
