#include "tests/cuda_emulator/machine/decoding.h"

#include <bit>
#include <cstring>

#include "tests/cuda_emulator/machine/operands.h"
#include "tests/cuda_emulator/machine/state.h"
#include "tests/cuda_emulator/machine/text.h"

namespace emulator {
namespace {

using Kind = ptx::Operand::Kind;

void jump(Warp&, const Op&, Mask) {}

void widen(Warp& warp, const Op& op, Mask lanes) {
  const Registers& r = warp.registers;
  const auto* from = r.in<uint32_t>(op.args[1]);
  const uint8_t* defined = r.defined_in(op.args[1]);
  auto* to = r.out<uint64_t>(op.args[0]);
  uint8_t* to_defined = r.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) {
    to[lane] = from[lane];
    to_defined[lane] = defined[lane];
  });
}

template <class T>
void local_address(Warp& warp, const Op& op, Mask lanes) {
  auto* to = warp.registers.out<T>(op.args[0]);
  uint8_t* defined = warp.registers.defined_out(op.args[0]);
  const auto address = static_cast<T>(warp.state->local_base + static_cast<uint64_t>(op.imm[0]));
  each_lane(lanes, [&](int lane) {
    to[lane] = address;
    defined[lane] = 0xff;
  });
}

void set_predicate(Warp& warp, const Op& op, Mask lanes) {
  warp.registers.set_predicate(op.args[0], lanes, op.imm[0] ? kAll : 0);
}

}  // namespace

FunctionDecoding::FunctionDecoding(Program& program, size_t function)
    : program_(program),
      index_(function),
      function_(program.source.functions[function]),
      code_(program.codes[function]),
      graph_(flow_graph(function_)),
      accesses_(function_.instructions.size()),
      temporaries_(function_.instructions.size()) {
  for (const ptx::Register& reg : function_.registers) types_.push_back(reg.type);
}

void FunctionDecoding::run() {
  first_pass();
  assign();
  second_pass();
}

void FunctionDecoding::first_pass() {
  for (uint32_t i = 0; i < function_.instructions.size(); ++i) {
    temporaries_[i] = static_cast<uint32_t>(types_.size());
    decode_one(i);
  }
  scratch_.clear();
  scratch_objects_.clear();
}

void FunctionDecoding::assign() {
  allocation_ = allocate(graph_, accesses_, types_);
  code_.units = allocation_.units;
  code_.predicates = allocation_.predicates;
  code_.pressure = allocation_.pressure;
  for (uint32_t reg : allocation_.live_at_start) {
    const ptx::Type type = types_[reg];
    if (type == ptx::Type::pred) continue;  // all of them start undefined
    const unsigned bytes = ptx::bytes_of(type);
    Code::Undefined undefined;
    undefined.unit = allocation_.unit[reg];
    undefined.units = static_cast<uint8_t>(std::max(1u, bytes / 4));
    undefined.defined = bytes >= 8 ? 0 : static_cast<uint8_t>(0xff << bytes);
    code_.undefined.push_back(undefined);
  }
}

void FunctionDecoding::second_pass() {
  second_ = true;
  const auto count = static_cast<uint32_t>(function_.instructions.size());
  std::vector<uint32_t> starts(count + 1);
  const auto jump_to = [&](uint32_t to) {
    Op op;
    op.run = jump;
    op.flow = Flow::branch;
    op.counted = false;
    op.kind = Class::control;
    op.imm[0] = to;
    op.source = function_.instructions.empty() ? nullptr : &function_.instructions.back();
    code_.ops.push_back(op);
  };
  for (size_t i = 0; i < graph_.order.size(); ++i) {
    const FlowGraph::Block& block = graph_.blocks[graph_.order[i]];
    starts[block.first] = static_cast<uint32_t>(code_.ops.size());
    if (block.first == count) {  // the end of the body returns
      jump_to(0);
      code_.ops.back().flow = function_.entry ? Flow::exit : Flow::ret;
      continue;
    }
    for (uint32_t at = block.first; at < block.last; ++at) {
      starts[at] = static_cast<uint32_t>(code_.ops.size());
      const Op op = decode_one(at);
      code_.ops.insert(code_.ops.end(), before_.begin(), before_.end());
      code_.ops.push_back(op);
    }
    const bool next_follows =
        i + 1 < graph_.order.size() && graph_.blocks[graph_.order[i + 1]].first == block.last;
    if (block.falls_through && !next_follows) jump_to(block.last);
  }
  link(starts);
}

