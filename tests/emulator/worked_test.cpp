// The worked kernels of tests/kernels as NVRTC compiles them: their numbers against float64, their
// counts against the lane-by-lane emulation that they come with, and the bytes that they move.

#include "tests/emulator/worked.h"

#include <catch2/catch.hpp>
#include <set>

#include "tests/emulator/lane_harness.h"

namespace emulator_test {
namespace {

// A run of one of the kernels on a fresh device.
struct Bench {
  Bench(const char* part, const Sources& sources, int tokens, uint64_t seed = 1)
      : part(architecture(part)),
        ptx(compiled(sources)),
        device(this->part.major, this->part.minor),
        run{device, this->part, ptx, random, tokens} {
    device.seed(seed);
  }
  std::string compiled(const Sources& sources) const {
    return compile(sources.front().text, part.name, worked_options(),
                   {sources.begin() + 1, sources.end()});
  }

  const Architecture& part;
  std::string ptx;
  Device device;
  std::mt19937 random;
  Run run;
};

struct ForwardRun {
  const char* part;
  ForwardConfiguration configuration;
};

const ForwardConfiguration kPlain{64, 64, 128, 4, 2, 1, 2, 0}, kSaving{64, 64, 128, 4, 2, 1, 2, 2},
    kTwoHeads{64, 64, 128, 8, 2, 2, 1, 0}, kLongChunk{128, 64, 128, 8, 2, 1, 2, 0};

// What fits the part's shared memory.
const ForwardRun kForwardRuns[] = {
    {"sm_80", kPlain},   {"sm_80", kSaving},     {"sm_80", kTwoHeads},
    {"sm_90a", kPlain},  {"sm_90a", kSaving},    {"sm_90a", kTwoHeads},
    {"sm_120a", kPlain}, {"sm_90a", kLongChunk}, {"sm_120a", kSaving}};

struct BackwardRun {
  const char* part;
  const char* reverse;
  const char* type;
  int p, n;
};
const BackwardRun kBackwardRuns[] = {
    {"sm_80", "BwdU<64,64,128,4,2,2>", "BwdA<64,64,128,8,1,false,false,2>", 64, 128},
    {"sm_90a", "BwdU<64,64,128,4,2,2>", "BwdA<64,64,128,8,2,false,false,2>", 64, 128},
    {"sm_90a", "BwdU<64,64,64,4,2,2>", "BwdA<64,64,64,8,2,false,false,2>", 64, 64},
    {"sm_120a", "BwdU<64,32,128,4,2,2>", "BwdA<64,32,128,8,1,true,true,2>", 32, 128}};

struct SerialRun {
  const char* part;
  const char* type;
  int p;
};
const SerialRun kSerialRuns[] = {{"sm_80", "BwdC<64,64,128,8,1>", 64},
                                 {"sm_90a", "BwdC<64,64,128,8,1>", 64},
                                 {"sm_120a", "BwdC<64,32,128,8,1>", 32}};

Sources reverse_sources(const BackwardRun& one) {
  return backward_sources({"bwd.cu", one.reverse, 64, one.p, one.n, 4, 2});
}

BackwardConfiguration all_heads(const BackwardRun& one) {
  return {"bwd.cu", one.type, 64, one.p, one.n, 8, 2};
}

BackwardConfiguration serial(const SerialRun& one) {
  return {"bwdc.cu", one.type, 64, one.p, 128, 8, 1};
}

// Fails with the report where a launch does.
template <class F>
auto without_report(F run) -> decltype(run()) {
  try {
    return run();
  } catch (const Faulted& fault) {
    FAIL(fault.report);
    throw;
  }
}

nlohmann::json launch_of(const Bench& bench, size_t index) {
  return bench.device.statistics().at("launches").at(index);
}

void check_gradients(const BackwardErrors& errors) {
  CHECK(errors.dx < 4e-3);
  CHECK(errors.db < 4e-3);
  CHECK(errors.dc < 4e-3);
  CHECK(errors.ddt < 4e-3);
  CHECK(errors.d_start < 4e-3);
  CHECK(errors.dd < 1e-6);
  CHECK(errors.dbias < 2e-2);
}

uint64_t lanes(const nlohmann::json& shared, const char* kind, const char* bytes) {
  return shared.at(kind).at("lanes_by_bytes").value(bytes, uint64_t{0});
}

// Equal to the last one: mma, ldmatrix, their wavefronts, those of plain accesses, barriers.
void check_counts(const nlohmann::json& launch, const LaneCounts& wanted) {
  INFO(wanted.printed);
  uint64_t mma = 0;
  for (const auto& [shape, count] : launch.at("mma").at("by_shape").items()) {
    CHECK(shape == "m16n8k16.f32.bf16.bf16.f32");
    mma += count.get<uint64_t>();
  }
  CHECK(mma == uint64_t(wanted.mma));
  CHECK(launch.at("mma").at("flops") == uint64_t(wanted.mma) * 2 * 16 * 8 * 16);
  const nlohmann::json& shared = launch.at("shared");
  CHECK(shared.at("ldmatrix").at("instructions") == uint64_t(wanted.ldmatrix));
  CHECK(shared.at("ldmatrix").at("wavefronts") == uint64_t(wanted.ldmatrix_wavefronts));
  // The weights of emu.h: it takes two floats in one load for one access.
  const uint64_t weighted = lanes(shared, "load", "4") + lanes(shared, "load", "8") +
                            4 * lanes(shared, "load", "16") + lanes(shared, "store", "4") +
                            2 * lanes(shared, "store", "8") + 4 * lanes(shared, "store", "16") +
                            4 * lanes(shared, "async", "16");
  CHECK(weighted == uint64_t(wanted.shared_lanes));
  CHECK(launch.at("barriers") == uint64_t(wanted.barriers));
}

// Sectors of 32 bytes that ranges of one allocation touch.
class Sectors {
 public:
  void add(uint64_t first, uint64_t bytes) {
    for (uint64_t sector = first / 32; sector < (first + bytes + 31) / 32; ++sector) {
      touched_.insert(sector);
    }
  }
  uint64_t count() const { return touched_.size(); }

