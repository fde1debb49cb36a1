// Integer arithmetic against formulas on integers of 128 bits.

#include <catch2/catch.hpp>

#include "tests/emulator/arithmetic.h"

using namespace emulator_test;

namespace {

using Wide = __int128;

struct IntegerType {
  std::string name;
  unsigned bits;
  bool is_signed;

  Wide value(uint64_t from) const {
    const unsigned __int128 ones = ((unsigned __int128)1 << bits) - 1;
    const Wide low = static_cast<Wide>(from & ones);
    return is_signed && (low >> (bits - 1) & 1) ? low - ((Wide)1 << bits) : low;
  }
  uint64_t wrapped(Wide from) const {
    return static_cast<uint64_t>((unsigned __int128)from & (((unsigned __int128)1 << bits) - 1));
  }
  Wide least() const { return is_signed ? -((Wide)1 << (bits - 1)) : 0; }
  Wide largest() const { return ((Wide)1 << (bits - (is_signed ? 1 : 0))) - 1; }
  uint64_t clamped(Wide from) const {
    return wrapped(from < least() ? least() : from > largest() ? largest() : from);
  }
  std::string reg() const { return "b" + std::to_string(bits); }
  IntegerType twice() const {
    return {(is_signed ? "s" : "u") + std::to_string(2 * bits), 2 * bits, is_signed};
  }
};

const IntegerType kTypes[] = {{"u16", 16, false}, {"u32", 32, false}, {"u64", 64, false},
                              {"s16", 16, true},  {"s32", 32, true},  {"s64", 64, true}};

// Edges of the type and of half of its width.
Values edges(const IntegerType& type) {
  const uint64_t top = uint64_t{1} << (type.bits - 1), half = uint64_t{1} << (type.bits / 2);
  return {0, 1, 2, 7, ~uint64_t{0}, ~uint64_t{0} - 1, top, top - 1, top + 1, half, half - 1};
}

std::vector<Column> sources(const IntegerType& type, size_t columns, uint64_t seed) {
  return combinations(std::vector<std::string>(columns, type.reg()),
                      std::vector<Values>(columns, edges(type)), columns < 3 ? 512 : 2048, seed);
}

// Of a value that may not fit 128 bits signed: unsigned 64-bit products and a sum.
uint64_t high(const IntegerType& type, uint64_t a, uint64_t b) {
  if (type.is_signed) return type.wrapped(type.value(a) * type.value(b) >> type.bits);
  const unsigned __int128 product = (unsigned __int128)type.value(a) * type.value(b);
  return static_cast<uint64_t>(product >> type.bits);
}
uint64_t low(const IntegerType& type, uint64_t a, uint64_t b) {
  return type.wrapped(
      static_cast<Wide>((unsigned __int128)type.value(a) * (unsigned __int128)type.value(b)));
}

}  // namespace

TEST_CASE("emulator: integer sums, products, quotients of every type") {
  Device device;
  for (const IntegerType& t : kTypes) {
    const auto binary = [&](const std::string& op, auto f) {
      return Case{op + "." + t.name + " %d, %a0, %a1;", t.reg(),
                  [=](const Values& v) { return t.wrapped(f(t.value(v[0]), t.value(v[1]))); }};
    };
    std::vector<Case> cases = {
        binary("add", [](Wide a, Wide b) { return a + b; }),
        binary("sub", [](Wide a, Wide b) { return a - b; }),
        binary("div", [](Wide a, Wide b) { return b == 0 ? -1 : a / b; }),
        binary("rem", [](Wide a, Wide b) { return b == 0 ? -1 : a % b; }),
        binary("min", [](Wide a, Wide b) { return a < b ? a : b; }),
        binary("max", [](Wide a, Wide b) { return a < b ? b : a; }),
        {"mul.lo." + t.name + " %d, %a0, %a1;", t.reg(),
         [=](const Values& v) { return low(t, v[0], v[1]); }},
        {"mul.hi." + t.name + " %d, %a0, %a1;", t.reg(),
         [=](const Values& v) { return high(t, v[0], v[1]); }},
    };
    if (t.bits < 64) {
      const IntegerType wide = t.twice();
      cases.push_back({"mul.wide." + t.name + " %d, %a0, %a1;", wide.reg(), [=](const Values& v) {
                         return wide.wrapped(t.value(v[0]) * t.value(v[1]));
                       }});
    }
    if (t.is_signed) {
      cases.push_back({"abs." + t.name + " %d, %a0;", t.reg(), [=](const Values& v) {
                         const Wide a = t.value(v[0]);
                         return t.wrapped(a < 0 ? -a : a);
                       }});
      cases.push_back({"neg." + t.name + " %d, %a0;", t.reg(),
                       [=](const Values& v) { return t.wrapped(-t.value(v[0])); }});
    }
    check(device, sources(t, 2, t.bits), cases);
  }
}

