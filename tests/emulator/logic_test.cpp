// Logic and shifts bit by bit, and which bytes of their results are defined.

#include <catch2/catch.hpp>

#include "tests/emulator/arithmetic.h"

using namespace emulator_test;

namespace {

bool bit(uint64_t value, int i) { return value >> i & 1; }

// f of the bits of each place.
template <class F>
uint64_t bitwise(int width, const Values& v, F f) {
  uint64_t result = 0;
  for (int i = 0; i < width; ++i) {
    const bool b = v.size() > 1 && bit(v[1], i), c = v.size() > 2 && bit(v[2], i);
    result |= uint64_t{f(bit(v[0], i), b, c)} << i;
  }
  return result;
}

const Values kWords = {0, ~uint64_t{0}, 0x123456789abcdef0, 0x8000000080008000, 0x7fff};

}  // namespace

TEST_CASE("emulator: logic of every width") {
  Device device;
  for (const int width : {16, 32, 64}) {
    const std::string reg = "b" + std::to_string(width);
    const auto op = [&](const std::string& name, auto f) {
      return Case{name + "." + reg + " %d, %a0" + (name == "not" ? ";" : ", %a1;"), reg,
                  [=](const Values& v) { return bitwise(width, v, f); }};
    };
    check(device, combinations({reg, reg}, {kWords, kWords}, 200, 1),
          {op("and", [](bool a, bool b, bool) { return a && b; }),
           op("or", [](bool a, bool b, bool) { return a || b; }),
           op("xor", [](bool a, bool b, bool) { return a != b; }),
           op("not", [](bool a, bool, bool) { return !a; }),
           {"cnot." + reg + " %d, %a0;", reg,
            [=](const Values& v) -> uint64_t { return v[0] == 0; }}});
  }
}

TEST_CASE("emulator: logic of predicates") {
  Device device;
  check(device, combinations({"pred", "pred"}, {{0, 1}, {0, 1}}, 64, 1),
        {{"and.pred %d, %a0, %a1;", "pred", [](const Values& v) { return v[0] & v[1]; }},
         {"or.pred %d, %a0, %a1;", "pred", [](const Values& v) { return v[0] | v[1]; }},
         {"xor.pred %d, %a0, %a1;", "pred", [](const Values& v) { return v[0] ^ v[1]; }},
         {"not.pred %d, %a0;", "pred", [](const Values& v) { return 1 - v[0]; }},
         {"mov.pred %d, %a0;", "pred", [](const Values& v) { return v[0]; }},
         {"and.pred %d, %a0, !%a1;", "pred", [](const Values& v) { return v[0] & (1 - v[1]); }}});
}

TEST_CASE("emulator: lop3 for every table") {
  Device device;
  std::vector<Case> cases;
  for (int table = 0; table < 256; ++table) {
    cases.push_back(
        {"lop3.b32 %d, %a0, %a1, %a2, " + std::to_string(table) + ";", "b32", [=](const Values& v) {
           return bitwise(32, v, [=](bool a, bool b, bool c) {
             return bit(static_cast<uint64_t>(table), a * 4 + b * 2 + c);
           });
         }});
  }
  check(device,
        combinations({"b32", "b32", "b32"}, {{0xf0f0f0f0}, {0xcccccccc}, {0xaaaaaaaa}}, 33, 3),
        cases);
}

TEST_CASE("emulator: lop3 with a predicate") {
  Device device;
  std::vector<Case> cases;
  for (const bool disjunction : {false, true}) {
    const std::string op = disjunction ? "lop3.or.b32" : "lop3.and.b32";
    const auto p = [=](uint64_t d, uint64_t q) -> uint64_t {
      return disjunction ? d != 0 || q : d != 0 && q;
    };
    cases.push_back({".reg .b32 x; " + op + " x|%d, %a0, %a1, %a2, 0x80, %a3;", "pred",
                     [=](const Values& v) { return p(v[0] & v[1] & v[2], v[3]); }});
    cases.push_back({op + " _|%d, %a0, %a1, %a2, 0xfe, !%a3;", "pred",
                     [=](const Values& v) { return p(v[0] | v[1] | v[2], 1 - v[3]); }});
    cases.push_back({".reg .pred p; " + op + " %d|p, %a0, %a1, %a2, 0x96, %a3;", "b32",
                     [=](const Values& v) { return v[0] ^ v[1] ^ v[2]; }});
  }
  const Values values = {0, 1, 2, 0xffffffff};
  check(device,
        combinations({"b32", "b32", "b32", "pred"}, {values, values, values, {0, 1}}, 256, 4),
        cases);
}

