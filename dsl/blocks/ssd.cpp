#include "dsl/blocks/ssd.h"

namespace krait {

void check(const SsdSpec& spec) {
  require_size("nheads", spec.nheads);
  require_size("headdim", spec.headdim);
  require_size("d_state", spec.d_state);
  require_divisor("ngroups", spec.ngroups, "nheads", spec.nheads);
  if (spec.D != "none" && spec.D != "head" && spec.D != "channel") {
    throw UsageError("D", spec.D, "none, head, channel");
  }
  require_dt_limit(spec.dt_limit);
}

SsdResult ssd_core(const SsdCore& in, const Axis& n) {
  const ScanResult state = scan(time_axis(), in.log_decay, in.x * in.B * in.step,
                                {.initial = in.initial, .reset = in.starts});
  return {contract({state.leaving, in.C}, {n}), state.last};
}

void ssd(Scope& s, const SsdSpec& spec) {
  check(spec);
  const Axis b = batch_axis(), t = time_axis(), p("p", spec.headdim), n("n", spec.d_state);
  const HeadAxes heads(spec.nheads, spec.ngroups);
  const std::vector<Axis> wide{b, t, heads.h, p}, state_axes{b, heads.h, p, n};
  const Expr x = heads.split(s.input("x", wide));
  const Expr dt = heads.split(s.input("dt", {b, t, heads.h}));
  const Expr A = heads.split(s.param("A", {heads.h}, {Init::Kind::constant, -1}));
  const Expr B = s.input("B", {b, t, heads.g, n}), C = s.input("C", {b, t, heads.g, n});
  Expr bias, initial;
  if (spec.dt_bias) {
    bias = heads.split(s.param("dt_bias", {heads.h}, init_dt_bias()));
  }
  const Expr h0 = carried(s, spec.initial_state, "h0", "h", state_axes);
  if (h0.defined()) initial = heads.split(h0);
  const Expr starts = document_starts(document_input(s, spec.seq_idx));

  const auto [low, high] = spec.dt_limit;
  const Expr step = step_size(dt, bias, spec.dt_softplus, low, high).named("step");
  const auto [core, last] =
      ssd_core({x, step, nonpositive(step * A).named("log_decay"), B, C, initial, starts}, n);
  Expr y = core;
  if (spec.D == "head") y = y + heads.split(s.param("D", {heads.h}, init_one())) * x;
  if (spec.D == "channel") y = y + heads.split(s.param("D", {heads.h, p}, init_one())) * x;
  if (spec.z) y = y * silu(heads.split(s.input("z", wide)));
  s.output("y", heads.merge(y), {"b", "t", "h", "p"});
  leave(s, spec.initial_state, "h", heads.merge(last), state_axes);
}

}  // namespace krait
