// mov, packing, generic addresses, and which bytes moves leave undefined.

#include <catch2/catch.hpp>

#include "tests/emulator/arithmetic.h"

using namespace emulator_test;

namespace {

Case same(const std::string& type, const std::string& reg) {
  return {"mov." + type + " %d, %a0;", reg, [](const Values& v) { return v[0]; }};
}

const Values kWords = {
    0, 1, ~uint64_t{0}, 0x123456789abcdef0, 0x8000000000000000, 0x7ff8000000000001};

}  // namespace

TEST_CASE("emulator: mov of every type") {
  Device device;
  for (const std::string width : {"16", "32", "64"}) {
    std::vector<Case> cases;
    for (const std::string kind : {"b", "u", "s"}) cases.push_back(same(kind + width, "b" + width));
    if (width != "16") cases.push_back(same("f" + width, "f" + width));
    check(device, combinations({"b" + width}, {kWords}, 100, 1), cases);
  }
  // Kinds that agree.
  check(device, combinations({"f32", "f64"}, {kWords, kWords}, 100, 2),
        {{"mov.b32 %d, %a0;", "b32", [](const Values& v) { return v[0]; }},
         {"mov.b64 %d, %a1;", "b64", [](const Values& v) { return v[1]; }}});
}

TEST_CASE("emulator: mov of literals, special registers and addresses") {
  Device device;
  const auto value = [](uint64_t bits) { return [=](const Values&) { return bits; }; };
  check(device, {{"b32", {0, 0, 0, 0, 0}}},
        {{"mov.u32 %d, 0xdeadbeef;", "b32", value(0xdeadbeef)},
         {"mov.s32 %d, -5;", "b32", value(0xfffffffb)},
         {"mov.u16 %d, -1;", "b16", value(0xffff)},
         {"mov.u64 %d, -1;", "b64", value(~uint64_t{0})},
         {"mov.f32 %d, 0f3fc00000;", "f32", value(0x3fc00000)},
         {"mov.f32 %d, 1.5;", "f32", value(0x3fc00000)},
         {"mov.f64 %d, 1.5;", "f64", value(0x3ff8000000000000)},
         {"mov.f64 %d, 0d8000000000000000;", "f64", value(0x8000000000000000)},
         {"mov.b32 %d, 0f80000000;", "b32", value(0x80000000)},
         {"mov.u32 %d, %ntid.x;", "b32", value(5)},
         {"mov.u32 %d, %nctaid.y;", "b32", value(1)}});
  Values lanes;
  for (uint64_t i = 0; i < 70; ++i) lanes.push_back(i);
  check(device, {{"b32", lanes}},
        {{"mov.u32 %d, %tid.x;", "b32", [](const Values& v) { return v[0]; }},
         {"mov.u32 %d, %laneid;", "b32", [](const Values& v) { return v[0] % 32; }},
         {".shared .align 8 .b8 x[24]; .reg .u32 a, b; mov.u32 a, x; mov.u32 b, x+12; "
          "sub.u32 %d, b, a;",
          "b32", value(12)},
         {".local .align 8 .b8 x[24]; .reg .u64 a, b; mov.u64 a, x; mov.u64 b, x+9; "
          "sub.u64 %d, b, a;",
          "b64", value(9)}});
}

