// Kernels in plain CUDA C++, compiled by NVRTC for every part, against values of the host.

#include <catch2/catch.hpp>

#include "tests/emulator/experiment.h"

namespace emulator_test {
namespace {

void check(const Experiment& one, const Architecture& part, int size, uint64_t seed) {
  INFO(one.name << " on " << part.name << ", size " << size << ", seed " << seed);
  const Outcome outcome = perform(one, part, size, seed);
  INFO(outcome.what());
  CHECK_FALSE(outcome.reported);
  CHECK_FALSE(outcome.wrong);
}

// Every size under five seeds on one part, under one seed on the others.
void check_all(const std::string& name) {
  if (!has_nvrtc()) {
    WARN("no NVRTC here: nothing was tested");
    return;
  }
  const Experiment& one = experiment(name);
  for (const Architecture& part : architectures()) {
    if (part.number() < one.from) continue;
    const int seeds = part.number() == 90 ? 5 : 1;
    for (int size : one.sizes) {
      for (int seed = 1; seed <= seeds; ++seed) check(one, part, size, uint64_t(seed));
    }
  }
}

}  // namespace

TEST_CASE("Kernels: reduction by shuffles, shared memory and a ticket", "[kernels]") {
  check_all("reduction");
  check_all("warp reduction");
}

TEST_CASE("Kernels: scan across blocks with decoupled look-back", "[kernels]") {
  check_all("scan");
}

TEST_CASE("Kernels: transposition through a swizzled tile", "[kernels]") { check_all("transpose"); }

TEST_CASE("Kernels: histogram and atomics", "[kernels]") {
  check_all("histogram");
  check_all("atomics");
}

TEST_CASE("Kernels: tiled product with mma, ldmatrix and cp.async", "[kernels]") {
  check_all("product f16");
  check_all("product bf16");
}

TEST_CASE("Kernels: packed half precision", "[kernels]") {
  check_all("packed f16");
  check_all("packed bf16");
}

TEST_CASE("Kernels: functions of the mathematical library", "[kernels]") {
  check_all("maths double");
  check_all("maths float");
}

TEST_CASE("Kernels: divergent walks over a tree, recursion, votes", "[kernels]") {
  check_all("search");
  check_all("recursion");
  check_all("votes");
}

TEST_CASE("Kernels: device functions, switches, pointers to functions", "[kernels]") {
  check_all("calls");
  check_all("jump table");
}

TEST_CASE("Kernels: local arrays, constant memory, structures, dynamic shared memory",
          "[kernels]") {
  check_all("spaces");
  check_all("dynamic shared");
}

TEST_CASE("Kernels: producer and consumers with mbarriers", "[kernels]") { check_all("pipeline"); }

TEST_CASE("Kernels: blocks and halves of a warp that wait for each other", "[kernels]") {
  check_all("grid barrier");
  check_all("message");
  check_all("halves of a warp");
}

TEST_CASE("Kernels: no report on any part under twenty seeds", "[kernels][slow]") {
  if (!has_nvrtc()) return;
  for (const Experiment& one : experiments()) {
    for (const Architecture& part : architectures()) {
      if (part.number() < one.from) continue;
      for (uint64_t seed = 1; seed <= 20; ++seed) check(one, part, one.fault_size, seed);
    }
  }
}

TEST_CASE("Kernels: more shared memory than the function opted in for", "[kernels]") {
  if (!has_nvrtc()) return;
  const std::string ptx = compile(source_file("tests/emulator/kernels/spaces.cu"), "sm_75");
  Device device(7, 5);
  const CUfunction function = device.load(ptx, "reversed");
  const Buffer in = Buffer::of(std::vector<int>(15000)), out(60000);
  CHECK(device.launch(function, {1}, {64}, 60000, in.address(), out.address(), 15000) ==
        CUDA_ERROR_INVALID_VALUE);
  device.allow_shared(function, 60000);
  CHECK(device.launch(function, {1}, {64}, 60000, in.address(), out.address(), 15000) ==
        CUDA_SUCCESS);
}

}  // namespace emulator_test
