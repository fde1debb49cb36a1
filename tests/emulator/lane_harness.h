#pragma once

// The lane-by-lane emulation of tests/kernels, emu_fwd.cpp and emu_bwd.cpp as they stand: what it
// counts, for comparison with the counts of the emulated driver.

#include <string>

namespace emulator_test {

struct LaneCounts {
  long mma = 0, ldmatrix = 0;
  long ldmatrix_wavefronts = 0;  // of each group of 8 rows, with conflicts
  // Lanes that access shared memory, weighted: loads 4 for 16 bytes and else 1, stores 1 for each 4
  // bytes, cp.async of 16 bytes 4. 32 of them are a wavefront.
  long shared_lanes = 0;
  long barriers = 0;
  std::string printed;  // with the errors against float64
};

// Of FwdK, by the text of its template arguments; throws std::runtime_error for another than the
// tests use.
LaneCounts forward_lanes(const std::string& arguments, int tokens);
// Of BwdU, BwdA or BwdC. BwdA takes the states' gradients from the BwdU of its shape.
LaneCounts backward_lanes(const std::string& type, int tokens);

}  // namespace emulator_test
