// mbarrier objects: phases, counts, states and parities; what they order; the faults around them.

#include <catch2/catch.hpp>

#include "tests/emulator/word_kernel.h"

namespace emulator_test::words {
namespace {

const std::string kSync = "bar.sync 0;\n";

std::string init(const std::string& object, const std::string& count) {
  return "setp.eq.u32 %p9, %thread, 0;\n@%p9 mbarrier.init.shared.b64 [" + object + "], " + count +
         ";\n" + kSync;
}

// Loops until the phase of that parity is complete; `label` must be new.
std::string wait_parity(const std::string& object, const std::string& parity,
                        const std::string& label, const std::string& form = "try_wait.parity") {
  return label + ":\nmbarrier." + form + ".shared.b64 %p8, [" + object + "], " + parity +
         ";\n@!%p8 bra " + label + ";\n";
}

// Warp 0 writes a word a lane into the tile and arrives; warp 1 waits and reads.
std::string hand_over(const std::string& arrive, const std::string& wait,
                      const std::string& count = "32") {
  return init("bar0", count) +
         "mov.u32 %r0, tile;\nmad.lo.u32 %r1, %lane, 4, %r0;\nsetp.eq.u32 %p0, %warp, 0;\n"
         "@!%p0 bra CONSUME;\nadd.u32 %r2, %lane, 100;\nst.shared.b32 [%r1], %r2;\n" +
         arrive + "bra DONE;\nCONSUME:\n" + wait +
         "xor.b32 %r3, %lane, 5;\nmad.lo.u32 %r4, %r3, 4, %r0;\nld.shared.b32 %r5, [%r4];\n"
         "st.global.b32 [%own], %r5;\nDONE:\n";
}
const std::string kArrive = "mbarrier.arrive.shared.b64 %d1, [bar0];\n";

// Producer and consumer warps over `tiles` tiles and two stages: full objects bar0 and bar1, empty
// objects bar2 and bar3. out[32 + lane] = sum over tiles of what lane ^ 1 wrote. The parities that
// producer and consumer wait for are given for stage use number %r12 = tile / 2.
std::string pipeline(const std::string& producer_parity, const std::string& consumer_parity,
                     bool releases = true) {
  const std::string stage =
      "and.b32 %r11, %r10, 1;\nshr.u32 %r12, %r10, 1;\nmov.u32 %r13, bar0;\n"
      "mad.lo.u32 %r14, %r11, 8, %r13;\nmov.u32 %r15, bar2;\nmad.lo.u32 %r16, %r11, 8, %r15;\n"
      "mad.lo.u32 %r17, %r11, 128, %r0;\n";
  const auto next = [](const std::string& label) {
    return "add.u32 %r10, %r10, 1;\nsetp.lt.u32 %p1, %r10, 10;\n@%p1 bra " + label + ";\n";
  };
  return "setp.eq.u32 %p9, %thread, 0;\n@!%p9 bra START;\nmbarrier.init.shared.b64 [full], 32;\n"
         "mbarrier.init.shared.b64 [full + 8], 32;\nmbarrier.init.shared.b64 [empty], 32;\n"
         "mbarrier.init.shared.b64 [empty + 8], 32;\nSTART:\n" +
         kSync +
         "mov.u32 %r0, tile;\nmov.u32 %r10, 0;\nmov.u32 %r20, 0;\nsetp.eq.u32 %p0, %warp, 0;\n"
         "@!%p0 bra CONSUME;\nPRODUCE:\n" +
         stage + "and.b32 %r18, %r12, 1;\n" + producer_parity +
         wait_parity("%r16", "%r18", "EMPTY") +
         "mad.lo.u32 %r19, %lane, 4, %r17;\nmad.lo.u32 %r21, %r10, 1000, %lane;\n"
         "st.shared.b32 [%r19], %r21;\nmbarrier.arrive.shared.b64 _, [%r14];\n" +
         next("PRODUCE") + "bra DONE;\nCONSUME:\n" + stage + "and.b32 %r18, %r12, 1;\n" +
         consumer_parity + wait_parity("%r14", "%r18", "FULL") +
         "xor.b32 %r22, %lane, 1;\nmad.lo.u32 %r19, %r22, 4, %r17;\nld.shared.b32 %r21, [%r19];\n"
         "add.u32 %r20, %r20, %r21;\n" +
         (releases ? "mbarrier.arrive.shared.b64 _, [%r16];\n" : "") + next("CONSUME") +
         "st.global.b32 [%own], %r20;\nDONE:\n";
}

// `pipeline` with arrays of objects instead of single ones.
Kernel pipeline_kernel(const std::string& producer_parity, const std::string& consumer_parity,
                       bool releases = true) {
  Kernel kernel;
  kernel.threads = 64;
  std::string body = pipeline(producer_parity, consumer_parity, releases);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"%r13, bar0", "%r13, full"},
                                 {"%r15, bar2", "%r15, empty"}})
    for (size_t at; (at = body.find(from)) != std::string::npos;) body.replace(at, from.size(), to);
  kernel.body = ".shared .align 8 .b64 full[2];\n.shared .align 8 .b64 empty[2];\n" + body;
  return kernel;
}

