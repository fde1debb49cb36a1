// cvt of pairs, of the formats of eight bits and less, to tf32; cvt.pack.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/emulator/arithmetic.h"
#include "tests/emulator/outcomes.h"

using namespace emulator_test;

namespace {

// A format with a sign, without infinities: numbers by a table of all its codes.
struct Small {
  std::string name;
  int bits, exponent, fraction, bias;
  uint64_t largest, nan;  // codes without and with a sign

  double value(uint64_t code) const {
    const uint64_t magnitude = code & ((uint64_t{1} << (exponent + fraction)) - 1);
    const auto field = static_cast<int>(magnitude >> fraction);
    const double low =
        std::ldexp(static_cast<double>(magnitude & ((uint64_t{1} << fraction) - 1)), -fraction);
    const double number =
        field == 0 ? std::ldexp(low, 1 - bias) : std::ldexp(1 + low, field - bias);
    return code >> (exponent + fraction) & 1 ? -number : number;
  }
  // The nearest code, the even one of two; the largest for what lies beyond.
  uint64_t code(double number) const {
    if (std::isnan(number)) return nan;
    const double magnitude = std::fabs(number);
    uint64_t best = 0;
    for (uint64_t candidate = 0; candidate <= largest; ++candidate) {
      const double error = std::fabs(value(candidate) - magnitude),
                   least = std::fabs(value(best) - magnitude);
      if (error < least || (error == least && candidate % 2 == 0)) best = candidate;
    }
    if (magnitude >= value(largest)) best = largest;
    return best | (std::signbit(number) ? uint64_t{1} << (exponent + fraction) : 0);
  }
};
const Small kSmall[] = {{"e4m3x2", 8, 4, 3, 7, 0x7e, 0x7f},
                        {"e5m2x2", 8, 5, 2, 15, 0x7b, 0x7f},
                        {"e2m3x2", 8, 2, 3, 1, 0x1f, 0x1f},
                        {"e3m2x2", 8, 3, 2, 3, 0x1f, 0x1f},
                        {"e2m1x2", 4, 2, 1, 1, 0x7, 0x7}};

// Values of f32 in reach of a small format, its middles among them, and beyond.
Values singles(const Small& small, uint64_t seed) {
  Values values = numbers(kF32, 100, seed);
  for (uint64_t code = 0; code <= small.largest; ++code) {
    for (const double number : {small.value(code), (small.value(code) + small.value(code + 1)) / 2,
                                small.value(code) * 1.001}) {
      values.push_back(bits_of(static_cast<float>(number)));
      values.push_back(bits_of(static_cast<float>(-number)));
    }
  }
  return values;
}

// Registers that hold a packed value; those of eight bits are not the tests' columns.
std::string result_of(const Small& small, const std::string& instruction) {
  if (small.bits == 8) return instruction;
  std::string text = instruction;
  text.replace(text.find("%d"), 2, "c");
  return ".reg .b8 c; " + text + " cvt.u16.u8 %d, c;";
}
std::string source_of(const Small& small, const std::string& instruction) {
  if (small.bits == 8) return instruction;
  std::string text = instruction;
  text.replace(text.find("%a0"), 3, "c");
  return ".reg .b8 c; cvt.u8.u16 c, %a0; " + text;
}

}  // namespace

TEST_CASE("emulator: cvt of two f32 to packed f16 and bf16") {
  Device device;
  Values first = numbers(kF32, 600, 1);
  for (const uint64_t value :
       {0x477fefff, 0x477ff000, 0x477fe000, 0x33000000, 0x33000001, 0x38800000, 0x387fffff,
        0x7f7f7fff, 0x7f7f8000, 0x7f7f0000, 0x3f808000, 0x3f818000}) {
    first.push_back(value);
    first.push_back(value | 0x80000000);
  }
  Values second(first.rbegin(), first.rend());
  std::vector<Case> cases;
  for (const bool bfloat : {false, true}) {
    const FloatFormat f = bfloat ? kBf16 : kF16;
    for (const std::string rounding : {"rn", "rz"}) {
      for (const bool relu : {false, true}) {
        for (const bool satfinite : {false, true}) {
          const auto one = [=](uint64_t bits) {
            uint64_t result = bits_of(outcome_of(kF32, bits), f, rounding, 0x7fff);
            if (satfinite && f.is_infinite(result)) --result;
            return relu ? rectified(f, result) : result;
          };
          const std::string name =
              "cvt." + rounding + (relu ? ".relu" : "") + (satfinite ? ".satfinite." : ".");
          const std::string type = bfloat ? "bf16" : "f16";
          cases.push_back({name + type + "x2.f32 %d, %a0, %a1;", "b32",
                           [=](const Values& v) { return one(v[0]) << 16 | one(v[1]); }});
          cases.push_back(
              {name + type + ".f32 %d, %a0;", "b16", [=](const Values& v) { return one(v[0]); }});
        }
      }
    }
  }
  check(device, {{"f32", first}, {"f32", second}}, cases);
}

