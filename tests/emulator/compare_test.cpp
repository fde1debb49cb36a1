// Comparisons of every type, selection.

#include <catch2/catch.hpp>

#include "tests/emulator/arithmetic.h"
#include "tests/emulator/exact.h"

using namespace emulator_test;

namespace {

// Less, equal, greater, or unordered: 2.
using Order = std::function<int(uint64_t, uint64_t)>;

bool holds(const std::string& relation, int order) {
  const bool nan = order == 2, less = order == -1, equal = order == 0, greater = order == 1;
  if (relation == "num") return !nan;
  if (relation == "nan") return nan;
  if (relation == "eq") return equal;
  if (relation == "ne") return less || greater;
  if (relation == "lt" || relation == "lo") return less;
  if (relation == "le" || relation == "ls") return less || equal;
  if (relation == "gt" || relation == "hi") return greater;
  if (relation == "ge" || relation == "hs") return greater || equal;
  return nan || holds(relation.substr(0, 2), order);  // equ, neu, ltu ...
}

struct Compared {
  std::string type, reg;
  int bits;
  Order order;
  std::vector<std::string> relations;
  bool flushes = false;
};

Order integers(int bits, bool is_signed) {
  return [=](uint64_t a, uint64_t b) {
    const uint64_t flip = is_signed ? uint64_t{1} << (bits - 1) : 0;
    const uint64_t x = a ^ flip, y = b ^ flip;
    return x < y ? -1 : x > y ? 1 : 0;
  };
}
Order floats(FloatFormat format, bool flush = false) {
  return [=](uint64_t a, uint64_t b) {
    if (format.is_nan(a) || format.is_nan(b)) return 2;
    const auto value = [&](uint64_t bits) {
      return flush && format.is_subnormal(bits) ? Exact() : format.value(bits);
    };
    return (value(a) - value(b)).sign();
  };
}

const std::vector<std::string> kEquality = {"eq", "ne"},
                               kSigned = {"eq", "ne", "lt", "le", "gt", "ge"},
                               kUnsigned = {"eq", "ne", "lt", "le", "gt",
                                            "ge", "lo", "ls", "hi", "hs"},
                               kFloats = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                          "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

std::vector<Compared> compared() {
  std::vector<Compared> all;
  for (const int bits : {16, 32, 64}) {
    const std::string w = std::to_string(bits);
    all.push_back({"b" + w, "b" + w, bits, integers(bits, false), kEquality});
    all.push_back({"u" + w, "b" + w, bits, integers(bits, false), kUnsigned});
    all.push_back({"s" + w, "b" + w, bits, integers(bits, true), kSigned});
  }
  all.push_back({"f32", "f32", 32, floats(kF32), kFloats});
  all.push_back({"ftz.f32", "f32", 32, floats(kF32, true), kFloats});
  all.push_back({"f64", "f64", 64, floats(kF64), kFloats});
  all.push_back({"f16", "b16", 16, floats(kF16), kFloats});
  all.push_back({"ftz.f16", "b16", 16, floats(kF16, true), kFloats});
  all.push_back({"bf16", "b16", 16, floats(kBf16), kFloats});
  return all;
}

// Numbers that are edges of one type or the other.
Values values(const Compared& t) {
  switch (t.bits) {
    case 16:
      return {0,      1,      0x8000, 0x8001, 0x7fff, 0x7c00, 0xfc00, 0x7c01,
              0x7f80, 0x7f81, 0x3c00, 0xffff, 0x0400, 0x0080, 0x807f, 0x7fff};
    case 32:
      return {0,          1,          0x80000000, 0x80000001, 0x7fffffff, 0x7f800000, 0xff800000,
              0x7f800001, 0x3f800000, 0x00800000, 0x807fffff, 0xffffffff, 0xbf800000};
    default:
      return {0,
              1,
              0x8000000000000000,
              0x8000000000000001,
              0x7fffffffffffffff,
              0x7ff0000000000000,
              0xfff0000000000000,
              0x7ff0000000000001,
              0x3ff0000000000000,
              ~uint64_t{0},
              0x000fffffffffffff,
              0x100000000};
  }
}

}  // namespace

TEST_CASE("emulator: setp in every comparison of every type") {
  Device device;
  for (const Compared& t : compared()) {
    std::vector<Case> cases;
    for (const std::string& relation : t.relations) {
      const auto result = [=](const Values& v) { return holds(relation, t.order(v[0], v[1])); };
      cases.push_back({"setp." + relation + "." + t.type + " %d, %a0, %a1;", "pred", result});
    }
    check(device, combinations({t.reg, t.reg}, {values(t), values(t)}, 300, 1), cases);
  }
}

