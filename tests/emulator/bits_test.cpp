// Counting, finding, extracting and inserting bits, bit by bit.

#include <catch2/catch.hpp>

#include "tests/emulator/arithmetic.h"

using namespace emulator_test;

namespace {

bool bit(uint64_t value, int i) { return value >> i & 1; }

Values words(int width) {
  const uint64_t top = uint64_t{1} << (width - 1);
  return {0,
          1,
          2,
          top,
          top - 1,
          top + 1,
          ~uint64_t{0},
          0x8000,
          0x7fff,
          0xff00,
          0x10,
          top >> 1,
          0x5555555555555555,
          0xaaaaaaaaaaaaaaaa};
}

uint64_t field(uint64_t a, uint64_t b, uint64_t c, int width, bool is_signed) {
  const int pos = static_cast<int>(b & 0xff), len = static_cast<int>(c & 0xff);
  const bool fill = is_signed && len != 0 && bit(a, std::min(pos + len - 1, width - 1));
  uint64_t result = 0;
  for (int i = 0; i < width; ++i) {
    const bool one = i < len && pos + i < width ? bit(a, pos + i) : fill;
    result |= uint64_t{one} << i;
  }
  return result;
}

uint64_t inserted(uint64_t a, uint64_t b, uint64_t c, uint64_t d, int width) {
  const int pos = static_cast<int>(c & 0xff), len = static_cast<int>(d & 0xff);
  for (int i = 0; i < len && pos + i < width; ++i) {
    b = (b & ~(uint64_t{1} << (pos + i))) | uint64_t{bit(a, i)} << (pos + i);
  }
  return b;
}

}  // namespace

TEST_CASE("emulator: bits are counted, found and reversed") {
  Device device;
  for (const int width : {32, 64}) {
    const std::string w = std::to_string(width), reg = "b" + w;
    const auto found = [=](uint64_t a, bool is_signed, bool shift) -> uint64_t {
      const bool sign = is_signed && bit(a, width - 1);
      for (int i = width - 1; i >= 0; --i) {
        if (bit(a, i) != sign) return static_cast<uint64_t>(shift ? width - 1 - i : i);
      }
      return 0xffffffff;
    };
    std::vector<Case> cases = {{"popc.b" + w + " %d, %a0;", "b32",
                                [=](const Values& v) {
                                  uint64_t count = 0;
                                  for (int i = 0; i < width; ++i) count += bit(v[0], i);
                                  return count;
                                }},
                               {"clz.b" + w + " %d, %a0;", "b32",
                                [=](const Values& v) {
                                  uint64_t count = 0;
                                  while (count < static_cast<uint64_t>(width) &&
                                         !bit(v[0], width - 1 - static_cast<int>(count))) {
                                    ++count;
                                  }
                                  return count;
                                }},
                               {"brev.b" + w + " %d, %a0;", reg, [=](const Values& v) {
                                  uint64_t result = 0;
                                  for (int i = 0; i < width; ++i)
                                    result |= uint64_t{bit(v[0], i)} << (width - 1 - i);
                                  return result;
                                }}};
    for (const bool is_signed : {false, true}) {
      for (const bool shift : {false, true}) {
        cases.push_back({std::string(shift ? "bfind.shiftamt." : "bfind.") +
                             (is_signed ? "s" : "u") + w + " %d, %a0;",
                         "b32", [=](const Values& v) { return found(v[0], is_signed, shift); }});
      }
    }
    check(device, combinations({reg}, {words(width)}, 500, 1), cases);
  }
}