TEST_CASE("emulator: integer multiply-add and absolute differences of every type") {
  Device device;
  for (const IntegerType& t : kTypes) {
    std::vector<Case> cases = {
        {"mad.lo." + t.name + " %d, %a0, %a1, %a2;", t.reg(),
         [=](const Values& v) { return t.wrapped(Wide{low(t, v[0], v[1])} + v[2]); }},
        {"mad.hi." + t.name + " %d, %a0, %a1, %a2;", t.reg(),
         [=](const Values& v) { return t.wrapped(Wide{high(t, v[0], v[1])} + v[2]); }},
        {"sad." + t.name + " %d, %a0, %a1, %a2;", t.reg(), [=](const Values& v) {
           const Wide difference = t.value(v[0]) - t.value(v[1]);
           return t.wrapped((difference < 0 ? -difference : difference) + t.value(v[2]));
         }}};
    check(device, sources(t, 3, 10 + t.bits), cases);
    if (t.bits == 64) continue;
    const IntegerType wide = t.twice();
    check(device,
          combinations({t.reg(), t.reg(), wide.reg()}, {edges(t), edges(t), edges(wide)}, 2048, 7),
          {{"mad.wide." + t.name + " %d, %a0, %a1, %a2;", wide.reg(), [=](const Values& v) {
              return wide.wrapped(t.value(v[0]) * t.value(v[1]) + wide.value(v[2]));
            }}});
  }
}

TEST_CASE("emulator: integer saturation") {
  Device device;
  const IntegerType s = kTypes[4];
  check(device, sources(s, 3, 3),
        {{"add.sat.s32 %d, %a0, %a1;", "b32",
          [=](const Values& v) { return s.clamped(s.value(v[0]) + s.value(v[1])); }},
         {"sub.sat.s32 %d, %a0, %a1;", "b32",
          [=](const Values& v) { return s.clamped(s.value(v[0]) - s.value(v[1])); }},
         {"mad.hi.sat.s32 %d, %a0, %a1, %a2;", "b32",
          [=](const Values& v) {
            return s.clamped((s.value(v[0]) * s.value(v[1]) >> 32) + s.value(v[2]));
          }},
         {"min.relu.s32 %d, %a0, %a1;", "b32",
          [=](const Values& v) {
            return s.wrapped(std::max<Wide>(0, std::min(s.value(v[0]), s.value(v[1]))));
          }},
         {"max.relu.s32 %d, %a0, %a1;", "b32",
          [=](const Values& v) {
            return s.wrapped(std::max<Wide>(0, std::max(s.value(v[0]), s.value(v[1]))));
          }},
         {"max.s32.relu %d, %a0, %a1;", "b32", [=](const Values& v) {
            return s.wrapped(std::max<Wide>(0, std::max(s.value(v[0]), s.value(v[1]))));
          }}});
}

TEST_CASE("emulator: integers of 24 bits") {
  Device device;
  for (const bool is_signed : {false, true}) {
    const IntegerType narrow{"", 24, is_signed};
    const std::string type = is_signed ? "s32" : "u32";
    const auto product = [=](const Values& v) { return narrow.value(v[0]) * narrow.value(v[1]); };
    const auto bits = [](Wide value, int from) { return static_cast<uint32_t>(value >> from); };
    std::vector<Case> cases = {
        {"mul24.lo." + type + " %d, %a0, %a1;", "b32",
         [=](const Values& v) { return bits(product(v), 0); }},
        {"mul24.hi." + type + " %d, %a0, %a1;", "b32",
         [=](const Values& v) { return bits(product(v), 16); }},
        {"mad24.lo." + type + " %d, %a0, %a1, %a2;", "b32",
         [=](const Values& v) { return static_cast<uint32_t>(bits(product(v), 0) + v[2]); }},
        {"mad24.hi." + type + " %d, %a0, %a1, %a2;", "b32",
         [=](const Values& v) { return static_cast<uint32_t>(bits(product(v), 16) + v[2]); }}};
    if (is_signed) {
      cases.push_back({"mad24.hi.sat.s32 %d, %a0, %a1, %a2;", "b32", [=](const Values& v) {
                         const IntegerType s = kTypes[4];
                         return s.clamped(s.value(bits(product(v), 16)) + s.value(v[2]));
                       }});
    }
    const Values values = {0, 1, 0x7fffff, 0x800000, 0xffffff, 0x1000000, 0xff7fffff, 0x80000000};
    check(device, combinations({"b32", "b32", "b32"}, {values, values, values}, 1024, 24), cases);
  }
}

