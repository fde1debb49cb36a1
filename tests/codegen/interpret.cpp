#include "tests/codegen/interpret.h"

#include <bit>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <stdexcept>

#include "codegen/tile/access.h"

namespace krait::test {
namespace {

float nearest_bf16(float value) {
  if (std::isnan(value)) return value;
  auto bits = std::bit_cast<std::uint32_t>(value);
  bits += 0x7fff + ((bits >> 16) & 1);
  return std::bit_cast<float>(bits & 0xffff0000u);
}

class Machine {
 public:
  Machine(const TileProgram& program, World& world, bool round)
      : program_(program), world_(world), round_(round), arguments_(world.arguments(program)) {}

  void run() {
    values_.assign(program_.vars.size(), 0);
    for (std::size_t v = 0; v < program_.vars.size(); ++v)
      if (program_.vars[v].kind == VarKind::size) values_[v] = size(program_.vars[v].extent);
    over(program_.grid, [&] {
      scratch_.clear();
      issued_.clear();
      groups_.clear();
      body(program_.body);
    });
  }

 private:
  std::int64_t size(const Extent& extent) const { return extent.value(world_.sizes); }

  void over(const std::vector<int>& vars, const std::function<void()>& f, std::size_t from = 0) {
    if (from == vars.size()) return f();
    for (std::int64_t i = 0; i < size(program_.vars[vars[from]].extent); ++i) {
      values_[vars[from]] = i;
      set_digits(vars[from]);
      over(vars, f, from + 1);
    }
  }

  void set_digits(int var) {
    for (int digit : program_.digits_of(var)) {
      const Var& number = program_.vars[digit];
      const std::int64_t last = size(program_.vars[var].extent) - 1;
      const std::int64_t at = number.reverse ? last - values_[var] : values_[var];
      values_[digit] = number.rest ? at % number.base : at / number.base;
    }
  }

  std::int64_t value(const Index& index) const {
    std::int64_t sum = index.constant;
    for (const auto& term : index.terms) sum += term.factor * values_[term.var];
    return sum;
  }

  bool inside(const Access& access) const {
    for (int dim : access.guarded) {
      const std::int64_t i = value(access.index[dim]);
      if (i < 0 || i >= size(program_.buffers[access.buffer].dims[dim].extent)) return false;
    }
    return true;
  }

  struct Place {
    int memory;  // of scratch; -1 - pointer of global memory
    std::int64_t at;
  };

  Place place_of(const Access& access) const {
    int number = access.buffer;
    const Buffer& buffer = program_.buffers[number];
    std::int64_t at = 0;
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      const std::int64_t i = value(access.index[d]);
      if (i < 0 || i >= size(buffer.dims[d].extent))
        throw std::runtime_error("interpreter: " + buffer.name + " is left");
      const Stride& stride = buffer.dims[d].stride;
      at += i * (stride.is_constant() ? stride.constant : arguments_.at(stride.argument));
    }
    if (buffer.space == Space::global) return {-1 - buffer.pointer, at};
    while (program_.buffers[number].alias_of >= 0) {
      at += program_.buffers[number].alias_offset;
      number = program_.buffers[number].alias_of;
    }
    const Buffer& root = program_.buffers[number];
    if (root.stages > 1)
      at += values_[root.stage_var] % root.stages * (slot_bytes(root) / size_in_bytes(root.dtype));
    return {number, at};
  }

  double& place_in(const Place& place) {
    if (place.memory < 0) return world_.pointers.at(-1 - place.memory).at(place.at);
    auto& memory = scratch_[place.memory];
    if (static_cast<std::int64_t>(memory.size()) <= place.at)
      memory.resize(place.at + 1, std::numeric_limits<double>::quiet_NaN());
    return memory[place.at];
  }

  double& element(const Access& access) { return place_in(place_of(access)); }

  double read(const Access& access, double fill = 0) {
    return inside(access) ? element(access) : fill;
  }
  void write(const Access& access, double x) {
    if (!inside(access)) return;
    const DType dtype = program_.buffers[access.buffer].dtype;
    element(access) = round_ ? rounded(x, dtype) : dtype == DType::i32 ? std::trunc(x) : x;
  }

  double expression(const Scalar& scalar, const std::vector<double>& operands,
                    const std::vector<std::pair<std::string, Index>>& positions) const {
    std::vector<double> made;
    for (const ScalarNode& node : scalar.nodes()) {
      auto arg = [&](int i) { return node.args[i] < 0 ? 0.0 : made[node.args[i]]; };
      switch (node.op) {
        case ScalarOp::constant: made.push_back(node.value); break;
        case ScalarOp::operand: made.push_back(operands[node.operand]); break;
        case ScalarOp::extent: made.push_back(static_cast<double>(size(node.extent))); break;
        case ScalarOp::index:
          for (const auto& [axis, index] : positions)
            if (axis == node.axis) made.push_back(static_cast<double>(value(index)));
          break;
        default: made.push_back(apply_scalar(node.op, arg(0), arg(1), arg(2)));
      }
    }
    return made.back();
  }

  void body(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements)
      std::visit([&](const auto& s) { run(s); }, statement);
  }

  struct Turns {
    std::int64_t from, to;
  };
  template <typename S>  // For or Prefetch
  Turns turns_of(const S& s) const {
    std::int64_t from = 0, to = size(program_.vars[s.var].extent);
    if (s.block_var >= 0) {
      const std::int64_t each = (to + s.blocks - 1) / s.blocks;
      from = values_[s.block_var] * each;
      to = std::min(to, from + each);
    }
    return {from, to};
  }

