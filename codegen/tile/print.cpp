#include <locale>
#include <sstream>

#include "codegen/tile/tile.h"

namespace krait {
namespace {

std::string_view name(Space space) {
  switch (space) {
    case Space::global: return "global";
    case Space::shared: return "shared";
    case Space::fragment: return "fragment";
    case Space::scalar: return "scalar";
  }
  return "?";
}

std::string argument_text(const TileProgram::Argument& argument) {
  if (argument.kind == TileProgram::Argument::Kind::size) return argument.symbol;
  return "stride(" + std::to_string(argument.pointer) + ", " + std::to_string(argument.dim) + ")";
}

class Printer {
 public:
  explicit Printer(const TileProgram& program) : program_(program) {
    out_.imbue(std::locale::classic());
  }

  std::string text() {
    out_ << "kernel " << program_.name << '\n';
    if (!program_.title.empty()) out_ << "schedule " << program_.title << '\n';
    if (!program_.grid.empty()) out_ << "grid " << domain(program_.grid) << '\n';
    for (const Var& var : program_.vars)
      if (var.kind == VarKind::size)
        out_ << "size " << var.name << " = " << var.extent.text() << '\n';
    for (const Var& var : program_.vars)
      if (var.kind == VarKind::digit)
        out_ << "digit " << var.name << " = " << program_.vars[var.of].name
             << (var.reverse ? " from the end" : "") << (var.rest ? " % " : " / ") << var.base
             << '\n';
    for (std::size_t i = 0; i < program_.arguments.size(); ++i)
      out_ << "argument " << i << " = " << argument_text(program_.arguments[i]) << '\n';
    for (const Buffer& buffer : program_.buffers) print(buffer);
    if (program_.scratch_bytes > 0) out_ << "scratch " << program_.scratch_bytes << " bytes\n";
    print(program_.body, 0);
    return out_.str();
  }

  std::string statement(const Statement& s) {
    std::visit([&](const auto& it) { print(it, 0); }, s);
    return out_.str();
  }

  std::string access(const Access& access) const {
    if (access.buffer < 0 || access.buffer >= static_cast<int>(program_.buffers.size()))
      return "buffer" + std::to_string(access.buffer) + "[]";
    std::string text = program_.buffers[access.buffer].name + '[';
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      if (d > 0) text += ", ";
      text += index(access.index[d]);
      for (int guarded : access.guarded)
        if (guarded == static_cast<int>(d)) text += '?';
    }
    text += ']';
    if (access.wide.elements == 1) return text;
    text += " by " + std::to_string(access.wide.elements) + ' ' + var(access.wide.var);
    if (access.wide.address_tested) text += " if aligned";
    for (int argument : access.wide.strides_tested)
      text += " and argument " + std::to_string(argument);
    return text;
  }

 private:
  std::string var(int number) const {
    return number >= 0 && number < static_cast<int>(program_.vars.size())
               ? program_.vars[number].name
               : "var" + std::to_string(number);
  }

  std::string index(const Index& index) const {
    std::string text;
    for (const auto& [number, factor] : index.terms) {
      if (factor == -1) {
        text += '-';
      } else {
        if (!text.empty() && factor > 0) text += '+';
        if (factor != 1) text += std::to_string(factor) + '*';
      }
      text += var(number);
    }
    if (index.constant == 0 && !text.empty()) return text;
    return text + (text.empty() || index.constant < 0 ? "" : "+") + std::to_string(index.constant);
  }

  std::string domain(const std::vector<int>& variables) const {
    std::string text = "(";
    for (int number : variables) {
      if (text.size() > 1) text += ", ";
      text += var(number);
      if (number >= 0 && number < static_cast<int>(program_.vars.size()))
        text += ':' + program_.vars[number].extent.text();
    }
    return text + ')';
  }

  void print(const Buffer& buffer) {
    out_ << name(buffer.space) << ' ' << krait::name(buffer.dtype) << ' ' << buffer.name << '[';
    for (std::size_t d = 0; d < buffer.dims.size(); ++d) {
      const Dim& dim = buffer.dims[d];
      out_ << (d > 0 ? ", " : "") << dim.axis << ' ' << dim.extent.text() << " by ";
      if (dim.stride.is_constant())
        out_ << dim.stride.constant;
      else
        out_ << "argument " << dim.stride.argument;
    }
    out_ << ']';
    if (buffer.space == Space::global)
      out_ << " pointer " << buffer.pointer << (buffer.written ? " written" : "");
    if (buffer.alias_of >= 0)
      out_ << " in " << program_.buffers[buffer.alias_of].name << " at " << buffer.alias_offset;
    if (buffer.stages > 1) out_ << " in " << buffer.stages << " slots by " << var(buffer.stage_var);
    if (buffer.scratch_offset >= 0) out_ << " at byte " << buffer.scratch_offset;
    out_ << '\n';
  }

