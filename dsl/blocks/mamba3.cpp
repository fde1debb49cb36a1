#include "dsl/blocks/mamba3.h"

#include "dsl/blocks/mamba3_core.h"

namespace krait {

void check(const Mamba3Spec& spec) {
  require_size("d_model", spec.d_model);
  require_size("expand", spec.expand);
  require_size("expand * d_model", spec.d_inner());
  require_size("headdim", spec.headdim);
  require_rope(spec.rope_fraction, spec.d_state);
  require_divisor("headdim", spec.headdim, "expand * d_model", spec.d_inner());
  require_divisor("ngroups", spec.ngroups, "the number of heads", spec.nheads());
  require_size("mimo_rank", spec.mimo_rank);
  require_size("mimo_rank * ngroups", spec.mimo_rank * spec.ngroups);
  require_size("the number of rows of in_proj", spec.projection_rows());
  require_range("dt_min", spec.dt_min, "dt_max", spec.dt_max);
  require_positive("dt_init_floor", spec.dt_init_floor);
  if (spec.a_activation != "heavy_tail" && spec.a_activation != "softplus") {
    throw UsageError("a_activation", spec.a_activation, "heavy_tail, softplus");
  }
  require_positive("A_floor", spec.A_floor);
  require_positive("eps", spec.eps);
  require_size("chunk_size", spec.chunk_size, 0);
}

namespace {

/// 1 + x from 0 up, 1 / (1 - x) below; its slope at 0 is 1.
Expr heavy_tail(const Expr& x) { return select(x < 0.0, 1.0 / (1.0 - min(x, 0.0)), 1.0 + x); }

}  // namespace

Expr mamba3_mixer(Scope& s, const Mamba3Spec& spec, const Expr& u, const Expr& starts,
                  const MixerPlace& place) {
  check(spec);
  const Mamba3Axes x(spec.nheads(), spec.headdim, spec.d_state, spec.ngroups, spec.angles(),
                     spec.is_mimo ? spec.mimo_rank : 0);
  const HeadAxes& heads = x.heads;
  const Axis d("d", spec.d_model), e("e", spec.d_inner()), rows("rows", spec.projection_rows());
  const auto param = [&](const std::string& name, const std::vector<Axis>& axes, Init init) {
    return place.param(s, name, axes, init);
  };

  Rows next(linear(u, param("in_proj", {rows, d}, init_fan_in(spec.d_model)), d), rows);
  const auto per_head = [&] { return heads.split(next.next(heads.h)); };
  // B, C: (r, g, n), or with one input (g, n); the norm over n, its weight shared by all.
  const auto normed = [&](const std::string& name) {
    const Axis gn("gn", spec.ngroups * spec.d_state), rgn("rgn", spec.rank() * gn.extent.offset);
    const Expr m = x.several ? split(next.next(rgn), rgn, x.r, gn) : next.next(gn);
    const Expr weight = x.pairs(param(name, {x.n}, init_one()));
    return rms_norm(x.pairs(split(m, gn, heads.g, x.n)), weight, {x.i, x.pair}, spec.eps);
  };
  const auto bias = [&](const std::string& name) {
    const Expr m = param(name, {heads.h, x.r, x.n}, init_one());
    return x.pairs(heads.split(x.several ? m : at(m, x.r, 0)));
  };

  Mamba3Core in;
  Mamba3Finish finish;
  finish.z = split_channels(next.next(e), e, heads, x.p);
  in.v = split_channels(next.next(e), e, heads, x.p);
  in.k = x.on_inputs(normed("B_norm"));
  in.q = normed("C_norm");
  in.k_bias = x.on_inputs(bias("B_bias"));
  in.q_bias = bias("C_bias");
  const Init dt_init = init_dt_bias(spec.dt_min, spec.dt_max, spec.dt_init_floor);
  in.dt = softplus(per_head() + heads.split(param("dt_bias", {heads.h}, dt_init))).named("step");
  const Expr raw = per_head();
  const Expr A =
      -max(spec.a_activation == "softplus" ? softplus(raw) : heavy_tail(raw), spec.A_floor);
  in.log_decay = (A * in.dt).named("log_decay");
  in.trap = per_head();
  in.angles = next.next(x.a);
  in.D = heads.split(param("D", {heads.h}, init_one()));
  in.starts = starts;
  if (spec.is_mimo) {
    const auto mix = [&](const std::string& name, double value) {
      return heads.split(param(name, {heads.h, x.r, x.p}, {Init::Kind::constant, value}));
    };
    const double share = 1.0 / static_cast<double>(spec.mimo_rank);
    in.mimo_x = mix("mimo_x", share);
    finish.mimo_z = mix("mimo_z", 1);
    finish.mimo_o = mix("mimo_o", share);
  }
  if (spec.is_outproj_norm) {
    finish.norm_weight = split_channels(param("norm_weight", {e}, init_one()), e, heads, x.p);
    finish.eps = spec.eps;
  }
  const Expr scanned = mamba3_core(s, in, x, spec.initial_state);
  const Expr y = merge_channels(mamba3_finish(scanned, finish, x), heads, x.p, e);
  return linear(y, param("out_proj", {d, e}, init_fan_in(spec.d_inner() * place.layers)), e);
}

void mamba3(Scope& s, const Mamba3Spec& spec) {
  check(spec);
  const Expr u = s.input("u", {batch_axis(), time_axis(), Axis("d", spec.d_model)});
  const Expr starts = document_starts(document_input(s, spec.seq_idx));
  s.output("y", mamba3_mixer(s, spec, u, starts, {}), {"b", "t", "d"});
}

std::vector<CheckpointName> checkpoint_names(const Mamba3Spec& spec) {
  check(spec);
  const std::int64_t h = spec.nheads(), r = spec.rank(), n = spec.d_state, p = spec.headdim;
  std::vector<CheckpointName> names{
      {"w.in_proj", "in_proj.weight", {spec.projection_rows(), spec.d_model}},
      {"w.dt_bias", "dt_bias", {h}},
      {"w.B_bias", "B_bias", {h, r, n}},
      {"w.C_bias", "C_bias", {h, r, n}},
      {"w.B_norm", "B_norm.weight", {n}},
      {"w.C_norm", "C_norm.weight", {n}},
      {"w.D", "D", {h}},
      {"w.out_proj", "out_proj.weight", {spec.d_model, spec.d_inner()}}};
  if (spec.is_mimo) {
    for (const std::string name : {"mimo_x", "mimo_z", "mimo_o"}) {
      names.push_back({"w." + name, name, {h, r, p}});
    }
  }
  if (spec.is_outproj_norm) names.push_back({"w.norm_weight", "norm.weight", {spec.d_inner()}});
  return names;
}

}  // namespace krait
