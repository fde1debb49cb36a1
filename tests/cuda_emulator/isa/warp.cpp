// shfl vote match redux elect activemask bar.warp.sync

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/cuda_emulator/isa/barrier.h"
#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/collective.h"
#include "tests/cuda_emulator/machine/decode.h"

namespace emulator {
namespace {

using ptx::Type;

void gather_words(const Registers& r, const Op& op, Mask lanes, Exchange& x) {
  // The sources lie before the member mask.
  const unsigned sources = op.mode[1] & 0xff;
  for (unsigned s = 0; s < sources; ++s) {
    const Arg arg = op.args[op.members - sources + s];
    const auto* from = r.in<uint32_t>(arg);
    const uint8_t* defined = r.defined_in(arg);
    each_lane(lanes, [&](int lane) {
      x.in[s][lane] = from[lane];
      x.defined[s][lane] = defined[lane];
    });
  }
}

void gather_wide(const Registers& r, const Op& op, Mask lanes, Exchange& x) {
  const Arg arg = op.args[op.members - 1];
  const auto* from = r.in<uint64_t>(arg);
  const uint8_t* defined = r.defined_in(arg);
  each_lane(lanes, [&](int lane) {
    x.wide[lane] = from[lane];
    x.defined[0][lane] = defined[lane];
  });
}

void gather_predicate(const Registers& r, const Op& op, Mask lanes, Exchange& x) {
  const Arg arg = op.args[op.members - 1];
  const Mask value = r.predicate(arg), defined = r.predicate_defined(arg);
  each_lane(lanes, [&](int lane) {
    x.in[0][lane] = value >> lane & 1;
    x.defined[0][lane] = defined >> lane & 1 ? 0xff : 0xf0;
  });
}

void gather_nothing(const Registers&, const Op&, Mask, Exchange&) {}

void scatter_word(const Registers& r, const Op& op, Mask lanes, const Exchange& x) {
  if (op.args[0].kind != Arg::Kind::reg) return;
  auto* to = r.out<uint32_t>(op.args[0]);
  uint8_t* defined = r.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) {
    to[lane] = x.out[lane];
    defined[lane] = x.out_defined[lane];
  });
}

void scatter_predicate(const Registers& r, const Op& op, Mask lanes, const Exchange& x) {
  r.set_predicate(op.args[0], lanes, x.predicate, x.predicate_defined);
}

// d|p; p may be missing, which is a sink then.
void scatter_both(const Registers& r, const Op& op, Mask lanes, const Exchange& x) {
  scatter_word(r, op, lanes, x);
  r.set_predicate(op.args[1], lanes, x.predicate, x.predicate_defined);
}

void scatter_nothing(const Registers&, const Op&, Mask, const Exchange&) {}

void give_all(Exchange& x, uint32_t value, uint8_t defined) {
  each_lane(x.members, [&](int lane) {
    x.out[lane] = value;
    x.out_defined[lane] = defined;
  });
}

bool all_defined(const Exchange& x) {
  uint8_t together = 0xff;
  each_lane(x.members, [&](int lane) { together &= x.defined[0][lane]; });
  return together == 0xff;
}

// Shuffles: the ISA's pseudo code, lane by lane.
enum class Shuffle : uint32_t { up, down, bfly, idx };

void shuffle(Warp&, const Op& op, Exchange& x) {
  x.predicate = 0;
  x.predicate_defined = 0;
  each_lane(x.members, [&](int lane) {
    const auto b = static_cast<int>(x.in[1][lane] & 0x1f);
    const int clamp = x.in[2][lane] & 0x1f, segment = x.in[2][lane] >> 8 & 0x1f;
    const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    int from = lane;
    bool inside = false;
    switch (static_cast<Shuffle>(op.mode[0])) {
      case Shuffle::up:
        from = lane - b;
        inside = from >= most;
        break;
      case Shuffle::down:
        from = lane + b;
        inside = from <= most;
        break;
      case Shuffle::bfly:
        from = lane ^ b;
        inside = from <= most;
        break;
      case Shuffle::idx:
        from = least | (b & ~segment);
        inside = from <= most;
        break;
    }
    if (!inside) from = lane;
    const bool known = x.defined[1][lane] == 0xff && x.defined[2][lane] == 0xff;
    const bool there = x.members >> from & 1;
    x.out[lane] = there ? x.in[0][from] : 0;
    x.out_defined[lane] = known && there ? x.defined[0][from] : 0xf0;
    x.predicate |= Mask{inside} << lane;
    x.predicate_defined |= Mask{known} << lane;
  });
}