TEST_CASE("emulator: setp with two destinations and a combined predicate") {
  Device device;
  const auto combined = [](const std::string& how, bool t, bool c) {
    return how == "and" ? t && c : how == "or" ? t || c : t != c;
  };
  for (const Compared& t : compared()) {
    std::vector<Case> cases;
    const bool half = t.bits == 16 && t.relations == kFloats;
    for (const std::string& relation : {t.relations.front(), t.relations.back()}) {
      const auto flush = t.type.find("ftz.") == 0;
      const std::string type = flush ? t.type.substr(4) : t.type;
      const auto holds_of = [=](const Values& v) { return holds(relation, t.order(v[0], v[1])); };
      for (const std::string how : {"and", "or", "xor"}) {
        const std::string op = "setp." + relation + "." + how + (flush ? ".ftz." : ".") + type;
        cases.push_back({op + " %d, %a0, %a1, !%a2;", "pred",
                         [=](const Values& v) { return combined(how, holds_of(v), !v[2]); }});
        if (half) continue;
        cases.push_back({".reg .pred q; " + op + " %d|q, %a0, %a1, %a2;", "pred",
                         [=](const Values& v) { return combined(how, holds_of(v), v[2]); }});
        cases.push_back({op + " _|%d, %a0, %a1, %a2;", "pred",
                         [=](const Values& v) { return combined(how, !holds_of(v), v[2]); }});
      }
      if (half) continue;
      const std::string op = "setp." + relation + "." + t.type;
      cases.push_back(
          {op + " _|%d, %a0, %a1;", "pred", [=](const Values& v) { return !holds_of(v); }});
      cases.push_back({op + " %d|_, %a0, %a1;", "pred", holds_of});
    }
    check(device, combinations({t.reg, t.reg, "pred"}, {values(t), values(t), {0, 1}}, 0, 2),
          cases);
  }
}

TEST_CASE("emulator: setp of packed halves") {
  Device device;
  const Values words = {0x00000000, 0x80000000, 0x7c003c00, 0x3c007e00, 0x7fff0001,
                        0x80010000, 0xfc00fbff, 0x7f803f80, 0x7f813f7f};
  for (const bool bfloat : {false, true}) {
    for (const bool flush : {false, true}) {
      if (bfloat && flush) continue;
      const Order order = floats(bfloat ? kBf16 : kF16, flush);
      const std::string type = std::string(flush ? "ftz." : "") + (bfloat ? "bf16x2" : "f16x2");
      std::vector<Case> cases;
      for (const std::string& relation : kFloats) {
        const auto of = [=](const Values& v, int by) {
          return holds(relation, order(v[0] >> by & 0xffff, v[1] >> by & 0xffff));
        };
        cases.push_back({"setp." + relation + "." + type + " %d|_, %a0, %a1;", "pred",
                         [=](const Values& v) { return of(v, 0); }});
        cases.push_back({"setp." + relation + "." + type + " _|%d, %a0, %a1;", "pred",
                         [=](const Values& v) { return of(v, 16); }});
        cases.push_back(
            {".reg .pred p; setp." + relation + ".xor." + type + " p|%d, %a0, %a1, %a2;", "pred",
             [=](const Values& v) { return of(v, 16) != (v[2] == 1); }});
        const std::string pair = bfloat ? "bf16x2" : "f16x2";
        const uint64_t one = bfloat ? 0x3f80 : 0x3c00;
        const std::string set = "set." + relation + (flush ? ".ftz." : ".");
        cases.push_back({set + pair + "." + pair + " %d, %a0, %a1;", "b32", [=](const Values& v) {
                           return (of(v, 0) ? one : 0) | (of(v, 16) ? one << 16 : 0);
                         }});
        for (const std::string to : {"u32", "s32"}) {
          cases.push_back({set + to + "." + pair + " %d, %a0, %a1;", "b32", [=](const Values& v) {
                             return (of(v, 0) ? 0xffffu : 0) | (of(v, 16) ? 0xffff0000u : 0);
                           }});
        }
      }
      check(device, combinations({"b32", "b32", "pred"}, {words, words, {0, 1}}, 300, 3), cases);
    }
  }
}

