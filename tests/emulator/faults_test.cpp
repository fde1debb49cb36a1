// Planted faults: each is caught by a report or by wrong numbers, under every seed. A table says by
// which; what the kernels say without a fault is in kernels_test.cpp and worked_test.cpp.

#include "tests/emulator/faults.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <map>
#include <sstream>

namespace emulator_test {
namespace {

// The kind of a report is what stands before its first colon.
std::string kind_of(const Outcome& outcome) {
  if (outcome.reported) return outcome.report.substr(0, outcome.report.find(':'));
  return outcome.wrong ? "numbers" : "nothing";
}

bool is_one_of(const std::string& kind, const std::string& kinds) {
  std::istringstream all(kinds);
  for (std::string one; std::getline(all, one, '|');) {
    if (one == kind) return true;
  }
  return false;
}

struct Caught {
  std::map<std::string, int> kinds;  // and under how many seeds
  double least_error = INFINITY;
  std::string text(const Fault& fault, const Experiment& one) const {
    std::ostringstream out;
    for (const auto& [kind, count] : kinds) {
      out << (out.str().empty() ? "" : ", ") << kind << " (" << count << ")";
    }
    if (kinds.count("numbers")) out << ", error " << least_error << " > " << one.tolerance;
    char line[300];
    std::snprintf(line, sizeof line, "%-46s %-17s %s", fault.what.c_str(), fault.experiment.c_str(),
                  out.str().c_str());
    return line;
  }
};

Caught caught(const Fault& fault, int seeds) {
  const Experiment& one = experiment(fault.experiment);
  const Architecture& part = architecture(fault.part);
  Caught all;
  for (int seed = 1; seed <= seeds; ++seed) {
    INFO(fault.what << " in " << fault.experiment << ", seed " << seed);
    const Outcome outcome = perform(one, part, one.fault_size, uint64_t(seed), fault.edits);
    INFO(outcome.what());
    const std::string kind = kind_of(outcome);
    CHECK(is_one_of(kind, fault.caught_by));
    if (kind == "numbers") all.least_error = std::min(all.least_error, outcome.error);
    ++all.kinds[kind];
  }
  return all;
}

// One in `every` of the faults, or all of them.
void check_faults(const std::vector<Fault>& faults, int every, int seeds) {
  if (!has_nvrtc()) {
    WARN("no NVRTC here: nothing was tested");
    return;
  }
  std::printf("%-46s %-17s %s\n", "fault", "kernel", "caught by (under how many seeds)");
  for (size_t i = 0; i < faults.size(); i += every) {
    const Caught found = caught(faults[i], seeds);
    std::printf("%s\n", found.text(faults[i], experiment(faults[i].experiment)).c_str());
  }
}

}  // namespace

TEST_CASE("Faults planted in kernels are caught", "[faults]") {
  check_faults(kernel_faults(), 1, 3);
}

TEST_CASE("Faults planted in the worked kernels are caught", "[faults]") {
  check_faults(worked_faults(), 2, 2);
}

TEST_CASE("All faults under ten seeds", "[faults][slow]") {
  check_faults(kernel_faults(), 1, 10);
  check_faults(worked_faults(), 1, 5);
}

TEST_CASE("Faults: memory that was freed, at its place and by its thread", "[faults]") {
  if (!has_nvrtc()) return;
  const std::string ptx =
      compile(source_file("tests/emulator/kernels/transpose.cu"), "sm_90a", {"-lineinfo"});
  Device device;
  const CUfunction function = device.load(ptx, "transpose");
  const Buffer in = Buffer::of(std::vector<float>(100));
  CUdeviceptr freed = 0;
  {
    const Buffer out(400);
    freed = out.address();
  }
  CHECK(device.launch(function, {1}, {32, 8}, 0, in.address(), freed, 10, 10) ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string report = device.report();
  INFO(report);
  CHECK(report.find("freed memory: ") == 0);
  CHECK(report.find("kernel transpose, block (0, 0, 0), thread (") != std::string::npos);
  CHECK(report.find("kernel.cu:14") != std::string::npos);
  CHECK(report.find("4 bytes of global memory at 0x") != std::string::npos);
}

}  // namespace emulator_test
