// Mutants: a pass with a small fault is appended behind one of the passes for GPUs, over kernels of
// forward and backward. A tile verifier, a report of the emulated driver or wrong numbers must
// catch each. The tests print a table of who did.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <map>

#include "tests/mutants/experiment.h"
#include "tests/mutants/mutation.h"

namespace krait::mutants {
namespace {

using By = Outcome::By;

const char* name_of(By by) {
  switch (by) {
    case By::verifier: return "verifier";
    case By::compiler: return "compiler";
    case By::report: return "report";
    case By::numbers: return "numbers";
    default: return "NOTHING";
  }
}

/// The program behind every pass, by its name.
std::map<std::string, TileProgram> programs_of(const KernelCase& one) {
  std::map<std::string, TileProgram> seen;
  generate_cuda(*one.plan, one.kernel, target_of_experiments(), cuda_passes(),
                [&](const std::string& pass, const TileProgram& program) { seen[pass] = program; });
  return seen;
}

/// The usual passes, and the fault behind the one that it follows, held to what that is held to.
/// `verified`: or else to nothing, from there on.
std::vector<CudaPass> with_fault(const Mutation& mutation, const Place& place, bool verified) {
  std::vector<CudaPass> passes;
  bool behind = false;
  for (CudaPass pass : cuda_passes()) {
    if (behind && !verified) pass.verify = [](const TileProgram&, const CudaTarget&) {};
    passes.push_back(pass);
    if (pass.name != mutation.after) continue;
    behind = true;
    pass.run = [&place](TileProgram& program, const CudaTarget&) { place.apply(program); };
    if (!verified) pass.verify = [](const TileProgram&, const CudaTarget&) {};
    pass.name = "mutant";
    passes.push_back(std::move(pass));
  }
  return passes;
}

struct Candidate {
  const KernelCase* one;
  Place place;
};

using Counts = std::map<By, int>;

/// `samples`: of each mutation, spread evenly over all its places in all kernels. `twice`: what a
/// verifier catches is run all the same, to see whether it was right.
void check_mutants(const std::vector<KernelCase>& kernels, std::size_t samples, bool twice,
                   emulator_test::Device& device) {
  std::vector<std::map<std::string, TileProgram>> programs;
  for (const KernelCase& one : kernels) programs.push_back(programs_of(one));
  std::printf("%-47s %-9s %-34s %s\n", "mutant", "after", "kernel", "caught by");
  Counts counts, unverified;
  for (const Mutation& mutation : all_mutations()) {
    std::vector<Candidate> all;
    for (std::size_t k = 0; k < kernels.size(); ++k)
      for (Place& place : mutation.places(programs[k].at(mutation.after)))
        all.push_back({&kernels[k], std::move(place)});
    const std::size_t taken = std::min(samples, all.size());
    bool caught = taken == 0;
    for (std::size_t i = 0; i < taken; ++i) {
      const Candidate& candidate = all[(2 * i + 1) * all.size() / (2 * taken)];
      const Outcome outcome =
          outcome_of(*candidate.one, with_fault(mutation, candidate.place, true), device);
      Outcome alone;
      if (twice && outcome.by == By::verifier)
        alone = outcome_of(*candidate.one, with_fault(mutation, candidate.place, false), device);
      ++unverified[alone.by];
      ++counts[outcome.by];
      caught = caught || outcome.by != By::nothing;
      const bool excused = outcome.by == By::nothing && !mutation.equivalent.empty();
      std::string detail = excused ? mutation.equivalent : outcome.detail.substr(0, 100);
      if (alone.by > By::verifier) detail += " (when run: " + alone.detail.substr(0, 60) + ")";
      std::printf("%-47s %-9s %-34s %-9s %s\n", mutation.name.c_str(), mutation.after.c_str(),
                  candidate.one->name.c_str(), excused ? "equal" : name_of(outcome.by),
                  detail.c_str());
      INFO(mutation.name << " in " << candidate.one->name << ", " << candidate.place.where);
      CHECK((outcome.by > By::compiler || outcome.by == By::verifier || excused));
    }
    INFO(mutation.name);
    CHECK((caught || samples == 1));
  }
  std::printf(
      "%d mutants are caught: %d by a verifier, %d by a report, %d by numbers; %d change "
      "nothing\n",
      counts[By::verifier] + counts[By::report] + counts[By::numbers], counts[By::verifier],
      counts[By::report], counts[By::numbers], counts[By::nothing]);
  if (twice)
    std::printf(
        "of those that a verifier catches, run all the same: %d end in a report, %d in wrong "
        "numbers, %d cannot be run\n",
        unverified[By::report], unverified[By::numbers],
        unverified[By::compiler] + unverified[By::verifier]);
}

TEST_CASE("mutants of kernels are caught") {
  emulator_test::Device device(8, 0);
  device.seed(1);
  check_mutants(kernels_of(experiments().front(), device), 1, false, device);
}

TEST_CASE("mutants of all kernels are caught", "[slow]") {
  emulator_test::Device device(8, 0);
  device.seed(1);
  std::vector<KernelCase> kernels;
  for (const Experiment& experiment : experiments())
    for (KernelCase& one : kernels_of(experiment, device)) kernels.push_back(std::move(one));
  check_mutants(kernels, 4, true, device);
}

TEST_CASE("kernels that nobody changed are not caught", "[slow]") {
  emulator_test::Device device(8, 0);
  for (const KernelCase& one : kernels_of(experiments().front(), device))
    CHECK(outcome_of(one, cuda_passes(), device).by == By::nothing);
}

}  // namespace
}  // namespace krait::mutants