TEST_CASE("emulator: packed integers") {
  Device device;
  const Values values = {0,          1,          0xffff,     0x7fff8000, 0x80007fff,
                         0xffffffff, 0x00010001, 0x8000ffff, 0x12345678};
  std::vector<Case> cases;
  const auto packed = [&](const std::string& name, const IntegerType& half, auto f) {
    cases.push_back({name + " %d, %a0, %a1;", "b32", [=](const Values& v) -> uint64_t {
                       const auto part = [&](int by) {
                         return half.wrapped(f(half.value(v[0] >> by), half.value(v[1] >> by)));
                       };
                       return part(0) | part(16) << 16;
                     }});
  };
  const auto least = [](Wide a, Wide b) { return std::min(a, b); };
  const auto most = [](Wide a, Wide b) { return std::max(a, b); };
  for (const IntegerType& t : {kTypes[0], kTypes[3]}) {
    packed("add." + t.name + "x2", t, [](Wide a, Wide b) { return a + b; });
    packed("min." + t.name + "x2", t, least);
    packed("max." + t.name + "x2", t, most);
  }
  const IntegerType s = kTypes[3];
  const auto relu = [](Wide a) { return std::max<Wide>(a, 0); };
  packed("min.relu.s16x2", s, [=](Wide a, Wide b) { return relu(least(a, b)); });
  packed("max.relu.s16x2", s, [=](Wide a, Wide b) { return relu(most(a, b)); });
  packed("min.s16x2.relu", s, [=](Wide a, Wide b) { return relu(least(a, b)); });
  check(device, combinations({"b32", "b32"}, {values, values}, 512, 16), cases);
}

TEST_CASE("emulator: dot products of bytes") {
  Device device;
  const IntegerType bytes[] = {{"u32", 8, false}, {"s32", 8, true}};
  const IntegerType words[] = {{"u32", 16, false}, {"s32", 16, true}};
  std::vector<Case> cases;
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 2; ++b) {
      const std::string types = "." + bytes[a].name + "." + bytes[b].name + " %d, %a0, %a1, %a2;";
      cases.push_back({"dp4a" + types, "b32", [=](const Values& v) {
                         Wide sum = v[2];
                         for (int i = 0; i < 32; i += 8) {
                           sum += bytes[a].value(v[0] >> i) * bytes[b].value(v[1] >> i);
                         }
                         return static_cast<uint32_t>(sum);
                       }});
      for (int part = 0; part < 2; ++part) {
        cases.push_back(
            {std::string(part ? "dp2a.hi" : "dp2a.lo") + types, "b32", [=](const Values& v) {
               Wide sum = v[2];
               for (int i = 0; i < 2; ++i) {
                 sum +=
                     words[a].value(v[0] >> (16 * i)) * bytes[b].value(v[1] >> (16 * part + 8 * i));
               }
               return static_cast<uint32_t>(sum);
             }});
      }
    }
  }
  const Values values = {0, 0xffffffff, 0x80808080, 0x7f7f7f7f, 0x80007fff, 0x01020304};
  check(device, combinations({"b32", "b32", "b32"}, {values, values, values}, 1024, 4), cases);
}

TEST_CASE("emulator: carries run through chains of instructions, a lane each") {
  Device device;
  using Natural = unsigned __int128;
  const Values values = {0,          1,          ~uint64_t{0}, ~uint64_t{0} - 1, uint64_t{1} << 63,
                         0xffffffff, 0x100000000};
  const std::vector<Column> columns =
      combinations({"b64", "b64", "b64"}, {values, values, values}, 1024, 5);
  // Operands of 128 bits from two columns; the result's upper or lower half.
  const auto left = [](const Values& v) { return (Natural)v[0] << 64 | v[1]; };
  const auto right = [](const Values& v) { return (Natural)v[1] << 64 | v[2]; };
  const auto sum = [=](const Values& v) { return left(v) + right(v); };
  const auto difference = [=](const Values& v) { return left(v) - right(v); };
  const std::string halves =
      ".reg .b32 x<4>, y<4>, z<4>; mov.b64 {x0, x1}, %a1; mov.b64 {x2, x3}, %a0; "
      "mov.b64 {y0, y1}, %a2; mov.b64 {y2, y3}, %a1; ";
  const auto chain = [&](const std::string& op) {
    return halves + op + ".cc.u32 z0, x0, y0; " + op + "c.cc.s32 z1, x1, y1; " + op +
           "c.cc.u32 z2, x2, y2; " + op + "c.u32 z3, x3, y3; mov.b64 %d, {z2, z3};";
  };
  check(
      device, columns,
      {{".reg .b64 l; add.cc.u64 l, %a1, %a2; addc.u64 %d, %a0, %a1;", "b64",
        [=](const Values& v) { return static_cast<uint64_t>(sum(v) >> 64); }},
       {".reg .b64 l; add.cc.s64 l, %a1, %a2; addc.cc.s64 %d, %a0, %a1;", "b64",
        [=](const Values& v) { return static_cast<uint64_t>(sum(v) >> 64); }},
       {".reg .b64 l; sub.cc.u64 l, %a1, %a2; subc.u64 %d, %a0, %a1;", "b64",
        [=](const Values& v) { return static_cast<uint64_t>(difference(v) >> 64); }},
       {chain("add"), "b64", [=](const Values& v) { return static_cast<uint64_t>(sum(v) >> 64); }},
       {chain("sub"), "b64",
        [=](const Values& v) { return static_cast<uint64_t>(difference(v) >> 64); }},
       {"add.cc.u64 %d, %a0, %a1; addc.u64 %d, 0, 0;", "b64",
        [=](const Values& v) { return static_cast<uint64_t>((Natural)v[0] + v[1] >> 64); }},
       {"sub.cc.u64 %d, %a0, %a1; addc.u64 %d, 0, 0;", "b64",
        [=](const Values& v) { return uint64_t{v[0] < v[1]}; }}});
}

