// Instructions of the lanes of a warp together, against the formulas of the ISA.

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/emulator/ptx_kernel.h"

namespace emulator_test {
namespace {

using Catch::Contains;

struct Shuffled {
  int from = 0;
  bool inside = false;
};

// The pseudo code of shfl, for one lane.
Shuffled shuffled(const std::string& mode, int lane, unsigned b, unsigned c) {
  const int offset = b & 31, clamp = c & 31, segment = c >> 8 & 31;
  const int most = (lane & segment) | (clamp & ~segment & 31), least = lane & segment;
  Shuffled result;
  if (mode == "up") {
    result.from = lane - offset;
    result.inside = result.from >= most;
  } else {
    result.from = mode == "down"   ? lane + offset
                  : mode == "bfly" ? lane ^ offset
                                   : least | (offset & ~segment & 31);
    result.inside = result.from <= most;
  }
  if (!result.inside) result.from = lane;
  return result;
}

// b and c for all lanes alike: 32 threads a combination.
void check_shuffle(const std::string& mode) {
  Device device;
  Column value{"b32", {}}, offset{"b32", {}}, control{"b32", {}};
  for (unsigned b = 0; b < 36; ++b) {
    for (unsigned segment : {0u, 16u, 24u, 28u, 30u, 31u, 5u}) {
      for (unsigned clamp = 0; clamp < 32; clamp += b % 4 == 0 ? 1 : 7) {
        for (unsigned lane = 0; lane < 32; ++lane) {
          value.values.push_back(1000 * b + 31 * segment + lane);
          offset.values.push_back(b);
          control.values.push_back(segment << 8 | clamp);
        }
      }
    }
  }
  const auto got =
      evaluate(device, "shfl.sync." + mode + ".b32 %d0|%d1, %a0, %a1, %a2, 0xffffffff;",
               {"b32", "pred"}, {value, offset, control});
  size_t wrong = 0;
  for (size_t i = 0; i < value.values.size(); ++i) {
    const int lane = int(i % 32);
    const Shuffled expected =
        shuffled(mode, lane, unsigned(offset.values[i]), unsigned(control.values[i]));
    wrong += got[0][i] != value.values[i - size_t(lane) + size_t(expected.from)];
    wrong += got[1][i] != uint64_t(expected.inside);
  }
  CHECK(wrong == 0);
}

// Values of one warp.
std::vector<uint32_t> warp(const std::string& body, const std::string& target = "sm_90a") {
  Device device;
  return results(device, ptx_kernel(body + "\nst.global.u32 [%out], %r0;", "", target), 1, 32);
}

std::vector<uint32_t> expected(const std::function<uint32_t(uint32_t)>& lane) {
  std::vector<uint32_t> values(32);
  for (uint32_t i = 0; i < 32; ++i) values[i] = lane(i);
  return values;
}

}  // namespace

TEST_CASE("Shuffles: every mode for all lanes, offsets, clamps and segments", "[warp]") {
  for (const char* mode : {"up", "down", "bfly", "idx"}) {
    INFO(mode);
    check_shuffle(mode);
  }
}

TEST_CASE("Shuffles: offsets that differ by lane, and no predicate", "[warp]") {
  CHECK(warp("mul.lo.u32 %r1, %i, 7; add.u32 %r2, %i, 100;"
             "shfl.sync.idx.b32 %r0, %r2, %r1, 31, -1;") ==
        expected([](uint32_t i) { return i * 7 % 32 + 100; }));
}

TEST_CASE("Shuffles: a lane that does not take part gives an undefined value", "[warp]") {
  // A mere move of it is legal, storing it is not.
  const std::string half =
      "setp.lt.u32 %p0, %i, 16; mov.u32 %r0, 7;"
      "@!%p0 bra END; shfl.sync.idx.b32 %r1, %i, 20, 31, 0xffff; mov.u32 %r2, %r1;\n";
  CHECK(report_of(ptx_kernel(half + "END: st.global.u32 [%out], %r0;"), 1, 32) == "");
  CHECK_THAT(
      report_of(ptx_kernel(half + "mov.u32 %r0, %r2;\nEND: st.global.u32 [%out], %r0;"), 1, 32),
      Contains("undefined value") && Contains("thread (0, 0, 0)"));
}

TEST_CASE("Votes", "[warp]") {
  const auto vote = [](const std::string& mode, const std::string& where) {
    return warp("setp." + where + "; vote.sync." + mode +
                ".pred %p1, %p0, -1; selp.u32 %r0, 1, 0, %p1;")[5];
  };
  CHECK(vote("all", "ge.u32 %p0, %i, 0") == 1);
  CHECK(vote("all", "ge.u32 %p0, %i, 1") == 0);
  CHECK(vote("any", "eq.u32 %p0, %i, 31") == 1);
  CHECK(vote("any", "eq.u32 %p0, %i, 32") == 0);
  CHECK(vote("uni", "eq.u32 %p0, %i, 32") == 1);
  CHECK(vote("uni", "ge.u32 %p0, %i, 0") == 1);
  CHECK(vote("uni", "eq.u32 %p0, %i, 3") == 0);
  CHECK(warp("and.b32 %r1, %i, 5; setp.eq.u32 %p0, %r1, 4;"
             "vote.sync.ballot.b32 %r0, !%p0, -1;") == expected([](uint32_t) {
          uint32_t ballot = 0;
          for (uint32_t i = 0; i < 32; ++i) ballot |= uint32_t((i & 5) != 4) << i;
          return ballot;
        }));
}

TEST_CASE("Votes among the lanes of a mask", "[warp]") {
  // Each quarter has its mask; those of one instruction do not see each other.
  CHECK(warp("and.b32 %r1, %i, 24; mov.u32 %r2, 255; shl.b32 %r2, %r2, %r1;"
             "and.b32 %r3, %i, 3; setp.eq.u32 %p0, %r3, 1;"
             "vote.sync.ballot.b32 %r0, %p0, %r2;") ==
        expected([](uint32_t i) { return 0x22u << (i & 24); }));
}

TEST_CASE("match", "[warp]") {
  const auto same = [](uint32_t i) {
    uint32_t mask = 0;
    for (uint32_t j = 0; j < 32; ++j) mask |= uint32_t(i % 5 == j % 5) << j;
    return mask;
  };
  CHECK(warp("rem.u32 %r1, %i, 5; match.any.sync.b32 %r0, %r1, -1;") == expected(same));
  CHECK(warp("rem.u32 %r1, %i, 5; mov.b64 %rd0, {3, %r1};"
             "match.any.sync.b64 %r0, %rd0, -1;") == expected(same));
  const std::string both = "match.all.sync.b32 %r0|%p0, %r1, -1; selp.u32 %r2, 5, 6, %p0;";
  CHECK(warp("mov.u32 %r1, 9;" + both) == expected([](uint32_t) { return ~0u; }));
  CHECK(warp("mov.u32 %r1, %i;" + both) == expected([](uint32_t) { return 0u; }));
  CHECK(warp("mov.u32 %r1, 9;" + both + "mov.u32 %r0, %r2;")[3] == 5);
  CHECK(warp("mov.u32 %r1, %i;" + both + "mov.u32 %r0, %r2;")[3] == 6);
  CHECK(warp("mov.b64 %rd0, {%i, 3}; match.all.sync.b64 %r0|%p0, %rd0, -1;")[3] == 0);
}

TEST_CASE("redux", "[warp]") {
  const auto value = [](uint32_t i) { return (i * 2654435761u) ^ 0x80u; };
  const std::string begin = "mul.lo.u32 %r1, %i, 2654435761; xor.b32 %r1, %r1, 128; redux.sync.";
  const auto reduced = [&](const std::string& how) {
    const auto all = warp(begin + how + " %r0, %r1, -1;");
    CHECK(all == std::vector<uint32_t>(32, all[0]));
    return all[0];
  };
  uint32_t sum = 0, least = ~0u, most = 0, conjunction = ~0u, either = 0, parity = 0;
  int32_t lowest = INT32_MAX, highest = INT32_MIN;
  for (uint32_t i = 0; i < 32; ++i) {
    sum += value(i);
    least = std::min(least, value(i));
    most = std::max(most, value(i));
    lowest = std::min(lowest, int32_t(value(i)));
    highest = std::max(highest, int32_t(value(i)));
    conjunction &= value(i);
    either |= value(i);
    parity ^= value(i);
  }
  CHECK(reduced("add.u32") == sum);
  CHECK(reduced("add.s32") == sum);
  CHECK(reduced("min.u32") == least);
  CHECK(reduced("max.u32") == most);
  CHECK(reduced("min.s32") == uint32_t(lowest));
  CHECK(reduced("max.s32") == uint32_t(highest));
  CHECK(reduced("and.b32") == conjunction);
  CHECK(reduced("or.b32") == either);
  CHECK(reduced("xor.b32") == parity);
}

TEST_CASE("redux of floats", "[warp]") {
  Device device(10, 0);
  const auto reduced = [&](const std::string& how, std::vector<float> values) {
    Column column{"f32", {}};
    values.resize(32, values.back());
    for (float value : values) column.values.push_back(std::bit_cast<uint32_t>(value));
    return uint32_t(evaluate(device, "redux.sync." + how + ".f32 %d0, %a0, -1;", {"f32"}, {column},
                             "sm_100a")[0][7]);
  };
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  CHECK(reduced("min", {3, -2, 5}) == bits(-2));
  CHECK(reduced("max", {3, -2, -5}) == bits(3));
  CHECK(reduced("max.abs", {3, -2, -5}) == bits(5));
  CHECK(reduced("min", {0.0f, -0.0f, 0.0f}) == bits(-0.0f));
  CHECK(reduced("max", {-0.0f, 0.0f, -0.0f}) == bits(0.0f));
  CHECK(reduced("max", {NAN, 2, 1}) == bits(2));
  CHECK(reduced("max.NaN", {NAN, 2, 1}) == 0x7fffffff);
  CHECK(reduced("min", {NAN}) == 0x7fffffff);
}

TEST_CASE("elect and activemask", "[warp]") {
  CHECK(warp("elect.sync %r1|%p0, -1; selp.u32 %r2, 100, 0, %p0; add.u32 %r0, %r1, %r2;") ==
        expected([](uint32_t i) { return i == 0 ? 100u : 0u; }));
  // Lanes that go another way are not active; behind the join they are again.
  const std::string body =
      "mov.u32 %r0, 0; setp.lt.u32 %p0, %i, 11; @%p0 bra LESS;\n"
      "activemask.b32 %r0; bra JOIN;\n"
      "LESS: activemask.b32 %r1; not.b32 %r0, %r1;\n"
      "JOIN: activemask.b32 %r2; and.b32 %r0, %r0, %r2;";
  CHECK(warp(body) == expected([](uint32_t) { return 0xfffff800u; }));
  CHECK(warp("setp.gt.u32 %p0, %i, 28; mov.u32 %r0, 3; @%p0 activemask.b32 %r0;") ==
        expected([](uint32_t i) { return i > 28 ? 0xe0000000u : 3u; }));
}

TEST_CASE("Lanes at different places meet in one instruction", "[warp]") {
  // Each side adds what the other brought; both wait at an instruction of their own.
  const std::string body =
      "setp.lt.u32 %p0, %i, 16; xor.b32 %r5, %i, 16; @%p0 bra LESS;\n"
      "mul.lo.u32 %r1, %i, 10; shfl.sync.idx.b32 %r0, %r1, %r5, 31, -1; bra END;\n"
      "LESS: mul.lo.u32 %r2, %i, 1000; shfl.sync.idx.b32 %r3, %r2, %r5, 31, -1; mov.u32 %r0, %r3;\n"
      "END:";
  CHECK(warp(body) ==
        expected([](uint32_t i) { return i < 16 ? (i + 16) * 10 : (i - 16) * 1000; }));
}

TEST_CASE("Lanes that have exited are not waited for", "[warp]") {
  CHECK(warp("setp.ge.u32 %p0, %i, 20; @%p0 exit; mov.u32 %r1, 1;"
             "redux.sync.add.u32 %r0, %r1, -1;") ==
        expected([](uint32_t i) { return i < 20 ? 20u : 0u; }));
  // Those that are left come from two places.
  CHECK(warp("setp.ge.u32 %p0, %i, 20; @%p0 exit; mov.u32 %r1, 1; setp.lt.u32 %p1, %i, 4;"
             "@%p1 bra LESS;\nredux.sync.add.u32 %r0, %r1, -1; bra END;\n"
             "LESS: redux.sync.add.u32 %r0, %r1, -1;\nEND:") ==
        expected([](uint32_t i) { return i < 20 ? 20u : 0u; }));
}

TEST_CASE("bar.warp.sync orders memory among its lanes, a shuffle does not", "[warp]") {
  const auto exchange = [](const std::string& between) {
    return ptx_kernel(
        "shl.b32 %r1, %i, 2; mov.u32 %r2, buffer; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %i;" +
            between +
            "xor.b32 %r1, %r1, 124; mov.u32 %r3, buffer; add.u32 %r3, %r3, %r1;"
            "ld.shared.u32 %r0, [%r3]; st.global.u32 [%out], %r0;",
        ".shared .align 4 .b8 buffer[128];");
  };
  Device device;
  CHECK(results(device, exchange("bar.warp.sync -1;"), 1, 32) ==
        expected([](uint32_t i) { return 31 - i; }));
  CHECK_THAT(report_of(exchange("shfl.sync.idx.b32 %r9, %i, 0, 31, -1;"), 1, 32), Contains("race"));
  CHECK_THAT(report_of(exchange(""), 1, 32), Contains("race"));
}

TEST_CASE("Member masks that are wrong are reported", "[warp]") {
  CHECK_THAT(report_of(ptx_kernel("shfl.sync.idx.b32 %r0, %i, 0, 31, 0xfffffffe;"), 1, 32),
             Contains("member mask") && Contains("lane 0 is not in its own"));
  // Lanes of the mask that are elsewhere and never come.
  const std::string split =
      "setp.lt.u32 %p0, %i, 8; @%p0 bra LESS;\n"
      "shfl.sync.idx.b32 %r0, %i, 9, 31, -1; bra END;\n"
      "LESS: shfl.sync.up.b32 %r0, %i, 1, 0, -1;\nEND:";
  CHECK_THAT(report_of(ptx_kernel(split), 1, 32),
             Contains("member mask") && Contains("do not come") && Contains("lanes 0-7"));
  // Masks that differ: lane 0 waits for lanes that do not wait for it.
  CHECK_THAT(report_of(ptx_kernel("setp.eq.u32 %p0, %i, 0; selp.b32 %r1, -1, -2, %p0;"
                                  "shfl.sync.idx.b32 %r0, %i, 9, 31, %r1; bar.warp.sync -1;"),
                       1, 32),
             Contains("do not come") && Contains("thread (0, 0, 0)"));
  // Lanes that the warp does not have.
  CHECK_THAT(report_of(ptx_kernel("bar.warp.sync -1;"), 1, 40), Contains("does not have"));
  CHECK_THAT(report_of(ptx_kernel("bar.warp.sync %r60;"), 1, 32),
             Contains("undefined value") && Contains("member mask"));
}

TEST_CASE("Forms that do not exist are refused", "[warp]") {
  Device device;
  const auto refuses = [&](const std::string& body, const std::string& target = "sm_90a") {
    const std::string ptx = ptx_kernel(body, "", target);
    CUmodule module = nullptr;
    INFO(body);
    CHECK(call<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData")(&module, ptx.c_str()) ==
          CUDA_ERROR_INVALID_PTX);
  };
  refuses("shfl.idx.b32 %r0, %r1, 0, 31;");
  refuses("vote.all.pred %p0, %p1;");
  refuses("shfl.sync.left.b32 %r0, %r1, 0, 31, -1;");
  refuses("shfl.sync.idx.b64 %rd0, %rd1, 0, 31, -1;");
  refuses("shfl.sync.idx.b32 %r0, %r1, 0, 31;");
  refuses("vote.sync.ballot.pred %p0, %p1, -1;");
  refuses("vote.sync.all.pred %p0, %r1, -1;");
  refuses("match.any.sync.b32 %r0|%p0, %r1, -1;");
  refuses("redux.sync.add.b32 %r0, %r1, -1;");
  refuses("redux.sync.add.u32 %r0, %r1, -1;", "sm_75");
  refuses("redux.sync.min.f32 %f0, %f1, -1;");
  refuses("elect.sync %r0, -1;");
  refuses("elect.sync %r0|%p0, -1;", "sm_80");
}

}  // namespace emulator_test
