// Ops that only move elements: Shift, Gather, ScatterSum, Split, Merge, Slice, Concat, Rename.
#include <algorithm>
#include <cmath>

#include "dsl/error.h"
#include "dsl/evaluate_ops.h"

namespace krait::evaluation {
namespace {

AxisNames with(AxisNames axes, const std::string& axis) {
  axes.push_back(axis);
  return axes;
}

Dims with(Dims sizes, std::int64_t size) {
  sizes.push_back(size);
  return sizes;
}

// The row that an index names, checked against the rows that there are.
std::int64_t row_of(double index, std::int64_t rows, const Call& call, const std::string& axis) {
  if (!(index >= 0 && index < static_cast<double>(rows)))
    throw UsageError("index " + call.operand_label(1) + " along " + axis, text(index),
                     text("0 to ", rows - 1));
  return static_cast<std::int64_t>(index);
}

}  // namespace

Array run(const Shift& op, Call& call) {
  const Array& x = call.operands[0];
  const std::int64_t size = call.space.size(op.axis);
  Array out = filled(call.space, call.axes(), op.fill);
  const AxisNames rest = without(out.axes, {op.axis}), all = with(rest, op.axis);
  const Dims rest_shape = call.space.shape(rest), to = out.strides(all);
  const std::int64_t kept = size - std::abs(op.steps);
  if (kept > 0) {
    const std::int64_t first = std::max<std::int64_t>(op.steps, 0);
    copy_block(with(rest_shape, kept), out.begin() + first * out.stride(op.axis), to,
               x.begin() + (first - op.steps) * x.stride(op.axis), x.strides(all));
  }
  if (op.has_state) {
    // Position t - steps, which is before the window, is element K + t - steps of the state.
    const Array& state = call.operands[1];
    const std::int64_t held = call.space.size(op.state_axis);
    copy_block(with(rest_shape, std::min(size, op.steps)), out.begin(), to,
               state.begin() + (held - op.steps) * state.stride(op.state_axis),
               state.strides(with(rest, op.state_axis)));
  }
  return out;
}

Array run(const Gather& op, Call& call) {
  const Array &table = call.operands[0], &index = call.operands[1];
  const std::int64_t rows = call.space.size(op.axis), stride = table.stride(op.axis);
  Array out = make_array(call.space, call.axes());
  for_each_row<3>(
      out.shape, {out.strides(out.axes), table.strides(out.axes), index.strides(out.axes)},
      [&](const auto& at, std::int64_t length, const auto& step) {
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t picked = row_of(index.data[at[2] + i * step[2]], rows, call, op.axis);
          out.data[at[0] + i * step[0]] = table.data[at[1] + i * step[1] + picked * stride];
        }
      });
  return out;
}

Array run(const ScatterSum& op, Call& call) {
  const Array &x = call.operands[0], &index = call.operands[1];
  Array out = filled(call.space, call.axes(), 0);
  const std::int64_t rows = call.space.size(op.axis), stride = out.stride(op.axis);
  AxisNames read = x.axes;
  read.insert(read.end(), index.axes.begin(), index.axes.end());
  read = call.space.graph().sorted(std::move(read));
  for_each_row<3>(
      call.space.shape(read), {out.strides(read), x.strides(read), index.strides(read)},
      [&](const auto& at, std::int64_t length, const auto& step) {
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t picked = row_of(index.data[at[2] + i * step[2]], rows, call, op.axis);
          out.data[at[0] + i * step[0] + picked * stride] += x.data[at[1] + i * step[1]];
        }
      });
  return out;
}

Array run(const Split& op, Call& call) {
  const Array& x = call.operands[0];
  const std::int64_t size = call.space.size(op.axis), inner = call.space.size(op.inner);
  Array out = filled(call.space, call.axes(), 0);
  const AxisNames rest = without(x.axes, {op.axis});
  const Dims rest_shape = call.space.shape(rest), to = out.strides(with(rest, op.inner)),
             from = x.strides(with(rest, op.axis));
  for (std::int64_t start = 0, o = 0; start < size; start += inner, ++o)
    copy_block(with(rest_shape, std::min(inner, size - start)),
               out.begin() + o * out.stride(op.outer), to, x.begin() + start * x.stride(op.axis),
               from);
  return out;
}

Array run(const Merge& op, Call& call) {
  const Array& x = call.operands[0];
  const std::int64_t size = call.space.size(op.axis), inner = call.space.size(op.inner);
  const std::int64_t outer = call.space.size(op.outer);
  KRAIT_REQUIRE(size <= outer * inner, "Merge: axis ", op.axis, " has size ", size,
                " with these inputs; allowed: at most ", outer * inner, ", which is ", op.outer,
                " times ", op.inner);
  Array out = make_array(call.space, call.axes());
  const AxisNames rest = without(out.axes, {op.axis});
  const Dims rest_shape = call.space.shape(rest), to = out.strides(with(rest, op.axis)),
             from = x.strides(with(rest, op.inner));
  for (std::int64_t start = 0, o = 0; start < size; start += inner, ++o)
    copy_block(with(rest_shape, std::min(inner, size - start)),
               out.begin() + start * out.stride(op.axis), to, x.begin() + o * x.stride(op.outer),
               from);
  return out;
}

Array run(const Slice& op, Call& call) {
  const Array& x = call.operands[0];
  const std::int64_t size = call.space.size(op.axis);
  const std::int64_t count = op.result.empty() ? 1 : call.space.size(op.result);
  const std::int64_t start = op.from_end ? size - op.start : op.start;
  KRAIT_REQUIRE(start >= 0 && start + count <= size, "Slice: positions ", start, " to ",
                start + count - 1, " along axis ", op.axis, " of ", call.operand_label(0),
                "; allowed: 0 to ", size - 1);
  Array out = make_array(call.space, call.axes());
  const AxisNames rest = without(x.axes, {op.axis});
  copy_block(with(call.space.shape(rest), count), out.begin(), out.strides(with(rest, op.result)),
             x.begin() + start * x.stride(op.axis), x.strides(with(rest, op.axis)));
  return out;
}

Array run(const Concat& op, Call& call) {
  Array out = make_array(call.space, call.axes());
  const AxisNames rest = without(out.axes, {op.result});
  const Dims rest_shape = call.space.shape(rest), to = out.strides(with(rest, op.result));
  std::int64_t start = 0, total = call.space.size(op.result);
  for (std::size_t i = 0; i < op.axes.size(); ++i) {
    const Array& x = call.operands[i];
    const std::int64_t size = call.space.size(op.axes[i]);
    KRAIT_ASSERT(start + size <= total, "the parts of ", op.result, " are longer than it");
    copy_block(with(rest_shape, size), out.begin() + start * out.stride(op.result), to, x.begin(),
               x.strides(with(rest, op.axes[i])));
    start += size;
  }
  KRAIT_ASSERT(start == total, "the parts of ", op.result, " are shorter than it");
  return out;
}

Array run(const Rename& op, Call& call) {
  Array x = std::move(call.operands[0]);
  std::replace(x.axes.begin(), x.axes.end(), op.from, op.to);
  return arranged(call.space, x, call.axes());
}

}  // namespace krait::evaluation
