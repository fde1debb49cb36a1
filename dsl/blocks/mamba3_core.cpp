#include "dsl/blocks/mamba3_core.h"

#include <algorithm>
#include <numbers>

namespace krait {

Mamba3Axes::Mamba3Axes(std::int64_t nheads, std::int64_t headdim, std::int64_t d_state,
                       std::int64_t ngroups, std::int64_t angles, std::int64_t rank)
    : b(batch_axis()),
      t(time_axis()),
      p("p", headdim),
      n("n", d_state),
      i("i", d_state / 2),
      pair("pair", 2),
      a("a", angles),
      r("r", std::max<std::int64_t>(rank, 1)),
      s("s", std::max<std::int64_t>(rank, 1)),
      heads(nheads, ngroups),
      several(rank > 0) {}

namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

/// The states inside: angle (b, g, j, a) in turns, ssm (b, g, j, p, i, pair), k (b, g, j, i, pair)
/// with s where several, v (b, g, j, p). Undefined where the window starts from zero.
struct State {
  Expr angle, ssm, k, v;
};

std::vector<Axis> key_axes(const Mamba3Axes& x) {
  if (x.several) return {x.b, x.heads.h, x.r, x.n};
  return {x.b, x.heads.h, x.n};
}

State read_state(Scope& s, const Mamba3Axes& x) {
  const Axis h = x.heads.h;
  const auto take = [&](const std::string& name, const std::vector<Axis>& axes) {
    return x.heads.split(s.state(name, name, axes));
  };
  State state;
  state.angle = wrap(take("state.angle", {x.b, h, x.a}) / kTwoPi);
  state.ssm = x.pairs(take("state.ssm", {x.b, h, x.p, x.n}));
  state.k = x.pairs(x.on_inputs(take("state.k", key_axes(x))));
  state.v = take("state.v", {x.b, h, x.p});
  return state;
}

void leave_state(Scope& s, const State& state, const Mamba3Axes& x, bool given) {
  const Axis h = x.heads.h;
  const auto give = [&](const std::string& name, const Expr& value, const std::vector<Axis>& axes) {
    leave(s, given, name, x.heads.merge(value), axes);
  };
  const Expr key = x.merged(state.k);
  give("state.angle", (state.angle - floor(state.angle)) * kTwoPi, {x.b, h, x.a});
  give("state.ssm", x.merged(state.ssm), {x.b, h, x.p, x.n});
  give("state.k", x.several ? rename(key, x.s, x.r) : key, key_axes(x));
  give("state.v", state.v, {x.b, h, x.p});
}

/// v (outer) k times `scale`, summed over the inputs of a head.
Expr outer(const Expr& v, const Expr& k, const Expr& scale, const Expr& mimo_x,
           const Mamba3Axes& x) {
  if (!x.several) return v * k * scale;
  return contract({v, x.on_inputs(mimo_x), k, scale}, {x.s});
}

}  // namespace

Expr mamba3_core(Scope& s, const Mamba3Core& in, const Mamba3Axes& x, bool initial_state) {
  const State before = initial_state ? read_state(s, x) : State();
  State after;

  // Angles in turns; the channels past the last angle stay as they are.
  RunningOptions running;
  running.initial = before.angle;
  running.reset = in.starts;
  running.wrap = true;
  const Running angle = cumsum(x.t, tanh(in.angles) * in.dt * 0.5, running);
  after.angle = angle.last;
  const std::int64_t rest = x.i.extent.offset - x.a.extent.offset;
  const Axis still("still", std::max<std::int64_t>(rest, 1));
  Expr turns;
  if (rest == 0) {
    turns = rename(angle.values, x.a, x.i);
  } else {
    const Expr zero = s.constant(0, {x.b, x.t, x.heads.g, x.heads.j, still});
    turns = concat({angle.values, zero}, {x.a, still}, x.i);
  }
  turns.named("turns");
  const Expr q = rotate(in.q + in.q_bias, turns, x.pair).named("q");
  const Expr k = rotate(in.k + in.k_bias, turns, x.pair).named("k");
  after.k = last_of(k, x.t);
  after.v = last_of(in.v, x.t);

  const Expr lam = sigmoid(in.trap);
  const Expr behind = (1.0 - lam) * in.dt;  // what a step gives to the one before it
  // A document's end needs no care: y takes `ahead` back out, and the reset drops the rest.
  const Expr ahead = shift(behind, x.t, -1);
  Expr initial;
  if (initial_state) {
    initial = before.ssm + outer(before.v, before.k, at(behind, x.t, 0), in.mimo_x, x);
  }
  const Expr scale = (lam * in.dt + ahead).named("scale");
  const ScanResult state = scan(x.t, in.log_decay, outer(in.v, k, scale, in.mimo_x, x),
                                {.initial = initial, .reset = in.starts});
  after.ssm = state.last;
  leave_state(s, after, x, initial_state);

  const Expr scores = contract({q, k}, {x.i, x.pair});
  Expr y = contract({state.leaving, q}, {x.i, x.pair});
  if (!x.several) {
    y = y - ahead * scores * in.v;
    return in.D.defined() ? y + in.D * in.v : y;
  }
  y = y - contract({scores, x.on_inputs(in.mimo_x)}, {x.s}) * ahead * in.v;
  return in.D.defined() ? y + in.D * in.v * in.mimo_x : y;
}

Expr mamba3_finish(const Expr& y, const Mamba3Finish& in, const Mamba3Axes& x) {
  Expr out = y;
  if (in.norm_weight.defined()) out = rms_norm(out, in.norm_weight, {x.p}, in.eps);
  if (in.z.defined()) out = out * silu(in.mimo_z.defined() ? in.z * in.mimo_z : in.z);
  return in.mimo_o.defined() ? contract({in.mimo_o, out}, {x.r}) : out;
}

}  // namespace krait
