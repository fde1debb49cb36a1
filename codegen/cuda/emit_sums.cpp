// ReduceTile and ScanTile.
#include <algorithm>
#include <limits>

#include "codegen/cuda/kernel_emitter.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// One operand of a sum, whose terms are added up before.
std::string in_brackets(const std::string& value) {
  return value.find(' ') == std::string::npos ? value : "(" + value + ")";
}

}  // namespace

void CudaEmitter::emit(const ReduceTile& s) {
  // A thread sums its own points in the order of its registers, then the lanes that share a sum
  // exchange theirs by halves; one of them stores it. Padding counts nothing.
  w_.open("");
  std::vector<int> vars = s.domain;
  vars.insert(vars.end(), s.reduced.begin(), s.reduced.end());
  const Layout& layout = *s.layout;
  const int domain = static_cast<int>(s.domain.size());
  const auto summed = [&](int dim) { return dim >= domain; };
  auto [width, vector_var] = vector_of(layout, vars);
  if (width > 1 && !summed(layout.registers[0].dim)) width = 1, vector_var = -1;
  std::vector<CudaOperand> operands, destinations;
  for (const Access& access : s.operands) operands.push_back(operand(access, vars));
  for (const Access& access : s.destinations) destinations.push_back(operand(access, s.domain));
  const std::vector<int> uses = operand_uses(s.results, operands.size());
  const bool sum = s.kind == ReduceTile::Kind::sum;
  const DType compute = s.compute == DType::f64 ? DType::f64 : DType::f32;
  std::vector<DType> types;
  for (const CudaOperand& destination : destinations)
    types.push_back(destination.buffer->dtype == DType::i32 ? DType::i32 : compute);
  const auto combined = [&](std::size_t i, const std::string& a, const std::string& b) {
    if (types[i] == DType::i32) return sum ? a + " + " + b : "max(" + a + ", " + b + ")";
    return sum ? a + " + " + b : call("greatest", compute) + "(" + a + ", " + b + ")";
  };
  std::vector<std::string> totals;
  for (const CudaOperand& destination : destinations)
    totals.push_back(unique(name_of(destination) + "_new"));
  const auto total = [&](std::size_t i) { return totals[i]; };

  // Two walks in one another: of the domain's registers, and inside of the summed ones.
  walked_ = &layout;
  walked_vars_ = vars;
  registers_.clear();
  const int depth = w_.depth();
  if (const std::uint32_t mask = layout.replica_warps(); mask != 0)
    w_.open("if ((tid >> 5 & " + std::to_string(mask) + ") == 0)");
  const std::vector<std::string> base = stand(layout, vars);
  std::string padding_kept, padding_summed;
  const bool unroll = touches_fragment(s);
  const auto loops = [&](bool of_summed) {
    std::int64_t rounds = 1;
    for (const Layout::Loop& loop : layout.registers)
      if (summed(loop.dim) == of_summed) rounds *= loop.count;
    for (std::size_t i = layout.registers.size(); i-- > 0;) {
      const Layout::Loop& loop = layout.registers[i];
      if (summed(loop.dim) != of_summed || (i == 0 && width > 1)) continue;
      const std::string counter = "r" + std::to_string(i);
      registers_[static_cast<int>(i)] = counter;
      w_.line(unroll || (of_summed && rounds <= 32) ? "#pragma unroll" : "#pragma unroll 1");
      w_.open("for (int " + counter + " = 0; " + counter + " < " + std::to_string(loop.count) +
              "; ++" + counter + ")");
    }
    for (std::size_t d = 0; d < vars.size(); ++d) {
      if (summed(static_cast<int>(d)) != of_summed) continue;
      const int var = vars[d];
      const std::string at = position(layout, base, static_cast<int>(d));
      if (at == base[d]) {
        values_[var] = at;
      } else {
        w_.line("const int " + var_names_[static_cast<std::size_t>(var)] + " = " + at + ";");
        values_[var] = var_names_[static_cast<std::size_t>(var)];
      }
      if (layout.padded(static_cast<int>(d))) {
        std::string& padding = of_summed ? padding_summed : padding_kept;
        padding += (padding.empty() ? "" : " && ") + values_[var] + " < " +
                   std::to_string(layout.extents[d]);
      }
    }
  };
  loops(false);
  const int kept_depth = w_.depth();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string start =
        sum                      ? literal(0, types[i])
        : types[i] == DType::i32 ? "(-2147483647 - 1)"
                                 : "-" + literal(std::numeric_limits<double>::infinity(), types[i]);
    w_.line(type_of(types[i]) + " " + total(i) + " = " + start + ";");
  }
  loops(true);
  const std::string inside = padding_kept.empty()     ? padding_summed
                             : padding_summed.empty() ? padding_kept
                                                      : padding_kept + " && " + padding_summed;
  if (!inside.empty()) w_.open("if (" + inside + ")");
  const Loaded loaded = load_operands(operands, uses, width, vector_var, 0);
  if (width > 1) {
    w_.line("#pragma unroll");
    w_.open("for (int i = 0; i < " + std::to_string(width) + "; ++i)");
    const std::string at = values_[vector_var];
    values_[vector_var] = at == "0" ? "i" : "(" + at + " + i)";
    const std::vector<std::string> values =
        evaluate(s.results, loaded, operands, s.positions, s.compute, "i");
    for (std::size_t i = 0; i < values.size(); ++i)
      w_.line(total(i) + " = " + combined(i, total(i), in_brackets(values[i])) + ";");
    values_[vector_var] = at;
    w_.close();
  } else {
    const std::vector<std::string> values =
        evaluate(s.results, loaded, operands, s.positions, s.compute, "");
    for (std::size_t i = 0; i < values.size(); ++i)
      w_.line(total(i) + " = " + combined(i, total(i), in_brackets(values[i])) + ";");
  }
  close_all(kept_depth);
  std::uint32_t sharing = 0;
  for (std::size_t bit = 0; bit < layout.lanes.size(); ++bit)
    if (layout.lanes[bit].dim >= domain) sharing |= 1u << bit;
  for (std::uint32_t rest = sharing; rest != 0; rest &= rest - 1) {
    const std::uint32_t bit = rest & ~(rest - 1);
    for (std::size_t i = 0; i < types.size(); ++i)
      w_.line(
          total(i) + " = " +
          combined(i, total(i),
                   "__shfl_xor_sync(0xffffffffu, " + total(i) + ", " + std::to_string(bit) + ")") +
          ";");
  }
  const std::uint32_t others = sharing | layout.replica_lanes();
  std::string writer = others == 0 ? "" : "(tid & " + std::to_string(others) + ") == 0";
  if (!padding_kept.empty()) writer += (writer.empty() ? "" : " && ") + padding_kept;
  if (!writer.empty()) w_.open("if (" + writer + ")");
  for (std::size_t i = 0; i < types.size(); ++i) {
    std::string value = total(i);
    if (s.accumulate) value = combined(i, element(destinations[i], "0"), value);
    store(destinations[i], value);
  }
  close_all(depth);
  for (int var : vars) values_.erase(var);
  walked_ = nullptr;
  registers_.clear();
  w_.close();
}

