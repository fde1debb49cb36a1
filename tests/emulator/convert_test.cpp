// cvt between scalar types against exact arithmetic.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/emulator/arithmetic.h"
#include "tests/emulator/outcomes.h"

using namespace emulator_test;

namespace {

using Wide = __int128;

struct Integer {
  std::string name;
  unsigned bits;
  bool is_signed;
  Wide value(uint64_t from) const {
    const Wide low = static_cast<Wide>(bits == 64 ? from : from & ((uint64_t{1} << bits) - 1));
    return is_signed && (low >> (bits - 1) & 1) ? low - (Wide{1} << bits) : low;
  }
  Wide least() const { return is_signed ? -(Wide{1} << (bits - 1)) : 0; }
  Wide largest() const { return (Wide{1} << (bits - (is_signed ? 1 : 0))) - 1; }
  Wide clamped(Wide from) const { return std::min(std::max(from, least()), largest()); }
  unsigned reg_bits() const { return std::max(bits, 16u); }
  std::string reg() const { return "b" + std::to_string(reg_bits()); }
  // In a register of so many bits, extended by its sign or zeros.
  uint64_t in(unsigned width, Wide from) const {
    const Wide own = value(static_cast<uint64_t>(from));
    return width == 64 ? static_cast<uint64_t>(own)
                       : static_cast<uint64_t>(own) & ((uint64_t{1} << width) - 1);
  }
};
const Integer kIntegers[] = {{"u8", 8, false},   {"u16", 16, false}, {"u32", 32, false},
                             {"u64", 64, false}, {"s8", 8, true},    {"s16", 16, true},
                             {"s32", 32, true},  {"s64", 64, true}};

struct Float {
  std::string name;
  FloatFormat format;
  uint64_t nan;
  std::string reg() const {
    return (format.width == 16 ? "b" : "f") + std::to_string(format.width);
  }
  long double value(uint64_t bits) const { return number_of(format, bits); }
};
const Float kFloats[] = {{"f16", kF16, 0x7fff},
                         {"bf16", kBf16, 0x7fff},
                         {"f32", kF32, 0x7fffffff},
                         {"f64", kF64, 0xfff8000000000000}};

const std::string kRoundings[] = {"rn", "rz", "rm", "rp"};

const Values kWords = {0,
                       1,
                       0x7f,
                       0x80,
                       0xff,
                       0x100,
                       0x7fff,
                       0x8000,
                       0xffff,
                       0x10000,
                       0x7fffffff,
                       0x80000000,
                       0xffffffff,
                       0x7fffffffffffffff,
                       0x8000000000000000,
                       ~uint64_t{0},
                       0xffffffffffffff80,
                       0x100000000,
                       0xffffffff80000000,
                       0xffffffff7fffffff};

long double whole(long double value, const std::string& rounding) {
  if (rounding == "rzi") return std::trunc(value);
  if (rounding == "rmi") return std::floor(value);
  if (rounding == "rpi") return std::ceil(value);
  const long double down = std::floor(value), rest = value - down;
  const bool up = rest > 0.5L || (rest == 0.5L && std::fmod(down, 2) != 0);
  const long double result = up ? down + 1 : down;
  return std::copysign(result, value);
}

// Bits of a whole number, or of what is not finite, in its own format.
uint64_t bits_of_whole(const Float& f, long double value) {
  if (std::isnan(value)) return f.nan;
  const double exact = static_cast<double>(value);
  return bits_of(outcome_of(kF64, bits_of(exact)), f.format, "rn", f.nan);
}

// Numbers whose whole parts lie around the limits of the integer types, and what surrounds .5.
Values near_integers(const Float& f, uint64_t seed) {
  Values values = numbers(f.format, 300, seed);
  std::mt19937_64 random(seed);
  for (const double edge :
       {0.5, 1.5, 2.5, 127.0, 128.0, 255.0, 256.0, 32767.0, 65535.0, 2147483647.0, 4294967295.0,
        9223372036854775807.0, 18446744073709551615.0, 1e5}) {
    for (const double offset : {-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0}) {
      for (const double sign : {1.0, -1.0}) {
        const double value = sign * (edge + offset);
        values.push_back(bits_of(outcome_of(kF64, bits_of(value)), f.format, "rn", 0));
      }
    }
  }
  return values;
}

bool is_half(const Float& f) { return f.name == "bf16"; }

}  // namespace