const std::string kFlip = "xor.b32 %r18, %r18, 1;\n";

std::string fault_of(const Kernel& kernel, uint64_t seed = 1) {
  Device device;
  device.seed(seed);
  return launch(device, kernel).report;
}

// One word, of thread 0.
uint32_t value_of(Device& device, const std::string& body) {
  Kernel kernel;
  kernel.body = body;
  const Outcome outcome = launch(device, kernel);
  REQUIRE(outcome.report == "");
  return outcome.output[0];
}

const std::string kOne = "setp.eq.u32 %p9, %thread, 0;\n@!%p9 ret;\n";  // thread 0 goes on alone
const std::string kTest =
    "mbarrier.test_wait.shared.b64 %p8, [bar0], %d1;\nselp.b32 %r30, 1, 0, %p8;\n";
const std::string kStore = "st.global.b32 [%own], %r30;\n";
std::string shift_in(const std::string& predicate) {
  return "selp.b32 %r31, 1, 0, " + predicate + ";\nmad.lo.u32 %r30, %r30, 2, %r31;\n";
}

}  // namespace

TEST_CASE("mbarrier: phases by their states", "[mbarrier]") {
  // 64 threads meet five times; between meetings each reads what another one wrote.
  for (const char* form : {"test_wait", "try_wait"})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      Device device;
      device.seed(seed);
      Kernel kernel;
      kernel.threads = 64;
      const auto meet = [&](const std::string& label) {
        return "mbarrier.arrive.shared.b64 %d1, [bar0];\n" + label + ":\nmbarrier." + form +
               ".shared.b64 %p8, [bar0], %d1;\n@!%p8 bra " + label + ";\n";
      };
      kernel.body =
          init("bar0", "64") +
          "mov.u32 %r0, tile;\nmad.lo.u32 %r1, %thread, 4, %r0;\nxor.b32 %r2, %thread, 37;\n"
          "mad.lo.u32 %r3, %r2, 4, %r0;\nmov.u32 %r4, %thread;\nmov.u32 %r5, 0;\nROUND:\n"
          "st.shared.b32 [%r1], %r4;\n" +
          meet("WRITTEN") + "ld.shared.b32 %r6, [%r3];\nadd.u32 %r4, %r6, 1;\n" + meet("READ") +
          "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p0, %r5, 5;\n@%p0 bra ROUND;\n"
          "st.global.b32 [%own], %r4;\n";
      const Outcome outcome = launch(device, kernel, {0}, 64);
      REQUIRE(outcome.report == "");
      for (uint32_t thread = 0; thread < 64; ++thread)
        CHECK(outcome.output[thread] == (thread ^ 37) + 5);
    }
}