void CudaEmitter::emit(const ScanTile& s) {
  w_.open("");
  std::vector<int> own = s.domain;
  own.push_back(s.along);
  const auto optional = [&](const Access& access) {
    return access.buffer >= 0 ? std::optional(operand(access, own)) : std::nullopt;
  };
  const CudaOperand source = operand(s.source, own);
  const auto initial = optional(s.initial), reset = optional(s.reset),
             destination = optional(s.destination), low = optional(s.low), last = optional(s.last);
  const DType kept = destination ? destination->buffer->dtype
                     : last      ? last->buffer->dtype
                                 : source.buffer->dtype;
  const DType of = source.buffer->dtype;
  const DType type = kept == DType::i32 && of == DType::i32   ? DType::i32
                     : kept == DType::f64 || of == DType::f64 ? DType::f64
                                                              : DType::f32;
  Walk points{.layout = &*s.layout, .vars = s.domain};
  points.one_writer = true;
  const std::int64_t steps = program_.vars[static_cast<std::size_t>(s.along)].extent.offset;
  const std::string at = var_names_[static_cast<std::size_t>(s.along)];
  walk(points, [&] {
    const std::string zero = literal(0, type);
    std::string start = zero;
    if (initial) start = convert(element(*initial, "0"), initial->buffer->dtype, type);
    w_.line(type_of(type) + " running = " + start + ";");
    if (s.pair) w_.line(type_of(type) + " lost = " + zero + ";");
    w_.line("#pragma unroll 4");
    const std::string count = std::to_string(steps);
    if (s.reverse)
      w_.open("for (int " + at + " = " + count + " - 1; " + at + " >= 0; --" + at + ")");
    else
      w_.open("for (int " + at + " = 0; " + at + " < " + count + "; ++" + at + ")");
    values_[s.along] = at;
    const auto keep = [&] {
      if (destination) store(*destination, "running");
      if (low) store(*low, "lost");
    };
    const auto cut = [&] {
      if (!reset) return;
      w_.line("if (" + element(*reset, "0") + " != 0) running = " + zero +
              (s.pair ? ", lost = " + zero : "") + ";");
    };
    // The source is read before anything is stored: it may be where the sum goes.
    w_.line("const " + type_of(type) + " term = " + convert(element(source, "0"), of, type) + ";");
    if (s.exclusive) keep();
    if (!s.reverse) cut();
    if (s.pair) {
      prelude_.insert("add_to_pair");
      w_.line("add_to_pair(running, lost, term);");
    } else {
      w_.line("running = running + term;");
    }
    if (s.wrap) w_.line("running = " + call("wrap", type) + "(running);");
    if (!s.exclusive) keep();
    if (s.reverse) cut();
    values_.erase(s.along);
    w_.close();
    if (last) store(*last, "running");
  });
  w_.close();
}

}  // namespace krait
