#include "tests/cuda_emulator/ptx/body.h"

namespace emulator::ptx {

void BodyReader::read(uint64_t registers) {
  most_registers_ = registers;
  open_scope();
  declare_parameters();
  while (!scopes_.empty()) statement();
}

void BodyReader::declare_parameters() {
  const auto declare = [&](const std::vector<Variable>& variables, Symbol::Kind kind) {
    for (uint32_t i = 0; i < variables.size(); ++i) {
      scopes_.declare(variables[i].name, {kind, i, variables[i].line});
      names_.insert(variables[i].name);
    }
  };
  declare(function_.results, Symbol::Kind::result);
  declare(function_.parameters, Symbol::Kind::parameter);
}

void BodyReader::open_scope() {
  const int line = reader_.line();
  reader_.expect('{');
  scopes_.open(line);
  references_.emplace_back();
}

// What is used in the scope and declared there is resolved, the rest is left to the scope around.
void BodyReader::close_scope() {
  std::vector<Reference> open;
  for (const Reference& reference : references_.back()) {
    const Symbol symbol = scopes_.find_innermost(reference.name);
    if (symbol.kind == Symbol::Kind::none) {
      open.push_back(reference);
    } else if (symbol.kind != Symbol::Kind::label) {
      throw Error(reference.line, quoted(reference.name) + " is not a label");
    } else if (reference.in_table) {
      function_.branch_targets[reference.owner][reference.position] = symbol.index;
    } else {
      function_.instructions[reference.owner].operands[0].index = symbol.index;
    }
  }
  references_.pop_back();
  if (references_.empty() && !open.empty()) {
    throw Error(open[0].line, quoted(open[0].name) + " is not declared");
  }
  if (!open.empty()) references_.back().insert(references_.back().end(), open.begin(), open.end());
  scopes_.close();
  reader_.expect('}');
}

void BodyReader::statement() {
  switch (reader_.token().kind) {
    case Token::Kind::word: {
      const Token name = reader_.take();
      if (reader_.accept(':')) {
        labelled(name);
      } else {
        instruction(name, std::nullopt, false);
      }
      return;
    }
    case Token::Kind::dotted: return directive();
    case Token::Kind::punctuation:
      if (reader_.at('@')) return guarded_instruction();
      if (reader_.at('{')) return open_scope();
      if (reader_.at('}')) return close_scope();
      break;
    default: break;
  }
  reader_.unexpected("a statement");
}

void BodyReader::directive() {
  const Token name = reader_.take();
  if (name.text == "reg") return registers();
  if (name.text == "loc") return locations_.read_location(reader_);
  if (name.text == "param") return local_variables(Space::param);
  if (name.text == "shared") return local_variables(Space::shared);
  if (name.text == "local") return local_variables(Space::local);
  if (name.text == "pragma") {
    do {
      if (!reader_.at(Token::Kind::string)) reader_.unexpected("a string");
      reader_.take();
    } while (reader_.accept(','));
    return reader_.expect(';');
  }
  throw Error(name.line,
              "unknown directive " + quoted("." + std::string(name.text)) + " in a function");
}

void BodyReader::registers() {
  const Declared declared = variables_.declared();
  if (declared.elements != 1) reader_.fail("registers that are vectors are not handled");
  if (declared.managed) reader_.fail("a register cannot be managed");
  std::vector<Register>& all = function_.registers;
  do {
    const int line = reader_.line();
    const std::string_view name = reader_.word("the name of a register");
    if (name == "_" || name == "WARP_SZ") throw Error(line, quoted(name) + " cannot be declared");
    const auto index = static_cast<uint32_t>(all.size());
    const uint64_t left = most_registers_ - index;
    if (left == 0) throw Error(line, "too many registers");
    if (!reader_.accept('<')) {
      scopes_.declare(name, {Symbol::Kind::reg, index, line});
      all.push_back({std::string(name), declared.type});
      continue;
    }
    const auto count =
        static_cast<uint32_t>(read_literal(reader_, 0, left, "the number of registers"));
    reader_.expect('>');
    scopes_.declare_range(name, count, {Symbol::Kind::reg, index, line});
    all.reserve(all.size() + count);
    for (uint32_t i = 0; i < count; ++i) {
      all.push_back({std::string(name) + std::to_string(i), declared.type});
    }
  } while (reader_.accept(','));
  reader_.expect(';');
}

std::string BodyReader::unique(std::string_view name) {
  std::string out(name);
  if (symbols_.find(name).kind != Symbol::Kind::none || !names_.insert(out).second) {
    // Each try fails because of a name there is, so this ends; calls reuse the same few names in
    // scope after scope, so the search starts where the last one of that name may be.
    uint32_t& next = next_suffix_[out];
    do out = std::string(name) + "@" + std::to_string(++next);
    while (!names_.insert(out).second);
  }
  return out;
}

void BodyReader::local_variables(Space space) {
  const Declared declared = variables_.declared();
  if (declared.managed) reader_.fail("a variable of a function cannot be managed");
  do {
    std::string_view name;
    Variable variable = variables_.declarator(declared, space, name);
    if (variable.bytes == 0) reader_.fail("a variable of unknown size");
    if (reader_.at('=')) {
      reader_.fail_ahead("only variables in .global and .const have initial values");
    }
    const auto index = static_cast<uint32_t>(function_.locals.size());
    scopes_.declare(name, {Symbol::Kind::local, index, variable.line});
    variable.name = unique(name);
    function_.locals.push_back(std::move(variable));
  } while (reader_.accept(','));
  reader_.expect(';');
}

// A label, or the name of a table.
void BodyReader::labelled(const Token& name) {
  if (name.text == "_" || name.text == "WARP_SZ") {
    throw Error(name.line, quoted(name.text) + " is not a label");
  }
  if (reader_.accept_dotted("branchtargets")) return branch_targets(name);
  if (reader_.accept_dotted("callprototype")) return prototype(name);
  if (reader_.at_dotted("calltargets")) reader_.fail_ahead("lists of call targets are not handled");
  const auto index = static_cast<uint32_t>(function_.instructions.size());
  scopes_.declare(name.text, {Symbol::Kind::label, index, name.line});
  function_.labels.emplace(unique(name.text), index);
}

void BodyReader::branch_targets(const Token& name) {
  const auto table = static_cast<uint32_t>(function_.branch_targets.size());
  scopes_.declare(name.text, {Symbol::Kind::branch_table, table, name.line});
  std::vector<uint32_t> targets;
  do {
    const int line = reader_.line();
    references_.back().push_back(
        {reader_.word("a label"), line, table, static_cast<uint32_t>(targets.size()), true});
    targets.push_back(0);
  } while (reader_.accept(','));
  function_.branch_targets.push_back(std::move(targets));
  reader_.expect(';');
}

void BodyReader::prototype(const Token& name) {
  const auto index = static_cast<uint32_t>(function_.prototypes.size());
  scopes_.declare(name.text, {Symbol::Kind::prototype, index, name.line});
  Prototype out;
  out.results = variables_.parameters(1, true, false);
  if (reader_.word("_") != "_") reader_.fail("expected _ for the name of the function");
  out.parameters = variables_.parameters(kMostParameters, true, false);
  for (;;) {
    if (reader_.accept_dotted("noreturn")) {
      out.no_return = true;
    } else if (reader_.accept_dotted("abi_preserve") ||
               reader_.accept_dotted("abi_preserve_control")) {
      read_literal(reader_, 0, 65536, "a number of registers");
    } else {
      break;
    }
  }
  function_.prototypes.push_back(std::move(out));
  reader_.expect(';');
}

}  // namespace emulator::ptx
