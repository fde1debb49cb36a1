// cvt of pairs: packed f16 and bf16 from f32, the formats of eight bits and less, and tf32. The
// first source goes to the upper half. Not handled: stochastic rounding (.rs).

#include <algorithm>
#include <cmath>

#include "tests/cuda_emulator/isa/convert.h"

namespace emulator {

using ptx::Type;

namespace {

struct Rules {
  Rounding rounding = Rounding::nearest;
  bool relu = false, satfinite = false;
};

uint32_t write_half(double value, const Rules& rules) {
  return to_half(value, rules.rounding, rules.relu, rules.satfinite);
}
uint32_t write_bfloat(double value, const Rules& rules) {
  return to_bfloat(value, rules.rounding, rules.relu, rules.satfinite);
}

// Formats without infinities, or that saturate: beyond the largest value lies that value. `sign` is
// the position of the sign.
template <const Format& format, int sign, uint32_t nan>
uint32_t write_small(double value, const Rules& rules) {
  if (value != value) return nan;
  if (rules.relu && !(value > 0)) return 0;
  const uint32_t negative = std::signbit(value) ? 1u << sign : 0;
  if (std::isinf(value)) return static_cast<uint32_t>(format.largest) | negative;
  const uint64_t magnitude = round_parts(format, parts_of(value), rules.rounding);
  return static_cast<uint32_t>(std::min(magnitude, format.largest)) | negative;
}

template <const Format& format, int sign>
double read_small(uint32_t bits) {
  const uint32_t magnitude = bits & ((1u << sign) - 1);
  const int exponent = static_cast<int>(magnitude >> format.fraction);
  const uint32_t fraction = magnitude & ((1u << format.fraction) - 1);
  const uint32_t significand = exponent ? fraction | 1u << format.fraction : fraction;
  const double value =
      std::ldexp(significand, std::max(exponent, 1) - 1 + format.least - format.fraction);
  return bits >> sign & 1 ? -value : value;
}

constexpr double kNan = __builtin_nan("");

double read_e4m3(uint32_t bits) {
  return (bits & 0x7f) == 0x7f ? kNan : read_small<kE4m3, 7>(bits);
}
double read_e5m2(uint32_t bits) { return half_value(static_cast<uint16_t>(bits << 8)); }
double read_half(uint32_t bits) { return half_value(static_cast<uint16_t>(bits)); }
double read_bfloat(uint32_t bits) { return bfloat_value(static_cast<uint16_t>(bits)); }
double read_single(uint32_t bits) { return std::bit_cast<float>(bits); }

// Powers of two from 2^-127 on without a sign; 0xff is NaN.
uint32_t write_e8m0(double value, const Rules& rules) {
  if (value != value) return 0xff;
  const double magnitude = std::fabs(value);
  const uint32_t largest = rules.satfinite ? 0xfe : 0xff;
  if (std::isinf(magnitude)) return largest;
  if (magnitude < 0x1p-127) return 0;
  const int exponent = std::ilogb(magnitude);
  const bool exact = magnitude == std::ldexp(1.0, exponent);
  const bool up = rules.rounding == Rounding::up && !exact;
  return std::min(static_cast<uint32_t>(exponent + 127 + (up ? 1 : 0)), largest);
}
double read_e8m0(uint32_t bits) {
  return bits == 0xff ? kNan : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

// Two numbers in a register each of `bits`; f32 has a register for each.
struct Packing {
  const char* name;
  int bits;
  Type registers, of;  // of: what registers of its own may be declared as
  double (*read)(uint32_t);
  uint32_t (*write)(double, const Rules&);
};

const Packing kPackings[] = {
    {"f16x2", 16, Type::b32, Type::f16x2, read_half, write_half},
    {"bf16x2", 16, Type::b32, Type::b32, read_bfloat, write_bfloat},
    {"e4m3x2", 8, Type::b16, Type::b16, read_e4m3, write_small<kE4m3, 7, 0x7f>},
    {"e5m2x2", 8, Type::b16, Type::b16, read_e5m2, write_small<kE5m2, 7, 0x7f>},
    {"e2m3x2", 8, Type::b16, Type::b16, read_small<kE2m3, 5>, write_small<kE2m3, 5, 0x1f>},
    {"e3m2x2", 8, Type::b16, Type::b16, read_small<kE3m2, 5>, write_small<kE3m2, 5, 0x1f>},
    {"e2m1x2", 4, Type::b8, Type::b8, read_small<kE2m1, 3>, write_small<kE2m1, 3, 0x7>},
    {"ue8m0x2", 8, Type::b16, Type::b16, read_e8m0, write_e8m0},
    {"f32", 32, Type::f32, Type::f32, read_single, nullptr},
};

const Packing* packing_named(std::string_view name) {
  for (const Packing& packing : kPackings) {
    if (name == packing.name) return &packing;
  }
  return nullptr;
}

struct PackedConversion {
  const Packing *to = nullptr, *from = nullptr;
  Rules rules;
};

// args: d, and the two sources or the one that holds both.
void run_packed(Warp& warp, const Op& op, Mask lanes) {
  const auto& how = *static_cast<const PackedConversion*>(op.extra);
  const Registers registers = warp.registers;
  const bool pair = op.arg_count == 3;
  const int width = how.to->bits, from_width = how.from->bits;
  const uint32_t ones = (1u << width) - 1;
  uint32_t* to = registers.out<uint32_t>(op.args[0]);
  uint8_t* defined = registers.defined_out(op.args[0]);
  const uint32_t* high = registers.in<uint32_t>(op.args[1]);
  const uint32_t* low = pair ? registers.in<uint32_t>(op.args[2]) : high;
  const uint8_t* high_defined = registers.defined_in(op.args[1]);
  const uint8_t* low_defined = pair ? registers.defined_in(op.args[2]) : high_defined;
  const int shift = pair ? 0 : from_width;
  const auto mask = static_cast<uint32_t>((uint64_t{1} << from_width) - 1);
  each_lane(lanes, [&](int lane) {
    const uint32_t a = high[lane] >> shift & mask, b = low[lane] & mask;
    const auto known = [&](uint8_t bytes, int by) {
      return (static_cast<uint32_t>(bits_defined(bytes)) >> by & mask) == mask ? ones : 0;
    };
    const uint32_t known_bits =
        known(high_defined[lane], shift) << width | known(low_defined[lane], 0);
    const unsigned absent = 0xff & (0xff << std::max(2 * width / 8, 1));
    to[lane] = how.to->write(how.from->read(a), how.rules) << width |
               how.to->write(how.from->read(b), how.rules);
    defined[lane] = static_cast<uint8_t>(
        absent | (2 * width == 32   ? bytes_defined(known_bits)
                  : 2 * width == 16 ? bytes_defined(static_cast<uint16_t>(known_bits))
                                    : bytes_defined(static_cast<uint8_t>(known_bits))));
  });
}

// The most frequent ones: nearest, nothing else.
template <uint16_t (*nearest)(float)>
void run_nearest_pair(Warp& warp, const Op& op, Mask lanes) {
  const Registers registers = warp.registers;
  uint32_t* to = registers.out<uint32_t>(op.args[0]);
  uint8_t* defined = registers.defined_out(op.args[0]);
  const float *high = registers.in<float>(op.args[1]), *low = registers.in<float>(op.args[2]);
  const uint8_t *high_defined = registers.defined_in(op.args[1]),
                *low_defined = registers.defined_in(op.args[2]);
  each_lane(lanes, [&](int lane) {
    const uint32_t upper = nearest(high[lane]);
    to[lane] = upper << 16 | nearest(low[lane]);
  });
  each_lane(lanes, [&](int lane) {
    defined[lane] = static_cast<uint8_t>((high_defined[lane] == 0xff ? 0xfc : 0xf0) |
                                         (low_defined[lane] == 0xff ? 3 : 0));
  });
}

uint32_t to_tf32(float value, const Rules& rules) {
  if (value != value) return kSingleNan;
  if (rules.relu && !(value > 0)) return 0;
  const uint32_t sign = std::signbit(value) ? 0x80000000 : 0;
  uint64_t magnitude = uint64_t{kTf32.largest} + 1;
  if (std::isfinite(value)) magnitude = round_parts(kTf32, parts_of(value), rules.rounding);
  if (rules.satfinite) magnitude = std::min(magnitude, kTf32.largest);
  return sign | static_cast<uint32_t>(magnitude) << 13;
}

Op decode_tf32(Decoding& decoding, Modifiers& modifiers, const Rules& rules) {
  modifiers.take("tf32");
  modifiers.type({Type::f32});
  modifiers.end();
  switch (rules.rounding) {
    case Rounding::away:
      if (rules.relu) decoding.fail(".rna has no .relu");
      require(decoding, rules.satfinite ? 81 : 70, 80);
      break;
    case Rounding::nearest:
    case Rounding::zero:
      require(decoding, rules.satfinite ? 86 : 78, rules.satfinite ? 100 : 90);
      break;
    default: decoding.fail("needs .rna, .rn or .rz");
  }
  const Run run = lanewise([](const Op& op, float a) {
    return to_tf32(
        a, {static_cast<Rounding>(op.mode[0]), (op.mode[1] & 1) != 0, (op.mode[1] & 2) != 0});
  });
  Op op = make_lanewise(decoding, Class::convert, run, Type::b32, {Type::f32});
  require_format(decoding, 0, Type::b32);
  op.mode[0] = static_cast<uint32_t>(rules.rounding);
  op.mode[1] = (rules.relu ? 1 : 0) | (rules.satfinite ? 2 : 0);
  return op;
}

bool starts_with(std::string_view name, std::string_view start) {
  return name.substr(0, start.size()) == start;
}

// Error unless there is such a pair of formats with such a rounding.
void check_packed(const Decoding& decoding, const PackedConversion& how, int rounding) {
  const std::string_view to = how.to->name, from = how.from->name;
  const bool nearest = rounding == 0, zero = rounding == 1, up = rounding == 2;
  const bool wide_to = to == "f16x2" || to == "bf16x2";
  const bool eight = starts_with(to, "e4m3") || starts_with(to, "e5m2") ||
                     starts_with(from, "e4m3") || starts_with(from, "e5m2");
  const bool small_from = starts_with(from, "e");
  bool fits = false;
  if (wide_to && from == "f32") {
    fits = nearest || zero;
    require(decoding, how.rules.satfinite ? 81 : 70, 80);
  } else if (to == "f16x2" && small_from) {
    fits = nearest && !how.rules.satfinite;
    require(decoding, eight ? 78 : 86, eight ? 89 : 100);
  } else if (to == "bf16x2" && from == "ue8m0x2") {
    fits = nearest && !how.rules.satfinite && !how.rules.relu;
    require(decoding, 86, 100);
  } else if (to == "ue8m0x2" && (from == "f32" || from == "bf16x2")) {
    fits = (zero || up) && !how.rules.relu;
    require(decoding, 86, 100);
  } else if (starts_with(to, "e") && (from == "f32" || (from == "f16x2" && eight))) {
    fits = nearest && how.rules.satfinite;
    require(decoding, eight ? 78 : 86, eight ? 89 : 100);
  }
  if (!fits) decoding.fail("cvt has no such combination of formats and modifiers");
}

Run packed_run(const PackedConversion& how) {
  const bool plain = how.rules.rounding == Rounding::nearest && !how.rules.relu &&
                     !how.rules.satfinite && how.from->read == read_single;
  if (plain && how.to->write == write_half) return run_nearest_pair<nearest_half>;
  if (plain && how.to->write == write_bfloat) return run_nearest_pair<nearest_bfloat>;
  return run_packed;
}

}  // namespace

bool is_packed_conversion(const ptx::Instruction& instruction) {
  return std::any_of(
      instruction.modifiers.begin(), instruction.modifiers.end(), [](const std::string& modifier) {
        const Packing* packing = packing_named(modifier);
        return modifier == "tf32" || modifier == "rs" || (packing && packing->write != nullptr);
      });
}

Op decode_packed_conversion(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  constexpr Rounding roundings[] = {Rounding::nearest, Rounding::zero, Rounding::up,
                                    Rounding::away};
  const int rounding = modifiers.take_one({"rn", "rz", "rp", "rna", "rs"});
  if (rounding < 0) decoding.fail("needs a rounding");
  if (rounding == 4) decoding.fail("stochastic rounding is not handled");
  auto how = std::make_shared<PackedConversion>();
  how->rules.rounding = roundings[rounding];
  how->rules.satfinite = modifiers.take("satfinite");
  how->rules.relu = modifiers.take("relu");
  how->rules.satfinite = how->rules.satfinite || modifiers.take("satfinite");
  if (modifiers.peek() == "tf32") return decode_tf32(decoding, modifiers, how->rules);
  const auto take = [&]() -> const Packing* {
    for (const Packing& packing : kPackings) {
      if (modifiers.take(packing.name)) return &packing;
    }
    return nullptr;
  };
  how->to = take();
  how->from = how->to ? take() : nullptr;
  if (!how->from || !how->to->write) decoding.fail("cvt has no such pair of formats");
  modifiers.end();
  check_packed(decoding, *how, rounding);
  const bool pair = how->from->read == read_single;
  decoding.expect_operands(pair ? 3 : 2);
  std::vector<Arg> args{decoding.target(0, how->to->registers)};
  for (size_t i = 1; i <= (pair ? 2 : 1); ++i) {
    args.push_back(decoding.source(i, how->from->registers));
  }
  require_format(decoding, 0, how->to->of);
  if (!pair) require_format(decoding, 1, how->from->of);
  Op op = decoding.make(Class::convert, packed_run(*how), args);
  op.extra = decoding.keep(std::shared_ptr<const void>(how));
  return op;
}

}  // namespace emulator