TEST_CASE("mbarrier: what arrivals release is acquired by the wait", "[mbarrier][faults]") {
  const std::string wait = wait_parity("bar0", "0", "WAIT");
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Device device;
    device.seed(seed);
    Kernel kernel;
    kernel.threads = 64;
    kernel.body = hand_over(kArrive, wait);
    const Outcome outcome = launch(device, kernel);
    REQUIRE(outcome.report == "");
    for (uint32_t lane = 0; lane < 32; ++lane) CHECK(outcome.output[32 + lane] == (lane ^ 5) + 100);
  }
  const auto report = [](const std::string& arrive, const std::string& then,
                         const std::string& count = "32") {
    return report_of(hand_over(arrive, then, count), 64);
  };
  // Explicit forms that order, generic addresses, one arrival for all.
  CHECK(report("mbarrier.arrive.release.cta.shared::cta.b64 _, [bar0];\n",
               "WAIT:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p8, [bar0], 0, 100;\n"
               "@!%p8 bra WAIT;\n") == "");
  const std::string generic = "mov.u64 %d3, bar0;\ncvta.shared.u64 %d4, %d3;\n";
  CHECK(report(generic + "mbarrier.arrive.b64 _, [%d4];\n",
               generic +
                   "WAIT:\nmbarrier.test_wait.parity.b64 %p8, [%d4], 0;\n@!%p8 bra WAIT;\n") == "");
  CHECK(report("bar.warp.sync -1;\nsetp.eq.u32 %p7, %lane, 3;\n@%p7 " + kArrive, wait, "1") == "");
  // Without the warp's barrier that arrival speaks for lane 3 alone.
  CHECK_THAT(report("setp.eq.u32 %p7, %lane, 3;\n@%p7 " + kArrive, wait, "1"),
             Catch::Contains("race"));
  // No wait, or one for the parity of the phase before, which ends at once or never.
  CHECK_THAT(report(kArrive, ""), Catch::Contains("race"));
  CHECK_THAT(report(kArrive, wait_parity("bar0", "1", "WAIT")),
             Catch::Contains("race") || Catch::Contains("deadlock"));
  // Relaxed on either side orders nothing.
  CHECK_THAT(report("mbarrier.arrive.relaxed.cta.shared.b64 _, [bar0];\n", wait),
             Catch::Contains("race"));
  CHECK_THAT(
      report(kArrive,
             "WAIT:\nmbarrier.try_wait.parity.relaxed.cta.shared.b64 %p8, [bar0], 0;\n@!%p8 bra "
             "WAIT;\n"),
      Catch::Contains("race"));
  // Written after the arrival.
  CHECK_THAT(report(kArrive + "st.shared.b32 [%r1], %r2;\n", wait), Catch::Contains("race"));
}

TEST_CASE("mbarrier: a producer and a consumer of two stages", "[mbarrier][faults]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Device device;
    device.seed(seed);
    const Outcome outcome = launch(device, pipeline_kernel(kFlip, ""));
    REQUIRE(outcome.report == "");
    for (uint32_t lane = 0; lane < 32; ++lane)
      CHECK(outcome.output[32 + lane] == 45 * 1000 + 10 * (lane ^ 1));
  }
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    // The consumer's parity wrong: it reads before anything is written, or waits in vain.
    CHECK_THAT(fault_of(pipeline_kernel(kFlip, kFlip), seed),
               Catch::Contains("race") || Catch::Contains("deadlock"));
    // The producer's parity wrong: it waits for stages to be emptied that were never filled.
    CHECK_THAT(fault_of(pipeline_kernel("", ""), seed), Catch::Contains("deadlock"));
    // The consumer never says that a stage is empty.
    CHECK_THAT(fault_of(pipeline_kernel(kFlip, "", false), seed), Catch::Contains("deadlock"));
  }
}

TEST_CASE("mbarrier: lanes of one warp wait for one another", "[mbarrier]") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Device device;
    device.seed(seed);
    Kernel kernel;
    kernel.body =
        init("bar0", "16") +
        "mov.u32 %r0, tile;\nmad.lo.u32 %r1, %lane, 4, %r0;\nsetp.lt.u32 %p0, %lane, 16;\n"
        "@%p0 bra PRODUCE;\n" +
        wait_parity("bar0", "0", "WAIT") +
        "ld.shared.b32 %r2, [%r1 + -64];\nst.global.b32 [%own], %r2;\nbra DONE;\n"
        "PRODUCE:\nst.shared.b32 [%r1], %lane;\n" +
        kArrive + "DONE:\n";
    const Outcome outcome = launch(device, kernel);
    REQUIRE(outcome.report == "");
    for (uint32_t lane = 16; lane < 32; ++lane) CHECK(outcome.output[lane] == lane - 16);
  }
}