TEST_CASE("emulator: packing and unpacking in every width") {
  Device device;
  check(device, combinations({"b64", "b64"}, {kWords, kWords}, 200, 3),
        {{".reg .b16 h<4>; .reg .b32 r<2>; mov.b64 {h0, h1, h2, h3}, %a0; "
          "mov.b64 %d, {h3, h0, h2, h1};",
          "b64",
          [](const Values& v) {
            const auto half = [&](int i) { return v[0] >> (16 * i) & 0xffff; };
            return half(3) | half(0) << 16 | half(2) << 32 | half(1) << 48;
          }},
         {".reg .b32 r<2>; mov.b64 {r0, r1}, %a0; mov.b64 %d, {r1, r0};", "b64",
          [](const Values& v) { return v[0] >> 32 | v[0] << 32; }},
         {".reg .b32 r<2>; .reg .b16 h; mov.b64 {r0, _}, %a0; mov.b32 {_, h}, r0; "
          "mov.b32 %d, {h, h};",
          "b32", [](const Values& v) { return (v[0] >> 16 & 0xffff) * 0x10001; }},
         {".reg .b8 c<4>; .reg .b32 r<2>; mov.b64 {r0, r1}, %a0; mov.b32 {c0, c1, c2, c3}, r1; "
          "mov.b32 %d, {c1, c3, c0, c2};",
          "b32",
          [](const Values& v) {
            const auto byte = [&](int i) { return v[0] >> (32 + 8 * i) & 0xff; };
            return byte(1) | byte(3) << 8 | byte(0) << 16 | byte(2) << 24;
          }},
         {".reg .b8 c<2>; .reg .b16 h; cvt.u16.u64 h, %a0; mov.b16 {c0, c1}, h; "
          "mov.b16 %d, {c1, c0};",
          "b16", [](const Values& v) { return (v[0] >> 8 & 0xff) | (v[0] & 0xff) << 8; }},
         {".reg .b128 q, o; .reg .b64 l; mov.b128 q, {%a0, %a1}; mov.b128 o, q; "
          "mov.b128 {l, %d}, o; xor.b64 %d, %d, l;",
          "b64", [](const Values& v) { return v[0] ^ v[1]; }},
         {".reg .b128 q; .reg .b32 r<4>; mov.b128 q, {%a0, %a1}; mov.b128 {r0, r1, r2, r3}, q; "
          "mov.b128 q, {r2, r1, r0, r3}; mov.b128 {%d, _}, q;",
          "b64", [](const Values& v) { return (v[1] & 0xffffffff) | (v[0] & 0xffffffff00000000); }},
         {"mov.b64 %d, {1, 2};", "b64", [](const Values&) { return 0x200000001; }}});
}

TEST_CASE("emulator: generic addresses of every space") {
  Device device;
  const auto yes = [](const Values&) { return 1; };
  const auto no = [](const Values&) { return 0; };
  std::vector<Case> cases;
  const std::string spaces[] = {"shared", "local", "const", "global"};
  const std::string variables = ".shared .b32 x_shared; .local .b32 x_local; .reg .b64 a; ";
  for (const std::string from : {"shared", "local"}) {
    for (const std::string& to : spaces) {
      cases.push_back(
          {variables + "cvta." + from + ".u64 a, x_" + from + "; isspacep." + to + " %d, a;",
           "pred", from == to ? std::function<uint64_t(const Values&)>(yes) : no});
    }
    // There and back.
    cases.push_back({variables + ".reg .b64 b, c; mov.u64 b, x_" + from + "; cvta." + from +
                         ".u64 a, x_" + from + "+4; cvta.to." + from +
                         ".u64 c, a; sub.u64 %d, c, b;",
                     "b64", [](const Values&) { return 4; }});
  }
  cases.push_back({".reg .b64 a; cvta.global.u64 a, %a0; sub.u64 %d, a, %a0;", "b64", no});
  cases.push_back({"isspacep.global %d, %a0;", "pred", yes});
  cases.push_back({"isspacep.shared::cta %d, %a0;", "pred", no});
  cases.push_back({variables + "cvta.shared::cta.u64 a, x_shared; isspacep.shared::cluster %d, a;",
                   "pred", yes});
  // Parameters of kernels lie in a window of the global space.
  cases.push_back(
      {".reg .b64 a; cvta.param.u64 a, harness_in; isspacep.param::entry %d, a;", "pred", yes});
  cases.push_back(
      {".reg .b64 a; cvta.param.u64 a, harness_in; isspacep.global %d, a;", "pred", yes});
  cases.push_back({".reg .b64 a; cvta.param.u64 a, harness_in; isspacep.const %d, a;", "pred", no});
  const Buffer global(64);
  check(device, {{"b64", {global.address()}}}, cases);
}

