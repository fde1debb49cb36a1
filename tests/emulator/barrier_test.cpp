// Barriers of a block: who waits for whom, what they order, and waits that never end.

#include <catch2/catch.hpp>

#include "tests/emulator/ptx_kernel.h"

namespace emulator_test {
namespace {

using Catch::Contains;

const char* const kBuffer = ".shared .align 4 .b8 buffer[4096];";
const std::string kStore = "\nst.global.u32 [%out], %r0;";
// %r2: the warp, %r4: the own place in the buffer.
const std::string kPlaces =
    "shr.u32 %r2, %i, 5; shl.b32 %r3, %i, 2; mov.u32 %r4, buffer; add.u32 %r4, %r4, %r3;\n";

std::vector<uint32_t> block(const std::string& body, unsigned threads) {
  Device device;
  return results(device, ptx_kernel(kPlaces + body + kStore, kBuffer), 1, threads);
}

std::string report(const std::string& body, unsigned threads, uint64_t seed = 1) {
  return report_of(ptx_kernel("mov.u32 %r0, 0;" + kPlaces + body + kStore, kBuffer), 1, threads, 0,
                   seed);
}

std::vector<uint32_t> expected(unsigned threads, const std::function<uint32_t(uint32_t)>& thread) {
  std::vector<uint32_t> values(threads);
  for (uint32_t i = 0; i < threads; ++i) values[i] = thread(i);
  return values;
}

}  // namespace

TEST_CASE("Barriers: threads see what others wrote", "[barrier]") {
  for (const std::string barrier :
       {"bar.sync 0;", "barrier.sync 3;", "barrier.cta.sync.aligned 15;", "bar.sync 2, 128;",
        "mov.u32 %r9, 7; bar.sync %r9;", "bar.cta.red.popc.u32 %r9, 1, %p0;"}) {
    INFO(barrier);
    CHECK(block("setp.eq.u32 %p0, %i, 0; st.shared.u32 [%r4], %i;" + barrier +
                    "xor.b32 %r3, %r3, 256; mov.u32 %r5, buffer; add.u32 %r5, %r5, %r3;"
                    "ld.shared.u32 %r0, [%r5];",
                128) == expected(128, [](uint32_t i) { return i ^ 64; }));
  }
}

TEST_CASE("Barriers: a block that is no multiple of a warp", "[barrier]") {
  CHECK(block("st.shared.u32 [%r4], %i; bar.sync 0; sub.u32 %r3, 276, %r3; mov.u32 %r5, buffer;"
              "add.u32 %r5, %r5, %r3; ld.shared.u32 %r0, [%r5];",
              70) == expected(70, [](uint32_t i) { return 69 - i; }));
}

TEST_CASE("Barriers: named ones for some of the warps", "[barrier]") {
  // Warps in pairs, each pair with a barrier of its own, many times.
  CHECK(block("shr.u32 %r6, %r2, 1; mov.u32 %r7, 0; mov.u32 %r0, 0; xor.b32 %r8, %r3, 128;"
              "mov.u32 %r5, buffer; add.u32 %r5, %r5, %r8;\n"
              "LOOP: add.u32 %r9, %i, %r7; st.shared.u32 [%r4], %r9; bar.sync %r6, 64;"
              "ld.shared.u32 %r10, [%r5]; add.u32 %r0, %r0, %r10; bar.sync %r6, 64;"
              "add.u32 %r7, %r7, 1; setp.lt.u32 %p0, %r7, 10; @%p0 bra LOOP;",
              256) == expected(256, [](uint32_t i) { return 10 * (i ^ 32) + 45; }));
}

TEST_CASE("Barriers: producers arrive, consumers wait", "[barrier]") {
  // Warps 2 and 3 produce for 0 and 1, with a barrier for full and one for empty.
  const std::string body =
      "mov.u32 %r0, 0; mov.u32 %r7, 0; setp.ge.u32 %p1, %r2, 2; @%p1 bra PRODUCE;\n"
      "CONSUME: bar.sync 1, 128; ld.shared.u32 %r10, [%r4+256]; add.u32 %r0, %r0, %r10;"
      "bar.arrive 2, 128; add.u32 %r7, %r7, 1; setp.lt.u32 %p0, %r7, 5; @%p0 bra CONSUME;"
      "bra END;\n"
      "PRODUCE: setp.eq.u32 %p2, %r7, 0; @%p2 bra FIRST; bar.sync 2, 128;\n"
      "FIRST: add.u32 %r9, %i, %r7; st.shared.u32 [%r4], %r9; bar.arrive 1, 128;"
      "add.u32 %r7, %r7, 1; setp.lt.u32 %p0, %r7, 5; @%p0 bra PRODUCE; bar.sync 2, 128;\nEND:";
  for (uint64_t seed : {1, 2, 3, 4, 5}) {
    Device device;
    device.seed(seed);
    CHECK(results(device, ptx_kernel(kPlaces + body + kStore, kBuffer), 1, 128) ==
          expected(128, [](uint32_t i) { return i < 64 ? 5 * (i + 64) + 10 : 0; }));
  }
}

TEST_CASE("Barriers: what was stored behind an arrival is not ordered", "[barrier]") {
  const auto producer = [](const std::string& store_then_arrive) {
    return "mov.u32 %r0, 0; setp.ge.u32 %p1, %r2, 1; @%p1 bra PRODUCE;\n"
           "bar.sync 1, 64; ld.shared.u32 %r0, [%r4+128]; bra END;\nPRODUCE:" +
           store_then_arrive + "\nEND:";
  };
  CHECK(report(producer("st.shared.u32 [%r4], %i; bar.arrive 1, 64;"), 64) == "");
  CHECK_THAT(report(producer("bar.arrive 1, 64; st.shared.u32 [%r4], %i;"), 64),
             Contains("race") || Contains("undefined"));
}

TEST_CASE("Barriers: reductions of predicates", "[barrier]") {
  const auto reduced = [](const std::string& compare, const std::string& how) {
    return block("setp." + compare + "; bar.red." + how, 96);
  };
  const auto all = [](uint32_t value) { return std::vector<uint32_t>(96, value); };
  CHECK(reduced("lt.u32 %p0, %i, 37", "popc.u32 %r0, 0, %p0;") == all(37));
  CHECK(reduced("lt.u32 %p0, %i, 37", "popc.u32 %r0, 0, !%p0;") == all(59));
  CHECK(reduced("lt.u32 %p0, %i, 37", "popc.u32 %r0, 1, 96, %p0;") == all(37));
  const std::string select = "selp.u32 %r0, 1, 0, %p1;";
  CHECK(reduced("lt.u32 %p0, %i, 96", "and.pred %p1, 0, %p0;" + select) == all(1));
  CHECK(reduced("lt.u32 %p0, %i, 95", "and.pred %p1, 0, %p0;" + select) == all(0));
  CHECK(reduced("eq.u32 %p0, %i, 95", "or.pred %p1, 0, %p0;" + select) == all(1));
  CHECK(reduced("eq.u32 %p0, %i, 96", "or.pred %p1, 0, %p0;" + select) == all(0));
}

TEST_CASE("Barriers: threads and warps that have exited are not waited for", "[barrier]") {
  // Of a warp, and whole warps, where no count is given.
  CHECK(block("setp.lt.u32 %p0, %i, 20; @%p0 exit; setp.ge.u32 %p1, %i, 96; @%p1 exit;"
              "setp.ne.u32 %p2, %i, 0; bar.red.popc.u32 %r0, 0, %p2;",
              128) == expected(128, [](uint32_t i) { return i < 20 || i >= 96 ? 0 : 76; }));
  // One that waits already while others exit.
  CHECK(block("mov.u32 %r0, 1; mov.u32 %r7, 0; setp.lt.u32 %p0, %i, 32; @%p0 bra WAIT;\n"
              "LOOP: add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 300; @%p1 bra LOOP; exit;\n"
              "WAIT: bar.sync 0;",
              128) == expected(128, [](uint32_t i) { return i < 32 ? 1 : 0; }));
}

TEST_CASE("Barriers: without .aligned lanes come from different places", "[barrier]") {
  CHECK(block("mov.u32 %r0, 1; and.b32 %r5, %i, 1; setp.eq.u32 %p0, %r5, 0; @%p0 bra EVEN;\n"
              "st.shared.u32 [%r4], %i; barrier.sync 0; bra READ;\n"
              "EVEN: st.shared.u32 [%r4], 7; barrier.sync 0;\n"
              "READ: xor.b32 %r3, %r3, 4; mov.u32 %r5, buffer; add.u32 %r5, %r5, %r3;"
              "ld.shared.u32 %r0, [%r5];",
              64) == expected(64, [](uint32_t i) { return i % 2 ? 7 : i + 1; }));
}

TEST_CASE("Barriers: divergence is reported with both places", "[barrier]") {
  const std::string two =
      "setp.lt.u32 %p0, %i, 8; @%p0 bra LESS;\nbar.sync 0; bra END;\nLESS: bar.sync 0;\nEND:";
  CHECK_THAT(report(two, 32), Contains("divergence") && Contains("lanes 8-31") &&
                                  Contains("lanes 0-7 at line 14 (bar.sync 0)"));
  CHECK_THAT(report("setp.lt.u32 %p0, %i, 8; @%p0 bar.sync 0;", 32),
             Contains("divergence") && Contains("guard") && Contains("lanes 8-31"));
  // Lanes that exited do not matter, those that wait for another reason do.
  CHECK(report("setp.lt.u32 %p0, %i, 8; @%p0 exit; bar.sync 0;", 32) == "");
  CHECK_THAT(report("setp.lt.u32 %p0, %i, 8; @%p0 bra LESS;\nbar.sync 0; bra END;\n"
                    "LESS: bar.warp.sync -1;\nEND:",
                    32),
             Contains("divergence"));
  // The whole warp goes the same way: nothing to report.
  CHECK(report("setp.lt.u32 %p0, %i, 32; @%p0 bra LESS;\nbar.sync 0; bra END;\n"
               "LESS: bar.sync 0;\nEND: mov.u32 %r0, 0;",
               64) == "");
}

TEST_CASE("Barriers: waits that never end", "[barrier]") {
  const std::string dropped =
      report("setp.ge.u32 %p0, %i, 32; @%p0 bra END;\nbar.sync 1, 64;\nEND: bar.sync 0;", 64);
  CHECK_THAT(dropped, Contains("deadlock") && Contains("warp 0 lanes 0-31 at line 13") &&
                          Contains("warp 1 lanes 0-31 at line 14"));
  // A warp that is counted but has exited.
  CHECK_THAT(report("setp.ge.u32 %p0, %i, 32; @%p0 exit; bar.sync 1, 64;", 64),
             Contains("deadlock"));
  // A producer without a consumer's answer.
  CHECK_THAT(report("setp.ge.u32 %p0, %i, 32; @%p0 bra END;\n"
                    "bar.arrive 1, 64; bar.sync 2, 64; exit;\nEND: bar.sync 1, 64;",
                    64),
             Contains("deadlock") && Contains("bar.sync 2, 64"));
}

TEST_CASE("Barriers: a loop that waits for memory nobody writes", "[barrier]") {
  CHECK_THAT(report("st.shared.u32 [%r4], 0; bar.sync 0; mov.u32 %r5, buffer;\n"
                    "LOOP: ld.volatile.shared.u32 %r6, [%r5]; setp.eq.u32 %p0, %r6, 0;"
                    "@%p0 bra LOOP;",
                    64),
             Contains("deadlock") && Contains("nothing changes"));
}

TEST_CASE("Barriers: wrong numbers and counts", "[barrier]") {
  CHECK_THAT(report("mov.u32 %r5, 16; bar.sync %r5;", 32),
             Contains("barrier") && Contains("no barrier 16"));
  CHECK_THAT(report("mov.u32 %r5, 48; bar.sync 1, %r5;", 64),
             Contains("48 threads") && Contains("multiple"));
  CHECK_THAT(report("bar.sync 1, 96;", 64), Contains("96 threads in a block of 64"));
  CHECK_THAT(report("mov.u32 %r5, 0; bar.arrive 1, %r5;", 64), Contains("0 threads"));
  CHECK_THAT(report("bar.sync %r60;", 32), Contains("undefined") && Contains("number"));
  CHECK_THAT(report("bar.sync %r2, %r60;", 32), Contains("undefined") && Contains("threads"));
  CHECK_THAT(report("and.b32 %r5, %i, 1; bar.sync %r5;", 32), Contains("differs within the warp"));
  // Two counts of one barrier; a reduction among those that do not; one warp twice.
  CHECK_THAT(report("setp.eq.u32 %p0, %r2, 2; @%p0 exit; setp.lt.u32 %p0, %r2, 1;"
                    "selp.u32 %r5, 64, 96, %p0; bar.sync 1, %r5;",
                    96),
             Contains("wrong use of a barrier") && Contains("is for"));
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CHECK_THAT(report("setp.lt.u32 %p0, %r2, 1; @%p0 bra RED;\nbar.sync 1; bra END;\n"
                      "RED: bar.red.popc.u32 %r0, 1, %p0;\nEND:",
                      64, seed),
               Contains("another kind of instruction"));
  }
  CHECK_THAT(report("setp.lt.u32 %p0, %r2, 1; @!%p0 bra END;\n"
                    "bar.arrive 1, 64; bar.arrive 1, 64;\nEND:",
                    64),
             Contains("again before it is complete"));
}

