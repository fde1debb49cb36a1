// f16 and bf16, alone and in pairs, against exact arithmetic.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/emulator/arithmetic.h"
#include "tests/emulator/outcomes.h"

using namespace emulator_test;

namespace {

constexpr uint64_t kNan = 0x7fff;

struct Half {
  std::string type;
  FloatFormat format;
};
const Half kHalves[] = {{"f16", kF16}, {"bf16", kBf16}};

struct Operation {
  std::string name;
  int sources;
  std::function<Outcome(const FloatFormat&, const Values&)> of;
};
const Operation kOperations[] = {
    {"add", 2, [](const FloatFormat& f, const Values& v) { return sum(f, v[0], v[1], "rn"); }},
    {"sub", 2,
     [](const FloatFormat& f, const Values& v) { return sum(f, v[0], v[1] ^ 0x8000, "rn"); }},
    {"mul", 2, [](const FloatFormat& f, const Values& v) { return product(f, v[0], v[1]); }},
    {"fma", 3, [](const FloatFormat& f, const Values& v) {
       return product_sum(f, v[0], v[1], f, v[2], "rn");
     }}};

std::string operands(int count) {
  std::string text = " %d";
  for (int i = 0; i < count; ++i) text += ", %a" + std::to_string(i);
  return text + ";";
}

// The same function of a scalar's bits and of each half of a pair's.
using Scalar = std::function<uint64_t(const Values&)>;
Scalar packed(Scalar of) {
  return [of](const Values& v) {
    Values low, high;
    for (uint64_t word : v) {
      low.push_back(word & 0xffff);
      high.push_back(word >> 16 & 0xffff);
    }
    return of(low) | of(high) << 16;
  };
}

// Rows of halves, and of pairs of one row and the row after.
std::vector<Column> rows(const FloatFormat& f, int sources, bool pairs, uint64_t seed) {
  std::vector<Column> columns;
  for (int i = 0; i < sources; ++i) {
    // Edges against edges: every column goes through its own at another pace.
    const Values edges = numbers(f, 22, 0);
    Values values;
    for (size_t row = 0; row < 484; ++row)
      values.push_back(edges[(i == 0 ? row : i == 1 ? row / 22 : row / 3) % 22]);
    const Values more = numbers(f, 1000, seed + static_cast<uint64_t>(i));
    values.insert(values.end(), more.begin(), more.end());
    if (i == 2) {  // products and what cancels them
      for (size_t row = 0; row < values.size(); row += 3) {
        const Outcome ab =
            product(f, columns[0].values[row] & 0xffff, columns[1].values[row] & 0xffff);
        values[row] = bits_of(ab, f, "rn", kNan) ^ 0x8000;
      }
    }
    columns.push_back({"b16", values});
  }
  if (!pairs) return columns;
  for (Column& column : columns) {
    const Values halves = column.values;
    column.type = "b32";
    for (size_t row = 0; row < halves.size(); ++row) {
      column.values[row] = halves[row] | halves[(row + 1) % halves.size()] << 16;
    }
  }
  return columns;
}

void check_both(Device& device, const FloatFormat& f, int sources,
                const std::vector<std::pair<std::string, Scalar>>& cases, uint64_t seed,
                const std::string& suffix) {
  std::vector<Case> scalars, pairs;
  for (const auto& [name, of] : cases) {
    scalars.push_back({name + suffix + operands(sources), "b16", of});
    pairs.push_back({name + suffix + "x2" + operands(sources), "b32", packed(of)});
  }
  check(device, rows(f, sources, false, seed), scalars);
  check(device, rows(f, sources, true, seed + 10), pairs);
}

}  // namespace

TEST_CASE("emulator: arithmetic of halves") {
  Device device;
  for (const Half& half : kHalves) {
    const FloatFormat f = half.format;
    const bool bfloat = half.type == "bf16";
    for (const Operation& op : kOperations) {
      std::vector<std::pair<std::string, Scalar>> cases;
      const auto add = [&](const std::string& name, bool ftz, bool sat, bool relu) {
        cases.push_back(
            {name + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + (relu ? ".relu" : "") + ".",
             [=](Values v) {
               if (ftz)
                 for (uint64_t& bits : v) bits = flushed(f, bits);
               uint64_t result = bits_of(op.of(f, v), f, "rn", kNan);
               if (ftz) result = flushed(f, result);
               if (relu) result = rectified(f, result);
               return sat ? saturated(f, result) : result;
             }});
      };
      add(op.name + ".rn", false, false, false);
      if (op.name != "fma") add(op.name, false, false, false);
      if (op.name == "fma") add(op.name + ".rn", false, false, true);
      if (!bfloat) {
        add(op.name + ".rn", true, false, false);
        add(op.name + ".rn", false, true, false);
        add(op.name + ".rn", true, true, false);
        if (op.name == "fma") add(op.name + ".rn", true, false, true);
      }
      check_both(device, f, op.sources, cases, 1, half.type);
    }
  }
}

