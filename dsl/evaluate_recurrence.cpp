// Cumsum, Scan and Gap: plain recurrences, a step of the axis at a time.
#include <algorithm>

#include "dsl/evaluate_ops.h"

namespace krait::evaluation {
namespace {

// Where an array stands at each step of the axis that runs.
struct Steps {
  const Array& array;
  std::int64_t stride;
  Dims strides;  // over the axes of the carried value
  Steps(const Array& x, const std::string& axis, const AxisNames& carried)
      : array(x), stride(x.stride(axis)), strides(x.strides(carried)) {}
  double* at(std::int64_t t) const { return array.begin() + t * stride; }
};

/// Part number `number` of the axis that runs: positions begin .. end - 1.
struct Part {
  const std::string& axis;  // along which the parts are counted; empty where there is one
  std::int64_t number, begin, end;
};

/// Calls body(part) for each.
template <typename Body>
void for_each_part(const Space& space, const std::string& axis, const std::string& parts,
                   Body body) {
  const std::int64_t size = space.size(axis), count = parts.empty() ? 1 : space.size(parts);
  const std::int64_t each = (size + count - 1) / count;
  for (std::int64_t i = 0; i < count; ++i)
    body(Part{parts, i, std::min(i * each, size), std::min((i + 1) * each, size)});
}

Array initial_of(const Call& call, bool has_initial, std::size_t number, const AxisNames& carried,
                 const Part& part) {
  Array start = filled(call.space, carried, 0);
  if (!has_initial) return start;
  const Array& given = call.operands[number];
  copy_block(start.shape, start.begin(), start.strides(carried),
             given.begin() + part.number * given.stride(part.axis), given.strides(carried));
  return start;
}

/// What a part leaves, kept in its place.
void keep_last(const Array& last, const Array& carried, const Part& part) {
  copy_block(carried.shape, last.begin() + part.number * last.stride(part.axis),
             last.strides(carried.axes), carried.begin(), carried.strides(carried.axes));
}

}  // namespace

std::vector<Array> run(const Cumsum& op, Call& call) {
  const AxisNames carried_axes = without(call.axes(1), {op.parts});
  const std::int64_t size = call.space.size(op.axis);
  const Array reset = op.has_reset ? call.operands[op.has_initial ? 2 : 1] : scalar_array(0);
  const auto kept = [&](double x) { return op.wrap ? apply_scalar(ScalarOp::wrap, x, 0, 0) : x; };
  Array out = make_array(call.space, call.axes(0)), last = make_array(call.space, call.axes(1));
  const Steps x(call.operands[0], op.axis, carried_axes), to(out, op.axis, carried_axes),
      resets(reset, op.axis, carried_axes);
  const bool looks_ahead = op.reverse && !op.late;
  for_each_part(call.space, op.axis, op.parts, [&](const Part& part) {
    Array carried = initial_of(call, op.has_initial, 1, carried_axes, part);
    for (std::int64_t i = 0; i < carried.count(); ++i) carried.data[i] = kept(carried.data[i]);
    for (std::int64_t i = part.begin; i < part.end; ++i) {
      const std::int64_t t = op.reverse ? part.begin + part.end - 1 - i : i;
      // What separates t from the step before it, in the direction of the run.
      const bool separable = op.has_reset && (!looks_ahead || t + 1 < size);
      const double* separates = resets.at(!separable ? 0 : looks_ahead ? t + 1 : t);
      for_each_row<4>(carried.shape,
                      {carried.strides(carried_axes), to.strides, x.strides, resets.strides},
                      [&](const auto& at, std::int64_t n, const auto& step) {
                        double* value = carried.begin() + at[0];
                        for (std::int64_t k = 0; k < n; ++k, value += step[0]) {
                          const double entering = *value;
                          const bool cut = separable && separates[at[3] + k * step[3]] != 0;
                          *value = kept((cut ? 0 : entering) + x.at(t)[at[2] + k * step[2]]);
                          to.at(t)[at[1] + k * step[1]] = op.exclusive ? entering : *value;
                        }
                      });
    }
    keep_last(last, carried, part);
  });
  return {out, last};
}

std::vector<Array> run(const Scan& op, Call& call) {
  const AxisNames carried_axes = without(call.axes(2), {op.parts});
  const AxisNames decay_axes = call.operands[0].axes;
  const Array decay = apply(call.space, ScalarOp::exp, decay_axes, std::move(call.operands[0]),
                            scalar_array(0), scalar_array(0));
  const Array reset = op.has_reset ? call.operands[op.has_initial ? 3 : 2] : scalar_array(0);
  // A trajectory that nothing reads goes to one and the same place, a step at a time.
  const auto trajectory = [&](int result) {
    return make_array(call.space, call.wanted[result] ? call.axes(result) : carried_axes);
  };
  Array entering = trajectory(0), leaving = trajectory(1);
  Array last = make_array(call.space, call.axes(2));
  const Steps decays(decay, op.axis, carried_axes), u(call.operands[1], op.axis, carried_axes),
      resets(reset, op.axis, carried_axes), enters(entering, op.axis, carried_axes),
      leaves(leaving, op.axis, carried_axes);
  for_each_part(call.space, op.axis, op.parts, [&](const Part& part) {
    Array carried = initial_of(call, op.has_initial, 2, carried_axes, part);
    for (std::int64_t i = part.begin; i < part.end; ++i) {
      const std::int64_t t = op.reverse ? part.begin + part.end - 1 - i : i;
      for_each_row<6>(carried.shape,
                      {carried.strides(carried_axes), decays.strides, u.strides, resets.strides,
                       enters.strides, leaves.strides},
                      [&](const auto& at, std::int64_t n, const auto& step) {
                        double* value = carried.begin() + at[0];
                        const double *d = decays.at(t) + at[1], *in = u.at(t) + at[2],
                                     *cut = resets.at(t) + at[3];
                        double *enter = enters.at(t) + at[4], *leave = leaves.at(t) + at[5];
                        for (std::int64_t k = 0; k < n; ++k) {
                          *enter = *value;
                          if (op.reverse && !op.late) {
                            *leave = *value + *in;
                            *value = *cut != 0 ? 0 : *d * *leave;
                          } else {
                            *leave = (*cut != 0 ? 0 : *d * *value) + *in;
                            *value = *leave;
                          }
                          value += step[0], d += step[1], in += step[2], cut += step[3],
                              enter += step[4], leave += step[5];
                        }
                      });
    }
    keep_last(last, carried, part);
  });
  return {entering, leaving, last};
}

std::vector<Array> run(const PairSum& op, Call& call) {
  // In float64 the low part is what a float32 sum would lose and float64 does not.
  const Array& a = call.operands[0];
  Array high = filled(call.space, call.axes(), 0), low = filled(call.space, call.axes(), 0);
  const AxisNames rest = without(a.axes, {op.axis});
  const std::int64_t size = call.space.size(op.axis);
  const std::int64_t to_step = high.stride(op.axis), from_step = a.stride(op.axis);
  for_each_row<2>(call.space.shape(rest), {high.strides(rest), a.strides(rest)},
                  [&](const auto& at, std::int64_t length, const auto& steps) {
                    for (std::int64_t i = 0; i < length; ++i) {
                      double* to = high.begin() + at[0] + i * steps[0];
                      const double* from = a.begin() + at[1] + i * steps[1];
                      double sum = 0;
                      for (std::int64_t q = 0; q < size; ++q)
                        to[q * to_step] = sum += from[q * from_step];
                    }
                  });
  return {high, low};
}

Array run(const Gap& op, Call& call) {
  const Array& a = call.operands[0];
  const AxisNames rest = without(a.axes, {op.axis});
  const Dims rest_shape = call.space.shape(rest);
  const std::int64_t size = call.space.size(op.axis), step = a.stride(op.axis);
  Array out = filled(call.space, call.axes(), 0);
  const std::int64_t later = out.stride(op.axis), earlier = out.stride(op.other);
  for_each_row<2>(rest_shape, {out.strides(rest), a.strides(rest)},
                  [&](const auto& at, std::int64_t length, const auto& steps) {
                    for (std::int64_t i = 0; i < length; ++i) {
                      double* to = out.begin() + at[0] + i * steps[0];
                      const double* from = a.begin() + at[1] + i * steps[1];
                      double sum = 0;
                      switch (op.kind) {
                        case Gap::Kind::between:
                          for (std::int64_t k = 0; k < size; ++k) {
                            sum = 0;
                            for (std::int64_t q = k + 1; q < size; ++q) {
                              sum += from[q * step];
                              to[q * later + k * earlier] = sum;
                            }
                          }
                          break;
                        case Gap::Kind::from_start:
                          for (std::int64_t q = 0; q < size; ++q)
                            to[q * later] = sum += from[q * step];
                          break;
                        case Gap::Kind::to_end:
                          for (std::int64_t q = size - 1; q >= 0; --q) {
                            to[q * later] = sum;
                            sum += from[q * step];
                          }
                          break;
                        case Gap::Kind::total:
                          for (std::int64_t q = 0; q < size; ++q) sum += from[q * step];
                          *to = sum;
                          break;
                      }
                    }
                  });
  return out;
}

}  // namespace krait::evaluation