TEST_CASE("emulator: malformed moves are refused") {
  check_refused({"mov.u8 c0, c1;",
                 "mov.f16 h0, h1;",
                 "mov.u32 r0, d1;",
                 "mov.u32 r0, f1;",
                 "mov.f32 f0, 1;",
                 ".reg .u32 x; mov.f32 f0, x;",
                 "mov.u32 r0, 1.5;",
                 "mov.u32 r0;",
                 "mov.u32 r0, r1, r2;",
                 "mov.u32.u32 r0, r1;",
                 "mov.u32 _, r1;",
                 "mov.u32 1, r1;",
                 "mov.u32 r0, -r1;",
                 "mov.b32 r0, {h0, h1, h2};",
                 "mov.b32 r0, {r1, r2};",
                 "mov.b64 d0, {h0, h1};",
                 "mov.b32 {h0, h1}, d0;",
                 "mov.b32 {h0, h1}, {h2, h3};",
                 "mov.b32 {_, _}, r0;",
                 "mov.u64 r0, global_words;",
                 "mov.u32 r0, global_words;",
                 "mov.pred p0, r0;",
                 "mov.pred r0, p0;",
                 "mov.b32 r0, %no_such_register;",
                 "mov.u32 r0, no_such_variable;",
                 "cvta.global.u64 d0, shared_words;",
                 "cvta.to.global.u64 d0, global_words;",
                 "cvta.u64 d0, d1;",
                 "cvta.shared d0, d1;",
                 "cvta.shared.s64 d0, d1;",
                 "cvta.shared.u64 r0, d1;",
                 "isspacep p0, d0;",
                 "isspacep.shared.u64 p0, d0;",
                 "isspacep.shared r0, d0;",
                 "isspacep.tex p0, d0;"});
  check_refused({"mov.b128 q0, {r0, r1};", "cvta.shared::cluster.u64 d0, d1;"}, "sm_80");
}

TEST_CASE("emulator: moves keep undefined bytes where they are") {
  CHECK(stores_undefined("b32", "mov.u32 %d, u0;"));
  CHECK(stores_undefined("b64", "mov.b64 %d, {u0, i0};"));
  CHECK(stores_undefined("b64", "mov.b64 %d, {i0, u0};"));
  CHECK_FALSE(stores_undefined("b32", ".reg .b64 x; mov.b64 x, {u0, i1}; mov.b64 {_, %d}, x;"));
  CHECK(stores_undefined("b32", ".reg .b64 x; mov.b64 x, {u0, i1}; mov.b64 {%d, _}, x;"));
  CHECK_FALSE(stores_undefined("b16",
                               ".reg .b64 x; .reg .b16 h; mov.u16 h, 1; "
                               "mov.b64 x, {w0, h, w1, w2}; mov.b64 {_, %d, _, _}, x;"));
  CHECK_FALSE(stores_undefined("b64", ".reg .b128 x; mov.b128 x, {v0, 5}; mov.b128 {_, %d}, x;"));
  CHECK(stores_undefined("b64", ".reg .b128 x; mov.b128 x, {v0, 5}; mov.b128 {%d, _}, x;"));
  CHECK_FALSE(stores_undefined("b32",
                               ".reg .b128 x, y; mov.b128 x, {u0, i1, u1, i2}; "
                               "mov.b128 y, x; mov.b128 {_, %d, _, _}, y;"));
  CHECK(stores_undefined("b32",
                         ".reg .b128 x; mov.b128 x, {u0, i1, u1, i2}; "
                         "mov.b128 {_, _, %d, _}, x;"));
  CHECK(stores_undefined("pred", "mov.pred %d, o0;"));
  CHECK_FALSE(stores_undefined("pred", "mov.pred o0, t; mov.pred %d, o0;"));
  CHECK(stores_undefined("pred", "isspacep.shared %d, v0;"));
  CHECK(stores_undefined("b64", "cvta.shared.u64 %d, v0;"));
}
