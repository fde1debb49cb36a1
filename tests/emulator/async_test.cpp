// cp.async: what it copies, when it lands, and the faults around that.

#include <catch2/catch.hpp>

#include "tests/emulator/word_kernel.h"

namespace emulator_test::words {
namespace {

// Every thread copies its 16 bytes of `in` to its place in the tile and reads those of its
// neighbour; %r0 is the offset of its own, %r1 of the neighbour's.
const std::string kPlaces =
    "mov.u32 %r2, tile;\nmad.lo.u32 %r0, %thread, 16, %r2;\nxor.b32 %r3, %thread, 1;\n"
    "mad.lo.u32 %r1, %r3, 16, %r2;\nmad.wide.u32 %d0, %thread, 16, %in;\n";
const std::string kCopy = "cp.async.cg.shared.global [%r0], [%d0], 16;\n";
const std::string kCommit = "cp.async.commit_group;\n";
const std::string kWait = "cp.async.wait_group 0;\n";
const std::string kSync = "bar.sync 0;\n";
const std::string kRead = "ld.shared.b32 %r4, [%r1 + 8];\nst.global.b32 [%own], %r4;\n";
const std::string kReadOwn = "ld.shared.b32 %r4, [%r0 + 8];\nst.global.b32 [%own], %r4;\n";

std::string copied(const std::string& text) { return kPlaces + text; }

// Words that one warp's copies leave in a tile that held ones.
std::vector<uint32_t> tile_after(Device& device, const std::string& copy) {
  Kernel kernel;
  kernel.body =
      "mov.u32 %r2, tile;\nmad.lo.u32 %r0, %thread, 16, %r2;\nmov.u32 %r5, 0xffffffff;\n"
      "st.shared.v4.b32 [%r0], {%r5, %r5, %r5, %r5};\n"
      "mad.wide.u32 %d0, %thread, 16, %in;\nmov.u32 %r6, %thread;\nsetp.gt.u32 %p0, %thread, 9;\n"
      "mov.u64 %d1, 0;\n" +
      copy +
      "cp.async.wait_all;\nmad.wide.u32 %d2, %thread, 16, %out;\n"
      "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r0];\n"
      "st.global.v4.b32 [%d2], {%r10, %r11, %r12, %r13};\n";
  const Outcome outcome = launch(device, kernel, counting(128), 128);
  REQUIRE(outcome.report == "");
  return outcome.output;
}

// The same by the rule: the first read(lane) bytes are copied, zeros follow up to `bytes`.
template <class Read>
std::vector<uint32_t> expected(int bytes, Read&& read) {
  std::vector<uint32_t> words(128, ~0u);
  for (int lane = 0; lane < 32; ++lane) {
    auto* to = reinterpret_cast<unsigned char*>(&words[size_t(lane) * 4]);
    const std::vector<uint32_t> from = counting(4, uint32_t(lane) * 4 + 1);
    for (int i = 0; i < bytes; ++i)
      to[i] = i < read(lane) ? reinterpret_cast<const unsigned char*>(from.data())[i] : 0;
  }
  return words;
}

}  // namespace

TEST_CASE("cp.async: sizes, zeros behind the source, hints", "[async]") {
  Device device;
  for (const auto& [form, bytes] :
       std::vector<std::pair<std::string, int>>{{"ca.shared.global", 4},
                                                {"ca.shared.global", 8},
                                                {"ca.shared.global", 16},
                                                {"cg.shared.global", 16},
                                                {"cg.shared::cta.global.L2::128B", 16},
                                                {"ca.shared.global.L2::64B", 4}}) {
    INFO(form << " " << bytes);
    const std::string start = "cp.async." + form + " [%r0], [%d0], " + std::to_string(bytes);
    const auto all = [bytes = bytes](int) { return bytes; };
    CHECK(tile_after(device, start + ";\n") == expected(bytes, all));
    // A size for each lane: min(lane, bytes).
    const std::string sizes =
        "min.u32 %r6, %r6, " + std::to_string(bytes) + ";\n" + start + ", %r6;\n";
    CHECK(tile_after(device, sizes) ==
          expected(bytes, [bytes = bytes](int lane) { return std::min(lane, bytes); }));
    CHECK(tile_after(device, start + ", 3;\n") == expected(bytes, [](int) { return 3; }));
    CHECK(tile_after(device, start + ", %p0;\n") ==
          expected(bytes, [bytes = bytes](int lane) { return lane > 9 ? 0 : bytes; }));
    CHECK(tile_after(device, start + ", !%p0;\n") ==
          expected(bytes, [bytes = bytes](int lane) { return lane > 9 ? bytes : 0; }));
  }
  const auto all = [](int) { return 16; };
  const std::string hinted = "cp.async.cg.shared.global.L2::cache_hint";
  CHECK(tile_after(device, hinted + " [%r0], [%d0], 16, %d1;\n") == expected(16, all));
  CHECK(tile_after(device, hinted + ".L2::256B [%r0], [%d0], 16, 5, %d1;\n") ==
        expected(16, [](int) { return 5; }));
  // Guarded: lanes that do not execute it copy nothing.
  CHECK(tile_after(device, "@!%p0 " + kCopy) == [&] {
    std::vector<uint32_t> words = expected(16, all);
    std::fill(words.begin() + 40, words.end(), ~0u);
    return words;
  }());
}

TEST_CASE("cp.async: a source that is not read need not exist", "[async][faults]") {
  const std::string wild = "mov.u64 %d0, 16;\n";
  CHECK(report_of(copied(wild + "cp.async.cg.shared.global [%r0], [%d0], 16, 0;\n" + kCommit +
                         kWait)) == "");
  CHECK_THAT(report_of(copied(wild + kCopy)), Catch::Contains("out of bounds"));
  CHECK(report_of(copied("cp.async.cg.shared.global [%r0], [%d9], 16, 0;\n")) == "");
  CHECK_THAT(report_of(copied("cp.async.cg.shared.global [%r0], [%d9], 16;\n")),
             Catch::Contains("undefined"));
  // The last 4 bytes of `in`, then zeros; and the same as 8 bytes.
  const std::string last = "add.u64 %d0, %in, 120;\nsetp.eq.u32 %p0, %thread, 0;\n";
  const auto input = counting(31);
  CHECK(report_of(copied(last + "@%p0 cp.async.ca.shared.global [%r0], [%d0], 8, 4;\n"), 32,
                  input) == "");
  CHECK_THAT(
      report_of(copied(last + "@%p0 cp.async.ca.shared.global [%r0], [%d0], 8, 5;\n"), 32, input),
      Catch::Contains("out of bounds"));
}

TEST_CASE("cp.async: operands are checked", "[async][faults]") {
  const std::string sized = "cp.async.cg.shared.global [%r0], [%d0], 16, %r6;\n";
  const auto input = counting(128);
  CHECK_THAT(report_of(copied("mov.u32 %r6, 17;\n" + sized), 32, input),
             Catch::Contains("source size 17"));
  CHECK_THAT(report_of(copied(sized), 32, input), Catch::Contains("undefined"));
  CHECK_THAT(report_of(copied("cp.async.cg.shared.global [%r0], [%d0], 16, %p5;\n"), 32, input),
             Catch::Contains("undefined"));
  CHECK_THAT(report_of(copied("cp.async.cg.shared.global [%r0 + 8], [%d0], 16;\n"), 32, input),
             Catch::Contains("multiple of 16"));
  CHECK_THAT(report_of(copied("cp.async.cg.shared.global [%r0], [%d0 + 4], 16;\n"), 32, input),
             Catch::Contains("multiple of 16"));
  CHECK_THAT(report_of(copied("cp.async.cg.shared.global [%r0 + 8192], [%d0], 16;\n"), 32, input),
             Catch::Contains("out of bounds"));
}

TEST_CASE("cp.async: data are there after the wait and a barrier", "[async]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Device device;
    device.seed(seed);
    Kernel kernel;
    kernel.threads = 128;
    kernel.body = copied(kCopy + kCommit + kWait + kSync + kRead);
    const Outcome outcome = launch(device, kernel, counting(512), 128);
    REQUIRE(outcome.report == "");
    for (uint32_t thread = 0; thread < 128; ++thread)
      CHECK(outcome.output[thread] == (thread ^ 1) * 4 + 3);
  }
}