TEST_CASE("emulator: cvt between integers") {
  Device device;
  for (const Integer& from : kIntegers) {
    std::vector<Case> cases;
    for (const Integer& to : kIntegers) {
      const std::string types = to.name + "." + from.name + " %d, %a0;";
      cases.push_back({"cvt." + types, to.reg(),
                       [=](const Values& v) { return to.in(to.reg_bits(), from.value(v[0])); }});
      if (to.least() <= from.least() && from.largest() <= to.largest()) continue;
      cases.push_back({"cvt.sat." + types, to.reg(), [=](const Values& v) {
                         return to.in(to.reg_bits(), to.clamped(from.value(v[0])));
                       }});
    }
    check(device, combinations({from.reg()}, {kWords}, 300, 1), cases);
  }
}

TEST_CASE("emulator: cvt from and to registers that are wider than the type") {
  Device device;
  std::vector<Case> cases;
  for (const Integer& from : kIntegers) {
    for (const Integer& to : kIntegers) {
      for (const unsigned width : {16u, 32u, 64u}) {
        if (width < to.bits) continue;
        cases.push_back({"cvt." + to.name + "." + from.name + " %d, %a0;",
                         "b" + std::to_string(width),
                         [=](const Values& v) { return to.in(width, from.value(v[0])); }});
      }
    }
    cases.push_back({"cvt.rn.f32." + from.name + " %d, %a0;", "f32", [=](const Values& v) {
                       return rounded(kF32, "rn",
                                      Exact(static_cast<int64_t>(from.value(v[0]) >> 1), 1) +
                                          Exact(static_cast<int64_t>(from.value(v[0]) & 1)));
                     }});
  }
  for (const unsigned width : {32u, 64u}) {
    const std::string reg = "b" + std::to_string(width);
    cases.push_back(
        {".reg .f32 x; cvt.rn.f32.s64 x, %a0; cvt.rzi.s8.f32 %d, x;", reg, [=](const Values& v) {
           const Integer s8 = kIntegers[4];
           return s8.in(width, s8.clamped(static_cast<int64_t>(v[0])));
         }});
  }
  // What is extended ends with the register.
  cases.push_back(
      {".reg .b16 h; cvt.s8.s64 h, %a0; mov.b32 %d, {h, h};", "b32", [](const Values& v) {
         return (static_cast<uint64_t>(as<int8_t>(v[0])) & 0xffff) * 0x10001;
       }});
  check(device, combinations({"b64"}, {kWords}, 300, 2), cases);
}

TEST_CASE("emulator: cvt from integers to floats") {
  Device device;
  for (const Integer& from : kIntegers) {
    std::vector<Case> cases;
    for (const Float& to : kFloats) {
      if (is_half(to) && from.bits == 8) continue;
      for (const std::string& rounding : kRoundings) {
        const auto result = [=](const Values& v) {
          const Wide value = from.value(v[0]);
          const Exact exact =
              Exact(static_cast<int64_t>(value >> 1), 1) + Exact(static_cast<int64_t>(value & 1));
          return rounded(to.format, rounding, exact);
        };
        const std::string types = to.name + "." + from.name + " %d, %a0;";
        cases.push_back({"cvt." + rounding + "." + types, to.reg(), result});
        if (is_half(to)) continue;
        cases.push_back({"cvt." + rounding + ".sat." + types, to.reg(),
                         [=](const Values& v) { return saturated(to.format, result(v)); }});
        if (to.name == "f32")
          cases.push_back({"cvt." + rounding + ".ftz." + types, to.reg(), result});
      }
    }
    check(device, combinations({from.reg()}, {kWords}, 200, 3), cases);
  }
}

TEST_CASE("emulator: cvt from floats to integers saturates, NaN as the ISA says") {
  Device device;
  for (const Float& from : kFloats) {
    std::vector<Case> cases;
    for (const Integer& to : kIntegers) {
      if (is_half(from) && to.bits == 8) continue;
      for (const std::string rounding : {"rni", "rzi", "rmi", "rpi"}) {
        const auto result = [=](const Values& v, bool ftz) -> uint64_t {
          const uint64_t bits = ftz ? flushed(from.format, v[0]) : v[0];
          if (from.format.is_nan(bits)) {
            const bool half_range = from.name == "f64" || to.bits == 64;
            return half_range ? to.in(to.reg_bits(), Wide{1} << (to.bits - 1)) : 0;
          }
          const long double value = whole(from.value(bits), rounding);
          if (value >= 0x1p65L) return to.in(to.reg_bits(), to.largest());
          if (value <= -0x1p65L) return to.in(to.reg_bits(), to.least());
          return to.in(to.reg_bits(), to.clamped(static_cast<Wide>(value)));
        };
        const std::string types = to.name + "." + from.name + " %d, %a0;";
        const std::string op = std::string("cvt.") + rounding;
        cases.push_back(
            {op + "." + types, to.reg(), [=](const Values& v) { return result(v, false); }});
        if (is_half(from)) continue;
        cases.push_back(
            {op + ".sat." + types, to.reg(), [=](const Values& v) { return result(v, false); }});
        if (from.name == "f32") {
          cases.push_back(
              {op + ".ftz." + types, to.reg(), [=](const Values& v) { return result(v, true); }});
        }
      }
    }
    check(device, {{from.reg(), near_integers(from, 4)}}, cases);
  }
}