TEST_CASE("emulator: set in every pair of types") {
  Device device;
  struct Destination {
    std::string type, reg;
    uint64_t truth;
  };
  const Destination destinations[] = {{"u32", "b32", 0xffffffff}, {"s32", "b32", 0xffffffff},
                                      {"f32", "f32", 0x3f800000}, {"f16", "b16", 0x3c00},
                                      {"bf16", "b16", 0x3f80},    {"u16", "b16", 0xffff},
                                      {"s16", "b16", 0xffff}};
  for (const Compared& t : compared()) {
    const bool flush = t.type.find("ftz.") == 0;
    const std::string type = flush ? t.type.substr(4) : t.type;
    const bool half = type == "f16" || type == "bf16";
    std::vector<Case> cases;
    for (const Destination& to : destinations) {
      const bool fits = to.type == "u16" || to.type == "s16" ? half
                        : to.type == "f32"                   ? !half
                        : to.type == "f16"                   ? type != "bf16"
                        : to.type == "bf16"                  ? !flush
                                                             : true;
      if (!fits) continue;
      for (const std::string& relation : {t.relations.front(), t.relations.back()}) {
        const std::string rest = std::string(flush ? ".ftz." : ".") + to.type + "." + type;
        cases.push_back({"set." + relation + rest + " %d, %a0, %a1;", to.reg, [=](const Values& v) {
                           return holds(relation, t.order(v[0], v[1])) ? to.truth : 0;
                         }});
        cases.push_back({"set." + relation + ".and" + rest + " %d, %a0, %a1, !%a2;", to.reg,
                         [=](const Values& v) {
                           return holds(relation, t.order(v[0], v[1])) && !v[2] ? to.truth : 0;
                         }});
      }
    }
    check(device, combinations({t.reg, t.reg, "pred"}, {values(t), values(t), {0, 1}}, 0, 4),
          cases);
  }
}

TEST_CASE("emulator: selp and slct of every type") {
  Device device;
  const Values words = {0, 1, ~uint64_t{0}, 0x7f80000100000001};
  const Values choices = {0,          1,          0x80000000, 0x80000001, 0x7fffffff, 0xffffffff,
                          0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x807fffff, 0x80800000};
  const auto positive = [](uint64_t bits, bool flush) {
    if (kF32.is_nan(bits)) return false;
    if (flush && kF32.is_subnormal(bits)) return true;
    return kF32.value(bits).sign() >= 0;
  };
  for (const std::string width : {"16", "32", "64"}) {
    std::vector<Case> cases;
    for (const std::string kind : {"b", "u", "s", "f"}) {
      if (kind == "f" && width == "16") continue;
      const std::string type = kind + width, reg = (kind == "f" ? "f" : "b") + width;
      const std::string a = kind == "f" ? "x, y" : "%a0, %a1";
      const std::string copies = kind == "f" ? ".reg .f" + width + " x, y; mov.b" + width +
                                                   " x, %a0; mov.b" + width + " y, %a1; "
                                             : "";
      cases.push_back({copies + "selp." + type + " %d, " + a + ", %a2;", reg,
                       [](const Values& v) { return v[2] ? v[0] : v[1]; }});
      cases.push_back({copies + "slct." + type + ".s32 %d, " + a + ", %a3;", reg,
                       [](const Values& v) { return v[3] >> 31 ? v[1] : v[0]; }});
      for (const bool flush : {false, true}) {
        cases.push_back({copies + ".reg .f32 c; mov.b32 c, %a3; slct." + (flush ? "ftz." : "") +
                             type + ".f32 %d, " + a + ", c;",
                         reg,
                         [=](const Values& v) { return positive(v[3], flush) ? v[0] : v[1]; }});
      }
    }
    check(device,
          combinations({"b" + width, "b" + width, "pred", "b32"}, {words, words, {0, 1}, choices},
                       0, 5),
          cases);
  }
}

