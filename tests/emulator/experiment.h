#pragma once

// Kernels in CUDA C++ with their inputs and what the host makes of the same: run for their numbers,
// and with a fault planted in them for what the checks say.

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/harness.h"

namespace emulator_test {

struct Architecture {
  const char* name;  // as NVRTC says it
  int major, minor;
  int number() const { return major * 10 + minor; }
};
// The parts that kernels are compiled for.
const std::vector<Architecture>& architectures();
const Architecture& architecture(const std::string& name);

// Texts that NVRTC is given: the first is the source, the others are headers.
using Sources = std::vector<Header>;

// A text of `file` (a source, a header, or "ptx" for what NVRTC makes of them) that is there
// exactly once, and what stands there instead.
struct Edit {
  std::string file, from, to;
};

// What a fault does to a launch.
struct Faulted {
  CUresult code;
  std::string report;
};

// One run of an experiment on a device.
struct Run {
  Device& device;
  const Architecture& part;
  const std::string& ptx;
  std::mt19937& random;
  int size;

  CUfunction function(const std::string& kernel) { return device.load(ptx, kernel); }
  // Throws Faulted unless it succeeds.
  template <class... Args>
  void launch(CUfunction function, std::vector<unsigned> grid, std::vector<unsigned> block,
              unsigned shared, Args... args) {
    const CUresult code = device.launch(function, grid, block, shared, args...);
    if (code != CUDA_SUCCESS) throw Faulted{code, device.report()};
  }
  // Whole numbers of [low, high].
  template <class T = int>
  std::vector<T> integers(size_t count, int low, int high) {
    std::uniform_int_distribution<int> draw(low, high);
    std::vector<T> values(count);
    for (T& value : values) value = T(draw(random));
    return values;
  }
};

struct Experiment {
  std::string name;
  int from = 75;  // the first part, as 10 * major + minor
  // What the texts are; size may matter to them.
  std::function<Sources(const Architecture& part)> sources;
  std::vector<std::string> options;
  std::vector<int> sizes;  // of the test of its numbers
  int fault_size = 0;      // with a fault
  double tolerance = 0;    // of the error
  // Launches and gives the error: 0 where all is equal, or what the tolerance says.
  std::function<double(Run& run)> error;
};

const std::vector<Experiment>& experiments();
const Experiment& experiment(const std::string& name);

// Parts of the table, by file.
std::vector<Experiment> block_experiments();
std::vector<Experiment> arithmetic_experiments();
std::vector<Experiment> control_experiments();
std::vector<Experiment> worked_experiments();

struct Outcome {
  bool reported = false;
  CUresult code = CUDA_SUCCESS;
  std::string report;  // the emulator's, where it reported
  double error = 0;
  bool wrong = false;  // the error is above the tolerance
  std::string what() const;
};
// PTX, with its edits made.
std::string compiled(const Experiment& experiment, const Architecture& part,
                     const std::vector<Edit>& edits = {});
// On a fresh device. Inputs and interleavings are the seed's.
Outcome perform(const Experiment& experiment, const Architecture& part, int size, uint64_t seed,
                const std::vector<Edit>& edits = {});

// Source of tests/emulator/kernels.
std::function<Sources(const Architecture&)> kernel_file(const std::string& name);

// 0 where the vectors are equal, else the number of values that are not.
template <class T>
double differing(const std::vector<T>& got, const std::vector<T>& wanted) {
  double count = got.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < got.size() && i < wanted.size(); ++i) count += !(got[i] == wanted[i]);
  return count;
}

// |got - wanted| over |wanted|; infinite where a value is not finite.
template <class T, class U>
double relative_l2(const std::vector<T>& got, const std::vector<U>& wanted) {
  double error = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double difference = double(got[i]) - double(wanted[i]);
    error += difference * difference;
    size += double(wanted[i]) * double(wanted[i]);
  }
  if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
  return error == 0 ? 0 : std::sqrt(error / size);
}

}  // namespace emulator_test
