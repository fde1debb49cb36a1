#include "codegen/llvm/kernel_emitter.h"

#include <algorithm>

#include "codegen/llvm/emit_llvm.h"
#include "codegen/tile/access.h"
#include "codegen/tile/range.h"
#include "dsl/error.h"

namespace krait {

void Coefficient::add(const Stride& stride, std::int64_t factor) {
  if (stride.is_constant()) {
    constant += stride.constant * factor;
    return;
  }
  auto at = std::find_if(dynamic.begin(), dynamic.end(),
                         [&](const auto& term) { return term.first >= stride.argument; });
  if (at == dynamic.end() || at->first != stride.argument)
    at = dynamic.insert(at, {stride.argument, 0});
  at->second += factor;
  if (at->second == 0) dynamic.erase(at);
}

std::string register_element(DType dtype) {
  switch (dtype) {
    case DType::f64: return "double";
    case DType::i32: return "i32";
    default: return "float";
  }
}

std::string memory_element(DType dtype) {
  switch (dtype) {
    case DType::bf16: return "i16";
    case DType::f16: return "half";
    default: return register_element(dtype);
  }
}

DType computed_in(DType compute) { return compute == DType::f64 ? DType::f64 : DType::f32; }

KernelEmitter::KernelEmitter(const TileProgram& program, const VectorTarget& target)
    : program_(program), target_(target) {}

std::string KernelEmitter::run() {
  prepare_aliases();
  // All that the whole kernel reads is loaded at its entry, where it dominates every use.
  for (int i = 0; i < static_cast<int>(program_.arguments.size()); ++i) {
    Val at = b_.element({"ptr", "%arguments"}, "i64", ir::i64(i));
    arguments_[i] = b_.emit("i64", "load i64, " + at.text() + ", align 8");
  }
  for (int i = 0; i < static_cast<int>(program_.buffers.size()); ++i) bases_[i] = buffer_base(i);
  auto known = [&](const Extent& extent) {
    return extent.is_constant() ||
           std::any_of(program_.arguments.begin(), program_.arguments.end(), [&](const auto& a) {
             return a.kind == TileProgram::Argument::Kind::size && a.symbol == extent.symbol;
           });
  };
  auto prepare = [&](const Extent& extent) {
    if (known(extent)) size(extent);
  };
  for (const Buffer& buffer : program_.buffers)
    for (const Dim& dim : buffer.dims) prepare(dim.extent);
  for (const Var& var : program_.vars) prepare(var.extent);
  visit_statements(program_.body, [&](const Statement& statement) {
    std::visit(
        [&](const auto& s) {
          if constexpr (requires { s.results; })
            for (const Scalar& result : s.results)
              for (const ScalarNode& node : result.nodes())
                if (node.op == ScalarOp::extent) prepare(node.extent);
        },
        statement);
  });
  for (int i = 0; i < static_cast<int>(program_.vars.size()); ++i)
    if (program_.vars[i].kind == VarKind::size) values_[i] = size(program_.vars[i].extent);

  auto loop = b_.begin_loop({"i64", "%begin"}, {"i64", "%end"}, 1);
  emit_grid(loop.index);
  emit_body(program_.body);
  b_.end_loop(loop);

  std::string out = program_.title.empty() ? "" : "; schedule: " + program_.title + "\n\n";
  out += "define void @" + program_.name +
         "(ptr noalias readonly %buffers, ptr noalias readonly %arguments, ptr noalias %scratch, "
         "i64 %begin, i64 %end) #0 {\nentry:\n" +
         b_.text() + "  ret void\n}\n\n";
  // The functions that were called, and those that they call.
  for (const auto& [name, function] : functions_) {
    out += function.text + '\n';
    for (const std::string& declaration : function.declarations) b_.declare(declaration);
  }
  for (const std::string& declaration : b_.declarations()) out += declaration + '\n';
  const std::string bits = std::to_string(target_.vector_bits);
  out += "\nattributes #0 = { nounwind \"prefer-vector-width\"=\"" + bits +
         "\" \"min-legal-vector-width\"=\"" + bits + "\" }\n\n";
  for (const std::string& line : metadata_) out += line + '\n';
  return out;
}

void KernelEmitter::prepare_aliases() {
  // One scope for all global memory, since a caller may pass one tensor as input and output; one
  // for each buffer on chip. Two buffers may share scratch at different times: those alias.
  struct Bytes {
    std::int64_t begin = 0, end = 0;
  };
  const int count = static_cast<int>(program_.buffers.size());
  std::vector<Bytes> bytes(count);
  auto global = [&](int i) { return program_.buffers[i].space == Space::global; };
  for (int i = 0; i < count; ++i) {
    if (global(i)) continue;
    const int memory = memory_of(program_, i);
    const Buffer& root = program_.buffers[memory];
    KRAIT_ASSERT(root.scratch_offset >= 0, root.name, " has no place in the scratch memory");
    bytes[i].begin = root.scratch_offset + memory_offset(program_, i) * size_in_bytes(root.dtype);
    bytes[i].end = bytes[i].begin + bytes_of(program_.buffers[i]);
  }
  metadata_.push_back("!0 = distinct !{!0}");
  metadata_.push_back("!1 = distinct !{!1, !0}");
  auto node = [](int i) { return '!' + std::to_string(2 + i); };
  for (int i = 0; i < count; ++i)
    metadata_.push_back(node(i) + " = distinct !{" + node(i) + ", !0}");
  int next = 2 + count;
  auto list = [&](const std::string& items) {
    metadata_.push_back('!' + std::to_string(next) + " = !{" + items + '}');
    return '!' + std::to_string(next++);
  };
  for (int i = 0; i < count; ++i) {
    std::string apart = global(i) ? "" : "!1";
    for (int j = 0; j < count; ++j)
      if (!global(j) && j != i &&
          (global(i) || bytes[i].end <= bytes[j].begin || bytes[j].end <= bytes[i].begin))
        apart += (apart.empty() ? "" : ", ") + node(j);
    std::string text = ", !alias.scope " + list(global(i) ? "!1" : node(i));
    if (!apart.empty()) text += ", !noalias " + list(apart);
    alias_of_buffer_.push_back(text);
  }
}

void KernelEmitter::emit_grid(const Val& point) {
  Val rest = point;
  for (std::size_t i = program_.grid.size(); i-- > 0;) {
    const int var = program_.grid[i];
    if (i == 0) {
      values_[var] = rest;
    } else {
      Val extent = size(program_.vars[var].extent);
      values_[var] = extent.name == "1" ? ir::i64(0) : b_.binary("urem", rest, extent);
      if (extent.name != "1") rest = b_.binary("udiv", rest, extent);
    }
    define_digits(var);
  }
}

KernelEmitter::Turn KernelEmitter::turn_of(int var, std::int64_t base, bool reverse) {
  Val at = values_.at(var);
  if (reverse) at = b_.sub(b_.sub(size(program_.vars[var].extent), ir::i64(1)), at);
  return {at, b_.binary("udiv", at, ir::i64(base)), b_.binary("urem", at, ir::i64(base))};
}

void KernelEmitter::define_digits(int var) {
  for (int digit : program_.digits_of(var)) {
    const Var& number = program_.vars[digit];
    const Turn turn = turn_of(var, number.base, number.reverse);
    values_[digit] = number.rest ? turn.rest : turn.quotient;
  }
}

void KernelEmitter::emit_body(const std::vector<Statement>& body) {
  for (const Statement& statement : body) std::visit([&](const auto& s) { emit(s); }, statement);
}

void KernelEmitter::emit_for(const For& s) {
  Val from = ir::i64(0), to = size(program_.vars[s.var].extent);
  if (s.block_var >= 0) {
    Val whole = to;
    Val each = b_.binary("udiv", b_.add(whole, ir::i64(s.blocks - 1)), ir::i64(s.blocks));
    from = b_.mul(values_.at(s.block_var), each);
    to = b_.intrinsic("smin", {b_.add(from, each), whole});
  }
  if (s.until >= 0) {
    const Turn turn = turn_of(s.until, s.run, s.reverse);
    Val start = b_.sub(turn.position, turn.rest);
    from = s.reverse ? b_.add(values_.at(s.until), ir::i64(1)) : start;
    to = s.reverse ? b_.sub(to, start) : values_.at(s.until);
  }
  auto loop = b_.begin_loop(from, to, 1);
  values_[s.var] = loop.index;
  if (s.reverse) values_[s.var] = b_.sub(b_.add(from, b_.sub(to, ir::i64(1))), loop.index);
  define_digits(s.var);
  emit_body(s.body);
  values_.erase(s.var);
  b_.end_loop(loop);
}

Val KernelEmitter::size(const Extent& extent) {
  if (extent.is_constant()) return ir::i64(extent.offset);
  auto [found, is_new] = sizes_.try_emplace(extent.text());
  if (!is_new) return found->second;
  auto argument = std::find_if(
      program_.arguments.begin(), program_.arguments.end(), [&](const TileProgram::Argument& a) {
        return a.kind == TileProgram::Argument::Kind::size && a.symbol == extent.symbol;
      });
  KRAIT_ASSERT(argument != program_.arguments.end(), program_.name, " needs the size ",
               extent.symbol, ", which is no argument");
  Val symbol = arguments_.at(static_cast<int>(argument - program_.arguments.begin()));
  Val sum = b_.add(symbol, ir::i64(extent.offset + extent.divisor - 1));
  if (extent.divisor != 1) sum = b_.binary("sdiv", sum, ir::i64(extent.divisor));
  return found->second = sum;
}

Val KernelEmitter::argument(int number) { return arguments_.at(number); }

Val KernelEmitter::buffer_base(int number) {
  const Buffer& buffer = program_.buffers[number];
  if (buffer.space == Space::global) {
    Val at = b_.element({"ptr", "%buffers"}, "ptr", ir::i64(buffer.pointer));
    return b_.emit("ptr", "load ptr, " + at.text() + ", align 8");
  }
  const Buffer& root = program_.buffers[memory_of(program_, number)];
  const std::int64_t byte =
      root.scratch_offset + memory_offset(program_, number) * size_in_bytes(root.dtype);
  return b_.element({"ptr", "%scratch"}, "i8", ir::i64(byte));
}

Val KernelEmitter::outer_index(const Index& index, const std::vector<int>& own) {
  Val sum = ir::i64(index.constant);
  for (const auto& [var, factor] : index.terms)
    if (std::find(own.begin(), own.end(), var) == own.end())
      sum = b_.add(b_.mul(values_.at(var), ir::i64(factor)), sum);
  return sum;
}

Val KernelEmitter::materialize(const Coefficient& coefficient) {
  Val sum = ir::i64(coefficient.constant);
  for (const auto& [number, factor] : coefficient.dynamic)
    sum = b_.add(b_.mul(argument(number), ir::i64(factor)), sum);
  return sum;
}

KernelSource emit_llvm(const TileProgram& program, const VectorTarget& target) {
  KernelSource source;
  source.name = source.entry = program.name;
  source.backend = KernelSource::Backend::llvm;
  source.text = KernelEmitter(program, target).run();
  return source;
}

}  // namespace krait