TEST_CASE("cp.async: reading too early is a race", "[async][faults]") {
  const auto input = counting(512);
  const auto report = [&](const std::string& text) { return report_of(copied(text), 128, input); };
  CHECK(report(kCopy + kCommit + kWait + kSync + kRead) == "");
  CHECK(report(kCopy + "cp.async.wait_all;\n" + kSync + kRead) == "");
  CHECK(report(kCopy + kCommit + kWait + kReadOwn) == "");
  // Never waited for, with and without a barrier, by others and by oneself.
  CHECK_THAT(report(kCopy + kCommit + kSync + kRead), Catch::Contains("race"));
  CHECK_THAT(report(kCopy + kCommit + kReadOwn), Catch::Contains("race"));
  CHECK_THAT(report(kCopy + kReadOwn), Catch::Contains("race"));
  // Not committed, so that the wait is not for it; waited for, but without a barrier.
  CHECK_THAT(report(kCopy + kWait + kSync + kRead), Catch::Contains("race"));
  CHECK_THAT(report(kCopy + kCommit + kWait + kRead), Catch::Contains("race"));
  // The barrier before the wait.
  CHECK_THAT(report(kCopy + kCommit + kSync + kWait + kRead), Catch::Contains("race"));
  // Only half of the threads wait.
  CHECK_THAT(report("and.b32 %r7, %thread, 1;\nsetp.eq.u32 %p0, %r7, 0;\n" + kCopy + kCommit +
                    "@%p0 cp.async.wait_group 0;\n" + kSync + kRead),
             Catch::Contains("race"));
  // Each half waits for its own.
  CHECK(report("and.b32 %r7, %thread, 1;\nsetp.eq.u32 %p0, %r7, 0;\n" + kCopy + kCommit +
               "@%p0 cp.async.wait_group 0;\n@!%p0 cp.async.wait_all;\n" + kSync + kRead) == "");
  // Written while under way, by a store and by a second copy.
  CHECK_THAT(report(kCopy + kCommit + "st.shared.b32 [%r0], %thread;\n"), Catch::Contains("race"));
  CHECK_THAT(report(kCopy + kCopy), Catch::Contains("race"));
  // Copied over while a neighbour still reads.
  CHECK_THAT(
      report("st.shared.b32 [%r0 + 8], %thread;\n" + kSync + kRead + kCopy + kCommit + kWait),
      Catch::Contains("race"));
  // The source changes before the wait, by another thread after a barrier, and after the wait.
  const std::string change =
      "xor.b32 %r8, %thread, 1;\nmad.wide.u32 %d1, %r8, 16, %in;\n"
      "st.global.b32 [%d1], %thread;\n";
  CHECK_THAT(report(kCopy + kCommit + kSync + change + kWait), Catch::Contains("race"));
  CHECK(report(kCopy + kCommit + kWait + kSync + change) == "");
}

