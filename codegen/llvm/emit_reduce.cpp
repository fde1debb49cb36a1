// ReduceTile: vectors over points of the domain where some variable of it is contiguous, else over
// the reduced points with a fixed tree at the end.
#include <algorithm>
#include <limits>

#include "codegen/llvm/kernel_emitter.h"

namespace krait {

void KernelEmitter::emit(const ReduceTile& s) {
  std::vector<int> own = s.domain;
  own.insert(own.end(), s.reduced.begin(), s.reduced.end());
  std::vector<Operand> operands, destinations;
  for (const Access& access : s.operands) operands.push_back(operand(access, own));
  for (const Access& access : s.destinations) destinations.push_back(operand(access, own));
  std::vector<const Operand*> reads, writes, all;
  for (const Operand& read : operands) reads.push_back(&read), all.push_back(&read);
  for (const Operand& write : destinations) writes.push_back(&write), all.push_back(&write);
  const std::set<int> kept = checked_vars(all, &s.positions);
  Nest points = nest(s.domain), reduced = nest(s.reduced);
  merge(points, all, kept);
  merge(reduced, all, kept, true);

  const DType compute = computed_in(s.compute);
  const int width = target_.lanes(size_in_bytes(compute));
  const double work = work_of(s.results) + static_cast<double>(s.results.size());
  const bool sum = s.kind == ReduceTile::Kind::sum;
  std::vector<std::string> elements;
  for (const Operand& write : destinations)
    elements.push_back(write.dtype == DType::i32 ? "i32" : register_element(compute));

  auto start = [&](std::size_t i, int count) {
    const Val none =
        elements[i] == "i32"
            ? ir::i32(sum ? 0 : std::numeric_limits<std::int32_t>::min())
            : ir::real(elements[i], sum ? 0 : -std::numeric_limits<double>::infinity());
    return ir::splat_constant(none, count);
  };
  auto combine = [&](std::size_t i, const Val& a, const Val& b) {
    if (elements[i] == "i32") return sum ? b_.binary("add", a, b) : b_.intrinsic("smax", {a, b});
    return sum ? b_.binary("fadd", a, b) : extremum("fcmp ogt", a, b);
  };
  auto finish = [&](std::size_t i, const Lanes& lanes, Val total) {
    if (s.accumulate) {
      Val old = convert(load(destinations[i], lanes), elements[i], lanes.count);
      total = combine(i, old, total);
    }
    store(destinations[i], lanes, total);
  };
  auto round = [&](const Lanes& lanes, const std::vector<Val>& carried, std::size_t from) {
    std::vector<Val> values = evaluate(s.results, operands, s.positions, compute, lanes);
    std::vector<Val> next;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Val value = convert(values[i], elements[i], lanes.count);
      // Lanes past the end of a reduced variable count nothing.
      if (lanes.valid > 0 && reduced.extents.count(lanes.var) != 0)
        value = b_.select(ir::first_lanes(lanes.count, lanes.valid), value, start(i, lanes.count));
      next.push_back(combine(i, carried[from + i], value));
    }
    return next;
  };

  Nest both = points;
  both.vars.insert(both.vars.end(), reduced.vars.begin(), reduced.vars.end());
  both.extents.insert(reduced.extents.begin(), reduced.extents.end());
  int along = vector_variable(both, reads, {}, width, work);
  const std::size_t count = s.results.size();
  // Several chains at once hide the latency of an addition.
  const int group = work <= 12 ? 4 : work <= 40 ? 2 : 1;

  if (along < 0 || points.extents.count(along) != 0) {
    loops(points, outer_order(points, along, destinations[0]), [&] {
      vectors(points, along, width, group, [&](const std::vector<Lanes>& lanes) {
        std::vector<Val> initial;
        for (const Lanes& some : lanes)
          for (std::size_t i = 0; i < count; ++i) initial.push_back(start(i, some.count));
        const Val first = along >= 0 ? values_.at(along) : Val{};
        auto stand_at = [&](std::size_t g) {
          if (along >= 0)
            values_[along] = b_.add(first, ir::i64(static_cast<std::int64_t>(g) * width));
        };
        auto totals = carried_loops(reduced, reduced.vars, initial, [&](const auto& carried) {
          std::vector<Val> next;
          for (std::size_t g = 0; g < lanes.size(); ++g) {
            stand_at(g);
            auto some = round(lanes[g], carried, g * count);
            next.insert(next.end(), some.begin(), some.end());
          }
          return next;
        });
        for (std::size_t g = 0; g < lanes.size(); ++g) {
          stand_at(g);
          for (std::size_t i = 0; i < count; ++i) finish(i, lanes[g], totals[g * count + i]);
        }
        if (along >= 0) values_[along] = first;
      });
    });
    return;
  }

  std::vector<int> rest;
  for (int var : reduced.vars)
    if (var != along) rest.push_back(var);
  const std::int64_t whole = reduced.extent(along) / width;
  const int chains = static_cast<int>(std::clamp<std::int64_t>(whole, 1, group));
  loops(points, outer_order(points, -1, destinations[0]), [&] {
    std::vector<Val> initial;
    for (int g = 0; g < chains; ++g)
      for (std::size_t i = 0; i < count; ++i) initial.push_back(start(i, width));
    auto lanes_of = carried_loops(reduced, rest, initial, [&](std::vector<Val> carried) {
      std::int64_t done = 0;
      auto one = [&](const Lanes& lanes, const Val& position, int g, std::vector<Val>& values) {
        with(along, position, [&] {
          auto next = round(lanes, values, g * count);
          std::copy(next.begin(), next.end(),
                    values.begin() + static_cast<std::ptrdiff_t>(g * count));
        });
      };
      const std::int64_t step = static_cast<std::int64_t>(chains) * width;
      const std::int64_t end = whole * width / step * step;
      if (end > 0) {
        auto loop = b_.begin_loop(ir::i64(0), ir::i64(end), step, carried);
        std::vector<Val> values = loop.carried;
        for (int g = 0; g < chains; ++g)
          one(Lanes{width, along, 0}, b_.add(loop.index, ir::i64(g * width)), g, values);
        carried = b_.end_loop(loop, values);
        done = end;
      }
      for (int g = 0; done < reduced.extent(along); ++g, done += width) {
        const auto left = reduced.extent(along) - done;
        const int valid = left < width ? static_cast<int>(left) : 0;
        one(Lanes{width, along, valid}, ir::i64(done), g % chains, carried);
      }
      return carried;
    });
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<Val> parts;
      for (int g = 0; g < chains; ++g) parts.push_back(lanes_of[g * count + i]);
      for (; parts.size() > 1;) {
        std::vector<Val> next;
        for (std::size_t g = 0; g + 1 < parts.size(); g += 2)
          next.push_back(combine(i, parts[g], parts[g + 1]));
        if (parts.size() % 2 == 1) next.push_back(parts.back());
        parts = std::move(next);
      }
      // Halves on halves, down to one lane.
      Val all = parts[0];
      for (int half = width / 2; half >= 1; half /= 2) {
        std::vector<int> low, high;
        for (int lane = 0; lane < half; ++lane) low.push_back(lane), high.push_back(lane + half);
        all = combine(i, b_.shuffle(all, all, low), b_.shuffle(all, all, high));
      }
      finish(i, Lanes{}, b_.extract(all, 0));
    }
  });
}

}  // namespace krait
