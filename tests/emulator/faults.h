#pragma once

// Faults planted in kernels, as edits of their texts.

#include <string>
#include <vector>

#include "tests/emulator/experiment.h"

namespace emulator_test {

struct Fault {
  std::string what, experiment;
  std::vector<Edit> edits;
  // What catches it: the kind of report, "numbers" where only those are wrong, or several of them
  // with | between; that depends on the interleaving then.
  std::string caught_by;
  std::string part = "sm_90a";
};

// Of the kernels of tests/emulator/kernels, and of the worked ones.
const std::vector<Fault>& kernel_faults();
const std::vector<Fault>& worked_faults();

}  // namespace emulator_test
