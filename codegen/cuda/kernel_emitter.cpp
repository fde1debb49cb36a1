#include "codegen/cuda/kernel_emitter.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>

#include "codegen/cuda/emit_cuda.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// With a word in front: a block may name its results as functions of the language are named.
std::string entry_of(const TileProgram& program) {
  return "krait_" + cuda_identifier(program.name);
}

/// The sum of terms, and a constant where it adds something or there is no term.
std::string plus(const std::string& sum, std::int64_t constant) {
  if (sum.empty()) return std::to_string(constant);
  if (constant == 0) return sum;
  return sum + (constant < 0 ? " - " : " + ") + std::to_string(std::abs(constant));
}

}  // namespace

void CudaStride::add(const Stride& stride, std::int64_t factor) {
  if (stride.is_constant())
    constant += stride.constant * factor;
  else if ((arguments[stride.argument] += factor) == 0)
    arguments.erase(stride.argument);
}

CudaEmitter::CudaEmitter(const TileProgram& program, const CudaTarget& target)
    : program_(program), target_(target) {}

std::string CudaEmitter::type_of(DType dtype) const {
  switch (dtype) {
    case DType::f64: return "double";
    case DType::i32: return "int";
    default: return "float";
  }
}

std::string CudaEmitter::memory_type_of(DType dtype) {
  if (dtype != DType::bf16 && dtype != DType::f16) return type_of(dtype);
  const std::string type(name(dtype));
  prelude_.insert(type);
  return type;
}

std::string CudaEmitter::signature() const {
  std::vector<std::string> parameters;
  for (const Pointer& pointer : pointers_)
    parameters.push_back(pointer.type + "* const " + pointer.name);
  for (const std::string& argument : argument_names_) parameters.push_back("const i64 " + argument);
  const std::string threads = std::to_string(32 * program_.warps);
  std::string made = "extern \"C\" __global__ void __launch_bounds__(" + threads + ", 1)\n" +
                     entry_of(program_) + "(";
  std::size_t column = made.size() - made.find('\n');
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& parameter = parameters[i];
    if (i > 0 && column + parameter.size() > 96) {
      made += ",\n    " + parameter;
      column = 4 + parameter.size();
    } else {
      made += (i > 0 ? ", " : "") + parameter;
      column += 2 + parameter.size();
    }
  }
  return made + ")";
}

void CudaEmitter::declare_buffers() {
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& buffer = program_.buffers[i];
    if (buffer.space == Space::global || !is_root(static_cast<int>(i))) continue;
    const std::string declared = memory_type_of(buffer.dtype) + " " + buffer_names_[i];
    if (buffer.space == Space::fragment) {
      w_.line(declared + "[" + std::to_string(buffer.layout->registers_per_thread()) + "];");
    } else if (buffer.space == Space::scalar) {
      w_.line(declared + ";");
    } else {
      const Buffer& root =
          program_.buffers[static_cast<std::size_t>(memory_of(program_, static_cast<int>(i)))];
      const std::int64_t byte = root.scratch_offset + memory_offset(program_, static_cast<int>(i)) *
                                                          size_in_bytes(root.dtype);
      const std::string type = memory_type_of(buffer.dtype);
      w_.line(type + "* const " + buffer_names_[i] + " = (" + type + "*)(scratch + " +
              std::to_string(byte) + ");");
    }
  }
}

std::string CudaEmitter::size(const Extent& extent) const {
  if (extent.is_constant()) return std::to_string(extent.offset);
  for (std::size_t i = 0; i < program_.arguments.size(); ++i) {
    const TileProgram::Argument& argument = program_.arguments[i];
    if (argument.kind != TileProgram::Argument::Kind::size || argument.symbol != extent.symbol)
      continue;
    const std::int64_t add = extent.offset + extent.divisor - 1;
    std::string sum = argument_names_[i];
    if (add != 0) sum = "(" + sum + (add > 0 ? " + " : " - ") + std::to_string(std::abs(add)) + ")";
    return extent.divisor == 1 ? sum : "(" + sum + " / " + std::to_string(extent.divisor) + ")";
  }
  throw InternalError(
      text(program_.name, " needs the size ", extent.symbol, ", which is no argument"));
}

