#include "dsl/blocks/mamba3_scan.h"

namespace krait {

namespace {

void check_sizes(std::int64_t nheads, std::int64_t headdim, std::int64_t d_state,
                 std::int64_t ngroups, double rope_fraction) {
  require_size("nheads", nheads);
  require_size("headdim", headdim);
  require_divisor("ngroups", ngroups, "nheads", nheads);
  require_rope(rope_fraction, d_state);
}

/// What both scans read.
Mamba3Core read(Scope& s, const Mamba3Axes& x, bool with_D, bool documents) {
  const Axis h = x.heads.h;
  const auto keys = [&](const std::string& name) {
    const Expr m = x.several ? s.input(name, {x.b, x.t, x.r, x.heads.g, x.n})
                             : s.input(name, {x.b, x.t, x.heads.g, x.n});
    return x.pairs(m);
  };
  const auto bias = [&](const std::string& name) {
    const Expr m =
        x.several ? s.param(name, {h, x.r, x.n}, init_one()) : s.param(name, {h, x.n}, init_one());
    return x.pairs(x.heads.split(m));
  };
  const auto per_head = [&](const std::string& name) {
    return x.heads.split(s.input(name, {x.b, x.t, h}));
  };
  Mamba3Core in;
  in.q = keys("q");
  in.k = x.on_inputs(keys("k"));
  in.v = x.heads.split(s.input("v", {x.b, x.t, h, x.p}));
  in.log_decay = nonpositive(per_head("adt")).named("log_decay");
  in.dt = per_head("dt");
  in.trap = per_head("trap");
  in.q_bias = bias("q_bias");
  in.k_bias = x.on_inputs(bias("k_bias"));
  in.angles = x.heads.split(s.input("angles", {x.b, x.t, h, x.a}));
  if (with_D) in.D = x.heads.split(s.param("D", {h}, init_one()));
  in.starts = document_starts(document_input(s, documents));
  return in;
}

Expr read_gate(Scope& s, const Mamba3Axes& x) {
  return x.heads.split(s.input("z", {x.b, x.t, x.heads.h, x.p}));
}

}  // namespace

void check(const Mamba3ScanSpec& spec) {
  check_sizes(spec.nheads, spec.headdim, spec.d_state, spec.ngroups, spec.rope_fraction);
}

void check(const Mamba3MimoScanSpec& spec) {
  check_sizes(spec.nheads, spec.headdim, spec.d_state, spec.ngroups, spec.rope_fraction);
  require_size("mimo_rank", spec.mimo_rank);
  require_positive("eps", spec.eps);
}

void mamba3_scan(Scope& s, const Mamba3ScanSpec& spec) {
  check(spec);
  const Mamba3Axes x(spec.nheads, spec.headdim, spec.d_state, spec.ngroups,
                     rope_angles(spec.rope_fraction, spec.d_state), 0);
  const Mamba3Core in = read(s, x, spec.D, spec.seq_idx);
  Mamba3Finish finish;
  if (spec.z) finish.z = read_gate(s, x);
  const Expr y = mamba3_core(s, in, x, spec.initial_state);
  s.output("y", x.heads.merge(mamba3_finish(y, finish, x)), {"b", "t", "h", "p"});
}

void mamba3_mimo_scan(Scope& s, const Mamba3MimoScanSpec& spec) {
  check(spec);
  const Mamba3Axes x(spec.nheads, spec.headdim, spec.d_state, spec.ngroups,
                     rope_angles(spec.rope_fraction, spec.d_state), spec.mimo_rank);
  const Axis h = x.heads.h;
  const auto mix = [&](const std::string& name, double value) {
    return x.heads.split(s.param(name, {h, x.r, x.p}, {Init::Kind::constant, value}));
  };
  Mamba3Core in = read(s, x, spec.D, spec.seq_idx);
  in.mimo_x = mix("mimo_x", 1.0 / static_cast<double>(spec.mimo_rank));
  Mamba3Finish finish;
  finish.mimo_o = mix("mimo_o", 1.0 / static_cast<double>(spec.mimo_rank));
  finish.eps = spec.eps;
  if (spec.z) {
    finish.z = read_gate(s, x);
    finish.mimo_z = mix("mimo_z", 1);
  }
  if (spec.norm) finish.norm_weight = x.heads.split(s.param("norm_weight", {h, x.p}, init_one()));
  const Expr y = mamba3_core(s, in, x, spec.initial_state);
  s.output("y", x.heads.merge(mamba3_finish(y, finish, x)), {"b", "t", "h", "p"});
}

}  // namespace krait
