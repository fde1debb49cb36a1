// SIMD video instructions.

#include <catch2/catch.hpp>

#include "tests/emulator/arithmetic.h"

using namespace emulator_test;

namespace {

int64_t part(uint64_t word, int at, int bits, bool is_signed) {
  const int64_t low = static_cast<int64_t>(word >> at & ((uint64_t{1} << bits) - 1));
  return is_signed && low >> (bits - 1) ? low - (int64_t{1} << bits) : low;
}

struct Operation {
  std::string name;
  int64_t (*of)(int64_t, int64_t);
};
const Operation kOperations[] = {
    {"vadd", [](int64_t a, int64_t b) { return a + b; }},
    {"vsub", [](int64_t a, int64_t b) { return a - b; }},
    {"vabsdiff", [](int64_t a, int64_t b) { return std::abs(a - b); }},
    {"vmin", [](int64_t a, int64_t b) { return std::min(a, b); }},
    {"vmax", [](int64_t a, int64_t b) { return std::max(a, b); }},
    // The mean, halves away from zero but for -1/2 and the like, which go down.
    {"vavrg", [](int64_t a, int64_t b) {
       const int64_t sum = a + b;
       return sum >= 0 ? (sum + 1) / 2 : -((-sum + 1) / 2);
     }}};

std::vector<Column> sources() {
  const Values values = {0, 0xffffffff, 0x80808080, 0x7f7f7f7f, 0x01ff8000, 0x7fff8000, 0x12345678};
  return combinations({"b32", "b32", "b32"}, {values, values, {0, 0x10000000, 0xfffffff0}}, 500, 1);
}

}  // namespace

TEST_CASE("emulator: SIMD video instructions") {
  Device device;
  for (const int bits : {16, 8}) {
    for (const Operation& op : kOperations) {
      std::vector<Case> cases;
      for (int signs = 0; signs < 8; ++signs) {
        const bool d = signs & 1, a = signs & 2, b = signs & 4;
        const auto type = [](bool is_signed) { return std::string(is_signed ? ".s32" : ".u32"); };
        const std::string name = op.name + (bits == 16 ? "2" : "4") + type(d) + type(a) + type(b);
        const auto one = [=](const Values& v, int at) {
          return op.of(part(v[0], at, bits, a), part(v[1], at, bits, b));
        };
        const auto beside = [=](const Values& v, bool sat) {
          const int64_t most = (int64_t{1} << (bits - d)) - 1, least = d ? -most - 1 : 0;
          uint64_t all = 0;
          for (int at = 0; at < 32; at += bits) {
            const int64_t result = sat ? std::min(std::max(one(v, at), least), most) : one(v, at);
            all |= (static_cast<uint64_t>(result) & ((uint64_t{1} << bits) - 1)) << at;
          }
          return all;
        };
        cases.push_back({name + " %d, %a0, %a1, %a2;", "b32",
                         [=](const Values& v) { return beside(v, false); }});
        cases.push_back({name + ".sat %d, %a0, %a1, %a2;", "b32",
                         [=](const Values& v) { return beside(v, true); }});
        cases.push_back({name + ".add %d, %a0, %a1, %a2;", "b32", [=](const Values& v) {
                           int64_t sum = static_cast<int64_t>(v[2]);
                           for (int at = 0; at < 32; at += bits) sum += one(v, at);
                           return static_cast<uint64_t>(sum) & 0xffffffff;
                         }});
      }
      check(device, sources(), cases);
    }
  }
}

TEST_CASE("emulator: SIMD video comparisons") {
  Device device;
  std::vector<Case> cases;
  const std::pair<std::string, bool (*)(int64_t, int64_t)> relations[] = {
      {"eq", [](int64_t a, int64_t b) { return a == b; }},
      {"ne", [](int64_t a, int64_t b) { return a != b; }},
      {"lt", [](int64_t a, int64_t b) { return a < b; }},
      {"le", [](int64_t a, int64_t b) { return a <= b; }},
      {"gt", [](int64_t a, int64_t b) { return a > b; }},
      {"ge", [](int64_t a, int64_t b) { return a >= b; }}};
  for (const int bits : {16, 8}) {
    for (const auto& [relation, holds] : relations) {
      const auto of = holds;
      const std::string name = (bits == 16 ? "vset2.s32.u32." : "vset4.s32.u32.") + relation;
      const auto one = [=](const Values& v, int at) {
        return uint64_t{of(part(v[0], at, bits, true), part(v[1], at, bits, false))};
      };
      cases.push_back({name + " %d, %a0, %a1, %a2;", "b32", [=](const Values& v) {
                         uint64_t all = 0;
                         for (int at = 0; at < 32; at += bits) all |= one(v, at) << at;
                         return all;
                       }});
      cases.push_back({name + ".add %d, %a0, %a1, %a2;", "b32", [=](const Values& v) {
                         uint64_t sum = v[2];
                         for (int at = 0; at < 32; at += bits) sum += one(v, at);
                         return sum & 0xffffffff;
                       }});
    }
  }
  check(device, sources(), cases);
}

TEST_CASE("emulator: malformed video instructions are refused") {
  check_refused({"vadd2.u32.u32 r0, r1, r2, r3;", "vadd2.u32.u32.u32 r0, r1, r2;",
                 "vadd2.u16.u32.u32 r0, r1, r2, r3;", "vadd4.u32.u32.u32.sat.add r0, r1, r2, r3;",
                 "vset2.u32.u32 r0, r1, r2, r3;", "vset2.u32.u32.lt.sat r0, r1, r2, r3;",
                 "vabsdiff4.u32.u32.u32 r0.b0, r1, r2, r3;", "vadd3.u32.u32.u32 r0, r1, r2, r3;"});
}