TEST_CASE("emulator: cvt to and from formats of eight bits and less") {
  Device device(10, 0);
  for (const Small& small : kSmall) {
    const Values first = singles(small, 2);
    const Values second(first.rbegin(), first.rend());
    std::vector<Case> to, from, from_halves;
    for (const bool relu : {false, true}) {
      const auto code = [=](double number) {
        return relu && !std::isnan(number) && std::signbit(number) ? 0 : small.code(number);
      };
      const std::string name =
          std::string("cvt.rn.satfinite") + (relu ? ".relu." : ".") + small.name;
      to.push_back({result_of(small, name + ".f32 %d, %a0, %a1;"), "b16", [=](const Values& v) {
                      return code(as<float>(v[0])) << small.bits | code(as<float>(v[1]));
                    }});
      from_halves.push_back({name + ".f16x2 %d, %a0;", "b16", [=](const Values& v) {
                               return code(number_of(kF16, v[0] >> 16)) << 8 |
                                      code(number_of(kF16, v[0] & 0xffff));
                             }});
      const auto half = [=](uint64_t bits) -> uint64_t {
        const bool e5m2 = small.name == "e5m2x2";
        if (small.name == "e4m3x2" && (bits & 0x7f) == 0x7f) return 0x7fff;
        if (e5m2 && (bits & 0x7f) > 0x7c) return 0x7fff;
        const double infinity = bits & 0x80 ? -HUGE_VAL : HUGE_VAL;
        const double number = e5m2 && (bits & 0x7f) == 0x7c ? infinity : small.value(bits);
        const uint64_t result = bits_of(outcome_of(kF64, bits_of(number)), kF16, "rn", 0);
        return relu ? rectified(kF16, result) : result;
      };
      from.push_back({source_of(small, std::string("cvt.rn") + (relu ? ".relu" : "") + ".f16x2." +
                                           small.name + " %d, %a0;"),
                      "b32", [=](const Values& v) {
                        const uint64_t mask = (uint64_t{1} << small.bits) - 1;
                        return half(v[0] >> small.bits & mask) << 16 | half(v[0] & mask);
                      }});
    }
    check(device, {{"f32", first}, {"f32", second}}, to, "sm_100a");
    // Every code in either place; the bits that a format of six has not are zero.
    const int width = 1 + small.exponent + small.fraction;
    Values codes;
    for (uint64_t code = 0; code < uint64_t{1} << width; ++code) {
      codes.push_back(code | ((code * 37 + 5) & ((uint64_t{1} << width) - 1)) << small.bits);
    }
    check(device, {{"b16", codes}}, from, "sm_100a");
    if (small.bits != 8 || width != 8) continue;
    Values halves = numbers(kF16, 300, 3);
    for (uint64_t i = 0; i < halves.size(); ++i)
      halves[i] |= (halves[i] * 0x9e37 + i) << 16 & 0xffff0000;
    check(device, {{"b32", halves}}, from_halves, "sm_100a");
  }
}