// Instructions become positions.
void FunctionDecoding::link(const std::vector<uint32_t>& starts) {
  const auto position = [&](uint64_t instruction) {
    return starts[std::min<uint64_t>(instruction, starts.size() - 1)];
  };
  for (Op& op : code_.ops) {
    if (op.flow == Flow::branch) op.imm[0] = position(static_cast<uint64_t>(op.imm[0]));
  }
  for (const auto& targets : function_.branch_targets) {
    code_.tables.emplace_back();
    for (uint32_t target : targets) code_.tables.back().push_back(position(target));
  }
}

Op FunctionDecoding::decode_one(uint32_t index) {
  current_ = index;
  instruction = &function_.instructions[index];
  next_temporary_ = temporaries_[index];
  before_.clear();
  pairs_ = 0;
  Op op = decoders().decode(*this);
  for (const ptx::Operand& operand : instruction->operands) pairs_ -= operand.second != nullptr;
  if (pairs_ != 0) fail("it has no pair of destinations a|b");
  op.source = instruction;
  if (instruction->guard) {
    const uint32_t reg = *instruction->guard;
    if (types_.at(reg) != ptx::Type::pred) fail("a guard is a predicate");
    op.guarded = true;
    op.guard = read_of(reg);
    op.guard.negated = instruction->guard_negated;
  }
  accesses_[index].guarded = op.guarded;
  return op;
}

void FunctionDecoding::fail(const std::string& what) const {
  throw ptx::Error(instruction->line, text_of(*instruction) + ": " + what);
}

void FunctionDecoding::expect_operands(size_t least, size_t most) const {
  const size_t count = instruction->operands.size();
  if (count >= least && count <= most) return;
  std::string expected = std::to_string(least);
  if (most != least) expected += " to " + std::to_string(most);
  fail("takes " + expected + " operands, not " + std::to_string(count));
}

uint32_t FunctionDecoding::add_temporary(ptx::Type type) {
  if (!second_) types_.push_back(type);
  return next_temporary_++;
}

Arg FunctionDecoding::read_of(uint32_t reg) {
  // A temporary is written by the same instruction first.
  const bool temporary = reg >= function_.registers.size();
  if (!second_ && !temporary) accesses_[current_].reads.push_back(reg);
  Arg arg;
  arg.kind = types_[reg] == ptx::Type::pred ? Arg::Kind::predicate : Arg::Kind::reg;
  arg.unit = second_ ? allocation_.unit[reg] : 0;
  return arg;
}

Arg FunctionDecoding::written(uint32_t reg) {
  if (!second_) accesses_[current_].writes.push_back(reg);
  Arg arg;
  arg.kind = types_[reg] == ptx::Type::pred ? Arg::Kind::predicate : Arg::Kind::reg;
  arg.unit = second_ ? allocation_.unit[reg] : 0;
  return arg;
}

Op FunctionDecoding::before(void (*run)(Warp&, const Op&, Mask), const std::vector<Arg>& args) {
  Op op = make(Class::other, run, args);
  op.counted = false;
  return op;
}

Arg FunctionDecoding::constant(uint64_t bits, ptx::Type type) {
  Arg arg;
  arg.kind = Arg::Kind::constant;
  const unsigned bytes = ptx::bytes_of(type);
  if (bytes < 8) bits &= (uint64_t{1} << (8 * bytes)) - 1;
  const bool negative = static_cast<int64_t>(bits) < 0 && ptx::is_signed(type);
  arg.unit = second_ ? program_.constants.unit(bits, negative ? ~uint64_t{0} : 0, bytes) : 0;
  return arg;
}

