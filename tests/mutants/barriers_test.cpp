// Barriers of whole kernels: each one is needed, as the verifier of barriers and the emulated
// driver see it.
#include <catch2/catch.hpp>
#include <cstdio>

#include "codegen/passes/meeting.h"
#include "dsl/error.h"
#include "tests/mutants/experiment.h"
#include "tests/mutants/mutation.h"

namespace krait::mutants {
namespace {

/// The program behind spare, when barriers and memory have their places.
TileProgram with_barriers(const KernelCase& one) {
  TileProgram program;
  generate_cuda(*one.plan, one.kernel, target_of_experiments(), cuda_passes(),
                [&](const std::string& pass, const TileProgram& seen) {
                  if (pass == "spare") program = seen;
                });
  return program;
}

std::vector<int> barriers_of(const TileProgram& program) {
  std::vector<int> numbers;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    if (std::holds_alternative<Barrier>(statement)) numbers.push_back(number);
  });
  return numbers;
}

void drop(TileProgram& program, int number) {
  const Standing standing = standing_of(program, number);
  standing.body->erase(standing.body->begin() + standing.at);
}

TEST_CASE("every barrier of whole kernels is needed") {
  int count = 0;
  for (const Experiment& experiment : experiments())
    for (const KernelCase& one : cases_of(experiment)) {
      const TileProgram program = with_barriers(one);
      INFO(one.name << "\n" << to_text(program));
      CHECK_NOTHROW(verify_sync(program));
      const std::vector<int> numbers = barriers_of(program);
      const Meetings meetings(program);
      REQUIRE(meetings.barriers() == static_cast<int>(numbers.size()));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        // The barrier of a wait hands its copies on, whoever reads them and when.
        if (meetings.ends_wait(static_cast<int>(i))) continue;
        const int number = numbers[i];
        TileProgram without = program;
        drop(without, number);
        INFO("without statement " << number);
        const auto check = [&] {
          verify_sync(without);
          verify_stage(without);
        };
        CHECK_THROWS_AS(check(), InternalError);
        ++count;
      }
    }
  CHECK(count > 100);
}

/// The usual passes, one barrier less, and no verifier from there on.
std::vector<CudaPass> unverified_without(int number) {
  std::vector<CudaPass> passes;
  bool dropped = false;
  for (CudaPass pass : cuda_passes()) {
    if (dropped) pass.verify = [](const TileProgram&, const CudaTarget&) {};
    passes.push_back(pass);
    if (pass.name != "spare") continue;
    dropped = true;
    passes.push_back({"mutant",
                      [=](TileProgram& program, const CudaTarget&) { drop(program, number); },
                      [](const TileProgram&, const CudaTarget&) {}});
  }
  return passes;
}

TEST_CASE("kernels without one of their barriers race", "[slow]") {
  emulator_test::Device device(8, 0);
  device.seed(1);
  int dropped = 0, caught = 0;
  for (const Experiment& experiment : experiments()) {
    for (const KernelCase& one : kernels_of(experiment, device)) {
      const TileProgram program = with_barriers(one);
      for (const int number : barriers_of(program)) {
        const Outcome outcome = outcome_of(one, unverified_without(number), device);
        ++dropped;
        if (outcome.by != Outcome::By::nothing)
          ++caught;
        else
          std::printf("no race seen: %s without barrier %d\n", one.name.c_str(), number);
      }
    }
  }
  std::printf("%d of %d kernels without a barrier race\n", caught, dropped);
  // Whole buffers count for the verifier, where the emulator sees bytes.
  CHECK(caught > 0);
}

}  // namespace
}  // namespace krait::mutants
