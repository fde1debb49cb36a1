// Approximate functions against long double, and the special cases of the ISA.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/emulator/arithmetic.h"
#include "tests/emulator/outcomes.h"

using namespace emulator_test;

namespace {

constexpr uint64_t kNan = 0x7fffffff, kInfinity = 0x7f800000, kMinus = 0x80000000;

// Whether bits of f32 are a value rounded to the nearest, or its neighbour where the host's double
// precision cannot tell.
bool is_close(uint64_t bits, long double exact, bool ftz) {
  if (std::isnan(exact)) return bits == kNan;
  for (const long double slack : {0.0L, -0x1p-50L, 0x1p-50L}) {
    const auto single = static_cast<float>(exact * (1 + slack));
    if (bits == (ftz ? flushed(kF32, bits_of(single)) : bits_of(single))) return true;
  }
  return false;
}

struct Function {
  std::string name;
  long double (*of)(long double);
};
const Function kFunctions[] = {
    {"rcp", [](long double a) { return 1 / a; }},
    {"sqrt", [](long double a) { return std::sqrt(a); }},
    {"rsqrt",
     [](long double a) { return a == 0 ? std::copysign(HUGE_VALL, a) : 1 / std::sqrt(a); }},
    {"sin", [](long double a) { return std::sin(a); }},
    {"cos", [](long double a) { return std::cos(a); }},
    {"lg2", [](long double a) { return std::log2(a); }},
    {"ex2", [](long double a) { return std::exp2(a); }},
    {"tanh", [](long double a) { return std::tanh(a); }}};

Values sources(uint64_t seed) {
  Values values = numbers(kF32, 2000, seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {  // where the functions change most
    const double value = static_cast<double>(random() % 2000000) / 5000 - 200;
    values.push_back(bits_of(static_cast<float>(value)));
  }
  return values;
}

}  // namespace

TEST_CASE("emulator: approximate functions of f32 are their values rounded") {
  Device device;
  std::vector<Case> cases;
  for (const Function& function : kFunctions) {
    for (const bool ftz : {false, true}) {
      if (ftz && function.name == "tanh") continue;
      cases.push_back({function.name + (ftz ? ".approx.ftz.f32" : ".approx.f32") + " %d, %a0;",
                       "f32", nullptr, [=](const Values& v, uint64_t bits) {
                         const uint64_t source = ftz ? flushed(kF32, v[0]) : v[0];
                         return is_close(bits, function.of(number_of(kF32, source)), ftz);
                       }});
    }
  }
  check(device, {{"f32", sources(1)}}, cases);
}

TEST_CASE("emulator: approximate quotients") {
  Device device;
  std::vector<Case> cases;
  for (const bool full : {false, true}) {
    for (const bool ftz : {false, true}) {
      cases.push_back({std::string("div.") + (full ? "full" : "approx") + (ftz ? ".ftz" : "") +
                           ".f32 %d, %a0, %a1;",
                       "f32", nullptr, [=](Values v, uint64_t bits) {
                         if (ftz)
                           for (uint64_t& value : v) value = flushed(kF32, value);
                         const double a = number_of(kF32, v[0]), b = number_of(kF32, v[1]);
                         // Between 2^126 and 2^128 the divisor's reciprocal is a zero.
                         if (!full && std::fabs(b) > 0x1p126 && std::isfinite(b)) {
                           if (std::isnan(a) || std::isinf(a)) return bits == kNan;
                           return bits == ((v[0] ^ v[1]) & kMinus);
                         }
                         const Outcome outcome = quotient(kF32, v[0], v[1]);
                         const uint64_t exact = bits_of(outcome, kF32, "rn", kNan);
                         return bits == (ftz ? flushed(kF32, exact) : exact);
                       }});
    }
  }
  const Values edges = numbers(kF32, 22, 2);
  Values first = numbers(kF32, 1000, 3), second = numbers(kF32, 1000, 4);
  for (uint64_t a : edges) {
    for (uint64_t b : edges) {
      first.push_back(a);
      second.push_back(b);
    }
  }
  for (uint64_t b : {0x7e800000, 0x7e800001, 0x7f000000, 0x7f7fffff}) {
    first.push_back(0x7f000000);
    second.push_back(b);
  }
  check(device, {{"f32", first}, {"f32", second}}, cases);
}

TEST_CASE("emulator: special cases of approximate functions") {
  Device device;
  const auto at = [](const std::string& op, uint64_t source, uint64_t result) {
    char literal[16];
    std::snprintf(literal, sizeof literal, "0f%08x", static_cast<unsigned>(source));
    return Case{op + ".f32 %d, " + literal + ";", "f32", [=](const Values&) { return result; }};
  };
  const uint64_t one = 0x3f800000, subnormal = 0x00400000, zero = 0;
  check(device, {{"b32", {0}}},
        {at("rcp.approx", kInfinity, zero),
         at("rcp.approx", kMinus, kInfinity | kMinus),
         at("rcp.approx.ftz", subnormal | kMinus, kInfinity | kMinus),
         at("rcp.approx.ftz", 0x7f000000, zero),  // 2^-127 is flushed
         at("rcp.approx", 0x7f000000, 0x00400000),
         at("rcp.approx", 0x00200000, kInfinity),
         at("sqrt.approx", kMinus, kMinus),
         at("sqrt.approx", kInfinity, kInfinity),
         at("sqrt.approx", one | kMinus, kNan),
         at("sqrt.approx.ftz", subnormal | kMinus, kMinus),
         at("rsqrt.approx", zero, kInfinity),
         at("rsqrt.approx", kMinus, kInfinity | kMinus),
         at("rsqrt.approx", kInfinity, zero),
         at("rsqrt.approx", one | kMinus, kNan),
         at("rsqrt.approx.ftz", subnormal, kInfinity),
         at("rsqrt.approx", 0x40800000, 0x3f000000),
         at("sin.approx", kInfinity, kNan),
         at("sin.approx", kMinus, kMinus),
         at("sin.approx.ftz", subnormal | kMinus, kMinus),
         at("cos.approx", kInfinity | kMinus, kNan),
         at("cos.approx", zero, one),
         at("lg2.approx", zero, kInfinity | kMinus),
         at("lg2.approx", kMinus, kInfinity | kMinus),
         at("lg2.approx", one | kMinus, kNan),
         at("lg2.approx", kInfinity, kInfinity),
         at("lg2.approx", one, zero),
         at("lg2.approx", subnormal, 0xc2fe0000),  // -127
         at("lg2.approx.ftz", subnormal, kInfinity | kMinus),
         at("ex2.approx", kInfinity | kMinus, zero),
         at("ex2.approx", kInfinity, kInfinity),
         at("ex2.approx", kMinus, one),
         at("ex2.approx", 0xc2fe0000, subnormal),
         at("ex2.approx.ftz", 0xc2fe0000, zero),
         at("ex2.approx", 0x43000000, kInfinity),
         at("ex2.approx", 0x41200000, 0x44800000),
         at("tanh.approx", kInfinity, one),
         at("tanh.approx", kInfinity | kMinus, one | kMinus),
         at("tanh.approx", kMinus, kMinus),
         at("tanh.approx", kNan, kNan)});
}

TEST_CASE("emulator: reciprocals of f64 by their upper halves") {
  Device device;
  // 20 bits of fraction in the upper 32 bits; the lower ones are neither read nor written.
  const auto upper = [](const Values& v, uint64_t bits, auto function) {
    uint64_t source = v[0] & ~uint64_t{0xffffffff};
    source = flushed(kF64, source);
    const double exact = function(as<double>(source));
    if (std::isnan(exact)) return bits == 0x7fffffff00000000;
    if ((bits & 0xffffffff) != 0) return false;
    if (exact == 0 || std::isinf(exact)) return bits == bits_of(exact);
    if (std::fabs(exact) < 0x1p-1022) return bits == (bits_of(exact) & kF64.sign_bit());
    return std::fabs(as<double>(bits) / exact - 1) <= 0x1p-21;
  };
  const auto reciprocal = [](double a) { return 1 / a; };
  const auto root = [](double a) { return a == 0 ? std::copysign(HUGE_VAL, a) : 1 / std::sqrt(a); };
  check(device, {{"f64", numbers(kF64, 2000, 5)}},
        {{"rcp.approx.ftz.f64 %d, %a0;", "f64", nullptr,
          [=](const Values& v, uint64_t bits) { return upper(v, bits, reciprocal); }},
         {"rsqrt.approx.ftz.f64 %d, %a0;", "f64", nullptr,
          [=](const Values& v, uint64_t bits) { return upper(v, bits, root); }},
         {"rsqrt.approx.f64 %d, %a0;", "f64", nullptr, [=](const Values& v, uint64_t bits) {
            const double exact = root(as<double>(v[0]));
            const double result = as<double>(bits);
            if (std::isnan(exact)) return std::isnan(result);
            return result == exact || std::fabs(result / exact - 1) < 0x1p-50;
          }}});
}

TEST_CASE("emulator: malformed approximate functions are refused") {
  check_refused({"sin.f32 f0, f1;",
                 "sin.approx.f64 g0, g1;",
                 "cos.ftz.approx.f32 f0, f1;",
                 "lg2.approx.ftz.f64 g0, g1;",
                 "ex2.f32 f0, f1;",
                 "ex2.approx.sat.f32 f0, f1;",
                 "ex2.approx.f32 f0;",
                 "ex2.approx.f32 f0, f1, f2;",
                 "ex2.approx.f64 g0, g1;",
                 "tanh.approx.ftz.f32 f0, f1;",
                 "tanh.f32 f0, f1;",
                 "tanh.approx.f64 g0, g1;",
                 "rsqrt.f32 f0, f1;",
                 "rsqrt.rn.f32 f0, f1;",
                 "rsqrt.approx.f16 h0, h1;",
                 "rcp.ftz.approx.f64 g0, g1;",
                 "rcp.approx.ftz.f64 f0, f1;",
                 "sqrt.full.f32 f0, f1;",
                 "div.approx.rn.f32 f0, f1, f2;",
                 "div.full.approx.f32 f0, f1, f2;",
                 "lg2.approx.f32 f0, h1;",
                 "sin.approx.f32 g0, g1;"});
}
