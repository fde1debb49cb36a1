// The worked kernels in the configurations that fit every part, as experiments.

#include <algorithm>

#include "tests/emulator/worked.h"

namespace emulator_test {
namespace {

const ForwardConfiguration kForward{64, 64, 128, 4, 2, 1, 2, 2};
const BackwardConfiguration kReverse{"bwd.cu", "BwdU<64,32,128,4,2,2>", 64, 32, 128, 4, 2};
const BackwardConfiguration kBackward{"bwd.cu", "BwdA<64,32,128,8,1,true,true,2>", 64, 32, 128, 8,
                                      2};
const BackwardConfiguration kSerial{"bwdc.cu", "BwdC<64,32,128,8,1>", 64, 32, 128, 8, 1};

std::string plain(const Sources& sources, const Architecture& part) {
  std::vector<std::string> options = worked_options();
  options.push_back("-lineinfo");
  return compile(sources.front().text, part.name, options, {sources.begin() + 1, sources.end()});
}

double forward(Run& run) {
  const ForwardErrors errors = run_forward(run, kForward);
  return errors.worst() / 3e-3;
}

double backward(Run& run) {
  const std::string reverse = plain(backward_sources(kReverse), run.part);
  return run_backward(run, reverse, kBackward).gradients() / 4e-3;
}

double reverse(Run& run) {
  const std::string second = plain(backward_sources(kBackward), run.part);
  Run other{run.device, run.part, second, run.random, run.size};
  return run_backward(other, run.ptx, kBackward).gradients() / 4e-3;
}

double serial(Run& run) { return run_backward_serial(run, kSerial).gradients() / 4e-3; }

}  // namespace

// Errors are in units of the bound.
std::vector<Experiment> worked_experiments() {
  const std::vector<std::string> options = worked_options();
  const std::vector<int> sizes{200};
  return {
      {"worked forward", 80, [](const Architecture&) { return forward_sources(kForward); }, options,
       sizes, 136, 1, forward},
      {"worked reverse", 80, [](const Architecture&) { return backward_sources(kReverse); },
       options, sizes, 136, 1, reverse},
      {"worked backward", 80, [](const Architecture&) { return backward_sources(kBackward); },
       options, sizes, 136, 1, backward},
      {"worked serial", 80, [](const Architecture&) { return backward_sources(kSerial); }, options,
       sizes, 136, 1, serial},
  };
}

}  // namespace emulator_test
