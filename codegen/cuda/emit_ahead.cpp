// Prefetch, Commit, Wait: copies to shared memory that run beside other work, of 8.0 and up.
#include "codegen/cuda/kernel_emitter.h"
#include "dsl/error.h"

namespace krait {

void CudaEmitter::emit(const Prefetch& s) {
  const std::string& name = var_names_[static_cast<std::size_t>(s.var)];
  w_.open("");
  const std::string next = unique(name + (s.first ? "_first" : "_next"));
  const Bounds turns = s.first ? bounds(s.var, s.block_var, s.blocks) : loops_.at(s.var);
  const std::string at = s.first ? (s.reverse ? turns.end + " - 1" : turns.begin)
                                 : value(s.var) + (s.reverse ? " - 1" : " + 1");
  w_.line("const int " + next + " = " + at + ";");
  w_.open("if (" + next + (s.reverse ? " >= " + turns.begin : " < " + turns.end) + ")");
  const std::string current = s.first ? "" : value(s.var);
  values_[s.var] = next;
  emit_body(s.body);
  if (s.first)
    values_.erase(s.var);
  else
    values_[s.var] = current;
  w_.close();
  w_.close();
}

void CudaEmitter::emit(const Commit&) {
  prelude_.insert("commit_copies");
  w_.line("commit_copies();");
}

void CudaEmitter::emit(const Wait& s) {
  prelude_.insert("wait_for_copies");
  w_.line("wait_for_copies<" + std::to_string(s.pending) + ">();");
}

void CudaEmitter::emit_asynchronous(const Copy& s) {
  KRAIT_ASSERT(target_.capability >= 80, program_.name, ": asynchronous copies on ",
               target_.architecture);
  w_.open("");
  const CudaOperand source = operand(s.source, s.domain);
  const CudaOperand destination = operand(s.destination, s.domain);
  Walk points{.layout = &*s.layout, .vars = s.domain};
  points.one_writer = true;
  const int width = source.wide_elements == destination.wide_elements ? source.wide_elements : 1;
  points.vector = width;
  walk(points, [&] {
    const std::string inside = condition(source);
    const std::string elements = "&" + destination.base + "[" + address(destination) + "], &" +
                                 source.base + "[" + address(source) + "], " +
                                 (inside.empty() ? "true" : inside);
    if (width > 1) {
      const std::string function = "copy_ahead" + std::to_string(width);
      prelude_.insert(function);
      w_.line(function + "(" + elements + ", " + source.wide + ");");
      return;
    }
    const std::string bytes = std::to_string(size_in_bytes(source.buffer->dtype));
    prelude_.insert("copy_ahead");
    w_.line("copy_ahead<" + bytes + ">(" + elements + ");");
  });
  w_.close();
}

}  // namespace krait