TEST_CASE("mbarrier: waits that can never end", "[mbarrier][faults]") {
  const std::string wait = wait_parity("bar0", "0", "WAIT");
  CHECK_THAT(report_of(hand_over("", wait), 64), Catch::Contains("deadlock"));
  CHECK_THAT(report_of(hand_over("setp.ne.u32 %p7, %lane, 3;\n@%p7 " + kArrive, wait), 64),
             Catch::Contains("deadlock"));
  CHECK_THAT(report_of(hand_over(kArrive, wait, "33"), 64), Catch::Contains("deadlock"));
  CHECK_THAT(report_of(hand_over("mbarrier.arrive.expect_tx.shared.b64 _, [bar0], 4;\n", wait), 64),
             Catch::Contains("deadlock"));
}

TEST_CASE("mbarrier: counts of arrivals, drops and transactions", "[mbarrier]") {
  Device device;
  const auto start = [](int count) {
    return kOne + "mbarrier.init.shared.b64 [bar0], " + std::to_string(count) +
           ";\nmov.u32 %r30, 0;\n";
  };
  const std::string tested = "mbarrier.test_wait.shared.b64 %p8, [bar0], %d1;\n" + shift_in("%p8");
  const std::string once = "mbarrier.arrive.shared.b64 %d1, [bar0];\n";
  // The state before the arrival is of the phase that it completes.
  CHECK(value_of(device, start(1) + once + tested + kStore) == 1);
  CHECK(value_of(device, start(3) + once + tested + "mbarrier.arrive.shared.b64 _, [bar0], 2;\n" +
                             tested + kStore) == 0b01);
  // Parities: phase 0 is under way, then complete, then phase 1.
  const auto parity = [](const char* p) {
    return std::string("mbarrier.test_wait.parity.shared.b64 %p8, [bar0], ") + p + ";\n" +
           shift_in("%p8");
  };
  CHECK(value_of(device, start(1) + parity("0") + parity("1") + once + parity("0") + parity("1") +
                             once + parity("0") + parity("1") + kStore) == 0b011001);
  // pending_count is that before the arrival.
  const std::string partial =
      "mbarrier.arrive.noComplete.shared.b64 %d2, [bar0], 3;\n"
      "mbarrier.pending_count.b64 %r31, %d2;\n"
      "mad.lo.u32 %r30, %r30, 100, %r31;\n";
  CHECK(value_of(device, start(20) + partial + partial + partial + kStore) == 201714);
  // A drop counts as an arrival and makes all later phases need fewer.
  const std::string drop = "mbarrier.arrive_drop.shared.b64 %d1, [bar0];\n";
  CHECK(value_of(device, start(2) + drop + tested + "mbarrier.arrive.shared.b64 _, [bar0];\n" +
                             tested + once + tested + once + tested + kStore) == 0b0111);
  CHECK(value_of(device, start(4) + "mbarrier.arrive_drop.shared.b64 _, [bar0], 3;\n" + once +
                             tested + once + tested + kStore) == 0b11);
  CHECK(value_of(device, start(5) +
                             "mbarrier.arrive_drop.noComplete.shared.b64 %d2, [bar0], 3;\n"
                             "mbarrier.pending_count.b64 %r30, %d2;\n" +
                             once + tested + once + tested + kStore) == 0b10101);
  // Transactions: the phase waits for arrivals and for them.
  const std::string expect = "mbarrier.arrive.expect_tx.shared.b64 %d1, [bar0], 48;\n";
  const auto complete = [](int bytes) {
    return "mbarrier.complete_tx.shared::cta.b64 [bar0], " + std::to_string(bytes) + ";\n";
  };
  CHECK(value_of(device, start(1) + expect + tested + complete(16) + tested + complete(32) +
                             tested + kStore) == 0b001);
  CHECK(value_of(device, start(1) + complete(48) + expect + tested + kStore) == 1);
  CHECK(value_of(device, start(1) + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar0], 8;\n" +
                             once + tested + complete(8) + tested + kStore) == 0b01);
  // After inval the place may be used for anything, another object too.
  CHECK(value_of(device, start(1) +
                             "mbarrier.inval.shared.b64 [bar0];\nmov.u32 %r30, 77;\n"
                             "st.shared.b32 [bar0], %r30;\nld.shared.b32 %r30, [bar0];\n"
                             "mbarrier.init.shared.b64 [bar0], 2;\n" +
                             kStore) == 77);
}