TEST_CASE("emulator: cvt between floats") {
  Device device;
  for (const Float& from : kFloats) {
    std::vector<Case> cases;
    for (const Float& to : kFloats) {
      const bool same = from.name == to.name;
      const bool exact = same || to.name == "f64" || (to.name == "f32" && from.name != "f64");
      const bool single = from.name == "f32" || to.name == "f32";
      for (const std::string& rounding : kRoundings) {
        if (exact && rounding != "rn") continue;
        for (const bool ftz : {false, true}) {
          for (const bool sat : {false, true}) {
            if ((ftz && !single) || (sat && (is_half(from) || is_half(to)))) continue;
            if (same && is_half(from) && (ftz || sat)) continue;
            const std::string name = "cvt" + (exact ? "" : "." + rounding) + (ftz ? ".ftz" : "") +
                                     (sat ? ".sat" : "") + "." + to.name + "." + from.name;
            cases.push_back(
                {name + " %d, %a0;", to.reg(), nullptr, [=](const Values& v, uint64_t bits) {
                   const bool flush = ftz && from.name == "f32";
                   const uint64_t source = flush ? flushed(from.format, v[0]) : v[0];
                   const Outcome outcome = outcome_of(from.format, source);
                   uint64_t expected = bits_of(outcome, to.format, rounding, to.nan);
                   if (ftz && to.name == "f32") expected = flushed(to.format, expected);
                   if (sat) expected = saturated(to.format, expected);
                   const bool any_nan = to.format.is_nan(expected) && to.name == "f64";
                   return any_nan ? to.format.is_nan(bits) : bits == expected;
                 }});
          }
        }
      }
    }
    check(device, {{from.reg(), numbers(from.format, 400, 5)}}, cases);
  }
}

TEST_CASE("emulator: cvt of floats to whole numbers of their own type") {
  Device device;
  for (const Float& f : kFloats) {
    std::vector<Case> cases;
    for (const std::string rounding : {"rni", "rzi", "rmi", "rpi"}) {
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          if ((ftz && f.name != "f32") || (sat && is_half(f))) continue;
          const std::string name = std::string("cvt.") + rounding + (ftz ? ".ftz" : "") +
                                   (sat ? ".sat" : "") + "." + f.name + "." + f.name;
          cases.push_back(
              {name + " %d, %a0;", f.reg(), nullptr, [=](const Values& v, uint64_t bits) {
                 const uint64_t source = ftz ? flushed(f.format, v[0]) : v[0];
                 if (f.format.is_nan(source) && !sat) return f.format.is_nan(bits);
                 uint64_t expected = bits_of_whole(f, whole(f.value(source), rounding));
                 if (sat) expected = saturated(f.format, expected);
                 return bits == expected;
               }});
        }
      }
    }
    check(device, {{f.reg(), near_integers(f, 6)}}, cases);
  }
}