enum class Vote : uint32_t { all, any, uni, ballot };

void vote(Warp&, const Op& op, Exchange& x) {
  Mask value = 0, defined = 0;
  each_lane(x.members, [&](int lane) {
    value |= x.in[0][lane] << lane;
    defined |= Mask{x.defined[0][lane] == 0xff} << lane;
  });
  const Mask undefined = x.members & ~defined;
  const bool some_true = value & defined, some_false = ~value & defined;
  bool result = false, known = !undefined;
  switch (static_cast<Vote>(op.mode[0])) {
    case Vote::all:
      result = value == x.members;
      known |= some_false;
      if (some_false) result = false;
      break;
    case Vote::any:
      result = some_true;
      known |= some_true;
      break;
    case Vote::uni:
      result = value == 0 || value == x.members;
      known |= some_true && some_false;
      if (some_true && some_false) result = false;
      break;
    case Vote::ballot: {
      uint8_t bytes = 0xf0;
      for (int i = 0; i < 4; ++i) {
        if (!(undefined >> (8 * i) & 0xff)) bytes |= static_cast<uint8_t>(1 << i);
      }
      give_all(x, value, bytes);
      return;
    }
  }
  x.predicate = result ? kAll : 0;
  x.predicate_defined = known ? kAll : 0;
}

uint64_t compared(const Op& op, const Exchange& x, int lane) {
  return op.mode[0] ? x.wide[lane] : x.in[0][lane];
}

void match_any(Warp&, const Op& op, Exchange& x) {
  const uint8_t defined = all_defined(x) ? 0xff : 0xf0;
  each_lane(x.members, [&](int lane) {
    Mask same = 0;
    each_lane(x.members, [&](int other) {
      same |= Mask{compared(op, x, lane) == compared(op, x, other)} << other;
    });
    x.out[lane] = same;
    x.out_defined[lane] = defined;
  });
}

void match_all(Warp&, const Op& op, Exchange& x) {
  const uint64_t first = compared(op, x, std::countr_zero(x.members));
  bool same = true;
  each_lane(x.members, [&](int lane) { same &= compared(op, x, lane) == first; });
  const bool defined = all_defined(x);
  give_all(x, same ? x.members : 0, defined ? 0xff : 0xf0);
  x.predicate = same ? kAll : 0;
  x.predicate_defined = defined ? kAll : 0;
}

enum class Reduction : uint32_t { add, min, max, min_signed, max_signed, all, any, parity };

// redux of f32: mode[0] is min or max.
constexpr uint32_t kAbsolute = 0x100, kNan = 0x200, kCanonicalNan = 0x7fff'ffff;

uint32_t combined(Reduction how, uint32_t a, uint32_t b) {
  const auto as = static_cast<int32_t>(a), bs = static_cast<int32_t>(b);
  switch (how) {
    case Reduction::add: return a + b;
    case Reduction::min: return std::min(a, b);
    case Reduction::max: return std::max(a, b);
    case Reduction::min_signed: return static_cast<uint32_t>(std::min(as, bs));
    case Reduction::max_signed: return static_cast<uint32_t>(std::max(as, bs));
    case Reduction::all: return a & b;
    case Reduction::any: return a | b;
    default: return a ^ b;
  }
}

void reduce(Warp&, const Op& op, Exchange& x) {
  const int first = std::countr_zero(x.members);
  uint32_t result = x.in[0][first];
  each_lane(x.members & ~(Mask{1} << first), [&](int lane) {
    result = combined(static_cast<Reduction>(op.mode[0]), result, x.in[0][lane]);
  });
  give_all(x, result, all_defined(x) ? 0xff : 0xf0);
}