TEST_CASE("cp.async: copies read their source as late as they land", "[async]") {
  Device device;
  Kernel kernel;
  kernel.body = copied(kCopy + kCommit + "st.global.b32 [%d0 + 8], %thread;\n" + kWait + kReadOwn);
  const Outcome outcome = launch(device, kernel, counting(128));
  REQUIRE(outcome.report == "");
  for (uint32_t thread = 0; thread < 32; ++thread) CHECK(outcome.output[thread] == thread);
}

TEST_CASE("cp.async: wait_group leaves the newest groups under way", "[async][faults]") {
  // Four groups of one copy each; group g goes to 2048 g.
  std::string issue;
  for (int g = 0; g < 4; ++g)
    issue += "cp.async.cg.shared.global [%r0 + " + std::to_string(2048 * g) + "], [%d0 + " +
             std::to_string(16 * g) + "], 16;\n" + kCommit;
  const auto input = counting(512 + 16);
  for (int left = 0; left <= 4; ++left)
    for (int group = 0; group < 4; ++group) {
      INFO("wait_group " << left << ", read group " << group);
      const std::string report =
          report_of(copied(issue + "cp.async.wait_group " + std::to_string(left) +
                           ";\nld.shared.b32 %r4, [%r0 + " + std::to_string(2048 * group) + "];\n"),
                    128, input);
      if (group < 4 - left)
        CHECK(report == "");
      else
        CHECK_THAT(report, Catch::Contains("race"));
    }
}