void CudaEmitter::emit_grid() {
  const auto several = [&](int var) {
    return !(program_.vars[static_cast<std::size_t>(var)].extent == Extent::constant(1));
  };
  const auto counted = std::count_if(program_.grid.begin(), program_.grid.end(), several);
  if (counted > 0)
    w_.line((counted == 1 ? "const " : "") + std::string("unsigned rest = blockIdx.x;"));
  const auto first = std::find_if(program_.grid.begin(), program_.grid.end(), several);
  for (std::size_t i = program_.grid.size(); i-- > 0;) {
    const int var = program_.grid[i];
    const std::string& name = var_names_[static_cast<std::size_t>(var)];
    const Extent& extent = program_.vars[static_cast<std::size_t>(var)].extent;
    values_[var] = name;
    if (extent == Extent::constant(1)) {
      values_[var] = "0";
    } else if (static_cast<std::ptrdiff_t>(i) == first - program_.grid.begin()) {
      w_.line("const int " + name + " = (int)rest;");
    } else {
      const std::string count = "(unsigned)" + size(extent);
      w_.line("const int " + name + " = (int)(rest % " + count + ");");
      w_.line("rest /= " + count + ";");
    }
  }
  for (int var : program_.grid) declare_digits(var);
}

std::string CudaEmitter::turn_of(int var, bool reverse) const {
  const Extent& extent = program_.vars[static_cast<std::size_t>(var)].extent;
  return reverse ? "((int)" + size(extent) + " - 1 - " + value(var) + ")" : value(var);
}

void CudaEmitter::declare_digits(int var) {
  for (int digit : program_.digits_of(var)) {
    const Var& number = program_.vars[static_cast<std::size_t>(digit)];
    const std::string& name = var_names_[static_cast<std::size_t>(digit)];
    w_.line("const int " + name + " = " + turn_of(var, number.reverse) +
            (number.rest ? " % " : " / ") + std::to_string(number.base) + ";");
    values_[digit] = name;
  }
}

std::string CudaEmitter::outer_index(const Index& index, const std::vector<int>& own) const {
  std::string sum;
  for (const auto& [var, factor] : index.terms) {
    if (one_of(var, own) || value(var) == "0") continue;
    std::string term = "(i64)" + value(var);
    if (factor != 1) term += " * " + std::to_string(factor);
    sum += (sum.empty() ? "" : " + ") + term;
  }
  return plus(sum, index.constant);
}

std::string CudaEmitter::int_index(const Index& index) const {
  std::string sum;
  for (const auto& [var, factor] : index.terms) {
    if (value(var) == "0") continue;
    std::string term = value(var);
    if (program_.vars[static_cast<std::size_t>(var)].kind == VarKind::size) term = "(int)" + term;
    if (factor != 1) term += " * " + std::to_string(factor);
    sum += (sum.empty() ? "" : " + ") + term;
  }
  return plus(sum, index.constant);
}

void CudaEmitter::emit_body(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    const std::size_t names = made_.size();
    title(statement);
    std::visit([&](const auto& s) { emit(s); }, statement);
    forget(names);
  }
}

CudaEmitter::Bounds CudaEmitter::bounds(int var, int block_var, std::int64_t blocks) {
  const Extent& extent = program_.vars[static_cast<std::size_t>(var)].extent;
  const std::string& name = var_names_[static_cast<std::size_t>(var)];
  Bounds made{"0", size(extent)};
  if (block_var < 0) {
    if (!extent.is_constant()) made.end = "(int)" + made.end;
    return made;
  }
  const std::string each = unique(name + "_each"), last = made.end;
  made = {unique(name + "_begin"), unique(name + "_end")};
  w_.line("const i64 " + each + " = (" + last + " + " + std::to_string(blocks - 1) + ") / " +
          std::to_string(blocks) + ";");
  prelude_.insert("least_i64");
  w_.line("const int " + made.begin + " = (int)least_i64(" + value(block_var) + " * " + each +
          ", " + last + ");");
  w_.line("const int " + made.end + " = (int)least_i64(" + made.begin + " + " + each + ", " + last +
          ");");
  return made;
}

CudaEmitter::Bounds CudaEmitter::part_of_run(const For& s) const {
  const std::string run = std::to_string(s.run);
  const std::string start = turn_of(s.until, s.reverse) + " / " + run + " * " + run;
  if (!s.reverse) return {start, value(s.until)};
  const Extent& extent = program_.vars[static_cast<std::size_t>(s.var)].extent;
  return {value(s.until) + " + 1", "(int)" + size(extent) + " - " + start};
}

