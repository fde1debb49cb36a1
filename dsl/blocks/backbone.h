// Layers of mixers around a residual stream:
//
//   u = input_proj(x), an embedding of tokens, or x itself
//   n_layer times: u = u + mixer(RMS(u) w);   y = RMS(u) norm_f;   [logits = y W_head^T]
//
// The residual stream is kept in the accumulation dtype (f32; f64 in f64 graphs).
#pragma once

#include <variant>
#include <vector>

#include "dsl/blocks/mamba1.h"
#include "dsl/blocks/mamba2.h"
#include "dsl/blocks/mamba3.h"

namespace krait {

using MixerSpec = std::variant<Mamba1Spec, Mamba2Spec, Mamba3Spec>;

/// vocab_size > 0: input tokens (b, t) int32, parameter embedding (v, d_model), output logits
/// (b, t, v) through lm_head (v, d_model), or through embedding where tie_embeddings, v the
/// vocabulary rounded up to a multiple of pad_vocab_size_multiple. Else input x (b, t, d_input)
/// with input_proj.weight (d_model, d_input) and input_proj.bias (d_model), or, d_input 0, x (b, t,
/// d_model) without; output y (b, t, d_model). Parameters layers.{i}.norm (d_model),
/// layers.{i}.mixer.NAME and norm_f (d_model); states layers.{i}.mixer.NAME; [seq_idx (b, t)].
struct BackboneSpec {
  std::int64_t d_model = 256, n_layer = 2;
  std::int64_t d_input = 0, vocab_size = 0;  // at most one of them above 0
  std::int64_t pad_vocab_size_multiple = 8;
  bool tie_embeddings = true;
  double norm_epsilon = 1e-5;
  MixerSpec ssm_cfg = Mamba2Spec{};  // its d_model, initial_state and seq_idx are those given here
  bool initial_state = false;        // every mixer's states are inputs
  bool seq_idx = false;
  bool operator==(const BackboneSpec&) const = default;

  std::int64_t padded_vocab() const {
    const std::int64_t m = pad_vocab_size_multiple;
    return (vocab_size + m - 1) / m * m;
  }
  /// ssm_cfg with this backbone's d_model, initial_state and seq_idx.
  MixerSpec mixer() const;
};

void check(const BackboneSpec& spec);
void backbone(Scope& s, const BackboneSpec& spec);
std::vector<CheckpointName> checkpoint_names(const BackboneSpec& spec);

}  // namespace krait