Arg FunctionDecoding::source(const ptx::Operand& operand, ptx::Type type, bool relaxed) {
  if (operand.second) fail("a pair of registers is not a source");
  switch (operand.kind) {
    case Kind::reg: {
      const ptx::Type own = types_.at(operand.index);
      if (!operand_fits(own, type, relaxed)) fail(mismatch(function_, operand, own, type));
      if (operand.negated && type != ptx::Type::pred) fail("a negated register is not an operand");
      Arg arg = read_of(operand.index);
      arg.negated = operand.negated;
      return arg;
    }
    case Kind::integer:
    case Kind::single:
    case Kind::number: {
      if (type == ptx::Type::pred) {
        if (operand.kind != Kind::integer) fail("a predicate is an integer");
        const Arg arg = written(add_temporary(type));
        before_.push_back(before(set_predicate, {arg}));
        before_.back().imm[0] = (operand.bits != 0) != operand.negated;
        return read_of(next_temporary_ - 1);
      }
      uint64_t bits = 0;
      if (!literal_bits(operand, type, &bits)) {
        fail("a literal of that form is not a value of type ." + std::string(name_of(type)));
      }
      return constant(bits, type);
    }
    case Kind::special: return special(operand, type, relaxed);
    case Kind::variable: return address_of(operand, type);
    default: fail("an operand of this form is not a source here");
  }
}

Arg FunctionDecoding::target(const ptx::Operand& operand, ptx::Type type, bool relaxed, bool sink) {
  for (const ptx::Operand& own : instruction->operands) pairs_ += own.second.get() == &operand;
  if (operand.kind == Kind::sink) {
    if (!sink) fail("the sink _ is not a destination here");
    Arg arg;
    arg.kind = Arg::Kind::sink;
    return arg;
  }
  if (operand.kind != Kind::reg) fail("a destination is a register");
  if (operand.negated) fail("a destination is not negated");
  const ptx::Type own = types_.at(operand.index);
  if (!operand_fits(own, type, relaxed)) fail(mismatch(function_, operand, own, type));
  return written(operand.index);
}

int64_t FunctionDecoding::literal(const ptx::Operand& operand) const {
  if (operand.kind != Kind::integer) fail("an operand must be an integer literal");
  return static_cast<int64_t>(operand.bits);
}

const std::vector<ptx::Operand>& FunctionDecoding::elements(const ptx::Operand& operand,
                                                            size_t count) const {
  if (operand.kind != Kind::vector) fail("an operand must be a vector {..}");
  if (operand.elements.size() != count) {
    fail("a vector must have " + std::to_string(count) + " elements, not " +
         std::to_string(operand.elements.size()));
  }
  return operand.elements;
}

Arg FunctionDecoding::special(const ptx::Operand& operand, ptx::Type type, bool relaxed) {
  if (instruction->opcode != "mov" && instruction->opcode != "cvt") {
    fail("special registers are read by mov and cvt alone");
  }
  // Half of it alone, as it was once.
  const bool half = operand.name == "%gridid" && ptx::bytes_of(type) == 4;
  const Special* found = special_register(half ? "%gridid (32 bits)" : operand.name);
  if (!found) fail("no special register " + operand.name);
  if (!operand_fits(found->type, type, relaxed)) {
    fail(operand.name + " is of type ." + std::string(name_of(found->type)));
  }
  const Arg to = written(add_temporary(found->type));
  Op op = before(found->run, {to});
  op.imm[0] = found->which;
  before_.push_back(op);
  return read_of(next_temporary_ - 1);
}

const ptx::Variable& FunctionDecoding::variable_of(const ptx::Operand& operand) const {
  const ptx::Variable* variable = program_.variable(function_, operand.name);
  if (!variable) fail("no variable " + operand.name);
  return *variable;
}

Arg FunctionDecoding::address_of(const ptx::Operand& operand, ptx::Type type) {
  if (instruction->opcode != "mov" && instruction->opcode != "cvta") {
    fail("addresses of variables are taken by mov and cvta alone");
  }
  if (type == ptx::Type::none || type == ptx::Type::pred || ptx::is_float(type) ||
      ptx::bytes_of(type) < 4) {
    fail("an address is no value of type ." + std::string(name_of(type)));
  }
  if (const auto found = program_.functions.find(operand.name);
      found != program_.functions.end() && !program_.variable(function_, operand.name)) {
    if (ptx::bytes_of(type) != 8) fail("the address of a function has 64 bits");
    if (operand.offset != 0) fail("the address of a function has no offset");
    if (!program_.source.functions[found->second].defined) {
      fail("the function " + operand.name + " has no body");
    }
    return constant(program_.address_of(found->second), type);
  }
  const ptx::Variable& variable = variable_of(operand);
  if (variable.space == ptx::Space::global && ptx::bytes_of(type) != 8) {
    fail("the address of a global variable has 64 bits");
  }
  return place_of(variable, operand.offset, type);
}