void CudaEmitter::emit(const For& s) {
  const std::string& name = var_names_[static_cast<std::size_t>(s.var)];
  const bool in_block = s.block_var >= 0;
  if (in_block) w_.open("");
  const auto [begin, end] = s.until >= 0 ? part_of_run(s) : bounds(s.var, s.block_var, s.blocks);
  loops_[s.var] = {begin, end};
  w_.line(s.unroll ? "#pragma unroll" : "#pragma unroll 1");
  if (s.reverse)
    w_.open("for (int " + name + " = " + end + " - 1; " + name + " >= " + begin + "; --" + name +
            ")");
  else
    w_.open("for (int " + name + " = " + begin + "; " + name + " < " + end + "; ++" + name + ")");
  values_[s.var] = name;
  declare_digits(s.var);
  emit_body(s.body);
  values_.erase(s.var);
  loops_.erase(s.var);
  w_.close();
  if (in_block) w_.close();
}

namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Line {
  std::string_view text;
  std::size_t depth = std::string_view::npos;  // of what is not blank
  bool gone = false;
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back({text.substr(at, end - at)});
    lines.back().depth = lines.back().text.find_first_not_of(' ');
    at = end + 1;
  }
  return lines;
}

/// The lines that read each of some names, as far as they are added: from the last line on.
class Readers {
 public:
  void watch(std::string_view name) { of_[name] = std::string_view::npos; }
  void add(std::string_view line, std::size_t number) {
    for (std::size_t at = 0; at < line.size();) {
      if (!in_name(line[at])) {
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < line.size() && in_name(line[end])) ++end;
      if (const auto found = of_.find(line.substr(at, end - at)); found != of_.end())
        found->second = number;
      at = end;
    }
  }
  /// Whether one before line `end` does. What is no name, as that of an array with its size, counts
  /// as read.
  bool any(std::string_view name, std::size_t end) const {
    if (!std::all_of(name.begin(), name.end(), in_name)) return true;
    const auto found = of_.find(name);
    return found != of_.end() && found->second < end;
  }

 private:
  std::unordered_map<std::string_view, std::size_t> of_;  // the last added
};

/// What the line declares as a constant; "" where it does not.
std::string_view constant_of(const Line& line) {
  const std::size_t equals = line.text.find(" = ");
  if (line.depth == std::string_view::npos || equals == std::string_view::npos) return {};
  const std::string_view head = line.text.substr(line.depth, equals - line.depth);
  if (head.rfind("const ", 0) != 0 && head.find("* const ") == std::string_view::npos) return {};
  return head.substr(head.find_last_of(" *") + 1);
}

/// Without constants that nothing reads: compilers warn of them.
std::string without_unused(const std::string& text) {
  std::vector<Line> lines = lines_of(text);
  Readers readers;
  for (const Line& line : lines)
    if (const std::string_view name = constant_of(line); !name.empty()) readers.watch(name);
  // From the last line on, so that what only an unused constant reads goes too.
  for (std::size_t i = lines.size(); i-- > 0;) {
    Line& line = lines[i];
    if (const std::string_view name = constant_of(line); !name.empty()) {
      std::size_t end = i + 1;  // of the block that it stands in
      while (end < lines.size() && (lines[end].gone || lines[end].depth >= line.depth)) ++end;
      line.gone = !readers.any(name, end);
    }
    if (!line.gone) readers.add(line.text, i);
  }
  std::string kept;
  kept.reserve(text.size());
  for (const Line& line : lines)
    if (!line.gone && !line.text.empty()) kept.append(line.text) += '\n';
  return kept;
}

}  // namespace

std::string CudaEmitter::run() {
  name_everything();
  for (std::size_t i = 0; i < program_.vars.size(); ++i)
    if (program_.vars[i].kind == VarKind::size)
      values_[static_cast<int>(i)] = size(program_.vars[i].extent);
  w_.open(signature());
  if (program_.scratch_bytes > 0)
    w_.line("extern __shared__ __align__(128) unsigned char scratch[];");
  w_.line("const int tid = (int)threadIdx.x;");
  emit_grid();
  declare_buffers();
  emit_body(program_.body);
  w_.close();
  CudaWriter head;
  heading(head);
  return head.text() +
         broken_lines(prelude_text(prelude_, target_.exact) + "\n" + without_unused(w_.text()));
}

KernelSource emit_cuda(const TileProgram& program, const CudaTarget& target) {
  KernelSource source;
  source.name = program.name;
  source.entry = entry_of(program);
  source.backend = KernelSource::Backend::cuda;
  source.text = CudaEmitter(program, target).run();
  source.options = {"--gpu-architecture=" + target.architecture, "--std=c++17", "--fmad=false",
                    "--ptxas-options=-v"};  // the log tells registers and spills
  return source;
}

}  // namespace krait