TEST_CASE("Barriers are counted", "[barrier]") {
  Device device;
  results(device, ptx_kernel(kPlaces + "bar.sync 0; bar.sync 1, 64; barrier.sync 2;", kBuffer), 3,
          64);
  CHECK(device.statistics().at("launches").at(0).at("barriers") == 9);
}

TEST_CASE("Barriers: forms that do not exist are refused", "[barrier]") {
  Device device;
  const auto refuses = [&](const std::string& body) {
    const std::string ptx = ptx_kernel(body);
    CUmodule module = nullptr;
    INFO(body);
    CHECK(call<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData")(&module, ptx.c_str()) ==
          CUDA_ERROR_INVALID_PTX);
  };
  refuses("bar.arrive 1;");
  refuses("bar.sync;");
  refuses("bar.sync.aligned 0;");
  refuses("bar.sync 0, 32, 64;");
  refuses("bar.red.popc.pred %p0, 0, %p1;");
  refuses("bar.red.xor.pred %p0, 0, %p1;");
  refuses("bar.red.and.u32 %r0, 0, %p1;");
  refuses("barrier.wait 0;");
  refuses("bar.sync 16;");
  refuses("bar.sync 0, 48;");
  refuses("bar.arrive 0, 0;");
}

}  // namespace emulator_test