TEST_CASE("emulator: fields of bits at every position and length") {
  Device device;
  const Values places = {0, 1, 5, 8, 31, 32, 33, 63, 64, 65, 255, 256, 257, 0xffffffff};
  for (const int width : {32, 64}) {
    const std::string w = std::to_string(width), reg = "b" + w;
    std::vector<Case> cases;
    for (const bool is_signed : {false, true}) {
      cases.push_back({std::string("bfe.") + (is_signed ? "s" : "u") + w + " %d, %a0, %a1, %a2;",
                       reg,
                       [=](const Values& v) { return field(v[0], v[1], v[2], width, is_signed); }});
    }
    cases.push_back({"bfi.b" + w + " %d, %a0, %a3, %a1, %a2;", reg,
                     [=](const Values& v) { return inserted(v[0], v[3], v[1], v[2], width); }});
    const Values few = {0, ~uint64_t{0}, uint64_t{1} << (width - 1), 0x123456789abcdef0};
    check(device, combinations({reg, "b32", "b32", reg}, {few, places, places, few}, 4000, 9),
          cases);
  }
}

TEST_CASE("emulator: extension, masks and the n-th set bit") {
  Device device;
  std::vector<Case> cases;
  for (const bool wrap : {false, true}) {
    const std::string mode = wrap ? "wrap" : "clamp";
    for (const bool is_signed : {false, true}) {
      cases.push_back({"szext." + mode + (is_signed ? ".s32" : ".u32") + " %d, %a0, %a1;", "b32",
                       [=](const Values& v) -> uint64_t {
                         if (!wrap && v[1] >= 32) return v[0];
                         const uint64_t n = v[1] % 32;
                         if (n == 0) return 0;
                         uint64_t low = v[0] % (uint64_t{1} << n);
                         if (is_signed && bit(low, static_cast<int>(n) - 1))
                           low -= uint64_t{1} << n;
                         return low & 0xffffffff;
                       }});
    }
    cases.push_back(
        {"bmsk." + mode + ".b32 %d, %a0, %a1;", "b32", [=](const Values& v) -> uint64_t {
           const uint64_t at = wrap ? v[0] % 32 : v[0], n = wrap ? v[1] % 32 : v[1];
           uint64_t result = 0;
           for (uint64_t i = 0; i < 32; ++i) {
             if (i >= at && i - at < n) result |= uint64_t{1} << i;
           }
           return result;
         }});
  }
  const Values numbers = {0, 1, 2, 15, 31, 32, 33, 64, 0x80000000, 0xffffffff, 0x12345678};
  check(device, combinations({"b32", "b32"}, {numbers, numbers}, 512, 2), cases);

  const Case fns{"fns.b32 %d, %a0, %a1, %a2;", "b32", [](const Values& v) -> uint64_t {
                   const auto offset = static_cast<int32_t>(v[2]);
                   const int base = static_cast<int>(v[1]);
                   if (offset == 0) return bit(v[0], base) ? v[1] : 0xffffffff;
                   std::vector<int> set;  // from the base on, in the direction
                   for (int i = base; i >= 0 && i<32; i += offset> 0 ? 1 : -1) {
                     if (bit(v[0], i)) set.push_back(i);
                   }
                   const auto n = static_cast<size_t>(std::abs(int64_t{offset}));
                   return n <= set.size() ? static_cast<uint64_t>(set[n - 1]) : 0xffffffff;
                 }};
  Values bases;
  for (uint64_t i = 0; i < 32; ++i) bases.push_back(i);
  check(device,
        combinations({"b32", "b32", "b32"},
                     {{0, 0xaaaaaaaa, 0xffffffff, 0x80000001, 0x00f0},
                      bases,
                      {0, 1, 2, 31, 32, 0xffffffff, 0xfffffffe, 0x80000000, 0x7fffffff}},
                     0, 3),
        {fns});
  // The examples of the ISA.
  check(device, {{"b32", {0xaaaaaaaa}}},
        {{"fns.b32 %d, %a0, 3, 1;", "b32", [](const Values&) { return 3; }},
         {"fns.b32 %d, %a0, 3, -1;", "b32", [](const Values&) { return 3; }},
         {"fns.b32 %d, %a0, 2, 1;", "b32", [](const Values&) { return 3; }},
         {"fns.b32 %d, %a0, 2, -1;", "b32", [](const Values&) { return 1; }},
         {"bmsk.wrap.b32 %d, 1, 2;", "b32", [](const Values&) { return 6; }},
         {"szext.wrap.u32 %d, 0xffffffff, 0;", "b32", [](const Values&) { return 0; }}});
}
