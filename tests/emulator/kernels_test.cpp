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

// Every size under five seeds on one part, under one seed on the others; or all under twenty.
void check_all(const std::string& name, bool thorough) {
  if (!has_nvrtc()) {
    WARN("no NVRTC here: nothing was tested");
    return;
  }
  const Experiment& one = experiment(name);
  for (const Architecture& part : architectures()) {
    if (part.number() < one.from) continue;
    const int seeds = thorough ? 20 : part.number() == 90 ? 5 : 1;
    for (int size : one.sizes) {
      for (int seed = 1; seed <= seeds; ++seed) check(one, part, size, uint64_t(seed));
    }
  }
}

}  // namespace

TEST_CASE("Kernels: reduction by shuffles, shared memory and a ticket", "[kernels]") {
  check_all("reduction", false);
  check_all("warp reduction", false);
}

TEST_CASE("Kernels: scan across blocks with decoupled look-back", "[kernels]") {
  check_all("scan", false);
}

TEST_CASE("Kernels: transposition through a swizzled tile", "[kernels]") {
  check_all("transpose", false);
}

TEST_CASE("Kernels: histogram and atomics", "[kernels]") {
  check_all("histogram", false);
  check_all("atomics", false);
}

TEST_CASE("Kernels: tiled product with mma, ldmatrix and cp.async", "[kernels]") {
  check_all("product f16", false);
  check_all("product bf16", false);
}

TEST_CASE("Kernels: packed half precision", "[kernels]") {
  check_all("packed f16", false);
  check_all("packed bf16", false);
}

TEST_CASE("Kernels: functions of the mathematical library", "[kernels]") {
  check_all("maths double", false);
  check_all("maths float", false);
}

TEST_CASE("Kernels: divergent walks over a tree, recursion, votes", "[kernels]") {
  check_all("search", false);
  check_all("recursion", false);
  check_all("votes", false);
}

TEST_CASE("Kernels: device functions, switches, pointers to functions", "[kernels]") {
  check_all("calls", false);
  check_all("jump table", false);
}

TEST_CASE("Kernels: local arrays, constant memory, structures, dynamic shared memory",
          "[kernels]") {
  check_all("spaces", false);
  check_all("dynamic shared", false);
}

TEST_CASE("Kernels: producer and consumers with mbarriers", "[kernels]") {
  check_all("pipeline", false);
}

TEST_CASE("Kernels: blocks and halves of a warp that wait for each other", "[kernels]") {
  check_all("grid barrier", false);
  check_all("message", false);
  check_all("halves of a warp", false);
}

TEST_CASE("Kernels: every one on every part under twenty seeds", "[kernels][slow]") {
  for (const Experiment& one : experiments()) check_all(one.name, true);
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