TEST_CASE("emulator: cvt to and from powers of two") {
  Device device(10, 0);
  std::vector<Case> cases;
  for (const bool up : {false, true}) {
    for (const bool satfinite : {false, true}) {
      const auto code = [=](double number) -> uint64_t {
        if (std::isnan(number)) return 0xff;
        const double magnitude = std::fabs(number);
        uint64_t result = 0;
        while (result < 0xff && std::ldexp(1.0, static_cast<int>(result) + 1 - 127) <= magnitude)
          ++result;
        if (up && magnitude > std::ldexp(1.0, static_cast<int>(result) - 127) && result < 0xff)
          ++result;
        return satfinite ? std::min<uint64_t>(result, 0xfe) : result;
      };
      const std::string name =
          std::string("cvt.") + (up ? "rp" : "rz") + (satfinite ? ".satfinite" : "");
      cases.push_back({name + ".ue8m0x2.f32 %d, %a0, %a1;", "b16", [=](const Values& v) {
                         return code(as<float>(v[0])) << 8 | code(as<float>(v[1]));
                       }});
      cases.push_back({".reg .b32 x; mov.b32 x, %a0; " + name + ".ue8m0x2.bf16x2 %d, x;", "b16",
                       [=](const Values& v) {
                         return code(number_of(kBf16, v[0] >> 16)) << 8 |
                                code(number_of(kBf16, v[0] & 0xffff));
                       }});
    }
  }
  const Values first = numbers(kF32, 500, 4);
  check(device, {{"f32", first}, {"f32", Values(first.rbegin(), first.rend())}}, cases, "sm_100a");
  Values codes;
  for (uint64_t code = 0; code < 256; ++code) codes.push_back(code | (255 - code) << 8);
  check(device, {{"b16", codes}},
        {{"cvt.rn.bf16x2.ue8m0x2 %d, %a0;", "b32",
          [](const Values& v) {
            const auto half = [](uint64_t code) -> uint64_t {
              return code == 0xff ? 0x7fff : code == 0 ? 0x0040 : code << 7;
            };
            return half(v[0] >> 8) << 16 | half(v[0] & 0xff);
          }}},
        "sm_100a");
}

TEST_CASE("emulator: cvt to tf32") {
  Device device(10, 0);
  const FloatFormat tf32{19, 8, 10};
  std::vector<Case> cases;
  for (const std::string rounding : {"rna", "rn", "rz"}) {
    for (const bool relu : {false, true}) {
      for (const bool satfinite : {false, true}) {
        if (relu && rounding == "rna") continue;
        cases.push_back({"cvt." + rounding + (satfinite ? ".satfinite" : "") +
                             (relu ? ".relu" : "") + ".tf32.f32 %d, %a0;",
                         "b32", [=](const Values& v) -> uint64_t {
                           if (kF32.is_nan(v[0])) return 0x7fffffff;
                           uint64_t result = bits_of(outcome_of(kF32, v[0]), tf32, rounding, 0);
                           if (satfinite && tf32.is_infinite(result)) --result;
                           if (relu) result = rectified(tf32, result);
                           return result << 13;
                         }});
      }
    }
  }
  Values values = numbers(kF32, 500, 5);
  for (uint64_t i = 0; i < 8; ++i) values.push_back(0x3f800000 | i << 12);
  check(device, {{"f32", values}}, cases, "sm_100a");
  // Through the sources of the ISA's definition: half of a unit of the last place goes away from
  // zero.
  check(device, {{"f32", {0x3f801000, 0xbf801000, 0x3f800fff}}},
        {{"cvt.rna.tf32.f32 %d, %a0;", "b32",
          [](const Values& v) -> uint64_t {
            return v[0] == 0x3f800fff ? 0x3f800000 : v[0] + 0x1000;
          }}},
        "sm_100a");
}

TEST_CASE("emulator: cvt.pack") {
  Device device;
  std::vector<Case> cases;
  for (const int bits : {16, 8, 4, 2}) {
    for (const bool is_signed : {false, true}) {
      const int64_t largest = (int64_t{1} << (bits - is_signed)) - 1,
                    least = is_signed ? -largest - 1 : 0;
      const auto one = [=](uint64_t v) {
        const int64_t value = as<int32_t>(v);
        return static_cast<uint64_t>(std::min(std::max(value, least), largest)) &
               ((uint64_t{1} << bits) - 1);
      };
      const std::string name =
          "cvt.pack.sat." + std::string(is_signed ? "s" : "u") + std::to_string(bits) + ".s32";
      cases.push_back({name + (bits == 16 ? " %d, %a0, %a1;" : ".b32 %d, %a0, %a1, %a2;"), "b32",
                       [=](const Values& v) {
                         const uint64_t both = one(v[0]) << bits | one(v[1]);
                         return bits == 16 ? both : (both | v[2] << (2 * bits)) & 0xffffffff;
                       }});
    }
  }
  const Values values = {0,          1,          2,          3,          7,         8,     127,
                         128,        255,        256,        32767,      32768,     65535, 65536,
                         0x7fffffff, 0x80000000, 0xffffffff, 0xffffff80, 0xffff7fff};
  check(device, combinations({"b32", "b32", "b32"}, {values, values, {0, 0x12345678}}, 1000, 6),
        cases);
}

