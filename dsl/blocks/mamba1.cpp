#include "dsl/blocks/mamba1.h"

#include <cmath>

#include "dsl/blocks/selective_scan.h"

namespace krait {

void check(const Mamba1Spec& spec) {
  require_size("d_model", spec.d_model);
  require_size("d_state", spec.d_state);
  require_size("d_conv", spec.d_conv);
  require_size("expand", spec.expand);
  require_size("expand * d_model", spec.d_inner());
  require_size("dt_rank", spec.dt_rank, 0);
  require_range("dt_min", spec.dt_min, "dt_max", spec.dt_max);
  require_positive("dt_scale", spec.dt_scale);
  require_positive("dt_init_floor", spec.dt_init_floor);
  if (spec.dt_init != "random" && spec.dt_init != "constant") {
    throw UsageError("dt_init", spec.dt_init, "random, constant");
  }
  require_positive("mixer_rms_eps", spec.mixer_rms_eps);
  require_size("chunk_size", spec.chunk_size, 0);
}

Expr mamba1_mixer(Scope& s, const Mamba1Spec& spec, const Expr& u, const Expr& starts,
                  const MixerPlace& place) {
  check(spec);
  const Axis b = batch_axis(), t = time_axis(), d("d", spec.d_model), e("e", spec.d_inner());
  const Axis n("n", spec.d_state), w("w", spec.d_conv), rank("rank", spec.rank());
  const Axis gn("gn", spec.d_state);  // of the one group
  const Axis rows("rows", 2 * spec.d_inner()), xrows("xrows", spec.rank() + 2 * spec.d_state);
  const HeadAxes channels(spec.d_inner(), 1, "e");
  const auto param = [&](const std::string& name, const std::vector<Axis>& axes, Init init) {
    return place.param(s, name, axes, init);
  };

  Expr projected = linear(u, param("in_proj", {rows, d}, init_fan_in(spec.d_model)), d);
  if (spec.bias) projected = projected + param("in_proj_bias", {rows}, init_fan_in(spec.d_model));
  Rows next(projected, rows);
  const Expr raw = next.next(e), z = channels.split(next.next(e));
  const Expr conv_weight = param("conv_weight", {e, w}, init_fan_in(spec.d_conv));
  Expr conv_bias;
  if (spec.conv_bias) conv_bias = param("conv_bias", {e}, init_fan_in(spec.d_conv));
  const Expr past = carried(s, spec.initial_state, "conv_state", "conv_state", {b, e, w});
  const Convolution conv = causal_conv(raw, conv_weight, conv_bias, past, starts, e, w);
  leave(s, spec.initial_state, "conv_state", conv.next, {b, e, w});
  const Expr x = silu(conv.y).named("x");

  Rows parts(linear(x, param("x_proj", {xrows, e}, init_fan_in(spec.d_inner())), e), xrows);
  const auto normed = [&](const Axis& axis) {
    const Expr part = parts.next(axis);
    return spec.bcdt_rms ? rms_normalize(part, {axis}, spec.mixer_rms_eps) : part;
  };
  const Expr dt = normed(rank);
  const Expr B = split(normed(gn), gn, channels.g, n).named("B");
  const Expr C = split(normed(gn), gn, channels.g, n).named("C");
  const double k = spec.dt_scale / std::sqrt(static_cast<double>(spec.rank()));
  const Init dt_init =
      spec.dt_init == "random" ? Init{Init::Kind::uniform, -k, k} : Init{Init::Kind::constant, k};
  const Expr delta = linear(dt, param("dt_proj", {e, rank}, dt_init), rank);
  const Expr bias =
      param("dt_bias", {e}, init_dt_bias(spec.dt_min, spec.dt_max, spec.dt_init_floor));
  const Expr step = channels.split(softplus(delta + bias)).named("step");
  const Expr A = -exp(channels.split(param("A_log", {e, n}, {Init::Kind::log_arange})));
  Expr initial;
  const Expr h0 = carried(s, spec.initial_state, "h0", "h", {b, e, n});
  if (h0.defined()) initial = channels.split(h0);

  const Expr u_scan = channels.split(x);
  const auto [scanned, last] =
      selective_core({u_scan, step, (step * A).named("log_decay"), B, C, initial, starts}, n);
  leave(s, spec.initial_state, "h", channels.merge(last), {b, e, n});
  const Expr y = scanned + channels.split(param("D", {e}, init_one())) * u_scan;
  const Expr out_proj = param("out_proj", {d, e}, init_fan_in(spec.d_inner() * place.layers));
  Expr result = linear(channels.merge(y * silu(z)), out_proj, e);
  if (spec.bias) result = result + param("out_proj_bias", {d}, init_fan_in(spec.d_inner()));
  return result;
}

void mamba1(Scope& s, const Mamba1Spec& spec) {
  check(spec);
  const Expr u = s.input("u", {batch_axis(), time_axis(), Axis("d", spec.d_model)});
  const Expr starts = document_starts(document_input(s, spec.seq_idx));
  s.output("y", mamba1_mixer(s, spec, u, starts, {}), {"b", "t", "d"});
}

std::vector<CheckpointName> checkpoint_names(const Mamba1Spec& spec) {
  check(spec);
  const std::int64_t e = spec.d_inner(), d = spec.d_model, n = spec.d_state, rank = spec.rank();
  std::vector<CheckpointName> names{{"w.in_proj", "in_proj.weight", {2 * e, d}},
                                    {"w.conv_weight", "conv1d.weight", {e, 1, spec.d_conv}},
                                    {"w.x_proj", "x_proj.weight", {rank + 2 * n, e}},
                                    {"w.dt_proj", "dt_proj.weight", {e, rank}},
                                    {"w.dt_bias", "dt_proj.bias", {e}},
                                    {"w.A_log", "A_log", {e, n}},
                                    {"w.D", "D", {e}},
                                    {"w.out_proj", "out_proj.weight", {d, e}}};
  if (spec.conv_bias) names.push_back({"w.conv_bias", "conv1d.bias", {e}});
  if (spec.bias) {
    names.push_back({"w.in_proj_bias", "in_proj.bias", {2 * e}});
    names.push_back({"w.out_proj_bias", "out_proj.bias", {d}});
  }
  return names;
}

}  // namespace krait
