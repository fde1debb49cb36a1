#include "dsl/blocks/mamba2.h"

#include <cmath>

#include "dsl/blocks/ssd.h"

namespace krait {

void check(const Mamba2Spec& spec) {
  require_size("d_model", spec.d_model);
  require_size("d_state", spec.d_state);
  require_size("d_conv", spec.d_conv);
  require_size("expand", spec.expand);
  require_size("expand * d_model", spec.d_inner());
  require_size("headdim", spec.headdim);
  require_size("d_ssm", spec.d_ssm, 0);
  if (spec.d_ssm > spec.d_inner()) {
    throw UsageError("d_ssm", text(spec.d_ssm),
                     text("0 to expand * d_model, which is ", spec.d_inner()));
  }
  require_divisor("headdim", spec.headdim, spec.d_ssm ? "d_ssm" : "expand * d_model",
                  spec.scan_channels());
  require_divisor("ngroups", spec.ngroups, "the number of heads", spec.nheads());
  require_size("the number of rows of in_proj", spec.projection_rows());
  require_range("A_init_range[0]", spec.A_init_range.first, "A_init_range[1]",
                spec.A_init_range.second);
  if (spec.norm_group_size != 0) {
    require_divisor("norm_group_size", spec.norm_group_size, "the channels of the norm",
                    spec.scan_channels());
  }
  require_range("dt_min", spec.dt_min, "dt_max", spec.dt_max);
  require_positive("dt_init_floor", spec.dt_init_floor);
  require_dt_limit(spec.dt_limit);
  require_positive("eps", spec.eps);
  require_size("chunk_size", spec.chunk_size, 0);
}

Expr mamba2_mixer(Scope& s, const Mamba2Spec& spec, const Expr& u, const Expr& starts,
                  const MixerPlace& place) {
  check(spec);
  const Axis b = batch_axis(), t = time_axis(), d("d", spec.d_model), e("e", spec.d_inner());
  const Axis es = spec.mlp_channels() ? Axis("es", spec.scan_channels()) : e;
  const Axis p("p", spec.headdim), n("n", spec.d_state), w("w", spec.d_conv);
  const Axis c("c", spec.conv_channels()), gn("gn", spec.ngroups * spec.d_state);
  const Axis rows("rows", spec.projection_rows());
  const HeadAxes heads(spec.nheads(), spec.ngroups);
  const auto param = [&](const std::string& name, const std::vector<Axis>& axes, Init init) {
    return place.param(s, name, axes, init);
  };

  Expr projected = linear(u, param("in_proj", {rows, d}, init_fan_in(spec.d_model)), d);
  if (spec.bias) projected = projected + param("in_proj_bias", {rows}, init_fan_in(spec.d_model));
  Rows next(projected, rows);
  Expr mlp;
  if (spec.mlp_channels()) {
    const Axis m("m", spec.mlp_channels());
    const Expr gate = next.next(m);
    mlp = silu(gate) * next.next(m);
  }
  const Expr z = split_channels(next.next(es), es, heads, p);

  // The convolution of [x, B, C] is the convolution of each with its own taps.
  const Expr conv_weight = param("conv_weight", {c, w}, init_fan_in(spec.d_conv));
  Expr conv_bias;
  if (spec.conv_bias) conv_bias = param("conv_bias", {c}, init_fan_in(spec.d_conv));
  const Expr past = carried(s, spec.initial_state, "conv_state", "conv_state", {b, c, w});
  std::int64_t channel = 0;
  std::vector<Expr> taps;
  const auto convolved = [&](const Axis& axis) {
    const auto own = [&](const Expr& x) {
      return x.defined() ? slice(x, c, channel, axis) : Expr();
    };
    const Convolution conv =
        causal_conv(next.next(axis), own(conv_weight), own(conv_bias), own(past), starts, axis, w);
    channel += axis.extent.offset;
    taps.push_back(conv.next);
    return silu(conv.y);
  };
  const Expr x = split_channels(convolved(es), es, heads, p).named("x");
  const Expr B = split(convolved(gn), gn, heads.g, n).named("B");
  const Expr C = split(convolved(gn), gn, heads.g, n).named("C");
  leave(s, spec.initial_state, "conv_state", concat(taps, {es, gn, gn}, c), {b, c, w});

  const Init dt_init = init_dt_bias(spec.dt_min, spec.dt_max, spec.dt_init_floor);
  const auto [low, high] = spec.dt_limit;
  const Expr step = step_size(heads.split(next.next(heads.h)),
                              heads.split(param("dt_bias", {heads.h}, dt_init)), true, low, high)
                        .named("step");
  const auto [a_low, a_high] = spec.A_init_range;
  const Expr A =
      -exp(heads.split(param("A_log", {heads.h}, {Init::Kind::log_uniform, a_low, a_high})));
  const Expr D = param("D", spec.D_has_hdim ? std::vector<Axis>{heads.h, p} : std::vector{heads.h},
                       init_one());
  const std::vector<Axis> state_axes{b, heads.h, p, n};
  Expr start = carried(s, spec.initial_state, "h0", "h", state_axes);
  if (spec.learnable_init_states) {
    const Expr drawn = param("init_states", {heads.h, p, n}, {Init::Kind::zero});
    if (!start.defined()) start = broadcast(drawn, {b});
  }
  if (start.defined()) start = heads.split(start);
  const auto [scanned, last] =
      ssd_core({x, step, (step * A).named("log_decay"), B, C, start, starts}, n);
  leave(s, spec.initial_state, "h", heads.merge(last), state_axes);

  const Expr y = scanned + heads.split(D) * x;
  Expr out;
  if (spec.rmsnorm) {
    const std::int64_t size =
        spec.norm_group_size ? spec.norm_group_size : spec.scan_channels() / spec.ngroups;
    out = gated_rms_norm(y, z, param("norm_weight", {es}, init_one()), es, heads, p, size, spec.eps,
                         spec.norm_before_gate);
  } else {
    out = merge_channels(y * silu(z), heads, p, es);
  }
  const Expr out_proj = param("out_proj", {d, e}, init_fan_in(spec.d_inner() * place.layers));
  Expr result;
  if (mlp.defined()) {  // W_out [mlp, y] in two products, without the concatenation
    const Axis m("m", spec.mlp_channels());
    result = linear(mlp, slice(out_proj, e, 0, m), m) +
             linear(out, slice(out_proj, e, spec.mlp_channels(), es), es);
  } else {
    result = linear(out, out_proj, e);
  }
  if (spec.bias) result = result + param("out_proj_bias", {d}, init_fan_in(spec.d_inner()));
  return result;
}

void mamba2(Scope& s, const Mamba2Spec& spec) {
  check(spec);
  const Expr u = s.input("u", {batch_axis(), time_axis(), Axis("d", spec.d_model)});
  const Expr starts = document_starts(document_input(s, spec.seq_idx));
  s.output("y", mamba2_mixer(s, spec, u, starts, {}), {"b", "t", "d"});
}

std::vector<CheckpointName> checkpoint_names(const Mamba2Spec& spec) {
  check(spec);
  const std::int64_t h = spec.nheads(), c = spec.conv_channels(), p = spec.headdim;
  std::vector<CheckpointName> names{
      {"w.in_proj", "in_proj.weight", {spec.projection_rows(), spec.d_model}},
      {"w.conv_weight", "conv1d.weight", {c, 1, spec.d_conv}},
      {"w.dt_bias", "dt_bias", {h}},
      {"w.A_log", "A_log", {h}},
      {"w.D", "D", {spec.D_has_hdim ? h * p : h}},
      {"w.out_proj", "out_proj.weight", {spec.d_model, spec.d_inner()}}};
  if (spec.conv_bias) names.push_back({"w.conv_bias", "conv1d.bias", {c}});
  if (spec.rmsnorm) names.push_back({"w.norm_weight", "norm.weight", {spec.scan_channels()}});
  if (spec.bias) {
    names.push_back({"w.in_proj_bias", "in_proj.bias", {spec.projection_rows()}});
    names.push_back({"w.out_proj_bias", "out_proj.bias", {spec.d_model}});
  }
  if (spec.learnable_init_states) {
    names.push_back({"w.init_states", "init_states", {h, p, spec.d_state}});
  }
  return names;
}

}  // namespace krait
