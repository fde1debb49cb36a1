// Single and double precision in every rounding, against exact arithmetic.

#include <catch2/catch.hpp>

#include "tests/emulator/arithmetic.h"
#include "tests/emulator/outcomes.h"

using namespace emulator_test;

namespace {

constexpr uint64_t kNan = 0x7fffffff;  // of f32

const std::string kRoundings[] = {"rn", "rz", "rm", "rp"};

// All pairs of the edges, then random rows; a third column that often cancels a product.
std::vector<Column> columns(const FloatFormat& f, size_t count, uint64_t seed) {
  const std::string type = "f" + std::to_string(f.width);
  const Values edges = numbers(f, 22, seed);
  std::vector<Column> all = combinations({type, type, type}, {edges, edges, {f.sign_bit()}}, 0, 0);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 3; ++i) {
    const Values more = numbers(f, count, seed + 1 + static_cast<uint64_t>(i));
    all[i].values.insert(all[i].values.end(), more.begin() + 22, more.end());
  }
  const size_t rows = all[0].values.size();
  for (size_t row = 0; row < rows; row += 3) {
    const uint64_t a = all[0].values[row], b = all[1].values[row];
    if (product(f, a, b).kind != Outcome::Kind::finite) continue;
    const uint64_t rounded_product = bits_of(product(f, a, b), f, "rn", 0);
    all[2].values[row] = rounded_product ^ f.sign_bit();
  }
  return all;
}

struct Operation {
  std::string name;
  int sources;
  std::function<Outcome(const FloatFormat&, const Values&, const std::string&)> of;
  bool saturates;
};

const Operation kOperations[] = {
    {"add", 2,
     [](const FloatFormat& f, const Values& v, const std::string& r) {
       return sum(f, v[0], v[1], r);
     },
     true},
    {"sub", 2,
     [](const FloatFormat& f, const Values& v, const std::string& r) {
       return sum(f, v[0], v[1] ^ f.sign_bit(), r);
     },
     true},
    {"mul", 2,
     [](const FloatFormat& f, const Values& v, const std::string&) {
       return product(f, v[0], v[1]);
     },
     true},
    {"fma", 3,
     [](const FloatFormat& f, const Values& v, const std::string& r) {
       return product_sum(f, v[0], v[1], f, v[2], r);
     },
     true},
    {"mad", 3,
     [](const FloatFormat& f, const Values& v, const std::string& r) {
       return product_sum(f, v[0], v[1], f, v[2], r);
     },
     true},
    {"div", 2,
     [](const FloatFormat& f, const Values& v, const std::string&) {
       return quotient(f, v[0], v[1]);
     },
     false},
    {"rcp", 1,
     [](const FloatFormat& f, const Values& v, const std::string&) {
       return quotient(f, static_cast<uint64_t>(f.bias()) << f.fraction, v[0]);
     },
     false},
    {"sqrt", 1,
     [](const FloatFormat& f, const Values& v, const std::string&) { return root(f, v[0]); },
     false},
};

std::string operands(int count) {
  std::string text = " %d";
  for (int i = 0; i < count; ++i) text += ", %a" + std::to_string(i);
  return text + ";";
}