TEST_CASE("emulator: malformed comparisons are refused") {
  check_refused({"setp.u32 p0, r1, r2;",
                 "setp.lt.b32 p0, r1, r2;",
                 "setp.lo.s32 p0, r1, r2;",
                 "setp.lo.f32 p0, f1, f2;",
                 "setp.equ.u32 p0, r1, r2;",
                 "setp.num.s32 p0, r1, r2;",
                 "setp.eq.u8 p0, c1, c2;",
                 "setp.eq.ftz.u32 p0, r1, r2;",
                 "setp.eq.ftz.f64 p0, g1, g2;",
                 "setp.eq.ftz.bf16 p0, h1, h2;",
                 "setp.eq.u32.and p0, r1, r2, p1;",
                 "setp.eq.nand.u32 p0, r1, r2, p1;",
                 "setp.eq.and.u32 p0, r1, r2;",
                 "setp.eq.u32 p0, r1, r2, p1;",
                 "setp.eq.f16 p0|p1, h1, h2;",
                 "setp.eq.f16x2 p0, r1, r2;",
                 "setp.eq.u32 _|_, r1, r2;",
                 "setp.eq.u32 r0, r1, r2;",
                 "setp.eq.u32 p0, r1, d2;",
                 "setp.eq.f32 p0, f1, 1;",
                 "setp.eq.pred p0, p1, p2;",
                 "set.eq.u32 r0, r1, r2;",
                 "set.eq.b32.u32 r0, r1, r2;",
                 "set.eq.u64.u32 d0, r1, r2;",
                 "set.eq.u16.u32 h0, r1, r2;",
                 "set.eq.f32.f16 f0, h1, h2;",
                 "set.eq.f16.bf16 h0, h1, h2;",
                 "set.eq.ftz.bf16.f32 h0, f1, f2;",
                 "set.eq.u32.u32 _, r1, r2;",
                 "set.eq.f16x2.f16 r0, h1, h2;",
                 "selp.pred p0, p1, p2, p3;",
                 "selp.b8 c0, c1, c2, p0;",
                 "selp.b32 r0, r1, r2;",
                 "selp.b32 r0, r1, r2, r3;",
                 "selp.f16 h0, h1, h2, p0;",
                 "slct.b32 r0, r1, r2, r3;",
                 "slct.b32.u32 r0, r1, r2, r3;",
                 "slct.ftz.b32.s32 r0, r1, r2, r3;",
                 "slct.b32.f64 r0, r1, r2, g3;",
                 "slct.pred.s32 p0, p1, p2, r3;"});
  check_refused({"setp.eq.bf16 p0, h1, h2;", "set.eq.bf16.f32 h0, f1, f2;"}, "sm_80");
  check_accepted({"setp.eq.f16 p0, h1, h2;"}, "sm_80");
}

TEST_CASE("emulator: comparisons and selections of undefined values") {
  CHECK(stores_undefined("pred", "setp.eq.u32 %d, u0, 0;"));
  CHECK(stores_undefined("pred", "setp.eq.u32 %d, 0, u0;"));
  CHECK_FALSE(stores_undefined("pred", "setp.eq.and.u32 %d, u0, 0, f;"));
  CHECK(stores_undefined("pred", "setp.eq.and.u32 %d, u0, 0, t;"));
  CHECK_FALSE(stores_undefined("pred", "setp.eq.or.u32 %d, i0, 0, o0;"));
  CHECK(stores_undefined("pred", "setp.ne.or.u32 %d, i0, 0, o0;"));
  CHECK_FALSE(stores_undefined("pred", "setp.eq.and.u32 _|%d, i0, 0, o0;"));
  CHECK(stores_undefined("pred", "setp.eq.xor.u32 %d, i0, 0, o0;"));
  // A half that is not defined leaves the predicate of the other alone.
  const std::string half = ".reg .b32 x; .reg .b16 w; mov.b16 w, 5; mov.b32 x, {w, w0}; ";
  CHECK_FALSE(stores_undefined("pred", half + "setp.eq.f16x2 %d|_, x, i0;"));
  CHECK(stores_undefined("pred", half + "setp.eq.f16x2 _|%d, x, i0;"));
  CHECK(stores_undefined("b32", half + "set.eq.f16x2.f16x2 %d, x, i0;"));
  CHECK_FALSE(stores_undefined("b16", half + "set.eq.u32.f16x2 x, x, i0; mov.b32 {%d, _}, x;"));
  CHECK(stores_undefined("b32", "set.eq.u32.u32 %d, u0, 0;"));
  CHECK_FALSE(stores_undefined("b32", "set.eq.and.u32.u32 %d, u0, 0, f;"));
  CHECK_FALSE(stores_undefined("b32", "selp.b32 %d, i1, u0, t;"));
  CHECK(stores_undefined("b32", "selp.b32 %d, u0, i1, t;"));
  CHECK(stores_undefined("b32", "selp.b32 %d, i1, i1, o0;"));
  CHECK_FALSE(stores_undefined("b32", "slct.b32.s32 %d, i1, u0, i0;"));
  CHECK(stores_undefined("b32", "slct.b32.s32 %d, u0, i1, i0;"));
  CHECK(stores_undefined("b32", "slct.b32.s32 %d, i1, i1, u0;"));
  CHECK_FALSE(stores_undefined("b16", half + "selp.b32 x, x, i0, t; mov.b32 {%d, _}, x;"));
}