// NaNs count only where .NaN is given or there is nothing else; -0 is below +0.
void reduce_float(Warp&, const Op& op, Exchange& x) {
  const bool max = static_cast<Reduction>(op.mode[0] & 0xff) == Reduction::max;
  bool numbers = false, nans = false;
  float best = 0;
  each_lane(x.members, [&](int lane) {
    const uint32_t bits = op.mode[0] & kAbsolute ? x.in[0][lane] & 0x7fff'ffff : x.in[0][lane];
    const auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) {
      nans = true;
      return;
    }
    const bool above = value > best || (value == best && std::signbit(best));
    const bool below = value < best || (value == best && std::signbit(value));
    if (!numbers || (max ? above : below)) best = value;
    numbers = true;
  });
  const bool nan = !numbers || (nans && (op.mode[0] & kNan));
  give_all(x, nan ? kCanonicalNan : std::bit_cast<uint32_t>(best), all_defined(x) ? 0xff : 0xf0);
}

void elect(Warp&, const Op&, Exchange& x) {
  const int leader = std::countr_zero(x.members);
  give_all(x, static_cast<uint32_t>(leader), 0xff);
  x.predicate = Mask{1} << leader;
  x.predicate_defined = kAll;
}

void meet(Warp& warp, const Op&, Exchange& x) {
  warp.block->clocks.join_warp(warp.index, x.members);
}

constexpr Collective kShuffle{gather_words, shuffle, scatter_both};
constexpr Collective kVote{gather_predicate, vote, scatter_predicate};
constexpr Collective kBallot{gather_predicate, vote, scatter_word};
constexpr Collective kMatchAny{gather_words, match_any, scatter_word};
constexpr Collective kMatchAnyWide{gather_wide, match_any, scatter_word};
constexpr Collective kMatchAll{gather_words, match_all, scatter_both};
constexpr Collective kMatchAllWide{gather_wide, match_all, scatter_both};
constexpr Collective kReduce{gather_words, reduce, scatter_word};
constexpr Collective kReduceFloat{gather_words, reduce_float, scatter_word};
constexpr Collective kElect{gather_nothing, elect, scatter_both};
constexpr Collective kMeet{gather_nothing, meet, scatter_nothing};

Op made(Decoding& decoding, const Collective& kind, std::vector<Arg> args, uint32_t mode,
        uint32_t sources, const ptx::Operand& members) {
  args.push_back(decoding.source(members, Type::u32));
  Op op = decoding.make(Class::warp, nullptr, args);
  op.flow = Flow::collective;
  op.members = static_cast<uint8_t>(args.size() - 1);
  op.extra = &kind;
  op.mode[0] = mode;
  op.mode[1] = sources;
  return op;
}

// d|p, or d alone; p may be the sink.
std::vector<Arg> pair(Decoding& decoding, bool sink) {
  const ptx::Operand& operand = decoding.instruction->operands[0];
  std::vector<Arg> args{decoding.target(operand, Type::b32, false, sink)};
  Arg none;
  none.kind = Arg::Kind::sink;
  args.push_back(operand.second ? decoding.target(*operand.second, Type::pred, false, true) : none);
  return args;
}

void need_sync(Decoding& decoding, Modifiers& modifiers) {
  if (modifiers.take("sync")) return;
  decoding.fail("without .sync it is not for sm_70 and later");
}

Op decode_shuffle(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  need_sync(decoding, modifiers);
  const int mode = modifiers.take_one({"up", "down", "bfly", "idx"});
  if (mode < 0) decoding.fail("a shuffle is .up, .down, .bfly or .idx");
  modifiers.type({Type::b32});
  modifiers.end();
  decoding.expect_operands(5);
  std::vector<Arg> args = pair(decoding, false);
  args.push_back(decoding.source(1, Type::b32));
  args.push_back(decoding.source(2, Type::u32));
  args.push_back(decoding.source(3, Type::u32));
  return made(decoding, kShuffle, args, static_cast<uint32_t>(mode), 3,
              decoding.instruction->operands[4]);
}

Op decode_vote(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  need_sync(decoding, modifiers);
  const int mode = modifiers.take_one({"all", "any", "uni", "ballot"});
  if (mode < 0) decoding.fail("a vote is .all, .any, .uni or .ballot");
  const bool ballot = static_cast<Vote>(mode) == Vote::ballot;
  const Type type = modifiers.type({ballot ? Type::b32 : Type::pred});
  modifiers.end();
  decoding.expect_operands(3);
  const Arg to = decoding.target(0, type);
  return made(decoding, ballot ? kBallot : kVote, {to, decoding.source(1, Type::pred)},
              static_cast<uint32_t>(mode), 1, decoding.instruction->operands[2]);
}

