// bra brx call ret exit trap brkpt nanosleep bar barrier griddepcontrol pmevent

#include "tests/cuda_emulator/isa/barrier.h"
#include "tests/cuda_emulator/machine/decoding.h"

namespace emulator {
namespace {

using ptx::Type;
using Kind = ptx::Operand::Kind;

void nothing(Warp&, const Op&, Mask) {}

Op control(Decoding& decoding, Flow flow) {
  Op op = decoding.make(Class::control, nothing, {});
  op.flow = flow;
  return op;
}

Op bra(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool uniform = modifiers.take("uni");
  modifiers.end();
  decoding.expect_operands(1);
  const ptx::Operand& target = decoding.instruction->operands[0];
  if (target.kind != Kind::label) decoding.fail("a branch names a label");
  Op op = control(decoding, Flow::branch);
  op.imm[0] = target.index;
  op.mode[0] = uniform;
  return op;
}

Op brx(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (!modifiers.take("idx")) decoding.fail("brx has the modifier .idx");
  const bool uniform = modifiers.take("uni");
  modifiers.end();
  decoding.expect_operands(2);
  const ptx::Operand& table = decoding.instruction->operands[1];
  if (table.kind != Kind::table) decoding.fail("an indirect branch names its targets");
  Op op = decoding.make(Class::control, nothing, {decoding.source(0, Type::u32)});
  op.flow = Flow::branch_indirect;
  op.imm[1] = table.index;
  op.mode[0] = uniform;
  return op;
}

Decoder without_operands(Flow flow, bool may_be_uniform) {
  return [=](Decoding& decoding) {
    Modifiers modifiers(*decoding.instruction);
    if (may_be_uniform) modifiers.take("uni");
    modifiers.end();
    decoding.expect_operands(0);
    return control(decoding, flow);
  };
}

// Time passes by itself: others of the warp are not kept.
Op nanosleep(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  modifiers.type({Type::u32});
  modifiers.end();
  decoding.expect_operands(1);
  return decoding.make(Class::other, nothing, {decoding.source(0, Type::u32)});
}

Op pmevent(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  modifiers.take("mask");
  modifiers.end();
  decoding.expect_operands(1);
  decoding.literal(0);
  return decoding.make(Class::other, nothing, {});
}

// Launches run one after another: what a launch depends on has ended.
Op griddepcontrol(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (modifiers.take_one({"launch_dependents", "wait"}) < 0) {
    decoding.fail("griddepcontrol has the modifier .launch_dependents or .wait");
  }
  modifiers.end();
  decoding.expect_operands(0);
  if (decoding.architecture() < 90) decoding.fail("griddepcontrol needs sm_90");
  return decoding.make(Class::other, nothing, {});
}

// The number of a barrier, and that of its threads, where they are literals.
void check_literals(const Decoding& decoding, size_t id, bool has_count) {
  const auto& operands = decoding.instruction->operands;
  if (operands[id].kind == Kind::integer && operands[id].bits > 15) {
    decoding.fail("there are barriers 0 to 15");
  }
  if (!has_count || operands[id + 1].kind != Kind::integer) return;
  const uint64_t threads = operands[id + 1].bits;
  if (threads == 0 || threads % 32) {
    decoding.fail("the number of threads is a multiple of the warp size, and not 0");
  }
}

// bar.x is barrier.x.aligned.
Op barrier(Decoding& decoding, bool always_aligned) {
  Modifiers modifiers(*decoding.instruction);
  if (always_aligned && modifiers.peek() == "warp") return decode_warp_barrier(decoding);
  modifiers.take("cta");
  auto how = std::make_shared<BarrierOp>();
  BarrierKind kind = BarrierKind::sync;
  bool reduces = false;
  if (modifiers.take("arrive")) {
    kind = BarrierKind::arrive;
  } else if (modifiers.take("red")) {
    reduces = true;
    const int which = modifiers.take_one({"popc", "and", "or"});
    if (which < 0) decoding.fail("a reduction of a barrier is .popc, .and or .or");
    kind = which == 0 ? BarrierKind::popc : which == 1 ? BarrierKind::all : BarrierKind::any;
  } else if (!modifiers.take("sync")) {
    decoding.fail("a barrier has the modifier .sync, .arrive or .red");
  }
  how->aligned = always_aligned || modifiers.take("aligned");
  const Type type = kind == BarrierKind::popc ? Type::u32 : Type::pred;
  if (reduces) modifiers.type({type});
  modifiers.end();

  const size_t count = decoding.instruction->operands.size();
  const size_t own = reduces ? 2 : 0;  // the result and the predicate
  decoding.expect_operands(own + (kind == BarrierKind::arrive ? 2 : 1), own + 2);
  std::vector<Arg> args;
  if (reduces) args.push_back(decoding.target(0, type));
  how->id = static_cast<uint8_t>(args.size());
  args.push_back(decoding.source(args.size(), Type::u32));
  how->has_count = count == own + 2;
  check_literals(decoding, how->id, how->has_count);
  if (how->has_count) {
    how->count = static_cast<uint8_t>(args.size());
    args.push_back(decoding.source(args.size(), Type::u32));
  }
  if (reduces) args.push_back(decoding.source(count - 1, Type::pred));
  Op op = decoding.make(Class::barrier, nothing, args);
  op.flow = Flow::block_barrier;
  op.mode[0] = static_cast<uint32_t>(kind);
  op.extra = decoding.keep(how);
  return op;
}

}  // namespace

void add_control(Decoders& decoders) {
  decoders.add("bra", bra);
  decoders.add("brx", brx);
  decoders.add("call", [](Decoding& d) { return static_cast<FunctionDecoding&>(d).call(); });
  decoders.add("ret", without_operands(Flow::ret, true));
  decoders.add("exit", without_operands(Flow::exit, false));
  decoders.add("trap", without_operands(Flow::trap, false));
  decoders.add("brkpt", without_operands(Flow::trap, false));
  decoders.add("nanosleep", nanosleep);
  decoders.add("pmevent", pmevent);
  decoders.add("griddepcontrol", griddepcontrol);
  decoders.add("bar", [](Decoding& d) { return barrier(d, true); });
  decoders.add("barrier", [](Decoding& d) { return barrier(d, false); });
}

}  // namespace emulator
