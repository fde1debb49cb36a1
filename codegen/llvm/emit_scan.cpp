// ScanTile: the scanned variable is a serial loop; vectors run over a variable of the domain.
#include "codegen/llvm/kernel_emitter.h"

namespace krait {

void KernelEmitter::emit(const ScanTile& s) {
  std::vector<int> own = s.domain;
  own.push_back(s.along);
  auto optional = [&](const Access& access) {
    return access.buffer >= 0 ? std::optional(operand(access, own)) : std::nullopt;
  };
  const Operand source = operand(s.source, own);
  const auto initial = optional(s.initial), reset = optional(s.reset),
             destination = optional(s.destination), low = optional(s.low), last = optional(s.last);
  std::vector<const Operand*> reads{&source}, writes, all;
  if (reset) reads.push_back(&*reset);
  if (destination) writes.push_back(&*destination);
  if (low) writes.push_back(&*low);
  all = reads;
  all.insert(all.end(), writes.begin(), writes.end());
  if (initial) all.push_back(&*initial);
  if (last) all.push_back(&*last);

  const DType kept = destination ? destination->dtype : last ? last->dtype : source.dtype;
  const bool wide = kept == DType::f64 || source.dtype == DType::f64;
  const bool integer = kept == DType::i32 && source.dtype == DType::i32;
  const std::string element = integer ? "i32" : wide ? "double" : "float";
  const int width = target_.lanes(wide ? 8 : 4);

  Nest points = nest(s.domain);
  merge(points, all, checked_vars(all, nullptr));
  const int along = vector_variable(points, reads, writes, width, s.pair ? 12 : s.wrap ? 4 : 1);
  const std::int64_t steps = program_.vars[s.along].extent.offset;
  loops(points, outer_order(points, along, source), [&] {
    vectors(points, along, width, 1, [&](const std::vector<Lanes>& some) {
      const Lanes& lanes = some[0];
      const Val zero = ir::zero(ir::vector_type(element, lanes.count));
      Val start = zero;
      if (initial) {
        // The scanned variable does not occur in it.
        start = convert(load(*initial, lanes), element, lanes.count);
      }
      std::vector<Val> carried{start};
      if (s.pair) carried.push_back(zero);
      auto loop = b_.begin_loop(ir::i64(0), ir::i64(steps), 1, carried);
      Val position = s.reverse ? b_.sub(ir::i64(steps - 1), loop.index) : loop.index;
      std::vector<Val> value = loop.carried;
      auto keep = [&] {
        if (destination) store(*destination, lanes, value[0]);
        if (low) store(*low, lanes, value[1]);
      };
      with(s.along, position, [&] {
        auto cut = [&] {
          if (!reset) return;
          Val set = b_.compare("icmp ne", load(*reset, lanes),
                               ir::zero(ir::vector_type("i32", lanes.count)));
          for (Val& part : value) part = b_.select(set, zero, part);
        };
        if (s.exclusive) keep();
        if (!s.reverse) cut();
        Val x = convert(load(source, lanes), element, lanes.count);
        if (integer) {
          value[0] = b_.binary("add", value[0], x);
        } else if (s.pair) {
          value = add_to_pair(value[0], value[1], x);
        } else {
          value[0] = b_.binary("fadd", value[0], x);
        }
        if (s.wrap) {
          // Off by a whole number: the low part of a pair stays.
          const Val half = ir::splat_constant(ir::real(element, 0.5), lanes.count);
          Val turns = b_.intrinsic("floor", {b_.binary("fadd", value[0], half)});
          value[0] = b_.binary("fsub", value[0], turns);
        }
        if (!s.exclusive) keep();
        if (s.reverse) cut();
      });
      auto end = b_.end_loop(loop, value);
      if (last) store(*last, lanes, end[0]);
    });
  });
}

std::vector<Val> KernelEmitter::add_to_pair(const Val& high, const Val& low, const Val& x) {
  // The sum and its error (Knuth's TwoSum), the error joined with the low part, and both brought
  // back to a pair whose low part is at most half a last place of the high one.
  auto add = [&](const Val& a, const Val& b) { return b_.binary("fadd", a, b); };
  auto sub = [&](const Val& a, const Val& b) { return b_.binary("fsub", a, b); };
  Val sum = add(high, x);
  Val part = sub(sum, high);
  Val error = add(sub(high, sub(sum, part)), sub(x, part));
  Val rest = add(low, error);
  Val top = add(sum, rest);
  return {top, sub(rest, sub(top, sum))};
}

}  // namespace krait
