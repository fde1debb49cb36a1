// SIMD video instructions on two halves or four bytes of a register: vadd2 to vset4, with results
// side by side or added up (.add). Not handled: selectors and masks of operands, and the scalar
// video instructions.

#include <algorithm>

#include "tests/cuda_emulator/isa/integer.h"
#include "tests/cuda_emulator/isa/lanewise.h"

namespace emulator {

using ptx::Type;

namespace {

enum class Video : uint32_t { add, sub, average, difference, least, most, set };
enum Relation : uint32_t { kEq, kNe, kLt, kLe, kGt, kGe };

// What an Op keeps in mode[0].
struct VideoMode {
  Video operation = Video::add;
  int bits = 16;
  bool a_signed = false, b_signed = false, d_signed = false, sat = false;
  uint32_t relation = kEq;

  uint32_t word() const {
    return static_cast<uint32_t>(operation) | static_cast<uint32_t>(bits) << 8 |
           (a_signed ? 1u << 16 : 0) | (b_signed ? 1u << 17 : 0) | (d_signed ? 1u << 18 : 0) |
           (sat ? 1u << 19 : 0) | relation << 20;
  }
  explicit VideoMode(uint32_t word)
      : operation(static_cast<Video>(word & 0xff)),
        bits(static_cast<int>(word >> 8 & 0xff)),
        a_signed(word >> 16 & 1),
        b_signed(word >> 17 & 1),
        d_signed(word >> 18 & 1),
        sat(word >> 19 & 1),
        relation(word >> 20) {}
  VideoMode() = default;
};

int32_t element(uint32_t word, int from, int bits, bool is_signed) {
  const uint32_t top = word << (32 - bits - from);
  return is_signed ? static_cast<int32_t>(top) >> (32 - bits)
                   : static_cast<int32_t>(top >> (32 - bits));
}

bool related(uint32_t relation, int32_t a, int32_t b) {
  switch (relation) {
    case kEq: return a == b;
    case kNe: return a != b;
    case kLt: return a < b;
    case kLe: return a <= b;
    case kGt: return a > b;
    default: return a >= b;
  }
}

int32_t calculate(const VideoMode& mode, int32_t a, int32_t b) {
  switch (mode.operation) {
    case Video::add: return a + b;
    case Video::sub: return a - b;
    case Video::average: return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case Video::difference: return a < b ? b - a : a - b;
    case Video::least: return std::min(a, b);
    case Video::most: return std::max(a, b);
    case Video::set: return related(mode.relation, a, b) ? 1 : 0;
  }
  return 0;
}

int32_t result_of(const VideoMode& mode, uint32_t a, uint32_t b, int from) {
  const int32_t result = calculate(mode, element(a, from, mode.bits, mode.a_signed),
                                   element(b, from, mode.bits, mode.b_signed));
  if (!mode.sat) return result;
  const int32_t largest = (1 << (mode.bits - (mode.d_signed ? 1 : 0))) - 1;
  return std::clamp(result, mode.d_signed ? -largest - 1 : 0, largest);
}

uint32_t side_by_side(const Op& op, uint32_t a, uint32_t b) {
  const VideoMode mode(op.mode[0]);
  const uint32_t mask = (1u << mode.bits) - 1;
  uint32_t all = 0;
  for (int from = 0; from < 32; from += mode.bits) {
    all |= (static_cast<uint32_t>(result_of(mode, a, b, from)) & mask) << from;
  }
  return all;
}

uint32_t added_up(const Op& op, uint32_t a, uint32_t b, uint32_t c) {
  const VideoMode mode(op.mode[0]);
  for (int from = 0; from < 32; from += mode.bits) {
    c += static_cast<uint32_t>(result_of(mode, a, b, from));
  }
  return c;
}

// Results side by side do not depend on c, and each only on its own bytes.
template <int bytes>
void run_side_by_side(Warp& warp, const Op& op, Mask lanes) {
  apply_lanes<uint32_t, uint32_t, uint32_t>(
      warp, op, lanes, [&op](uint32_t a, uint32_t b) { return side_by_side(op, a, b); },
      [](Mask running, uint8_t* to, const uint8_t* a, const uint8_t* b) {
        each_lane(running, [&](int lane) {
          unsigned all = a[lane] & b[lane] & 15;
          if (bytes == 2) all = ((all & 3) == 3 ? 3 : 0) | ((all & 12) == 12 ? 12 : 0);
          to[lane] = static_cast<uint8_t>(all | 0xf0);
        });
      },
      std::index_sequence_for<uint32_t, uint32_t>{});
}

Op decode_video(Decoding& decoding, Video operation, int bits) {
  static constexpr auto types = {Type::u32, Type::s32};
  Modifiers modifiers(*decoding.instruction);
  VideoMode mode;
  mode.operation = operation;
  mode.bits = bits;
  const bool set = operation == Video::set;
  if (!set) mode.d_signed = modifiers.type(types) == Type::s32;
  mode.a_signed = modifiers.type(types) == Type::s32;
  mode.b_signed = modifiers.type(types) == Type::s32;
  if (set) {
    const int relation = modifiers.take_one({"eq", "ne", "lt", "le", "gt", "ge"});
    if (relation < 0) decoding.fail("needs a comparison");
    mode.relation = static_cast<uint32_t>(relation);
  } else {
    mode.sat = modifiers.take("sat");
  }
  const bool add = !mode.sat && modifiers.take("add");
  modifiers.end();
  require(decoding, 30, 30);
  const Run beside = bits == 8 ? run_side_by_side<1> : run_side_by_side<2>;
  const Run run = add ? lanewise([](const Op& op, uint32_t a, uint32_t b, uint32_t c) {
    return added_up(op, a, b, c);
  })
                      : beside;
  Op op =
      make_lanewise(decoding, Class::integer, run, Type::u32, {Type::u32, Type::u32, Type::u32});
  op.mode[0] = mode.word();
  return op;
}

}  // namespace

void add_video(Decoders& decoders) {
  constexpr std::pair<const char*, Video> operations[] = {
      {"vadd", Video::add},      {"vsub", Video::sub},
      {"vavrg", Video::average}, {"vabsdiff", Video::difference},
      {"vmin", Video::least},    {"vmax", Video::most},
      {"vset", Video::set}};
  for (const auto& [name, operation] : operations) {
    for (const int count : {2, 4}) {
      decoders.add(name + std::to_string(count),
                   [operation = operation, count](Decoding& decoding) {
                     return decode_video(decoding, operation, 32 / count);
                   });
    }
  }
}

}  // namespace emulator