TEST_CASE("emulator: shifts by any amount") {
  Device device;
  const Values amounts = {0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 256, 0x80000000, 0xffffffff};
  for (const int width : {16, 32, 64}) {
    const std::string w = std::to_string(width), reg = "b" + w;
    const auto left = [=](const Values& v) {
      uint64_t result = 0;
      for (int i = 0; i < width; ++i) {
        const auto from = int64_t{i} - static_cast<int64_t>(v[1]);
        result |= uint64_t{from >= 0 && bit(v[0], static_cast<int>(from))} << i;
      }
      return result;
    };
    const auto right = [=](const Values& v, bool is_signed) {
      uint64_t result = 0;
      for (int i = 0; i < width; ++i) {
        const uint64_t from = static_cast<uint64_t>(i) + v[1];
        const bool inside = from < static_cast<uint64_t>(width);
        const bool one =
            inside ? bit(v[0], static_cast<int>(from)) : is_signed && bit(v[0], width - 1);
        result |= uint64_t{one} << i;
      }
      return result;
    };
    check(device, combinations({reg, "b32"}, {kWords, amounts}, 200, 5),
          {{"shl.b" + w + " %d, %a0, %a1;", reg, left},
           {"shr.b" + w + " %d, %a0, %a1;", reg, [=](const Values& v) { return right(v, false); }},
           {"shr.u" + w + " %d, %a0, %a1;", reg, [=](const Values& v) { return right(v, false); }},
           {"shr.s" + w + " %d, %a0, %a1;", reg, [=](const Values& v) { return right(v, true); }}});
  }
}

TEST_CASE("emulator: funnel shifts, clamped and wrapped") {
  Device device;
  std::vector<Case> cases;
  for (const bool left : {false, true}) {
    for (const bool wrap : {false, true}) {
      cases.push_back({std::string("shf.") + (left ? "l" : "r") + (wrap ? ".wrap" : ".clamp") +
                           ".b32 %d, %a0, %a1, %a2;",
                       "b32", [=](const Values& v) {
                         const int n =
                             static_cast<int>(wrap ? v[2] % 32 : std::min<uint64_t>(v[2], 32));
                         uint64_t result = 0;
                         for (int i = 0; i < 32; ++i) {
                           const int from = left ? 32 + i - n : i + n;  // of b above a
                           const bool one =
                               from >= 32 ? from < 64 && bit(v[1], from - 32) : bit(v[0], from);
                           result |= uint64_t{one} << i;
                         }
                         return result;
                       }});
    }
  }
  const Values amounts = {0, 1, 8, 31, 32, 33, 63, 64, 0xffffffff};
  check(device, combinations({"b32", "b32", "b32"}, {kWords, kWords, amounts}, 500, 6), cases);
}