namespace {

// A pipeline of two stages over eight tiles: out[t] = sum over tiles of a neighbour's word. `left`
// groups may be under way at the wait; `guard` stands between reading a stage and filling it again.
std::string pipeline(int left, const std::string& guard) {
  const std::string copy =
      "and.b32 %r10, %r9, 1;\nmad.lo.u32 %r11, %r10, 2048, %r0;\n"
      "mad.wide.u32 %d1, %r9, 2048, %d0;\ncp.async.cg.shared.global [%r11], [%d1], 16;\n";
  return kPlaces + "mov.u32 %r9, 0;\nmov.u32 %r20, 0;\nmov.u32 %r21, 0;\n" + copy + kCommit +
         "LOOP:\nadd.u32 %r9, %r20, 1;\nsetp.lt.u32 %p0, %r9, 8;\n@!%p0 bra LAST;\n" + copy +
         "LAST:\n" + kCommit + "cp.async.wait_group " + std::to_string(left) + ";\n" + kSync +
         "and.b32 %r12, %r20, 1;\nmad.lo.u32 %r13, %r12, 2048, %r1;\nld.shared.b32 %r14, [%r13];\n"
         "add.u32 %r21, %r21, %r14;\n" +
         guard +
         "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p1, %r20, 8;\n@%p1 bra LOOP;\n"
         "st.global.b32 [%own], %r21;\n";
}

}  // namespace

TEST_CASE("cp.async: double buffering is clean under every interleaving", "[async]") {
  const auto input = counting(8 * 512);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Device device;
    device.seed(seed);
    Kernel kernel;
    kernel.threads = 128;
    kernel.body = pipeline(1, kSync);
    const Outcome outcome = launch(device, kernel, input, 128);
    REQUIRE(outcome.report == "");
    for (uint32_t thread = 0; thread < 128; ++thread) {
      uint32_t sum = 0;
      for (uint32_t tile = 0; tile < 8; ++tile) sum += tile * 512 + (thread ^ 1) * 4 + 1;
      CHECK(outcome.output[thread] == sum);
    }
    CHECK_THAT(report_of(pipeline(2, kSync), 128, input, seed), Catch::Contains("race"));
    CHECK_THAT(report_of(pipeline(1, ""), 128, input, seed), Catch::Contains("race"));
  }
}

TEST_CASE("cp.async: an mbarrier object waits for the copies of its phase", "[async][mbarrier]") {
  // Warp 0 copies and does not wait; warp 1 waits for the object and reads.
  const auto body = [](const std::string& arrive, int count, const std::string& wait) {
    return kPlaces + "setp.eq.u32 %p0, %thread, 0;\n@%p0 mbarrier.init.shared.b64 [bar0], " +
           std::to_string(count) + ";\n" + kSync +
           "setp.eq.u32 %p1, %warp, 0;\n@!%p1 bra CONSUME;\n" + kCopy + arrive +
           "ret;\nCONSUME:\nmov.u32 %r2, tile;\nmad.lo.u32 %r1, %lane, 16, %r2;\n" + wait + kRead;
  };
  const std::string noinc = "cp.async.mbarrier.arrive.noinc.shared.b64 [bar0];\n";
  const std::string inc =
      "cp.async.mbarrier.arrive.shared::cta.b64 [bar0];\n"
      "mbarrier.arrive.shared.b64 _, [bar0];\n";
  const std::string wait =
      "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar0], 0;\n@!%p2 bra WAIT;\n";
  const auto input = counting(256);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const std::string& arrive : {noinc, inc}) {
      Device device;
      device.seed(seed);
      Kernel kernel;
      kernel.threads = 64;
      kernel.body = body(arrive, 32, wait);
      const Outcome outcome = launch(device, kernel, input, 64);
      REQUIRE(outcome.report == "");
      for (uint32_t lane = 0; lane < 32; ++lane) CHECK(outcome.output[32 + lane] == lane * 4 + 3);
    }
    CHECK_THAT(report_of(body(noinc, 32, ""), 64, input, seed),
               Catch::Contains("race") || Catch::Contains("undefined"));
  }
  // Arrivals of the program alone complete the phase: nothing waits for the copies then.
  CHECK_THAT(report_of(body("mbarrier.arrive.shared.b64 _, [bar0];\n", 32, wait), 64, input),
             Catch::Contains("race"));
  // Counts that are not right: one too many is never reached, one too few does not wait for all.
  CHECK_THAT(report_of(body(noinc, 33, wait), 64, input), Catch::Contains("deadlock"));
  CHECK_THAT(report_of(body(noinc, 31, wait), 64, input), Catch::Contains("race"));
  // A wait for the groups triggers the arrival as well.
  CHECK(report_of(body(noinc + kCommit + kWait, 32, wait), 64, input) == "");
}