TEST_CASE("emulator: malformed cvt is refused") {
  check_refused({"cvt.u32 r0, r1;",
                 "cvt.u32.u32.u32 r0, r1;",
                 "cvt.b32.u32 r0, r1;",
                 "cvt.rn.u32.f32 r0, f1;",
                 "cvt.u32.f32 r0, f1;",
                 "cvt.f32.u32 f0, r1;",
                 "cvt.rni.f32.u32 f0, r1;",
                 "cvt.rni.f32.f64 f0, g1;",
                 "cvt.f32.f64 f0, g1;",
                 "cvt.rn.f64.f32 g0, f1;",
                 "cvt.rn.f32.f16 f0, h1;",
                 "cvt.f16.f32 h0, f1;",
                 "cvt.rn.f32.f32 f0, f1;",
                 "cvt.rni.u32.u32 r0, r1;",
                 "cvt.sat.u32.u16 r0, h1;",
                 "cvt.sat.s32.s32 r0, r1;",
                 "cvt.ftz.u32.u32 r0, r1;",
                 "cvt.rzi.ftz.s32.f64 r0, g1;",
                 "cvt.rn.sat.ftz.f32.f64 f0, g1;",
                 "cvt.ftz.rn.f32.f64 f0, g1;",
                 "cvt.rna.f32.f64 f0, g1;",
                 "cvt.rn.sat.bf16.f32 h0, f1;",
                 "cvt.sat.f32.bf16 f0, h1;",
                 "cvt.rzi.sat.s32.bf16 r0, h1;",
                 "cvt.rn.relu.f32.f64 f0, g1;",
                 "cvt.rm.relu.f16.f32 h0, f1;",
                 "cvt.rn.ftz.relu.f16.f32 h0, f1;",
                 "cvt.rn.satfinite.f16.f64 h0, g1;",
                 "cvt.u32.u16 h0, h1;",
                 "cvt.u16.u32 r0, h1;",
                 "cvt.u32.u64 r0, r1;",
                 "cvt.f64.f32 g0, d1;",
                 "cvt.rn.f16.f32 r0, f1;",
                 "cvt.f32.f16 f0, 1;",
                 "cvt.u32.u32 r0, r1, r2;",
                 "cvt.u32.u32 r0;",
                 "cvt.pred.u32 p0, r1;",
                 "cvt.rzi.u8.bf16 r0, h1;",
                 "cvt.bf16.f16 h0, h1;"});
  check_refused({"cvt.rn.bf16.s32 h0, r1;", "cvt.bf16.bf16 h0, h1;", "cvt.ftz.f32.bf16 f0, h1;"},
                "sm_80");
  check_refused({"cvt.rn.bf16.f32 h0, f1;", "cvt.f32.bf16 f0, h1;", "cvt.rn.relu.f16.f32 h0, f1;"},
                "sm_75");
  check_accepted({"cvt.rn.satfinite.f16.f32 h0, f1;", "cvt.u64.u16 d0, h1;", "cvt.s8.s32 h0, r1;"},
                 "sm_75");
}

TEST_CASE("emulator: conversions of integers keep undefined bytes where they are") {
  const std::string half = ".reg .b32 x; .reg .b16 w; mov.b16 w, 5; mov.b32 x, {w, w0}; ";
  CHECK_FALSE(stores_undefined("b16", half + "cvt.u16.u32 %d, x;"));
  CHECK_FALSE(stores_undefined("b32", half + "cvt.u32.u16 %d, x;"));
  CHECK_FALSE(stores_undefined("b32", half + "cvt.s32.s16 %d, x;"));
  CHECK(stores_undefined("b64", half + "cvt.u64.u32 %d, x;"));
  CHECK_FALSE(
      stores_undefined("b32", ".reg .b64 y; " + half + "cvt.u64.u32 y, x; mov.b64 {_, %d}, y;"));
  CHECK(stores_undefined("b32", ".reg .b64 y; " + half + "cvt.s64.s32 y, x; mov.b64 {_, %d}, y;"));
  CHECK_FALSE(stores_undefined("b32", half + "cvt.u32.u8 %d, x;"));
  CHECK(stores_undefined("b16", half + "cvt.sat.u16.u32 %d, x;"));
  // Zeros above a value are defined, copies of its sign are as it is.
  CHECK_FALSE(stores_undefined("b32", "cvt.u8.u32 %d, u0; shr.u32 %d, %d, 8;"));
  CHECK(stores_undefined("b32", "cvt.s8.u32 %d, u0; shr.u32 %d, %d, 8;"));
  CHECK(stores_undefined("b32", "cvt.u8.u32 %d, u0;"));
  CHECK(stores_undefined("b32", ".reg .f32 y; cvt.rn.f32.s32 y, u0; mov.b32 %d, y;"));
  CHECK_FALSE(
      stores_undefined("b32", ".reg .f32 y; " + half + "cvt.rn.f32.s16 y, x; mov.b32 %d, y;"));
  CHECK(stores_undefined("b32", ".reg .f32 y; cvt.rzi.s32.f32 %d, y;"));
  CHECK(stores_undefined("b16", ".reg .f32 y; cvt.rn.f16.f32 %d, y;"));
}