TEST_CASE("emulator: prmt with any control and in its modes") {
  Device device;
  const auto byte = [](const Values& v, uint64_t i) {
    return (i < 4 ? v[0] >> 8 * i : v[1] >> 8 * (i - 4)) & 0xff;
  };
  const auto four = [=](const Values& v, std::initializer_list<uint64_t> from_the_highest) {
    uint64_t result = 0;
    for (uint64_t i : from_the_highest) result = result << 8 | byte(v, i);
    return result;
  };
  std::vector<Case> cases = {{"prmt.b32 %d, %a0, %a1, %a2;", "b32", [=](const Values& v) {
                                uint64_t result = 0;
                                for (int i = 0; i < 4; ++i) {
                                  const uint64_t pick = v[2] >> 4 * i & 15;
                                  uint64_t one = byte(v, pick & 7);
                                  if (pick & 8) one = one & 0x80 ? 0xff : 0;
                                  result |= one << 8 * i;
                                }
                                return result;
                              }}};
  const auto mode = [&](const std::string& name, auto f) {
    cases.push_back({"prmt.b32." + name + " %d, %a0, %a1, %a2;", "b32",
                     [=](const Values& v) { return f(v, v[2] & 3); }});
  };
  mode("f4e", [=](const Values& v, uint64_t c) { return four(v, {c + 3, c + 2, c + 1, c}); });
  mode("b4e", [=](const Values& v, uint64_t c) {
    return four(v, {(c - 3) & 7, (c - 2) & 7, (c - 1) & 7, c});
  });
  mode("rc8", [=](const Values& v, uint64_t c) { return four(v, {c, c, c, c}); });
  mode("ecl", [=](const Values& v, uint64_t c) {
    return four(v, {3, std::max<uint64_t>(2, c), std::max<uint64_t>(1, c), c});
  });
  mode("ecr", [=](const Values& v, uint64_t c) {
    return four(v, {c, std::min<uint64_t>(2, c), std::min<uint64_t>(1, c), 0});
  });
  mode("rc16", [=](const Values& v, uint64_t c) {
    const uint64_t low = c & 1 ? 2 : 0;
    return four(v, {low + 1, low, low + 1, low});
  });
  Values controls = {0x3210, 0x7654, 0xffff, 0x8888, 0xba98, 0x10000};
  for (uint64_t i = 0; i < 8; ++i) controls.push_back(i);
  check(device,
        combinations({"b32", "b32", "b32"},
                     {{0x83828180, 0x12345678}, {0x07868504, 0xfedcba98}, controls}, 500, 7),
        cases);
}

TEST_CASE("emulator: malformed logic is refused") {
  check_refused({"and.u32 r0, r1, r2;",
                 "or.f32 f0, f1, f2;",
                 "xor.b32 r0, r1;",
                 "not.b8 c0, c1;",
                 "cnot.pred p0, p1;",
                 "and.b32.pred r0, r1, r2;",
                 "and.b32 r0, r1, d2;",
                 "lop3.b32 r0, r1, r2, r3;",
                 "lop3.b32 r0, r1, r2, r3, r4;",
                 "lop3.b32 r0, r1, r2, r3, 256;",
                 "lop3.b64 d0, d1, d2, d3, 1;",
                 "lop3.xor.b32 r0|p0, r1, r2, r3, 1, p1;",
                 "lop3.and.b32 r0, r1, r2, r3, 1, p1;",
                 "lop3.b32 r0|p0, r1, r2, r3, 1;",
                 "lop3.b32 _, r1, r2, r3, 1;",
                 "shl.u32 r0, r1, r2;",
                 "shl.b32 r0, r1, d2;",
                 "shr.f32 f0, f1, r2;",
                 "shf.b32 r0, r1, r2, r3;",
                 "shf.l.b32 r0, r1, r2, r3;",
                 "shf.l.wrap.b64 d0, d1, d2, r3;",
                 "shf.wrap.l.b32 r0, r1, r2, r3;",
                 "prmt.b64 d0, d1, d2, r3;",
                 "prmt.b32.rc4 r0, r1, r2, r3;",
                 "prmt.b32 r0, r1, r2;"});
}

TEST_CASE("emulator: undefined bits that do not matter") {
  // Zeros and ones that decide, byte by byte.
  CHECK(stores_undefined("b32", "and.b32 %d, u0, 0xff;"));
  CHECK_FALSE(stores_undefined("b32", "and.b32 %d, u0, 0;"));
  CHECK_FALSE(stores_undefined("b32", "and.b32 %d, 0, u0;"));
  CHECK_FALSE(stores_undefined("b32", "or.b32 %d, u0, -1;"));
  CHECK(stores_undefined("b32", "or.b32 %d, u0, 0x7fffffff;"));
  CHECK(stores_undefined("b32", "xor.b32 %d, u0, u0;"));
  CHECK(stores_undefined("b32", "not.b32 %d, u0;"));
  CHECK(stores_undefined("b32", "cnot.b32 %d, u0;"));
  CHECK_FALSE(stores_undefined("b32", "or.b32 u0, u0, 0xff00; cnot.b32 %d, u0;"));
  CHECK_FALSE(stores_undefined("b32", "lop3.b32 %d, u0, u1, u2, 0;"));
  CHECK_FALSE(stores_undefined("b32", "lop3.b32 %d, u0, u1, i1, 0xaa;"));
  CHECK_FALSE(stores_undefined("b32", "lop3.b32 %d, u0, i1, i2, 0xca;  and.b32 %d, %d, 0;"));
  CHECK_FALSE(stores_undefined("b32", "lop3.b32 %d, u0, i1, i1, 0xca;"));  // a ? b : b
  CHECK(stores_undefined("b32", "lop3.b32 %d, u0, i1, i2, 0xca;"));
  CHECK(stores_undefined("pred", "lop3.or.b32 _|%d, u0, 0, 0, 0xfe, f;"));
  CHECK_FALSE(stores_undefined("pred", "lop3.or.b32 _|%d, u0, 0, 0, 0xfe, t;"));
  CHECK_FALSE(stores_undefined("pred", "lop3.or.b32 _|%d, u0, 1, 0, 0xfe, f;"));
  CHECK_FALSE(stores_undefined("pred", "and.pred %d, o0, f;"));
  CHECK(stores_undefined("pred", "and.pred %d, o0, t;"));
  CHECK_FALSE(stores_undefined("pred", "or.pred %d, t, o0;"));
  CHECK(stores_undefined("pred", "or.pred %d, f, o0;"));
  CHECK(stores_undefined("pred", "xor.pred %d, f, o0;"));
}