TEST_CASE("emulator: products and sums of halves that round once") {
  Device device;
  const auto value = [](uint64_t bits) { return [=](const Values&) { return bits; }; };
  // The middle between two values of bf16 and a little more: only one rounding rounds it up.
  check(device, {{"b16", {0}}},
        {{".reg .b16 a, b, c; mov.b16 a, 0x3f81; mov.b16 b, 0x3f80; mov.b16 c, 0x0080; "
          "fma.rn.bf16 %d, a, b, c;",
          "b16", value(0x3f81)},
         {".reg .b16 a, b, c; mov.b16 a, 0x4080; mov.b16 b, 0x4080; mov.b16 c, 0x3f80; "  // 16 + 1
          "fma.rn.bf16 %d, a, b, c;",
          "b16", value(0x4188)},
         // 257/256 * 1 is no bf16; 2^7 + 2^-1 is the middle of 128 and 129, 2^-120 above it.
         {".reg .b16 a, b, c; mov.b16 a, 0x4301; mov.b16 b, 0x3f7f; mov.b16 c, 0x0400; "
          "fma.rn.bf16 %d, a, b, c;",
          "b16",
          [](const Values&) {
            return bits_of(product_sum(kBf16, 0x4301, 0x3f7f, kBf16, 0x0400, "rn"), kBf16, "rn", 0);
          }},
         {".reg .b16 a, b; mov.b16 a, 0x7bff; mov.b16 b, 0x4c00; add.f16 %d, a, b;", "b16",
          value(0x7c00)},  // 65504 + 16: half an ulp, away from the odd one, to infinity
         {".reg .b16 a, b; mov.b16 a, 0x7bff; mov.b16 b, 0x4bff; add.f16 %d, a, b;", "b16",
          value(0x7bff)},
         {".reg .b16 a, b; mov.b16 a, 0x0001; mov.b16 b, 0x3800; mul.f16 %d, a, b;", "b16",
          value(0x0000)},  // half of the smallest subnormal number, to even
         {".reg .b16 a, b; mov.b16 a, 0x0003; mov.b16 b, 0x3800; mul.f16 %d, a, b;", "b16",
          value(0x0002)}});
}

TEST_CASE("emulator: signs, minima and maxima of halves") {
  Device device;
  for (const Half& half : kHalves) {
    const FloatFormat f = half.format;
    std::vector<std::pair<std::string, Scalar>> signs;
    for (const bool ftz : {false, true}) {
      if (ftz && half.type == "bf16") continue;
      const std::string rest = ftz ? ".ftz." : ".";
      signs.push_back({"neg" + rest,
                       [=](const Values& v) { return (ftz ? flushed(f, v[0]) : v[0]) ^ 0x8000; }});
      signs.push_back({"abs" + rest,
                       [=](const Values& v) { return (ftz ? flushed(f, v[0]) : v[0]) & 0x7fff; }});
    }
    check_both(device, f, 1, signs, 2, half.type);
    std::vector<std::pair<std::string, Scalar>> cases;
    for (int bits = 0; bits < 16; ++bits) {
      const bool maximum = bits & 1, nan = bits & 2, xorsign = bits & 4, ftz = bits & 8;
      if (ftz && half.type == "bf16") continue;
      cases.push_back(
          {std::string(maximum ? "max" : "min") + (ftz ? ".ftz" : "") + (nan ? ".NaN" : "") +
               (xorsign ? ".xorsign.abs." : "."),
           [=](Values v) -> uint64_t {
             if (ftz)
               for (uint64_t& value : v) value = flushed(f, value);
             const uint64_t sign = (v[0] ^ v[1]) & 0x8000;
             if (xorsign)
               for (uint64_t& value : v) value &= 0x7fff;
             const bool a = f.is_nan(v[0]), b = f.is_nan(v[1]);
             if ((a && b) || (nan && (a || b))) return kNan;
             // -0 is less than +0: by twice the value, less one for a sign.
             const auto key = [&](uint64_t value) {
               return f.value(value) * Exact(2) + (value >> 15 ? Exact(-1, -200) : Exact());
             };
             const bool less = !a && (b || ((key(v[0]) - key(v[1])).sign() < 0) != maximum);
             return (less ? v[0] : v[1]) | (xorsign ? sign : 0);
           }});
    }
    check_both(device, f, 2, cases, 3, half.type);
  }
}