TEST_CASE("mbarrier: faults of objects and counts", "[mbarrier][faults]") {
  const std::string begin = kOne + "mbarrier.init.shared.b64 [bar0], 2;\n";
  const auto fault = [&](const std::string& body) { return report_of(begin + body); };
  CHECK(fault("") == "");
  CHECK_THAT(fault("mbarrier.init.shared.b64 [bar0], 2;\n"), Catch::Contains("not invalidated"));
  CHECK_THAT(fault("mbarrier.inval.shared.b64 [bar1];\n"), Catch::Contains("no mbarrier object"));
  CHECK_THAT(fault("mbarrier.arrive.shared.b64 _, [bar1];\n"),
             Catch::Contains("no mbarrier object"));
  CHECK_THAT(fault("mbarrier.inval.shared.b64 [bar0];\nmbarrier.arrive.shared.b64 _, [bar0];\n"),
             Catch::Contains("no mbarrier object"));
  CHECK_THAT(fault("mbarrier.test_wait.parity.shared.b64 %p0, [bar1], 0;\n"),
             Catch::Contains("no mbarrier object"));
  CHECK_THAT(fault("mbarrier.arrive.shared.b64 _, [bar0 + 4];\n"),
             Catch::Contains("multiple of 8"));
  CHECK_THAT(fault("mov.u32 %r0, 0x40000;\nmbarrier.arrive.shared.b64 _, [%r0];\n"),
             Catch::Contains("out of bounds"));
  CHECK_THAT(fault("mbarrier.arrive.b64 _, [%in];\n"), Catch::Contains("shared memory"));
  // Plain accesses, of parts too.
  CHECK_THAT(fault("ld.shared.b64 %d1, [bar0];\n"), Catch::Contains("touches the mbarrier object"));
  CHECK_THAT(fault("ld.shared.u8 %r0, [bar0 + 7];\n"),
             Catch::Contains("touches the mbarrier object"));
  CHECK_THAT(fault("st.shared.b32 [bar0 + 4], %thread;\n"),
             Catch::Contains("touches the mbarrier object"));
  CHECK_THAT(fault("atom.shared.add.u32 %r0, [bar0], 1;\n"),
             Catch::Contains("touches the mbarrier object"));
  // Counts.
  CHECK_THAT(report_of(kOne + "mbarrier.init.shared.b64 [bar0], 0;\n"),
             Catch::Contains("count of 0"));
  CHECK_THAT(report_of(kOne + "mbarrier.init.shared.b64 [bar0], 1048576;\n"),
             Catch::Contains("count of 1048576"));
  CHECK_THAT(fault("mbarrier.arrive.shared.b64 _, [bar0], 3;\n"), Catch::Contains("overrun"));
  CHECK_THAT(fault("mbarrier.arrive.shared.b64 _, [bar0], 0;\n"), Catch::Contains("count of 0"));
  CHECK_THAT(fault("mbarrier.arrive.noComplete.shared.b64 %d1, [bar0], 2;\n"),
             Catch::Contains("completes"));
  CHECK_THAT(fault("mbarrier.arrive_drop.shared.b64 _, [bar0], 2;\n"
                   "mbarrier.arrive.shared.b64 _, [bar0];\n"),
             Catch::Contains("overrun"));
  CHECK_THAT(fault("mbarrier.expect_tx.shared::cta.b64 [bar0], 1048575;\n"
                   "mbarrier.expect_tx.shared::cta.b64 [bar0], 1;\n"),
             Catch::Contains("overrun"));
  // States and parities.
  const std::string arrive = "mbarrier.arrive.shared.b64 %d1, [bar0];\n";
  CHECK_THAT(fault("mov.u64 %d1, 5;\n" + kTest), Catch::Contains("not one"));
  CHECK_THAT(fault("mbarrier.init.shared.b64 [bar1], 2;\n"
                   "mbarrier.arrive.shared.b64 %d1, [bar1];\n" +
                   kTest),
             Catch::Contains("not one"));
  CHECK(fault(arrive + "mbarrier.arrive.shared.b64 _, [bar0];\n" + kTest) == "");
  CHECK_THAT(fault(arrive +
                   "mbarrier.arrive.shared.b64 _, [bar0];\n"
                   "mbarrier.arrive.shared.b64 _, [bar0], 2;\n" +
                   kTest),
             Catch::Contains("neither"));
  CHECK_THAT(fault("mbarrier.test_wait.parity.shared.b64 %p0, [bar0], 2;\n"),
             Catch::Contains("parity"));
  CHECK_THAT(fault(arrive + "mbarrier.pending_count.b64 %r0, %d1;\n"),
             Catch::Contains("noComplete"));
  CHECK_THAT(fault(kTest), Catch::Contains("undefined"));
  CHECK_THAT(fault("mbarrier.arrive.shared.b64 _, [bar0], %r0;\n"), Catch::Contains("undefined"));
}