Op decode_match(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const int mode = modifiers.take_one({"any", "all"});
  if (mode < 0) decoding.fail("match is .any or .all");
  need_sync(decoding, modifiers);
  const Type type = modifiers.type({Type::b32, Type::b64});
  modifiers.end();
  decoding.expect_operands(3);
  const bool wide = type == Type::b64, all = mode == 1;
  std::vector<Arg> args;
  if (all) {
    args = pair(decoding, false);
  } else {
    args.push_back(decoding.target(0, Type::b32));
  }
  args.push_back(decoding.source(1, type));
  const Collective& kind =
      all ? (wide ? kMatchAllWide : kMatchAll) : (wide ? kMatchAnyWide : kMatchAny);
  return made(decoding, kind, args, wide, 1, decoding.instruction->operands[2]);
}

Op made_redux(Decoding& decoding, const Collective& kind, Type type, uint32_t mode) {
  decoding.expect_operands(3);
  const Arg to = decoding.target(0, type);
  return made(decoding, kind, {to, decoding.source(1, type)}, mode, 1,
              decoding.instruction->operands[2]);
}

// What follows redux.sync.min or .max.
Op decode_redux_extreme(Decoding& decoding, Modifiers& modifiers, bool max) {
  uint32_t flags = 0;
  if (modifiers.take("abs")) flags |= kAbsolute;
  if (modifiers.take("NaN")) flags |= kNan;
  const Type type =
      flags ? modifiers.type({Type::f32}) : modifiers.type({Type::u32, Type::s32, Type::f32});
  modifiers.end();
  Reduction mode = max ? Reduction::max : Reduction::min;
  if (type == Type::f32) {
    if (decoding.architecture() < 100) decoding.fail("redux of .f32 needs sm_100a");
    return made_redux(decoding, kReduceFloat, type, static_cast<uint32_t>(mode) | flags);
  }
  if (type == Type::s32) mode = max ? Reduction::max_signed : Reduction::min_signed;
  return made_redux(decoding, kReduce, type, static_cast<uint32_t>(mode));
}

Op decode_redux(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  need_sync(decoding, modifiers);
  if (decoding.architecture() < 80) decoding.fail("redux needs sm_80");
  const int how = modifiers.take_one({"min", "max", "add", "and", "or", "xor"});
  if (how < 0) decoding.fail("a reduction is .add, .min, .max, .and, .or or .xor");
  if (how < 2) return decode_redux_extreme(decoding, modifiers, how == 1);
  constexpr Reduction kinds[] = {Reduction::add, Reduction::all, Reduction::any, Reduction::parity};
  const Type type = how == 2 ? modifiers.type({Type::u32, Type::s32}) : modifiers.type({Type::b32});
  modifiers.end();
  return made_redux(decoding, kReduce, type, static_cast<uint32_t>(kinds[how - 2]));
}

Op decode_elect(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  need_sync(decoding, modifiers);
  modifiers.end();
  if (decoding.architecture() < 90) decoding.fail("elect needs sm_90");
  decoding.expect_operands(2);
  if (!decoding.instruction->operands[0].second) decoding.fail("elect has a pair d|p of results");
  return made(decoding, kElect, pair(decoding, true), 0, 0, decoding.instruction->operands[1]);
}

void active_mask(Warp& warp, const Op& op, Mask lanes) {
  auto* to = warp.registers.out<uint32_t>(op.args[0]);
  uint8_t* defined = warp.registers.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) {
    to[lane] = lanes;
    defined[lane] = 0xff;
  });
}

Op decode_active_mask(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  modifiers.type({Type::b32});
  modifiers.end();
  decoding.expect_operands(1);
  return decoding.make(Class::warp, active_mask, {decoding.target(0, Type::b32)});
}

}  // namespace

Op decode_warp_barrier(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  modifiers.take("warp");
  need_sync(decoding, modifiers);
  modifiers.end();
  decoding.expect_operands(1);
  return made(decoding, kMeet, {}, 0, 0, decoding.instruction->operands[0]);
}

void add_warp(Decoders& decoders) {
  decoders.add("shfl", decode_shuffle);
  decoders.add("vote", decode_vote);
  decoders.add("match", decode_match);
  decoders.add("redux", decode_redux);
  decoders.add("elect", decode_elect);
  decoders.add("activemask", decode_active_mask);
}

}  // namespace emulator