  void print(const std::vector<Statement>& body, int depth) {
    for (const Statement& s : body) std::visit([&](const auto& it) { print(it, depth); }, s);
  }

  std::ostringstream& line(int depth) {
    out_ << std::string(2 * depth, ' ');
    return out_;
  }

  template <typename Turns>
  void turns(const Turns& s) {
    out_ << domain({s.var}) << (s.reverse ? " reverse" : "");
    if (s.block_var >= 0) out_ << " in block " << var(s.block_var) << " of " << s.blocks;
  }

  void print(const For& s, int depth) {
    line(depth) << "for ";
    turns(s);
    if (s.until >= 0) out_ << " until " << var(s.until) << " in runs of " << s.run;
    out_ << (s.unroll ? " unroll" : "") << '\n';
    print(s.body, depth + 1);
  }

  void print(const Prefetch& s, int depth) {
    line(depth) << "prefetch " << (s.first ? "first " : "next ");
    turns(s);
    out_ << '\n';
    print(s.body, depth + 1);
  }

  void print(const Commit&, int depth) { line(depth) << "commit\n"; }
  void print(const Wait& s, int depth) { line(depth) << "wait " << s.pending << '\n'; }

  void print(const Copy& s, int depth) {
    line(depth) << (s.asynchronous ? "copy asynchronous " : "copy ") << domain(s.domain) << ' '
                << access(s.destination) << " = " << access(s.source);
    if (s.keep)
      out_ << " else keep";
    else if (!s.source.guarded.empty())
      out_ << " else " << s.fill;
    out_ << '\n';
  }

  void print(const Fill& s, int depth) {
    line(depth) << "fill " << domain(s.domain) << ' ' << access(s.destination) << " = " << s.value
                << '\n';
  }

  void print(const Mma& s, int depth) {
    line(depth) << "mma batch" << domain(s.batch) << " rows" << domain(s.rows) << " columns"
                << domain(s.columns) << " sum" << domain(s.sum) << ' ' << access(s.destination)
                << (s.accumulate ? " += " : " = ") << access(s.left) << " * " << access(s.right)
                << '\n';
  }

  template <typename S>
  void results(const S& s, std::string_view assign, int depth) {
    std::vector<std::string> names;
    for (const Access& operand : s.operands) names.push_back(access(operand));
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      line(depth + 1) << (i < s.destinations.size() ? access(s.destinations[i]) : "?") << assign
                      << s.results[i].text(names) << '\n';
    }
    for (const auto& [axis, position] : s.positions)
      line(depth + 1) << "with " << axis << " = " << index(position) << '\n';
  }

  void print(const MapTile& s, int depth) {
    line(depth) << "map " << domain(s.domain) << ' ' << krait::name(s.compute) << '\n';
    results(s, " = ", depth);
  }

  void print(const ReduceTile& s, int depth) {
    const bool sum = s.kind == ReduceTile::Kind::sum;
    line(depth) << "reduce " << domain(s.domain) << " over " << domain(s.reduced) << ' '
                << krait::name(s.compute) << '\n';
    results(s, std::string(sum ? " sum" : " max") + (s.accumulate ? "+= " : "= "), depth);
  }

  void print(const ScanTile& s, int depth) {
    line(depth) << "scan " << domain(s.domain) << " along " << domain({s.along})
                << (s.reverse ? " reverse" : "") << (s.exclusive ? " exclusive" : "")
                << (s.wrap ? " wrap" : "") << (s.pair ? " pair" : "") << ' '
                << (s.destination.buffer >= 0 ? access(s.destination) : "_");
    if (s.low.buffer >= 0) out_ << ", low " << access(s.low);
    if (s.last.buffer >= 0) out_ << ", last " << access(s.last);
    out_ << " = running " << access(s.source);
    if (s.initial.buffer >= 0) out_ << " from " << access(s.initial);
    if (s.reset.buffer >= 0) out_ << " reset " << access(s.reset);
    out_ << '\n';
  }

  void print(const Barrier&, int depth) { line(depth) << "barrier\n"; }

  const TileProgram& program_;
  std::ostringstream out_;
};

}  // namespace

std::string to_text(const TileProgram& program) { return Printer(program).text(); }

std::string to_text(const TileProgram& program, const Access& access) {
  return Printer(program).access(access);
}

std::string to_text(const TileProgram& program, const Statement& statement) {
  return Printer(program).statement(statement);
}

}  // namespace krait