std::vector<Case> single_cases(const Operation& op, const std::string& rounding) {
  std::vector<Case> cases;
  const std::string name = op.name + (rounding.empty() ? "" : "." + rounding);
  const std::string how = rounding.empty() ? "rn" : rounding;
  for (const bool ftz : {false, true}) {
    for (const bool sat : {false, true}) {
      if (sat && !op.saturates) continue;
      cases.push_back(
          {name + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + ".f32" + operands(op.sources), "f32",
           [=](Values v) {
             if (ftz)
               for (uint64_t& bits : v) bits = flushed(kF32, bits);
             uint64_t result = bits_of(op.of(kF32, v, how), kF32, how, kNan);
             if (ftz) result = flushed(kF32, result);
             return sat ? saturated(kF32, result) : result;
           }});
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("emulator: arithmetic of f32 in every rounding") {
  Device device;
  const std::vector<Column> sources = columns(kF32, 600, 1);
  for (const Operation& op : kOperations) {
    std::vector<Case> cases;
    for (const std::string& rounding : kRoundings) {
      for (const Case& one : single_cases(op, rounding)) cases.push_back(one);
    }
    const bool default_rounding = op.name == "add" || op.name == "sub" || op.name == "mul";
    if (default_rounding) {
      for (const Case& one : single_cases(op, "")) cases.push_back(one);
    }
    check(device, sources, cases);
  }
}

TEST_CASE("emulator: arithmetic of f64 in every rounding") {
  Device device;
  const std::vector<Column> sources = columns(kF64, 600, 2);
  for (const Operation& op : kOperations) {
    std::vector<Case> cases;
    for (const std::string& rounding : kRoundings) {
      cases.push_back({op.name + "." + rounding + ".f64" + operands(op.sources), "f64", nullptr,
                       [=](const Values& v, uint64_t result) {
                         return is_outcome(op.of(kF64, v, rounding), kF64, rounding, result);
                       }});
    }
    check(device, sources, cases);
  }
}

TEST_CASE("emulator: pairs of f32") {
  Device device(10, 0);
  std::vector<Column> halves = columns(kF32, 300, 3);
  // The other half of a pair is the row after.
  std::vector<Column> pairs;
  for (const Column& column : halves) {
    pairs.push_back({"b64", {}});
    for (size_t row = 0; row < column.values.size(); ++row) {
      pairs.back().values.push_back(column.values[row] |
                                    column.values[(row + 1) % column.values.size()] << 32);
    }
  }
  std::vector<Case> cases;
  for (const Operation& op : kOperations) {
    if (!op.saturates || op.name == "mad") continue;
    for (const std::string& rounding : kRoundings) {
      for (const bool ftz : {false, true}) {
        cases.push_back(
            {op.name + "." + rounding + (ftz ? ".ftz" : "") + ".f32x2" + operands(op.sources),
             "b64", [=](const Values& v) {
               const auto half = [&](int by) {
                 Values part;
                 for (uint64_t bits : v) {
                   part.push_back(bits >> by & 0xffffffff);
                   if (ftz) part.back() = flushed(kF32, part.back());
                 }
                 const uint64_t result = bits_of(op.of(kF32, part, rounding), kF32, rounding, kNan);
                 return ftz ? flushed(kF32, result) : result;
               };
               return half(0) | half(32) << 32;
             }});
      }
    }
  }
  check(device, pairs, cases, "sm_100a");
}

TEST_CASE("emulator: sums of f32 and halves") {
  Device device(10, 0);
  for (const FloatFormat& half : {kF16, kBf16}) {
    const std::string type = half.fraction == 10 ? "f16" : "bf16";
    const Values edges = numbers(half, 22, 4);
    std::vector<Column> sources = combinations(
        {"b16", "b16", "f32"}, {edges, {0x3c00, 0x8000, 0x0001}, numbers(kF32, 22, 4)}, 0, 0);
    for (int i = 0; i < 3; ++i) {
      const Values more = numbers(i < 2 ? half : kF32, 500, 5 + static_cast<uint64_t>(i));
      sources[i].values.insert(sources[i].values.end(), more.begin(), more.end());
    }
    const auto wide = [=](uint64_t bits) {
      return bits_of(outcome_of(half, bits), kF32, "rn", kNan);
    };
    std::vector<Case> cases;
    for (const std::string& rounding : kRoundings) {
      for (const bool sat : {false, true}) {
        const std::string rest = "." + rounding + (sat ? ".sat" : "") + ".f32." + type;
        const auto end = [=](const Outcome& outcome) {
          const uint64_t result = bits_of(outcome, kF32, rounding, kNan);
          return sat ? saturated(kF32, result) : result;
        };
        cases.push_back({"add" + rest + " %d, %a0, %a2;", "f32", [=](const Values& v) {
                           return end(sum(kF32, wide(v[0]), v[2], rounding));
                         }});
        cases.push_back({"sub" + rest + " %d, %a0, %a2;", "f32", [=](const Values& v) {
                           return end(sum(kF32, wide(v[0]), v[2] ^ kF32.sign_bit(), rounding));
                         }});
        cases.push_back({"fma" + rest + " %d, %a0, %a1, %a2;", "f32", [=](const Values& v) {
                           return end(product_sum(half, v[0], v[1], kF32, v[2], rounding));
                         }});
      }
    }
    cases.push_back({"add.f32." + type + " %d, %a0, %a2;", "f32", [=](const Values& v) {
                       return bits_of(sum(kF32, wide(v[0]), v[2], "rn"), kF32, "rn", kNan);
                     }});
    check(device, sources, cases, "sm_100a");
  }
}

namespace {

struct Extreme {
  bool maximum, ftz, nan, xorsign, absolute;
};

// -0 before +0; NaN loses, or wins with .NaN.
uint64_t extreme(const FloatFormat& f, const Extreme& how, Values v, uint64_t canonical) {
  uint64_t sign = 0;
  for (uint64_t& bits : v) {
    if (how.ftz) bits = flushed(f, bits);
    sign ^= bits & f.sign_bit();
    if (how.absolute || how.xorsign) bits &= ~f.sign_bit();
  }
  bool found = false;
  uint64_t result = canonical;
  const auto key = [&](uint64_t bits) {
    const auto magnitude = static_cast<int64_t>(bits & ~f.sign_bit());
    return bits & f.sign_bit() ? -magnitude - 1 : magnitude;
  };
  for (uint64_t bits : v) {
    if (f.is_nan(bits)) {
      if (how.nan) return canonical;
      continue;
    }
    if (!found || (key(bits) > key(result)) == how.maximum) result = bits;
    found = true;
  }
  return found && how.xorsign ? result | sign : result;
}

std::string extreme_name(const Extreme& how) {
  return std::string(how.maximum ? "max" : "min") + (how.ftz ? ".ftz" : "") +
         (how.nan ? ".NaN" : "") + (how.xorsign ? ".xorsign.abs" : "") +
         (how.absolute ? ".abs" : "") + ".f32";
}

}  // namespace

TEST_CASE("emulator: minima and maxima of f32 and f64") {
  Device device(10, 0);
  const Values edges = numbers(kF32, 30, 6);
  std::vector<Case> cases;
  for (int bits = 0; bits < 16; ++bits) {
    Extreme how{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, false};
    cases.push_back({extreme_name(how) + " %d, %a0, %a1;", "f32", [=](const Values& v) {
                       return extreme(kF32, how, {v[0], v[1]}, kNan);
                     }});
    how.absolute = how.xorsign;
    how.xorsign = false;
    cases.push_back({extreme_name(how) + " %d, %a0, %a1, %a2;", "f32",
                     [=](const Values& v) { return extreme(kF32, how, v, kNan); }});
  }
  check(device, combinations({"f32", "f32", "f32"}, {edges, edges, numbers(kF32, 24, 7)}, 0, 0),
        cases, "sm_100a");
  const Values wide = numbers(kF64, 40, 8);
  cases.clear();
  for (const bool maximum : {false, true}) {
    cases.push_back(
        {std::string(maximum ? "max" : "min") + ".f64 %d, %a0, %a1;", "f64", [=](const Values& v) {
           return extreme(kF64, {maximum, false, false, false, false}, v, 0xfff8000000000000);
         }});
  }
  check(device, combinations({"f64", "f64"}, {wide, wide}, 0, 0), cases, "sm_100a");
}

TEST_CASE("emulator: signs and properties of f32 and f64") {
  Device device;
  for (const FloatFormat& f : {kF32, kF64}) {
    const std::string type = "f" + std::to_string(f.width);
    std::vector<Case> cases = {
        {"abs." + type + " %d, %a0;", type, [=](const Values& v) { return v[0] & ~f.sign_bit(); }},
        {"neg." + type + " %d, %a0;", type, [=](const Values& v) { return v[0] ^ f.sign_bit(); }},
        {"copysign." + type + " %d, %a0, %a1;", type,
         [=](const Values& v) { return (v[0] & f.sign_bit()) | (v[1] & ~f.sign_bit()); }}};
    if (f.width == 32) {
      cases.push_back({"abs.ftz.f32 %d, %a0;", type,
                       [](const Values& v) { return flushed(kF32, v[0]) & 0x7fffffff; }});
      cases.push_back({"neg.ftz.f32 %d, %a0;", type,
                       [](const Values& v) { return flushed(kF32, v[0]) ^ 0x80000000; }});
    }
    const auto property = [&](const std::string& name, auto holds) {
      cases.push_back({"testp." + name + "." + type + " %d, %a0;", "pred",
                       [=](const Values& v) -> uint64_t { return holds(v[0]); }});
    };
    property("finite", [=](uint64_t a) { return (a & ~f.sign_bit()) < f.infinity(); });
    property("infinite", [=](uint64_t a) { return f.is_infinite(a); });
    property("number", [=](uint64_t a) { return !f.is_nan(a); });
    property("notanumber", [=](uint64_t a) { return f.is_nan(a); });
    property("normal",
             [=](uint64_t a) { return (a & ~f.sign_bit()) < f.infinity() && !f.is_subnormal(a); });
    property("subnormal", [=](uint64_t a) { return f.is_subnormal(a); });
    const Values edges = numbers(f, 40, 9);
    check(device, combinations({type, type}, {edges, edges}, 0, 0), cases);
  }
}

TEST_CASE("emulator: values of f32 arithmetic worked out by hand") {
  Device device;
  const auto value = [](uint64_t bits) { return [=](const Values&) { return bits; }; };
  check(device, {{"b32", {0}}},
        {{"add.rn.f32 %d, 0f3f800000, 0f33800000;", "f32", value(0x3f800000)},  // 1 + 2^-24: tie
         {"add.rp.f32 %d, 0f3f800000, 0f33800000;", "f32", value(0x3f800001)},
         {"add.rn.f32 %d, 0f3f800001, 0f33800000;", "f32", value(0x3f800002)},
         {"mul.rz.f32 %d, 0f7f7fffff, 0f40000000;", "f32", value(0x7f7fffff)},  // overflow
         {"mul.rm.f32 %d, 0fff7fffff, 0f40000000;", "f32", value(0xff800000)},
         {"mul.ftz.f32 %d, 0f00800000, 0f3f000000;", "f32", value(0)},  // 2^-127 is flushed
         {"mul.f32 %d, 0f00800000, 0f3f000000;", "f32", value(0x00400000)},
         {"mul.ftz.f32 %d, 0f80400000, 0f7f000000;", "f32", value(0x80000000)},
         {"add.rm.f32 %d, 0f3f800000, 0fbf800000;", "f32", value(0x80000000)},
         {"add.sat.f32 %d, 0f40000000, 0f40000000;", "f32", value(0x3f800000)},
         {"add.sat.f32 %d, 0f7fc00000, 0f40000000;", "f32", value(0)},
         {"fma.rn.f32 %d, 0f3f800001, 0f3f800001, 0fbf800002;", "f32", value(0x28800000)},  // 2^-46
         {"div.rn.f32 %d, 0f3f800000, 0f40400000;", "f32", value(0x3eaaaaab)},
         {"div.rz.f32 %d, 0f3f800000, 0f40400000;", "f32", value(0x3eaaaaaa)},
         {"sqrt.rn.f32 %d, 0f40000000;", "f32", value(0x3fb504f3)},
         {"sqrt.rp.f32 %d, 0f40000000;", "f32", value(0x3fb504f4)},
         {"sqrt.rn.f32 %d, 0f80000000;", "f32", value(0x80000000)},
         {"rcp.rn.f64 %d, 0dbff0000000000000;", "f64", value(0xbff0000000000000)},
         {"rcp.rn.f32 %d, 0f80000000;", "f32", value(0xff800000)}});
}

TEST_CASE("emulator: malformed arithmetic of floats is refused") {
  check_refused({"add.ftz.f64 g0, g1, g2;",
                 "add.sat.f64 g0, g1, g2;",
                 "add.sat.ftz.f32 f0, f1, f2;",
                 "add.ftz.rn.f32 f0, f1, f2;",
                 "add.f32.rn f0, f1, f2;",
                 "add.rna.f32 f0, f1, f2;",
                 "add.rni.f32 f0, f1, f2;",
                 "add.f32 f0, f1;",
                 "add.f32 f0, f1, f2, f3;",
                 ".reg .u32 x; add.f32 f0, f1, x;",
                 "add.f32 f0, f1, g2;",
                 "add.f32 f0, f1, 1;",
                 "add.f32 f0, f1, -f2;",
                 "add.f32 _, f1, f2;",
                 "add.tf32 r0, r1, r2;",
                 "fma.f32 f0, f1, f2, f3;",
                 "fma.rn.f32 f0, f1, f2;",
                 "mad.f32 f0, f1, f2, f3;",
                 "fma.rn.relu.f32 f0, f1, f2, f3;",
                 "mul.lo.f32 f0, f1, f2;",
                 "div.f32 f0, f1, f2;",
                 "div.rn.sat.f32 f0, f1, f2;",
                 "div.full.f64 g0, g1, g2;",
                 "div.approx.f64 g0, g1, g2;",
                 "div.rn.ftz.f64 g0, g1, g2;",
                 "rcp.f32 f0, f1;",
                 "rcp.approx.f64 g0, g1;",
                 "rcp.rn.approx.f32 f0, f1;",
                 "sqrt.f64 g0, g1;",
                 "sqrt.approx.f64 g0, g1;",
                 "sqrt.rn.ftz.f64 g0, g1;",
                 "abs.sat.f32 f0, f1;",
                 "neg.ftz.f64 g0, g1;",
                 "neg.rn.f32 f0, f1;",
                 "min.NaN.f64 g0, g1, g2;",
                 "min.NaN.ftz.f32 f0, f1, f2;",
                 "min.xorsign.f32 f0, f1, f2;",
                 "max.abs.f32 f0, f1, f2;",
                 "max.f32 f0, f1, f2, f3;",
                 "copysign.ftz.f32 f0, f1, f2;",
                 "copysign.f16 h0, h1, h2;",
                 "testp.f32 p0, f1;",
                 "testp.zero.f32 p0, f1;",
                 "testp.normal.f16 p0, h1;",
                 "testp.normal.f32 f0, f1;",
                 "rem.f32 f0, f1, f2;",
                 "add.f32x2 d0, d1, d2;",
                 "add.f32.f16 f0, h1, f2;"});
  check_refused(
      {"add.sat.f32x2 d0, d1, d2;", "fma.f32x2 d0, d1, d2, d3;", "div.rn.f32x2 d0, d1, d2;",
       "add.ftz.f32.f16 f0, h1, f2;", "mul.f32.f16 f0, h1, f2;", "fma.f32.f16 f0, h1, h2, f3;",
       "add.f32.f16 f0, f1, h2;", "max.xorsign.abs.f32 f0, f1, f2, f3;", "max.f64 g0, g1, g2, g3;"},
      "sm_100a");
  check_refused({"min.NaN.f32 f0, f1, f2;", "min.xorsign.abs.f32 f0, f1, f2;"}, "sm_75");
}

TEST_CASE("emulator: results of undefined floats are undefined") {
  for (const std::string body :
       {"add.f32 x, y, 0f00000000;", "mul.f32 x, 0f00000000, y;", "fma.rz.f32 x, z, z, y;",
        "div.rn.f32 x, z, y;", "rcp.rn.f32 x, y;", "sqrt.rn.f32 x, y;", "abs.f32 x, y;",
        "neg.ftz.f32 x, y;", "min.f32 x, y, z;", "copysign.f32 x, z, y;", "ex2.approx.f32 x, y;",
        "div.full.f32 x, z, y;", "rsqrt.approx.f32 x, y;"}) {
    INFO(body);
    CHECK(stores_undefined(
        "b32", ".reg .f32 x, y, z; mov.f32 z, 0f3f800000; " + body + " mov.b32 %d, x;"));
  }
  CHECK(stores_undefined("b64", ".reg .f64 x; add.f64 x, x, x; mov.b64 %d, x;"));
  CHECK(stores_undefined("pred", ".reg .f32 x; testp.normal.f32 %d, x;"));
  const std::string pair = ".reg .b64 x; .reg .b32 y; mov.b64 x, {u0, i1}; add.rn.f32x2 x, x, x; ";
  CHECK_FALSE(stores_undefined("b32", pair + "mov.b64 {_, %d}, x;", "sm_100a"));
  CHECK(stores_undefined("b32", pair + "mov.b64 {%d, _}, x;", "sm_100a"));
}
