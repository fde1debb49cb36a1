// Addresses, guards, and loads and stores of lanes.
#include <algorithm>

#include "codegen/llvm/kernel_emitter.h"
#include "codegen/tile/access.h"
#include "codegen/tile/range.h"
#include "dsl/error.h"

namespace krait {
Operand KernelEmitter::operand(const Access& access, const std::vector<int>& own) {
  const Buffer& buffer = program_.buffers.at(access.buffer);
  Operand made;
  made.access = &access;
  made.dtype = buffer.dtype;
  made.alias = alias_of_buffer_[access.buffer];
  made.alignment = size_in_bytes(buffer.dtype);
  Val offset = ir::i64(0);
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    const Stride& stride = buffer.dims[d].stride;
    for (const auto& [var, factor] : access.index[d].terms)
      if (one_of(var, own)) made.strides[var].add(stride, factor);
    Coefficient one;
    one.add(stride, 1);
    offset = b_.add(b_.mul(outer_index(access.index[d], own), materialize(one)), offset);
  }
  for (auto it = made.strides.begin(); it != made.strides.end();)
    it = it->second.is(0) ? made.strides.erase(it) : std::next(it);
  made.base = b_.element(bases_.at(access.buffer), memory_element(buffer.dtype), offset);
  for (int d : access.guarded) {
    const Leaves sides = leaves(program_, access, d);
    if (!sides.any()) continue;
    Guard guard{outer_index(access.index[d], own),
                {},
                size(buffer.dims[d].extent),
                sides.below,
                sides.above};
    for (const auto& [var, factor] : access.index[d].terms)
      if (one_of(var, own)) guard.factors[var] = factor;
    made.guards.push_back(std::move(guard));
  }
  return made;
}

Nest KernelEmitter::nest(const std::vector<int>& vars) {
  Nest nest;
  for (int var : vars) {
    const std::int64_t extent = program_.vars[var].extent.offset;
    if (extent == 1) {
      values_[var] = ir::i64(0);
      continue;
    }
    nest.extents[var] = extent;
    nest.vars.push_back(var);
  }
  return nest;
}

void KernelEmitter::merge(Nest& nest, const std::vector<const Operand*>& operands,
                          const std::set<int>& kept, bool ordered) {
  auto follows = [&](int outer, int inner) {
    if (kept.count(outer) != 0 || kept.count(inner) != 0) return false;
    return std::all_of(operands.begin(), operands.end(), [&](const Operand* operand) {
      const Coefficient a = operand->stride(outer), b = operand->stride(inner);
      return a.is_constant() && b.is_constant() && a.constant == b.constant * nest.extent(inner);
    });
  };
  auto& vars = nest.vars;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < vars.size() && !changed; ++i) {
      for (std::size_t j = 0; j < vars.size() && !changed; ++j) {
        if (i == j || (ordered && j != i + 1) || !follows(vars[i], vars[j])) continue;
        // The inner variable takes over; the outer one stays at 0.
        nest.extents[vars[j]] *= nest.extents[vars[i]];
        values_[vars[i]] = ir::i64(0);
        vars.erase(vars.begin() + static_cast<std::ptrdiff_t>(i));
        changed = true;
      }
    }
  }
}

std::set<int> KernelEmitter::checked_vars(
    const std::vector<const Operand*>& operands,
    const std::vector<std::pair<std::string, Index>>* positions) const {
  std::set<int> checked;
  for (const Operand* operand : operands)
    for (const Guard& guard : operand->guards)
      for (const auto& [var, factor] : guard.factors) checked.insert(var);
  if (positions != nullptr)
    for (const auto& [axis, index] : *positions)
      for (const auto& term : index.terms) checked.insert(term.var);
  return checked;
}

Val KernelEmitter::address(const Operand& operand, std::int64_t offset) {
  Val sum = ir::i64(offset);
  for (const auto& [var, stride] : operand.strides)
    sum = b_.add(b_.mul(values_.at(var), materialize(stride)), sum);
  return b_.element(operand.base, memory_element(operand.dtype), sum);
}

Val KernelEmitter::both(const std::optional<Val>& a, const Val& b) {
  return a ? b_.binary("and", *a, b) : b;
}