  void run(const For& s) {
    auto [from, to] = turns_of(s);
    if (s.until >= 0) {
      const std::int64_t at = s.reverse ? to - 1 - values_[s.until] : values_[s.until];
      const std::int64_t start = at / s.run * s.run;
      from = s.reverse ? values_[s.until] + 1 : start;
      to = s.reverse ? to - start : values_[s.until];
    }
    for (std::int64_t i = from; i < to; ++i) {
      values_[s.var] = s.reverse ? to - 1 - (i - from) : i;
      set_digits(s.var);
      body(s.body);
    }
  }

  void run(const Copy& s) {
    over(s.domain, [&] {
      if (s.keep && !inside(s.source)) return;
      if (s.asynchronous) {
        issued_.push_back({place_of(s.destination), read(s.source, s.fill)});
        return;
      }
      write(s.destination, read(s.source, s.fill));
    });
  }
  void run(const Fill& s) {
    over(s.domain, [&] { write(s.destination, s.value); });
  }
  void run(const Barrier&) {}

  // Asynchronous copies read at once and land as late as they may: by their wait.
  void run(const Prefetch& s) {
    const Turns turns = turns_of(s);
    const std::int64_t now = values_[s.var];
    const std::int64_t next =
        s.first ? (s.reverse ? turns.to - 1 : turns.from) : now + (s.reverse ? -1 : 1);
    if (next < turns.from || next >= turns.to) return;
    values_[s.var] = next;
    body(s.body);
    values_[s.var] = now;
  }
  void run(const Commit&) {
    groups_.push_back(std::move(issued_));
    issued_.clear();
  }
  void run(const Wait& s) {
    for (; groups_.size() > static_cast<std::size_t>(s.pending); groups_.pop_front())
      for (const auto& [place, x] : groups_.front()) place_in(place) = x;
  }

  void run(const Mma& s) {
    std::vector<int> outer = s.batch;
    outer.insert(outer.end(), s.rows.begin(), s.rows.end());
    outer.insert(outer.end(), s.columns.begin(), s.columns.end());
    over(outer, [&] {
      double sum = 0;
      over(s.sum, [&] { sum += read(s.left) * read(s.right); });
      write(s.destination, s.accumulate ? read(s.destination) + sum : sum);
    });
  }

  void run(const MapTile& s) {
    over(s.domain, [&] {
      std::vector<double> operands, results;
      for (const Access& access : s.operands) operands.push_back(read(access));
      for (const Scalar& result : s.results)
        results.push_back(expression(result, operands, s.positions));
      for (std::size_t i = 0; i < results.size(); ++i) write(s.destinations[i], results[i]);
    });
  }

  void run(const ReduceTile& s) {
    const bool sum = s.kind == ReduceTile::Kind::sum;
    over(s.domain, [&] {
      for (std::size_t i = 0; i < s.results.size(); ++i) {
        double total = sum ? 0 : -std::numeric_limits<double>::infinity();
        over(s.reduced, [&] {
          std::vector<double> operands;
          for (const Access& access : s.operands) operands.push_back(read(access));
          const double x = expression(s.results[i], operands, s.positions);
          total = sum ? total + x : std::max(total, x);
        });
        if (s.accumulate) {
          const double old = read(s.destinations[i]);
          total = sum ? old + total : std::max(old, total);
        }
        write(s.destinations[i], total);
      }
    });
  }

  void run(const ScanTile& s) {
    const std::int64_t count = size(program_.vars[s.along].extent);
    over(s.domain, [&] {
      double x = s.initial.buffer >= 0 ? read(s.initial) : 0;
      auto keep = [&] {
        const double high = rounded(x, DType::f32);
        if (s.destination.buffer >= 0) write(s.destination, s.pair ? high : x);
        if (s.low.buffer >= 0) write(s.low, x - high);
      };
      for (std::int64_t i = 0; i < count; ++i) {
        values_[s.along] = s.reverse ? count - 1 - i : i;
        const bool cut = s.reset.buffer >= 0 && read(s.reset) != 0;
        if (s.exclusive) keep();
        if (!s.reverse && cut) x = 0;
        x += read(s.source);
        if (s.wrap) x -= std::floor(x + 0.5);
        if (!s.exclusive) keep();
        if (s.reverse && cut) x = 0;
      }
      if (s.last.buffer >= 0) write(s.last, x);
    });
  }

  const TileProgram& program_;
  World& world_;
  const bool round_;
  std::vector<std::int64_t> arguments_, values_;
  std::map<int, std::vector<double>> scratch_;
  using Copied = std::vector<std::pair<Place, double>>;
  Copied issued_;
  std::deque<Copied> groups_;
};

}  // namespace

std::vector<std::int64_t> World::arguments(const TileProgram& program) const {
  std::vector<std::int64_t> values;
  for (const auto& argument : program.arguments)
    values.push_back(argument.kind == TileProgram::Argument::Kind::size
                         ? sizes.at(argument.symbol)
                         : strides.at({argument.pointer, argument.dim}));
  return values;
}

std::int64_t World::grid_points(const TileProgram& program) const {
  std::int64_t points = 1;
  for (int var : program.grid) points *= program.vars[var].extent.value(sizes);
  return points;
}

double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::f64: return value;
    case DType::f32: return static_cast<float>(value);
    case DType::bf16: return nearest_bf16(static_cast<float>(value));
    case DType::f16: {
      const float x = static_cast<float>(value);
      if (!std::isfinite(x) || x == 0) return x;
      const int exponent = std::max(std::ilogb(x), -14);
      const double unit = std::ldexp(1.0, exponent - 10);
      const double near = std::nearbyint(x / unit) * unit;
      return std::fabs(near) > 65504 ? std::copysign(INFINITY, x) : near;
    }
    case DType::i32: return std::trunc(value);
  }
  return value;
}

void interpret(const TileProgram& program, World& world, bool round) {
  Machine(program, world, round).run();
}

}  // namespace krait::test
