#include "dsl/blocks/backbone.h"

namespace krait {

namespace {

Expr mixer_of(Scope& s, const Mamba1Spec& m, const Expr& u, const Expr& st, const MixerPlace& at) {
  return mamba1_mixer(s, m, u, st, at);
}
Expr mixer_of(Scope& s, const Mamba2Spec& m, const Expr& u, const Expr& st, const MixerPlace& at) {
  return mamba2_mixer(s, m, u, st, at);
}
Expr mixer_of(Scope& s, const Mamba3Spec& m, const Expr& u, const Expr& st, const MixerPlace& at) {
  return mamba3_mixer(s, m, u, st, at);
}

constexpr double kEmbeddingDeviation = 0.02;  // of the public initialisation

}  // namespace

MixerSpec BackboneSpec::mixer() const {
  MixerSpec mixer = ssm_cfg;
  std::visit(
      [&](auto& m) {
        m.d_model = d_model;
        m.initial_state = initial_state;
        m.seq_idx = seq_idx;
      },
      mixer);
  return mixer;
}

void check(const BackboneSpec& spec) {
  require_size("d_model", spec.d_model);
  require_size("n_layer", spec.n_layer);
  require_size("d_input", spec.d_input, 0);
  require_size("vocab_size", spec.vocab_size, 0);
  require_size("pad_vocab_size_multiple", spec.pad_vocab_size_multiple);
  require_positive("norm_epsilon", spec.norm_epsilon);
  if (spec.vocab_size > 0 && spec.d_input > 0) {
    throw UsageError("d_input", text(spec.d_input), "0 where vocab_size is given");
  }
  if (spec.vocab_size > 0) require_size("the padded vocab_size", spec.padded_vocab());
  std::visit([](const auto& m) { check(m); }, spec.mixer());
}

void backbone(Scope& s, const BackboneSpec& spec) {
  check(spec);
  const Axis b = batch_axis(), t = time_axis(), d("d", spec.d_model);
  const Axis v("v", spec.vocab_size > 0 ? spec.padded_vocab() : 1);
  Expr u, table;
  if (spec.vocab_size > 0) {
    const Expr tokens = s.input("tokens", {b, t}, DType::i32);
    table = s.param("embedding", {v, d}, {Init::Kind::normal, kEmbeddingDeviation});
    u = gather(table, v, tokens);
  } else if (spec.d_input > 0) {
    const Axis f("f", spec.d_input);
    const Expr x = s.input("x", {b, t, f});
    u = linear(x, s.param("input_proj.weight", {d, f}, init_fan_in(spec.d_input)), f) +
        s.param("input_proj.bias", {d}, init_fan_in(spec.d_input));
  } else {
    u = s.input("x", {b, t, d});
  }
  const Expr starts = document_starts(document_input(s, spec.seq_idx));
  const MixerSpec mixer = spec.mixer();
  for (std::int64_t i = 0; i < spec.n_layer; ++i) {
    const Scope::Prefix layer(s, text("layers.", i, "."));
    const Expr normed = rms_norm(u, s.param("norm", {d}, init_one()), {d}, spec.norm_epsilon);
    const Scope::Prefix inside(s, "mixer.");
    u = u + std::visit(
                [&](const auto& m) {
                  return mixer_of(s, m, normed, starts, {"", spec.n_layer});
                },
                mixer);
  }
  const Expr y = rms_norm(u, s.param("norm_f", {d}, init_one()), {d}, spec.norm_epsilon);
  if (spec.vocab_size == 0) {
    s.output("y", y, {"b", "t", "d"});
    return;
  }
  const Expr head =
      spec.tie_embeddings ? table : s.param("lm_head", {v, d}, init_fan_in(spec.d_model));
  s.output("logits", linear(y, head, d), {"b", "t", "v"});
}

std::vector<CheckpointName> checkpoint_names(const BackboneSpec& spec) {
  check(spec);
  const std::int64_t d = spec.d_model;
  std::vector<CheckpointName> names;
  if (spec.vocab_size > 0) {
    names.push_back({"embedding", "backbone.embedding.weight", {spec.padded_vocab(), d}});
    if (!spec.tie_embeddings)
      names.push_back({"lm_head", "lm_head.weight", {spec.padded_vocab(), d}});
  } else if (spec.d_input > 0) {
    names.push_back({"input_proj.weight", "input_proj.weight", {d, spec.d_input}});
    names.push_back({"input_proj.bias", "input_proj.bias", {d}});
  }
  const auto inside = std::visit([](const auto& m) { return checkpoint_names(m); }, spec.mixer());
  for (std::int64_t i = 0; i < spec.n_layer; ++i) {
    const std::string layer = text("layers.", i, ".");
    names.push_back({layer + "norm", "backbone." + layer + "norm.weight", {d}});
    for (const CheckpointName& name : inside) {
      names.push_back({layer + "mixer." + name.parameter.substr(2),  // without "w."
                       "backbone." + layer + "mixer." + name.checkpoint, name.shape});
    }
  }
  names.push_back({"norm_f", "backbone.norm_f.weight", {d}});
  return names;
}

}  // namespace krait