Arg FunctionDecoding::place_of(const ptx::Variable& variable, int64_t offset, ptx::Type type) {
  const Placement& place = program_.placements.at(&variable);
  const uint64_t address = place.offset + static_cast<uint64_t>(offset);
  // Parameters of functions lie in local memory, and so does their address.
  const bool local_param = variable.space == ptx::Space::param && !function_.entry;
  if (variable.space != ptx::Space::local && !local_param) return constant(address, type);
  const uint64_t from_base = local_param ? address - code_.param_first + code_.param_base : address;
  if (function_.entry) return constant(from_base, type);
  const Arg to = written(add_temporary(type));
  Op op =
      before(ptx::bytes_of(type) == 8 ? local_address<uint64_t> : local_address<uint32_t>, {to});
  op.imm[0] = static_cast<int64_t>(from_base);
  before_.push_back(op);
  return read_of(next_temporary_ - 1);
}

// A 32-bit register as an address.
Arg FunctionDecoding::widened(const ptx::Operand& operand) {
  const Arg from = read_of(operand.index);
  const Arg to = written(add_temporary(ptx::Type::u64));
  before_.push_back(before(widen, {to, from}));
  return read_of(next_temporary_ - 1);
}

Decoding::Address FunctionDecoding::address(const ptx::Operand& operand, ptx::Space space) {
  if (operand.kind != Kind::address || operand.elements.size() != 1) {
    fail("an operand must be an address [..]");
  }
  const ptx::Operand& base = operand.elements[0];
  Address result;
  result.offset = operand.offset;
  if (base.kind == Kind::variable) {
    const ptx::Variable& variable = variable_of(base);
    result.variable = &variable;
    result.variable_space = variable.space;
    result.offset += base.offset;
    if (space != ptx::Space::generic && space != variable.space) {
      fail(base.name + " lies in ." + std::string(name_of(variable.space)) + " space");
    }
    if (variable.space == ptx::Space::param) {  // its own space, whatever the function
      result.base = constant(program_.placements.at(&variable).offset, ptx::Type::u64);
    } else {
      result.base = place_of(variable, 0, ptx::Type::u64);
    }
    return result;
  }
  if (base.kind == Kind::integer) {
    if (space != ptx::Space::local) fail("a number is an address in local space alone");
    result.base = constant(base.bits, ptx::Type::u64);
    return result;
  }
  if (base.kind != Kind::reg) fail("an address starts with a register, a variable or a number");
  const ptx::Type type = types_.at(base.index);
  if (operand_fits(type, ptx::Type::b64, false) && !ptx::is_float(type)) {
    result.base = read_of(base.index);
  } else if (operand_fits(type, ptx::Type::b32, false) && !ptx::is_float(type) &&
             space != ptx::Space::generic && space != ptx::Space::global) {
    result.base = widened(base);
  } else {
    fail("a register of type ." + std::string(name_of(type)) + " is no address in ." +
         std::string(name_of(space)) + " space");
  }
  return result;
}

const Arg* FunctionDecoding::keep(const std::vector<Arg>& args) {
  if (second_) return program_.keep(args);
  scratch_.push_back(std::make_unique<Arg[]>(args.size() + 1));
  std::copy(args.begin(), args.end(), scratch_.back().get());
  return scratch_.back().get();
}

const void* FunctionDecoding::keep(std::shared_ptr<const void> object) {
  const void* result = object.get();
  if (second_) {
    program_.keep(std::move(object));
  } else {
    scratch_objects_.push_back(std::move(object));
  }
  return result;
}

ptx::Type FunctionDecoding::register_type(const ptx::Operand& operand) const {
  return operand.kind == Kind::reg ? types_.at(operand.index) : ptx::Type::none;
}

int FunctionDecoding::version() const {
  return 10 * program_.source.version_major + program_.source.version_minor;
}

void decode(Program& program, size_t function) { FunctionDecoding(program, function).run(); }

}  // namespace emulator