TEST_CASE("emulator: products with carries") {
  Device device;
  using Natural = unsigned __int128;
  const Values values = {0, 1, ~uint64_t{0}, uint64_t{1} << 63, 0xffffffff, 0x80000000};
  const auto columns = combinations({"b64", "b64", "b64"}, {values, values, values}, 1024, 6);
  // (a * b)'s 128 bits plus c in both halves.
  const auto all = [](const Values& v) {
    return (Natural)v[0] * v[1] + ((Natural)v[2] << 64 | v[2]);
  };
  const auto signed_high = [](uint64_t a, uint64_t b) {
    return static_cast<uint64_t>((Wide) static_cast<int64_t>(a) * static_cast<int64_t>(b) >> 64);
  };
  check(
      device, columns,
      {{".reg .b64 l; mad.lo.cc.u64 l, %a0, %a1, %a2; madc.hi.u64 %d, %a0, %a1, %a2;", "b64",
        [=](const Values& v) { return static_cast<uint64_t>(all(v) >> 64); }},
       {".reg .b64 l; mad.lo.cc.s64 l, %a0, %a1, %a2; madc.hi.cc.s64 %d, %a0, %a1, %a2;", "b64",
        [=](const Values& v) {
          const uint64_t carry = (Natural)(v[0] * v[1]) + v[2] >> 64;
          return signed_high(v[0], v[1]) + v[2] + carry;
        }},
       {"mad.hi.cc.u64 %d, %a0, %a1, %a2; addc.u64 %d, 0, 0;", "b64",
        [=](const Values& v) {
          return static_cast<uint64_t>(((Natural)v[0] * v[1] >> 64) + v[2] >> 64);
        }},
       {"mad.hi.cc.s64 %d, %a0, %a1, %a2; madc.lo.cc.u64 %d, %a0, 0, 5; addc.u64 %d, %d, 0;", "b64",
        [=](const Values& v) {
          return 5 + static_cast<uint64_t>((Natural)signed_high(v[0], v[1]) + v[2] >> 64);
        }},
       {".reg .b32 x, y, z, l, h; .reg .b64 w; mov.b64 {x, _}, %a0; mov.b64 {y, _}, %a1; "
        "mov.b64 {z, _}, %a2; mad.lo.cc.u32 l, x, y, z; madc.hi.u32 h, x, y, 0; "
        "mov.b64 %d, {l, h};",
        "b64",
        [](const Values& v) {
          return uint64_t{static_cast<uint32_t>(v[0])} * static_cast<uint32_t>(v[1]) +
                 static_cast<uint32_t>(v[2]);
        }},
       {".reg .b32 x, y, z, l, h; mov.b64 {x, _}, %a0; mov.b64 {y, _}, %a1; "
        "mov.b64 {z, _}, %a2; mad.lo.cc.s32 l, x, y, z; madc.hi.s32 h, x, y, -1; "
        "mov.b64 %d, {l, h};",
        "b64", [](const Values& v) {
          const int64_t product = int64_t{static_cast<int32_t>(v[0])} * static_cast<int32_t>(v[1]);
          return static_cast<uint64_t>(product) + static_cast<uint32_t>(v[2]) + 0xffffffff00000000;
        }}});
}

TEST_CASE("emulator: the carry belongs to a lane, also where lanes part") {
  Device device;
  Column which{"b32", {}};
  for (uint64_t i = 0; i < 32; ++i) which.values.push_back(i);
  // Odd lanes make a carry in their own branch; the others keep theirs.
  check(device, {which},
        {{".reg .pred odd; .reg .b32 x; and.b32 x, %a0, 1; setp.eq.u32 odd, x, 1; "
          "add.cc.u32 x, %a0, -16; @odd add.cc.u32 x, %a0, 0; addc.u32 %d, 0, 0;",
          "b32", [](const Values& v) -> uint64_t { return v[0] % 2 == 0 && v[0] >= 16; }}});
}