 private:
  std::set<uint64_t> touched_;
};

uint64_t whole(uint64_t bytes) { return (bytes + 31) / 32; }

// The least that the forward pass can move, and what it saves.
void check_moved_bytes(const nlohmann::json& launch, const ForwardConfiguration& k, int tokens) {
  const WorkedShape s{tokens, k.p, k.n};
  // In: x, B and C of every token, whose rows are apart; dt; a value a head of A, dt_bias and D;
  // the state at the start. Out: y and the state at the end, and the states that are saved.
  Sectors rows;
  for (uint64_t token = 0; token < uint64_t(s.batch) * s.tokens; ++token) {
    rows.add(token * s.stride * 2, 2 * (s.heads * s.p + 2 * s.groups * s.n));
  }
  const uint64_t read = rows.count() + whole(uint64_t(s.batch) * s.tokens * s.heads * 4) +
                        3 * whole(s.heads * 4) + whole(s.states() * 4);
  const int every = k.q * k.save;
  const uint64_t saves = every ? (tokens + every - 1) / every : 0;
  const uint64_t written =
      whole(s.values() * 2) + whole(s.states() * 4) + saves * whole(s.states() * 2);
  const nlohmann::json& sectors = launch.at("global").at("distinct_sectors");
  CHECK(sectors.at("read") == read);
  CHECK(sectors.at("written") == written);
  CHECK(sectors.at("any") == read + written);
}

// Numbers, and under the first seed counts and bytes.
void check_forward(const ForwardRun& one, int tokens, uint64_t seed = 1) {
  INFO("FwdK<" << one.configuration.text() << "> on " << one.part << ", T " << tokens << ", seed "
               << seed);
  Bench bench(one.part, forward_sources(one.configuration), tokens, seed);
  const ForwardErrors errors =
      without_report([&] { return run_forward(bench.run, one.configuration); });
  CHECK(errors.y < 3e-3);
  CHECK(errors.end < 3e-3);
  CHECK(errors.saved < 3e-3);
  if (seed != 1) return;
  check_counts(launch_of(bench, 0), forward_lanes(one.configuration.text(), tokens));
  check_moved_bytes(launch_of(bench, 0), one.configuration, tokens);
}

void check_backward(const BackwardRun& one, int tokens, uint64_t seed = 1) {
  INFO(one.type << " on " << one.part << ", T " << tokens << ", seed " << seed);
  Bench bench(one.part, backward_sources(all_heads(one)), tokens, seed);
  const std::string reverse = bench.compiled(reverse_sources(one));
  check_gradients(without_report([&] { return run_backward(bench.run, reverse, all_heads(one)); }));
  if (seed != 1) return;
  check_counts(launch_of(bench, 0), backward_lanes(one.reverse, tokens));
  check_counts(launch_of(bench, 1), backward_lanes(one.type, tokens));
}

void check_serial(const SerialRun& one, int tokens, uint64_t seed = 1) {
  INFO(one.type << " on " << one.part << ", T " << tokens << ", seed " << seed);
  Bench bench(one.part, backward_sources(serial(one)), tokens, seed);
  check_gradients(without_report([&] { return run_backward_serial(bench.run, serial(one)); }));
  if (seed == 1) check_counts(launch_of(bench, 0), backward_lanes(one.type, tokens));
}

bool nothing_to_compile_with() {
  if (has_nvrtc()) return false;
  WARN("no NVRTC here: nothing was tested");
  return true;
}

}  // namespace

TEST_CASE("Worked kernels: forward, numbers, counts and bytes", "[worked]") {
  if (nothing_to_compile_with()) return;
  check_forward({"sm_80", kTwoHeads}, 200);
  check_forward({"sm_90a", kSaving}, 200);
  check_forward({"sm_90a", kLongChunk}, 137);
  check_forward({"sm_120a", kSaving}, 128);
}

TEST_CASE("Worked kernels: backward, numbers and counts", "[worked]") {
  if (nothing_to_compile_with()) return;
  for (const BackwardRun& one : kBackwardRuns) check_backward(one, 136);
}

TEST_CASE("Worked kernels: serial backward, numbers and counts", "[worked]") {
  if (nothing_to_compile_with()) return;
  for (const SerialRun& one : kSerialRuns) check_serial(one, 136);
}

TEST_CASE("Worked kernels: twenty interleavings of short sequences", "[worked]") {
  if (nothing_to_compile_with()) return;
  for (uint64_t seed = 2; seed <= 21; ++seed) {
    check_forward({"sm_90a", kSaving}, 72, seed);
    check_serial(kSerialRuns[2], 72, seed);
  }
}

TEST_CASE("Worked kernels: twenty interleavings on every part", "[worked][slow]") {
  if (nothing_to_compile_with()) return;
  for (uint64_t seed = 2; seed <= 21; ++seed) {
    for (const ForwardRun& one : kForwardRuns) check_forward(one, 72, seed);
    for (const BackwardRun& one : kBackwardRuns) check_backward(one, 72, seed);
    for (const SerialRun& one : kSerialRuns) check_serial(one, 72, seed);
  }
}

TEST_CASE("Worked kernels: every configuration at lengths around those of a chunk",
          "[worked][slow]") {
  if (nothing_to_compile_with()) return;
  for (int tokens : {1, 63, 65, 192, 200}) {
    for (const ForwardRun& one : kForwardRuns) check_forward(one, tokens);
    for (const BackwardRun& one : kBackwardRuns) check_backward(one, tokens);
    for (const SerialRun& one : kSerialRuns) check_serial(one, tokens);
  }
}

}  // namespace emulator_test