TEST_CASE("emulator: undefined bytes that shifts and prmt move") {
  // The upper half of x is not defined.
  const std::string half = ".reg .b32 x; .reg .b16 w; mov.b16 w, 5; mov.b32 x, {w, w0}; ";
  CHECK(stores_undefined("b32", half + "mov.b32 %d, x;"));
  CHECK_FALSE(stores_undefined("b32", half + "shl.b32 %d, x, 16;"));
  CHECK(stores_undefined("b32", half + "shl.b32 %d, x, 15;"));
  CHECK_FALSE(stores_undefined("b32", half + "shl.b32 %d, x, 40;"));
  CHECK(stores_undefined("b32", half + "shr.u32 %d, x, 16;"));
  CHECK_FALSE(stores_undefined("b32", half + "shr.u32 %d, x, 32;"));
  CHECK(stores_undefined("b32", half + "shr.s32 %d, x, 32;"));
  CHECK(stores_undefined("b32", "shl.b32 %d, i1, u0;"));
  CHECK_FALSE(stores_undefined("b32", half + "shf.l.wrap.b32 %d, i0, x, 16;"));
  CHECK(stores_undefined("b32", half + "shf.l.wrap.b32 %d, i0, x, 8;"));
  CHECK_FALSE(stores_undefined("b32", half + "shf.r.clamp.b32 %d, x, i0, 32;"));
  CHECK_FALSE(stores_undefined("b32", half + "prmt.b32 %d, x, i0, 0x5410;"));
  CHECK(stores_undefined("b32", half + "prmt.b32 %d, x, i0, 0x5420;"));
  CHECK(stores_undefined("b32", half + "prmt.b32 %d, x, i0, 0x54a0;"));
  CHECK_FALSE(stores_undefined("b32", half + "prmt.b32.rc16 %d, x, i0, 0;"));
  CHECK(stores_undefined("b32", "prmt.b32 %d, i0, i1, u0;"));
  CHECK_FALSE(stores_undefined("b32", half + "bfe.u32 %d, x, 0, 16;"));
  CHECK_FALSE(stores_undefined("b32", half + "bfe.s32 %d, x, 8, 8;"));
  CHECK(stores_undefined("b32", half + "bfe.u32 %d, x, 8, 9;"));
  CHECK_FALSE(stores_undefined("b32", half + "bfi.b32 %d, x, i3, 16, 16;"));
  CHECK_FALSE(stores_undefined("b32", half + "bfi.b32 %d, i3, x, 16, 16;"));
  CHECK(stores_undefined("b32", half + "bfi.b32 %d, i3, x, 16, 15;"));
  CHECK_FALSE(stores_undefined("b32", half + "szext.wrap.s32 %d, x, 16;"));
  CHECK(stores_undefined("b32", half + "szext.wrap.s32 %d, x, 17;"));
  CHECK(stores_undefined("b32", half + "brev.b32 %d, x;"));
  CHECK_FALSE(stores_undefined("b32", half + "brev.b32 x, x; shr.u32 %d, x, 16;"));
  CHECK(stores_undefined("b32", half + "add.u32 %d, x, 0;"));
  CHECK(stores_undefined("b32", half + "popc.b32 %d, x;"));
}