TEST_CASE("mbarrier: threads that use an object must be ordered after its init",
          "[mbarrier][faults]") {
  const std::string make =
      "setp.eq.u32 %p0, %thread, 0;\n@%p0 mbarrier.init.shared.b64 [bar0], 64;\n";
  CHECK(report_of(make + kSync + kArrive, 64) == "");
  for (uint64_t seed = 1; seed <= 10; ++seed)
    CHECK_THAT(report_of(make + kArrive, 64, {0}, seed),
               Catch::Contains("race") || Catch::Contains("no mbarrier object"));
  // Nor may it go while others still use it.
  const std::string end = "@%p0 mbarrier.inval.shared.b64 [bar0];\n";
  CHECK(report_of(make + kSync + kArrive + kSync + end, 64) == "");
  for (uint64_t seed = 1; seed <= 10; ++seed)
    CHECK_THAT(report_of(make + kSync + kArrive + end, 64, {0}, seed),
               Catch::Contains("race") || Catch::Contains("no mbarrier object"));
}

TEST_CASE("mbarrier: what there is not is refused", "[mbarrier]") {
  Device device;
  CHECK(
      loads("mbarrier.init.shared.b64 [bar0], 3;\nmbarrier.arrive.shared.b64 %d0, [bar0];\n"
            "mbarrier.test_wait.parity.shared.b64 %p0, [bar0], 0;",
            "sm_80"));
  for (const char* text : {
           "mbarrier.init.shared.b64 [bar0], 3;",
       }) {
    INFO(text);
    CHECK_FALSE(loads(text, "sm_75"));
  }
  for (const char* text : {
           "mbarrier.try_wait.shared.b64 %p0, [bar0], %d0;",
           "mbarrier.arrive.shared.b64 %d0, [bar0], 2;",
           "mbarrier.arrive.expect_tx.shared.b64 %d0, [bar0], 2;",
           "mbarrier.expect_tx.shared::cta.b64 [bar0], 2;",
       }) {
    INFO(text);
    CHECK(loads(text, "sm_90"));
    CHECK_FALSE(loads(text, "sm_80"));
  }
  for (const char* text :
       {"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0];",
        "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r0], 4;",
        "mbarrier.init.relaxed.cta.shared.b64 [bar0], 3;", "mbarrier.init.shared.b32 [bar0], 3;",
        "mbarrier.init.shared.b64 [bar0];", "mbarrier.arrive.shared.b64 [bar0];",
        "mbarrier.arrive.acquire.cta.shared.b64 _, [bar0];",
        "mbarrier.arrive.release.gpu.shared.b64 _, [bar0];",
        "mbarrier.arrive.release.shared.b64 _, [bar0];",
        "mbarrier.arrive.noComplete.shared.b64 %d0, [bar0];",
        "mbarrier.test_wait.shared.b64 %p0, [bar0], %d0, %r0;",
        "mbarrier.test_wait.shared.b64 %p0, [bar0], %r0;",
        "mbarrier.test_wait.parity.shared.b64 %r0, [bar0], 0;",
        "mbarrier.test_wait.release.cta.shared.b64 %p0, [bar0], %d0;",
        "mbarrier.pending_count.shared.b64 %r0, %d0;",
        "mbarrier.wait.shared.b64 %p0, [bar0], %d0;"}) {
    INFO(text);
    CHECK_FALSE(loads(text));
  }
}

}  // namespace emulator_test::words
