#include "dsl/blocks/pieces.h"

#include "dsl/blocks/spec.h"

namespace krait {

HeadAxes::HeadAxes(std::int64_t heads, std::int64_t groups, const std::string& name)
    : h(name, heads), g("g", groups), j("j", heads / groups) {
  KRAIT_ASSERT(heads % groups == 0, heads, " heads in ", groups, " groups");
}

Expr split_channels(const Expr& x, const Axis& e, const HeadAxes& heads, const Axis& p) {
  return heads.split(split(x, e, heads.h, p));
}

Expr merge_channels(const Expr& x, const HeadAxes& heads, const Axis& p, const Axis& e) {
  return merge(heads.merge(x), heads.h, p, e);
}

Expr linear(const Expr& x, const Expr& weight, const Axis& in) {
  return contract({x, weight}, {in});
}

Expr carried(Scope& s, bool given, const std::string& in, const std::string& out,
             const std::vector<Axis>& axes) {
  return given ? s.state(in, out, axes) : Expr();
}

void leave(Scope& s, bool given, const std::string& out, const Expr& value,
           const std::vector<Axis>& axes) {
  if (given) {
    s.leave(out, value);
    return;
  }
  AxisNames order;
  for (const Axis& axis : axes) order.push_back(axis.name);
  s.output(out, value, order);
}

Expr Rows::next(const Axis& axis) {
  const Expr part = slice(all_, rows_, start_, axis);
  start_ += axis.extent.offset;
  return part;
}

Expr last_of(const Expr& x, const Axis& axis) {
  const Axis one("last", 1);
  return at(tail(x, axis, one), one, 0);
}

Expr document_input(Scope& s, bool given) {
  return given ? s.input("seq_idx", {batch_axis(), time_axis()}, DType::i32) : Expr();
}

Expr document_starts(const Expr& seq_idx) {
  if (!seq_idx.defined()) return {};
  const Axis t = time_axis();
  const Expr first = seq_idx.scope().index(t) == 0.0;
  return (!first && seq_idx != shift(seq_idx, t, 1)).named("starts");
}

Expr rms_normalize(const Expr& x, const std::vector<Axis>& axes, double eps) {
  return x * rsqrt(mean(square(x), axes) + eps);
}

Expr rms_norm(const Expr& x, const Expr& weight, const std::vector<Axis>& axes, double eps) {
  return rms_normalize(x, axes, eps) * weight;
}

Expr gated_rms_norm(const Expr& y, const Expr& z, const Expr& weight, const Axis& e,
                    const HeadAxes& heads, const Axis& p, std::int64_t group_size, double eps,
                    bool norm_before_gate) {
  const Expr x = norm_before_gate ? y : y * silu(z);
  const std::int64_t width = p.extent.offset, members = heads.j.extent.offset * width;
  const std::int64_t channels = e.extent.offset;
  std::vector<Axis> over;  // where a group of the norm is whole axes, nothing need be regrouped
  if (group_size == channels) {
    over = {heads.g, heads.j, p};
  } else if (group_size == members) {
    over = {heads.j, p};
  } else if (group_size == width) {
    over = {p};
  }
  if (!over.empty()) {
    const Expr normed = rms_norm(x, split_channels(weight, e, heads, p), over, eps);
    return merge_channels(norm_before_gate ? normed * silu(z) : normed, heads, p, e);
  }
  const Axis group("norm_group", channels / group_size), member("norm_member", group_size);
  const Expr grouped = split(merge_channels(x, heads, p, e), e, group, member);
  const Expr normed = merge(rms_normalize(grouped, {member}, eps), group, member, e) * weight;
  return norm_before_gate ? normed * silu(merge_channels(z, heads, p, e)) : normed;
}

namespace {

/// The last w inputs up to the window's end, zero where they belong to an earlier document.
Expr next_taps(const Expr& x, const Expr& past, const Running& documents, const Axis& channel,
               const Axis& w) {
  Scope& s = x.scope();
  const Axis t = time_axis();
  const Axis history("history", t.extent.plus(w.extent.offset));
  const Expr before = past.defined() ? past : s.constant(0, {batch_axis(), channel, w});
  const Expr latest = tail(concat({before, x}, {w, t}, history), history, w);
  if (!documents.values.defined()) return latest;
  const Expr same_before = broadcast(documents.last == 0.0, {w});
  const Expr same = concat({same_before, documents.values == documents.last}, {w, t}, history);
  return select(tail(same, history, w), latest, s.constant(0));
}

}  // namespace

Convolution causal_conv(const Expr& x, const Expr& weight, const Expr& bias, const Expr& past,
                        const Expr& starts, const Axis& channel, const Axis& w) {
  Scope& s = x.scope();
  const Axis t = time_axis();
  Running documents;
  if (starts.defined()) {
    documents = cumsum(t, starts);
  }
  const std::int64_t taps = w.extent.offset;
  Expr y;
  for (std::int64_t k = 0; k < taps; ++k) {
    const std::int64_t steps = taps - 1 - k;
    Expr value = x;
    if (steps > 0) {
      value = past.defined() ? shift(x, t, steps, past, w) : shift(x, t, steps);
      if (starts.defined()) {
        // What came before the window is of document 0.
        const Expr same = documents.values == shift(documents.values, t, steps);
        value = select(same, value, s.constant(0));
      }
    }
    const Expr term = value * at(weight, w, k);
    y = y.defined() ? y + term : term;
  }
  if (bias.defined()) y = y + bias;
  return {y, next_taps(x, past, documents, channel, w)};
}

Expr rotate(const Expr& x, const Expr& turns, const Axis& pair) {
  const Expr even = at(x, pair, 0), odd = at(x, pair, 1);
  const Expr cosine = cos_turns(turns), sine = sin_turns(turns);
  return select(x.scope().index(pair) == 0.0, even * cosine - odd * sine,
                even * sine + odd * cosine);
}

Expr step_size(const Expr& dt, const Expr& bias, bool with_softplus, double low, double high) {
  Expr step = bias.defined() ? dt + bias : dt;
  if (with_softplus) step = softplus(step);
  return low == 0 && high == kInfinity ? step : clamp(step, low, high);
}

}  // namespace krait