std::optional<Val> KernelEmitter::mask(const Operand& operand, const Lanes& lanes, bool with_tail) {
  std::optional<Val> rows, all;
  for (const Guard& guard : operand.guards) {
    Val index = guard.outer;
    std::int64_t step = 0;
    for (const auto& [var, factor] : guard.factors) {
      index = b_.add(b_.mul(values_.at(var), ir::i64(factor)), index);
      if (var == lanes.var) step = factor;
    }
    if (lanes.count == 1 || step == 0) {
      if (guard.below) rows = both(rows, b_.compare("icmp sge", index, ir::i64(0)));
      if (guard.above) rows = both(rows, b_.compare("icmp slt", index, guard.extent));
    } else if (step == 1) {
      // Lanes -index .. extent - index - 1, in 32 bits: both ends are first brought near.
      const Val numbers = ir::lane_numbers("i32", lanes.count);
      auto near = [&](const Val& end) {
        Val bounded = b_.intrinsic("smax", {end, ir::i64(-1)});
        bounded = b_.intrinsic("smin", {bounded, ir::i64(lanes.count)});
        return b_.splat(b_.cast("trunc", bounded, "i32"), lanes.count);
      };
      if (guard.above)
        all = both(all, b_.compare("icmp slt", numbers, near(b_.sub(guard.extent, index))));
      if (guard.below)
        all = both(all, b_.compare("icmp sge", numbers, near(b_.sub(ir::i64(0), index))));
    } else {
      Val indices = b_.binary("add", b_.splat(index, lanes.count),
                              ir::lane_numbers("i64", lanes.count, 0, step));
      if (guard.above)
        all = both(all, b_.compare("icmp slt", indices, b_.splat(guard.extent, lanes.count)));
      if (guard.below)
        all = both(all, b_.compare("icmp sge", indices,
                                   ir::zero(ir::true_vector_type("i64", lanes.count))));
    }
  }
  if (rows) all = both(all, b_.splat(*rows, lanes.count));
  if (with_tail && lanes.valid > 0) all = both(all, ir::first_lanes(lanes.count, lanes.valid));
  return all;
}

Val KernelEmitter::load_memory(const Operand& operand, const Lanes& lanes,
                               const std::optional<Val>& mask) {
  const std::string element = memory_element(operand.dtype);
  const std::string align = ", align " + std::to_string(operand.alignment);
  const Val at = address(operand);
  const std::string vector = ir::true_vector_type(element, lanes.count);
  const std::string masks = ir::true_vector_type("i1", lanes.count);
  auto masked = [&](const std::string& kind, const Val& where, const Val& lanes_on) {
    const std::string name =
        "llvm.masked." + kind + '.' + ir::mangled(vector) + '.' + ir::mangled(where.type);
    return b_.call(vector, name,
                   {where, ir::i32(operand.alignment), lanes_on, {vector, "zeroinitializer"}},
                   "declare " + vector + " @" + name + '(' + where.type + ", i32 immarg, " + masks +
                       ", " + vector + ')',
                   operand.alias);
  };
  if (lanes.count == 1) {
    if (!mask)
      return b_.emit(element, "load " + element + ", " + at.text() + align + operand.alias);
    return b_.extract(masked("load", at, b_.cast("bitcast", *mask, "<1 x i1>")), 0);
  }
  const Coefficient stride = operand.stride(lanes.var);
  if (stride.is(1)) {
    if (!mask) return b_.emit(vector, "load " + vector + ", " + at.text() + align + operand.alias);
    return masked("load", at, *mask);
  }
  Val offsets = b_.binary("mul", ir::lane_numbers("i64", lanes.count),
                          b_.splat(materialize(stride), lanes.count));
  Val pointers = b_.emit(ir::true_vector_type("ptr", lanes.count),
                         "getelementptr " + element + ", " + at.text() + ", " + offsets.text());
  return masked("gather", pointers, mask ? *mask : ir::first_lanes(lanes.count, lanes.count));
}

Val KernelEmitter::load(const Operand& operand, const Lanes& lanes, double fill) {
  const std::string element = register_element(operand.dtype);
  auto filled = [&](const Val& value, const std::optional<Val>& mask, int count) {
    if (!mask || fill == 0) return value;
    const Val scalar =
        element == "i32" ? ir::i32(static_cast<std::int64_t>(fill)) : ir::real(element, fill);
    return b_.select(*mask, value, ir::splat_constant(scalar, count));
  };
  const bool same = lanes.count > 1 && operand.stride(lanes.var).is(0);
  if (!same) {
    auto on = mask(operand, lanes);
    return filled(from_memory(load_memory(operand, lanes, on), operand.dtype, lanes.count), on,
                  lanes.count);
  }
  // One element for all lanes. A guard that tells lanes apart selects afterwards.
  Operand by_row = operand, by_lane = operand;
  std::erase_if(by_row.guards, [&](const Guard& g) { return g.factors.count(lanes.var) != 0; });
  std::erase_if(by_lane.guards, [&](const Guard& g) { return g.factors.count(lanes.var) == 0; });
  const Lanes one{};
  auto on = mask(by_row, one);
  Val scalar = filled(from_memory(load_memory(by_row, one, on), operand.dtype, 1), on, 1);
  Val all = b_.splat(scalar, lanes.count);
  auto lanes_on = mask(by_lane, lanes, false);
  if (!lanes_on) return all;
  const Val zero = ir::zero(all.type);
  return filled(b_.select(*lanes_on, all, zero), lanes_on, lanes.count);
}