TEST_CASE("emulator: malformed packed conversions are refused") {
  check_refused({"cvt.f16x2.f32 r0, f1, f2;",
                 "cvt.rn.f16x2.f32 r0, f1;",
                 "cvt.rm.f16x2.f32 r0, f1, f2;",
                 "cvt.rn.ftz.f16x2.f32 r0, f1, f2;",
                 "cvt.rn.sat.bf16x2.f32 r0, f1, f2;",
                 "cvt.rn.bf16x2.f32 f0, f1, f2;",
                 "cvt.rn.f16x2.f64 r0, g1, g2;",
                 "cvt.rn.f16x2.bf16x2 r0, r1;",
                 "cvt.rn.e4m3x2.f32 h0, f1, f2;",
                 "cvt.rz.satfinite.e4m3x2.f32 h0, f1, f2;",
                 "cvt.rn.satfinite.e4m3x2.f32 r0, f1, f2;",
                 "cvt.rn.satfinite.e4m3x2.bf16x2 h0, r1;",
                 "cvt.rn.satfinite.f16x2.e4m3x2 r0, h1;",
                 "cvt.f16x2.e4m3x2 r0, h1;",
                 "cvt.rn.bf16x2.e4m3x2 r0, h1;",
                 "cvt.rn.satfinite.e4m3.f32 h0, f1;",
                 "cvt.rna.f32.f32 f0, f1;",
                 "cvt.tf32.f32 r0, f1;",
                 "cvt.rna.relu.tf32.f32 r0, f1;",
                 "cvt.rna.tf32.f32 f0, f1;",
                 "cvt.rp.tf32.f32 r0, f1;",
                 "cvt.rn.satfinite.tf32.f32 r0, f1;",
                 "cvt.rn.satfinite.e2m1x2.f32 c0, f1, f2;",
                 "cvt.rp.ue8m0x2.f32 h0, f1, f2;",
                 "cvt.pack.u16.s32 r0, r1, r2;",
                 "cvt.pack.sat.u16.u32 r0, r1, r2;",
                 "cvt.pack.sat.u16.s32.b32 r0, r1, r2, r3;",
                 "cvt.pack.sat.u8.s32 r0, r1, r2;",
                 "cvt.pack.sat.u32.s32 r0, r1, r2;"});
  check_refused({"cvt.rn.ue8m0x2.f32 h0, f1, f2;", "cvt.rp.relu.ue8m0x2.f32 h0, f1, f2;",
                 "cvt.rz.bf16x2.ue8m0x2 r0, h1;", "cvt.rn.satfinite.e2m1x2.f16x2 c0, r1;",
                 "cvt.rs.f16x2.f32 r0, f1, f2, r3;", "cvt.rn.satfinite.e2m1x2.f32 h0, f1, f2;"},
                "sm_100a");
  check_refused({"cvt.rn.satfinite.e4m3x2.f32 h0, f1, f2;", "cvt.rn.tf32.f32 r0, f1;"}, "sm_86");
  check_refused({"cvt.rn.f16x2.f32 r0, f1, f2;", "cvt.rna.tf32.f32 r0, f1;"}, "sm_75");
}

TEST_CASE("emulator: each part of a packed conversion is defined on its own") {
  const std::string parts = ".reg .f32 x, y; .reg .b32 z; mov.f32 x, 0f3f800000; ";
  for (const std::string name :
       {"cvt.rn.f16x2.f32", "cvt.rn.relu.f16x2.f32", "cvt.rz.bf16x2.f32"}) {
    CHECK_FALSE(stores_undefined("b16", parts + name + " z, x, y; mov.b32 {_, %d}, z;"));
    CHECK(stores_undefined("b16", parts + name + " z, x, y; mov.b32 {%d, _}, z;"));
    CHECK_FALSE(stores_undefined("b16", parts + name + " z, y, x; mov.b32 {%d, _}, z;"));
  }
  const std::string eight = parts + ".reg .b16 h; cvt.rn.satfinite.e4m3x2.f32 h, x, y; ";
  CHECK(stores_undefined("b16", eight + "mov.b16 %d, h;"));
  CHECK_FALSE(stores_undefined("b16", eight + "shr.b16 %d, h, 8;"));
  CHECK_FALSE(stores_undefined("b16", eight + "cvt.rn.f16x2.e4m3x2 z, h; mov.b32 {_, %d}, z;"));
  CHECK(stores_undefined("b16", eight + "cvt.rn.f16x2.e4m3x2 z, h; mov.b32 {%d, _}, z;"));
}
