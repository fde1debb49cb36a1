// Names in the text: those of the block where it gave them.
#include <cctype>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/tile/access.h"

namespace krait {
namespace {

/// Words of the language, of the frame, and of statements.
const std::set<std::string> reserved{
    "and",     "asm",      "auto",     "bool",    "break",    "case",     "catch",     "char",
    "class",   "const",    "continue", "default", "delete",   "do",       "double",    "else",
    "enum",    "explicit", "export",   "extern",  "false",    "float",    "for",       "friend",
    "goto",    "if",       "inline",   "int",     "long",     "mutable",  "namespace", "new",
    "not",     "operator", "or",       "private", "public",   "register", "return",    "short",
    "signed",  "size_t",   "sizeof",   "static",  "struct",   "switch",   "template",  "this",
    "throw",   "true",     "try",      "typedef", "typename", "union",    "unsigned",  "using",
    "virtual", "void",     "volatile", "while",   "xor",      "abs",      "min",       "max",
    "i64",     "u64",      "DEV",      "Four",    "Two",      "tid",      "rest",      "scratch",
    "acc",     "lhs",      "rhs",      "running", "lost",     "lhs_term", "rhs_term",  "kk",
    "i",       "term",     "wide"};

bool is_register_loop(const std::string& name) {
  return name.size() > 1 && name[0] == 'r' &&
         name.find_first_not_of("0123456789", 1) == std::string::npos;
}

bool is_unnamed(const Buffer& buffer) { return buffer.name.empty() || buffer.name[0] == '%'; }

}  // namespace

std::string cuda_identifier(const std::string& name) {
  std::string made;
  for (char c : name) {
    if (c == '%')
      made += 'v';
    else
      made += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (made.empty() || std::isdigit(static_cast<unsigned char>(made[0])) != 0) made = "v" + made;
  return is_register_loop(made) ? made + "_" : made;
}

std::string CudaEmitter::unique(const std::string& wanted) {
  static const std::set<std::string> functions = prelude_names();
  std::string name = wanted;
  const auto taken = [&] {
    return reserved.count(name) != 0 || functions.count(name) != 0 || !taken_.insert(name).second;
  };
  for (int i = 2; taken(); ++i) name = wanted + "_" + std::to_string(i);
  made_.push_back(name);
  return name;
}

void CudaEmitter::forget(std::size_t count) {
  for (; made_.size() > count; made_.pop_back()) taken_.erase(made_.back());
}

void CudaEmitter::name_everything() {
  name_pointers();
  for (const Var& var : program_.vars) var_names_.push_back(unique(cuda_identifier(var.name)));
  name_buffers();
  name_arguments();
  named_.vars = program_.vars;
  named_.buffers = program_.buffers;
  for (std::size_t i = 0; i < named_.vars.size(); ++i) named_.vars[i].name = var_names_[i];
  for (std::size_t i = 0; i < named_.buffers.size(); ++i) named_.buffers[i].name = buffer_names_[i];
}

void CudaEmitter::name_pointers() {
  // A pointer may show as several buffers: one that is written names it, else the first.
  std::vector<const Buffer*> shown;
  for (const Buffer& buffer : program_.buffers) {
    if (buffer.pointer < 0) continue;
    const auto pointer = static_cast<std::size_t>(buffer.pointer);
    if (pointer >= shown.size()) shown.resize(pointer + 1, nullptr);
    if (shown[pointer] == nullptr || (buffer.written && !shown[pointer]->written))
      shown[pointer] = &buffer;
  }
  for (const Buffer* buffer : shown) {
    const std::string name = buffer == nullptr ? "unused" : cuda_identifier(buffer->name);
    const std::string type =
        buffer == nullptr ? "const void"
                          : (buffer->written ? "" : "const ") + memory_type_of(buffer->dtype);
    pointers_.push_back({unique(name), type});
  }
}

void CudaEmitter::name_buffers() {
  std::map<int, std::string> tensors;  // what a buffer on chip is a part of
  visit_statements(program_.body, [&](const Statement& statement) {
    const auto* copy = std::get_if<Copy>(&statement);
    if (copy == nullptr) return;
    const Buffer& source = program_.buffers[static_cast<std::size_t>(copy->source.buffer)];
    if (source.space == Space::global && !is_unnamed(source))
      tensors.emplace(copy->destination.buffer, cuda_identifier(source.name));
  });
  buffer_names_.resize(program_.buffers.size());
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& buffer = program_.buffers[i];
    if (buffer.space == Space::global) {
      buffer_names_[i] = pointers_[static_cast<std::size_t>(buffer.pointer)].name;
      continue;
    }
    const auto tensor = tensors.find(static_cast<int>(i));
    if (!is_root(static_cast<int>(i))) continue;
    buffer_names_[i] =
        unique(is_unnamed(buffer) && tensor != tensors.end() ? tensor->second + "_tile"
                                                             : cuda_identifier(buffer.name));
  }
  for (std::size_t i = 0; i < program_.buffers.size(); ++i)
    if (buffer_names_[i].empty())
      buffer_names_[i] =
          buffer_names_[static_cast<std::size_t>(memory_of(program_, static_cast<int>(i)))];
}

bool CudaEmitter::is_root(int buffer) const {
  const int root = memory_of(program_, buffer);
  const Buffer& memory = program_.buffers[static_cast<std::size_t>(root)];
  return root == buffer || memory.space == Space::fragment ||
         memory_offset(program_, buffer) != 0 ||
         memory.dtype != program_.buffers[static_cast<std::size_t>(buffer)].dtype;
}

void CudaEmitter::name_arguments() {
  for (std::size_t i = 0; i < program_.arguments.size(); ++i) {
    const TileProgram::Argument& argument = program_.arguments[i];
    if (argument.kind == TileProgram::Argument::Kind::size) {
      argument_names_.push_back(unique(cuda_identifier(argument.symbol) + "_size"));
      continue;
    }
    std::string axis = std::to_string(argument.dim);
    for (const Buffer& buffer : program_.buffers)
      for (const Dim& dim : buffer.dims)
        if (dim.stride.argument == static_cast<int>(i)) axis = dim.axis;
    argument_names_.push_back(unique(pointers_[static_cast<std::size_t>(argument.pointer)].name +
                                     "_stride_" + cuda_identifier(axis)));
  }
}

}  // namespace krait
