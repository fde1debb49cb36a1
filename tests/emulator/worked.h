#pragma once

// The worked kernels of tests/kernels: their configurations, inputs and float64 results.

#include <string>
#include <vector>

#include "tests/emulator/experiment.h"

namespace emulator_test {

// Of the inputs, as emu_fwd.cpp and emu_bwd.cpp choose them: x, B and C of a token lie in one row.
struct WorkedShape {
  int tokens = 200, p = 64, n = 128;
  static constexpr int batch = 2, heads = 4, groups = 2, stride = 4 * 64 + 2 * 2 * 128 + 8;
  size_t states() const { return size_t(batch) * heads * p * n; }
  size_t values() const { return size_t(batch) * tokens * heads * p; }
};

struct ForwardConfiguration {
  int q, p, n, warps, stages, heads, buffers, save;  // of FwdK
  std::string text() const;                          // its template arguments
};
struct BackwardConfiguration {
  std::string source, type;    // bwd.cu or bwdc.cu, and the type that runs
  int q, p, n, warps, remake;  // states are saved every `remake` chunks
};

// What NVRTC is given.
Sources forward_sources(const ForwardConfiguration& configuration);
Sources backward_sources(const BackwardConfiguration& configuration);
std::vector<std::string> worked_options();

struct ForwardCase {
  WorkedShape shape;
  std::vector<uint16_t> x;
  std::vector<float> dt, a, bias, d, start;
  std::vector<double> y, end;
  std::vector<std::vector<double>> states;  // before each token that is a multiple of 64
};
const ForwardCase& forward_case(const WorkedShape& shape);

struct BackwardCase {
  WorkedShape shape;
  int every = 64;  // tokens between saved states
  std::vector<uint16_t> x, dy, saved;
  std::vector<float> dt, a, bias, d, d_end;
  std::vector<double> dx, ddt, db, dc, da, dbias, dd, d_start;
};
const BackwardCase& backward_case(const WorkedShape& shape, int every);

double from_bfloat(uint16_t bits);
std::vector<double> from_bfloat(const std::vector<uint16_t>& bits);

struct ForwardErrors {
  double y, end, saved;  // relative L2
  double worst() const;
};
ForwardErrors run_forward(Run& run, const ForwardConfiguration& configuration);

struct BackwardErrors {
  double dx, db, dc, ddt, da, dbias, dd, d_start;
  double gradients() const;  // the worst of those of tensors
};
// The reverse pass of the state's gradient, then the gradients, heads serial in a block. The first
// is launched from the PTX that `reverse` compiles to.
BackwardErrors run_backward(Run& run, const std::string& reverse,
                            const BackwardConfiguration& configuration);
// The alternative in one kernel.
BackwardErrors run_backward_serial(Run& run, const BackwardConfiguration& configuration);

}  // namespace emulator_test
