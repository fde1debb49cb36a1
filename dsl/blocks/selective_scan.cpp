#include "dsl/blocks/selective_scan.h"

namespace krait {

void check(const SelectiveScanSpec& spec) {
  require_size("channels", spec.channels);
  require_size("d_state", spec.d_state);
  require_divisor("ngroups", spec.ngroups, "channels", spec.channels);
}

SelectiveResult selective_core(const SelectiveCore& in, const Axis& n) {
  const ScanResult state = scan(time_axis(), in.log_decay, in.u * in.B * in.step,
                                {.initial = in.initial, .reset = in.starts});
  return {contract({state.leaving, in.C}, {n}), state.last};
}

void selective_scan(Scope& s, const SelectiveScanSpec& spec) {
  check(spec);
  const Axis b = batch_axis(), t = time_axis(), n("n", spec.d_state);
  const HeadAxes heads(spec.channels, spec.ngroups, "d");
  const Axis d = heads.h;
  const Expr u = heads.split(s.input("u", {b, t, d}));
  const Expr delta = heads.split(s.input("delta", {b, t, d}));
  const Expr A = heads.split(s.param("A", {d, n}, {Init::Kind::constant, -1}));
  const auto coefficient = [&](const std::string& name, bool variable) {
    return variable ? s.input(name, {b, t, heads.g, n}) : heads.split(s.input(name, {d, n}));
  };
  const Expr B = coefficient("B", spec.is_variable_B), C = coefficient("C", spec.is_variable_C);
  Expr bias, initial;
  if (spec.delta_bias) bias = heads.split(s.param("delta_bias", {d}, init_dt_bias()));
  const Expr h0 = carried(s, spec.initial_state, "h0", "h", {b, d, n});
  if (h0.defined()) initial = heads.split(h0);
  const Expr starts = document_starts(document_input(s, spec.seq_idx));

  const Expr step = step_size(delta, bias, spec.delta_softplus, 0, kInfinity).named("step");
  const auto [core, last] =
      selective_core({u, step, nonpositive(step * A).named("log_decay"), B, C, initial, starts}, n);
  Expr y = core;
  if (spec.D) y = y + heads.split(s.param("D", {d}, init_one())) * u;
  if (spec.z) y = y * silu(heads.split(s.input("z", {b, t, d})));
  s.output("y", heads.merge(y), {"b", "t", "d"});
  leave(s, spec.initial_state, "h", heads.merge(last), {b, d, n});
}

}  // namespace krait