TEST_CASE("emulator: tanh and ex2 of halves") {
  Device device;
  for (const Half& half : kHalves) {
    const FloatFormat f = half.format;
    const bool bfloat = half.type == "bf16";
    Values all;
    for (uint64_t bits = 0; bits < 65536; bits += bits % 3 + 1) all.push_back(bits);
    const auto value = [=](uint64_t bits) -> long double { return number_of(f, bits); };
    // Within the rounding and the error of the host's function, far less than half a unit.
    const auto close = [=](uint64_t result, long double exact, bool flush) {
      if (std::isnan(exact)) return result == kNan;
      const long double slack = std::fabs(exact) * 0x1p-22L;
      for (const long double candidate : {exact, exact - slack, exact + slack}) {
        const double single = static_cast<double>(candidate);
        uint64_t bits = bits_of(outcome_of(kF64, bits_of(single)), f, "rn", kNan);
        if (flush) bits = flushed(f, bits);
        if (result == bits) return true;
      }
      return false;
    };
    const std::string ex2 = bfloat ? "ex2.approx.ftz." : "ex2.approx.";
    const auto tangent = [=](const Values& v, uint64_t result) {
      return close(result, std::tanh(value(v[0])), false);
    };
    const auto power = [=](const Values& v, uint64_t result) {
      return close(result, std::exp2(value(v[0])), bfloat);
    };
    const auto pair = [](auto of) {
      return [=](const Values& v, uint64_t result) {
        return of(Values{v[0] & 0xffff}, result & 0xffff) && of(Values{v[0] >> 16}, result >> 16);
      };
    };
    check(device, {{"b16", all}},
          {{"tanh.approx." + half.type + " %d, %a0;", "b16", nullptr, tangent},
           {ex2 + half.type + " %d, %a0;", "b16", nullptr, power}});
    for (uint64_t& bits : all) bits |= (bits * 0x9e37 & 0xffff) << 16;
    all.resize(4096);
    check(device, {{"b32", all}},
          {{"tanh.approx." + half.type + "x2 %d, %a0;", "b32", nullptr, pair(tangent)},
           {ex2 + half.type + "x2 %d, %a0;", "b32", nullptr, pair(power)}});
  }
}

TEST_CASE("emulator: malformed arithmetic of halves is refused") {
  check_refused({"add.rz.f16 h0, h1, h2;",
                 "add.ftz.bf16 h0, h1, h2;",
                 "add.sat.bf16x2 r0, r1, r2;",
                 "add.sat.ftz.f16 h0, h1, h2;",
                 "add.relu.f16 h0, h1, h2;",
                 "add.f16 h0, h1, 1;",
                 "add.f16 h0, h1, r2;",
                 "add.f16x2 r0, r1, f2;",
                 "add.f16 h0, h1;",
                 "mul.relu.bf16 h0, h1, h2;",
                 "fma.f16 h0, h1, h2, h3;",
                 "fma.rn.sat.relu.f16 h0, h1, h2, h3;",
                 "fma.rn.relu.sat.f16 h0, h1, h2, h3;",
                 "fma.rn.sat.bf16 h0, h1, h2, h3;",
                 "fma.rn.oob.f16 h0, h1, h2, h3;",
                 "mad.rn.f16 h0, h1, h2, h3;",
                 "div.rn.f16 h0, h1, h2;",
                 "neg.ftz.bf16 h0, h1;",
                 "abs.sat.f16 h0, h1;",
                 "min.NaN.ftz.f16 h0, h1, h2;",
                 "min.ftz.bf16 h0, h1, h2;",
                 "min.xorsign.f16 h0, h1, h2;",
                 "min.f16 h0, h1, h2, h3;",
                 "tanh.f16 h0, h1;",
                 "tanh.approx.ftz.f16 h0, h1;",
                 "ex2.f16 h0, h1;",
                 "ex2.approx.ftz.f16 h0, h1;",
                 "ex2.approx.bf16 h0, h1;",
                 "sqrt.approx.f16 h0, h1;",
                 ".reg .u16 x; add.f16 x, h1, h2;",
                 ".reg .u32 x; fma.rn.bf16x2 x, r1, r2, r3;"});
  check_refused(
      {"add.bf16 h0, h1, h2;", "min.xorsign.abs.f16 h0, h1, h2;", "tanh.approx.bf16 h0, h1;"},
      "sm_80");
  check_refused(
      {"fma.rn.bf16 h0, h1, h2, h3;", "min.f16 h0, h1, h2;", "fma.rn.relu.f16 h0, h1, h2, h3;"},
      "sm_75");
  check_accepted({"add.f16 h0, h1, h2;", "fma.rn.f16x2 r0, r1, r2, r3;", "tanh.approx.f16 h0, h1;"},
                 "sm_75");
}

TEST_CASE("emulator: each half of a pair is defined on its own") {
  const std::string half = ".reg .b32 x; .reg .b16 w; mov.b16 w, 0x3c00; mov.b32 x, {w, w0}; ";
  for (const std::string body :
       {"add.f16x2 x, x, i0;", "fma.rn.bf16x2 x, x, i0, x;", "min.f16x2 x, i0, x;",
        "neg.bf16x2 x, x;", "abs.f16x2 x, x;", "tanh.approx.f16x2 x, x;", "add.u16x2 x, x, x;",
        "max.s16x2 x, x, i0;"}) {
    INFO(body);
    CHECK_FALSE(stores_undefined("b16", half + body + " mov.b32 {%d, _}, x;"));
    CHECK(stores_undefined("b16", half + body + " mov.b32 {_, %d}, x;"));
  }
  CHECK(stores_undefined("b16", "add.f16 %d, w0, w1;"));
}