void KernelEmitter::store(const Operand& operand, const Lanes& lanes, const Val& value,
                          const std::optional<Val>& only) {
  const Val stored = to_memory(value, operand.dtype, lanes.count);
  const std::string element = memory_element(operand.dtype);
  const std::string align = ", align " + std::to_string(operand.alignment);
  auto on = mask(operand, lanes);
  if (only) on = both(on, *only);
  const Val at = address(operand);
  const std::string vector = ir::true_vector_type(element, lanes.count);
  const std::string masks = ir::true_vector_type("i1", lanes.count);
  auto masked = [&](const std::string& kind, const Val& what, const Val& where,
                    const Val& lanes_on) {
    const std::string name =
        "llvm.masked." + kind + '.' + ir::mangled(vector) + '.' + ir::mangled(where.type);
    b_.call_void(
        name, {what, where, ir::i32(operand.alignment), lanes_on},
        "declare void @" + name + '(' + vector + ", " + where.type + ", i32 immarg, " + masks + ')',
        operand.alias);
  };
  if (lanes.count == 1) {
    if (!on)
      b_.line("store " + stored.text() + ", " + at.text() + align + operand.alias);
    else
      masked("store", b_.cast("bitcast", stored, vector), at, b_.cast("bitcast", *on, "<1 x i1>"));
    return;
  }
  const Coefficient stride = operand.stride(lanes.var);
  if (stride.is(1)) {
    if (!on)
      b_.line("store " + stored.text() + ", " + at.text() + align + operand.alias);
    else
      masked("store", stored, at, *on);
    return;
  }
  Val offsets = b_.binary("mul", ir::lane_numbers("i64", lanes.count),
                          b_.splat(materialize(stride), lanes.count));
  Val pointers = b_.emit(ir::true_vector_type("ptr", lanes.count),
                         "getelementptr " + element + ", " + at.text() + ", " + offsets.text());
  masked("scatter", stored, pointers, on ? *on : ir::first_lanes(lanes.count, lanes.count));
}

Val KernelEmitter::from_memory(const Val& value, DType dtype, int lanes) {
  if (dtype == DType::f16) return b_.cast("fpext", value, ir::vector_type("float", lanes));
  if (dtype != DType::bf16) return value;
  const std::string bits = ir::vector_type("i32", lanes);
  Val high = b_.binary("shl", b_.cast("zext", value, bits), ir::splat_constant(ir::i32(16), lanes));
  return b_.cast("bitcast", high, ir::vector_type("float", lanes));
}

Val KernelEmitter::to_memory(const Val& value, DType dtype, int lanes) {
  Val given = convert(value, register_element(dtype), lanes);
  if (dtype == DType::f16) return b_.cast("fptrunc", given, ir::vector_type("half", lanes));
  if (dtype != DType::bf16) return given;
  // To the nearest, ties to even; a NaN keeps its sign and stays one.
  auto number = [&](std::int64_t n) { return ir::splat_constant(ir::i32(n), lanes); };
  Val bits = b_.cast("bitcast", given, ir::vector_type("i32", lanes));
  Val high = b_.binary("lshr", bits, number(16));
  Val odd = b_.binary("and", high, number(1));
  Val rounded =
      b_.binary("lshr", b_.binary("add", b_.binary("add", bits, number(0x7fff)), odd), number(16));
  Val is_nan = b_.compare("fcmp uno", given, given);
  Val chosen = b_.select(is_nan, b_.binary("or", high, number(0x40)), rounded);
  return b_.cast("trunc", chosen, ir::vector_type("i16", lanes));
}

Val KernelEmitter::convert(const Val& value, const std::string& element, int lanes) {
  const std::string wanted = ir::vector_type(element, lanes);
  if (value.type == wanted) return value;
  auto is = [&](const char* name) { return value.type == ir::vector_type(name, lanes); };
  if (is("i1")) {
    if (element == "i32") return b_.cast("zext", value, wanted);
    return b_.select(value, ir::splat_constant(ir::real(element, 1), lanes), ir::zero(wanted));
  }
  if (is("i32")) {
    if (element == "i1") return b_.compare("icmp ne", value, ir::zero(value.type));
    return b_.cast("sitofp", value, wanted);
  }
  if (element == "i1") return b_.compare("fcmp une", value, ir::zero(value.type));
  if (element == "i32") return b_.intrinsic_to("fptosi.sat", wanted, value);
  return b_.cast(element == "double" ? "fpext" : "fptrunc", value, wanted);
}

}  // namespace krait