TEST_CASE("cp.async: counts", "[async][counts]") {
  Device device;
  Kernel kernel;
  kernel.body =
      "mov.u32 %r2, tile;\nmad.lo.u32 %r0, %thread, 16, %r2;\n"
      "mad.wide.u32 %d0, %thread, 16, %in;\nmad.lo.u32 %r1, %thread, 128, %r2;\n"
      "mov.u32 %r3, 8;\n" +
      kCopy +
      "cp.async.cg.shared.global [%r1 + 1024], [%d0], 16, %r3;\n"
      "setp.lt.u32 %p0, %thread, 8;\n"
      "@%p0 cp.async.ca.shared.global [%r0 + 512], [%d0], 4;\n";
  REQUIRE(launch(device, kernel, counting(128), 1).report == "");
  const nlohmann::json counts = device.statistics()["launches"][0];
  INFO(counts.dump(1));
  CHECK(counts["shared"]["async"]["lanes_by_bytes"]["16"] == 64);
  CHECK(counts["shared"]["async"]["lanes_by_bytes"]["4"] == 8);
  CHECK(counts["shared"]["async"]["ideal"] == 4 + 4 + 1);
  CHECK(counts["shared"]["async"]["wavefronts"] == 4 + 4 * 8 + 1);
  CHECK(counts["global"]["load"]["bytes"] == 512 + 256 + 32);
  CHECK(counts["global"]["load"]["sectors"] == 16 + 16 + 4);
  CHECK(counts["warp_instructions"]["by_class"]["async_copy"] == 3);
}

TEST_CASE("cp.async: what there is not is refused", "[async]") {
  Device device;
  CHECK(loads(kPlaces + kCopy + kCommit + kWait, "sm_80"));
  CHECK_FALSE(loads(kPlaces + kCopy, "sm_75"));
  for (const char* text :
       {"cp.async.cg.shared.global [%r0], [%d0], 8;",
        "cp.async.ca.shared.global [%r0], [%d0], 2;",
        "cp.async.ca.shared.global [%r0], [%d0], %r1;",
        "cp.async.ca.shared.global [%r0], [%d0];",
        "cp.async.shared.global [%r0], [%d0], 4;",
        "cp.async.ca.global.shared [%d0], [%r0], 4;",
        "cp.async.ca.shared.global.L2::32B [%r0], [%d0], 4;",
        "cp.async.ca.shared.global.L2::cache_hint [%r0], [%d0], 4;",
        "cp.async.ca.shared.global [%r0], [%d0], 4, %r1, %d1;",
        "cp.async.ca.shared.global [%r0], [%d0], 4, %d1;",
        "cp.async.wait_group;",
        "cp.async.wait_group %r0;",
        "cp.async.wait_group -1;",
        "cp.async.wait_all 0;",
        "cp.async.commit_group 1;",
        "cp.async.mbarrier.arrive.shared::cluster.b64 [%r0];",
        "cp.async.mbarrier.arrive.shared.b32 [%r0];",
        "cp.async.bulk.commit_group;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d0], 16, "
        "[%r1];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r0], 16;"}) {
    INFO(text);
    CHECK_FALSE(loads(text));
  }
}

}  // namespace emulator_test::words
