// What a call passes.

#include "tests/cuda_emulator/machine/decoding.h"

namespace emulator {
namespace {

using Kind = ptx::Operand::Kind;

ptx::Variable parameter(ptx::Type type) {
  ptx::Variable variable;
  variable.space = ptx::Space::param;
  variable.type = type;
  variable.bytes = ptx::bytes_of(type);
  return variable;
}

Builtin builtin_named(const std::string& name) {
  if (name == "vprintf") return Builtin::vprintf;
  if (name == "__assertfail") return Builtin::assertfail;
  return Builtin::none;
}

ptx::Function builtin(Builtin which) {
  using ptx::Type;
  ptx::Function function;
  if (which == Builtin::vprintf) {
    function.results = {parameter(Type::b32)};
    function.parameters = {parameter(Type::b64), parameter(Type::b64)};
  } else {
    function.parameters = {parameter(Type::b64), parameter(Type::b64), parameter(Type::b32),
                           parameter(Type::b64), parameter(Type::b64)};
  }
  return function;
}

}  // namespace

Transfer FunctionDecoding::transfer(const ptx::Operand& operand,
                                    const ptx::Variable& parameter) const {
  const ptx::Variable& variable = variable_of(operand);
  if (operand.kind != Kind::variable || variable.space != ptx::Space::param || operand.offset) {
    fail(operand.name + " is not a variable in .param space");
  }
  if (variable.bytes != parameter.bytes) {
    fail(operand.name + " has " + std::to_string(variable.bytes) + " bytes, its parameter " +
         std::to_string(parameter.bytes));
  }
  Transfer transfer;
  transfer.bytes = static_cast<unsigned>(parameter.bytes);
  transfer.from = program_.placements.at(&variable).offset;
  return transfer;
}

std::vector<Transfer> FunctionDecoding::transfers(const ptx::Operand* list,
                                                  const std::vector<ptx::Variable>& parameters,
                                                  const char* kind) const {
  const size_t count = list ? list->elements.size() : 0;
  if (count != parameters.size()) {
    fail("the function has " + std::to_string(parameters.size()) + " " + kind + ", not " +
         std::to_string(count));
  }
  std::vector<Transfer> made;
  for (size_t i = 0; i < count; ++i) made.push_back(transfer(list->elements[i], parameters[i]));
  return made;
}

Op FunctionDecoding::call() {
  Modifiers modifiers(*instruction);
  modifiers.take("uni");
  modifiers.end();
  const auto& operands = instruction->operands;
  size_t next = 0;
  const ptx::Operand* results = nullptr;
  const ptx::Operand* arguments = nullptr;
  if (next < operands.size() && operands[next].kind == Kind::list) results = &operands[next++];
  if (next >= operands.size()) fail("a call names a function");
  const ptx::Operand& callee = operands[next++];
  if (next < operands.size() && operands[next].kind == Kind::list) arguments = &operands[next++];

  auto how = std::make_shared<Call>();
  std::vector<ptx::Variable> result_types, argument_types;
  if (callee.kind == Kind::variable) {
    const auto found = program_.functions.find(callee.name);
    if (found == program_.functions.end()) fail("there is no function " + callee.name);
    ptx::Function shape;
    const ptx::Function* function = &program_.source.functions[found->second];
    if (function->entry) fail("a kernel is not called");
    if (!function->defined) {
      how->builtin = builtin_named(callee.name);
      if (how->builtin == Builtin::none) fail("the function " + callee.name + " has no body");
      shape = builtin(how->builtin);
    } else {
      how->callee = &program_.codes[found->second];
    }
    how->no_return = function->no_return;
    const ptx::Function& has = how->builtin == Builtin::none ? *function : shape;
    result_types = has.results;
    argument_types = has.parameters;
  } else if (callee.kind == Kind::reg) {
    how->address = source(callee, ptx::Type::u64, false);
    if (next >= operands.size() || operands[next].kind != Kind::table) {
      fail("an indirect call names a prototype");
    }
    const ptx::Prototype& prototype = function_.prototypes.at(operands[next++].index);
    result_types = prototype.results;
    argument_types = prototype.parameters;
    how->no_return = prototype.no_return;
  } else {
    fail("a call names a function or a register");
  }
  if (next != operands.size()) fail("a call has more operands than there are");

  how->results = transfers(results, result_types, "results");
  how->arguments = transfers(arguments, argument_types, "parameters");
  place_transfers(*how, result_types, argument_types);
  const bool indirect = callee.kind == Kind::reg;
  Op op = make(Class::control, nullptr, {});
  op.flow = indirect ? Flow::call_indirect : Flow::call;
  op.extra = keep(std::shared_ptr<const void>(how));
  return op;
}

// Offsets in the callee: its parameters and results are placed alike in every function, by their
// sizes and alignments alone.
void FunctionDecoding::place_transfers(Call& how, const std::vector<ptx::Variable>& results,
                                       const std::vector<ptx::Variable>& arguments) {
  std::vector<uint64_t> places = param_places(arguments, results);
  for (size_t i = 0; i < how.arguments.size(); ++i) {
    how.arguments[i].to = places[i];
    how.arguments_bytes.push_back(how.arguments[i].bytes);
  }
  for (size_t i = 0; i < how.results.size(); ++i) {
    // A result comes from the callee.
    how.results[i].to = how.results[i].from;
    how.results[i].from = places[how.arguments.size() + i];
    how.results_bytes.push_back(how.results[i].bytes);
  }
}

}  // namespace emulator
