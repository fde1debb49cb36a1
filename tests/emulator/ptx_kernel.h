#pragma once

// Kernels written in PTX for tests of the machine: registers are declared, the rest is the test's.

#include <functional>
#include <string>
#include <vector>

#include "tests/emulator/harness.h"

namespace emulator_test {

// A kernel `test` with a parameter `out` of 64 bits. The body finds %tid.x in %i, its number in the
// grid in %g, and the address of its 32-bit result in %out; it has %p0-15, %r0-63, %f0-15 and
// %rd0-31. `before` is text of the module, such as functions.
inline std::string ptx_kernel(const std::string& body, const std::string& before = "",
                              const std::string& target = "sm_90a") {
  return ".version 9.0\n.target " + target + "\n.address_size 64\n" + before + R"(
.visible .entry test(.param .u64 out) {
.reg .pred %p<16>; .reg .b32 %r<64>; .reg .f32 %f<16>; .reg .b64 %rd<32>;
.reg .b32 %i, %g, %size, %block; .reg .b64 %out, %offset;
mov.u32 %i, %tid.x; mov.u32 %size, %ntid.x; mov.u32 %block, %ctaid.x;
mad.lo.u32 %g, %block, %size, %i;
ld.param.u64 %out, [out]; mul.wide.u32 %offset, %g, 4; add.u64 %out, %out, %offset;
)" + body +
         "\nret;\n}\n";
}

// What the threads of a grid store, 0 where they do not. Requires success.
inline std::vector<uint32_t> results(Device& device, const std::string& ptx, unsigned blocks,
                                     unsigned threads, unsigned shared = 0) {
  const CUfunction function = device.load(ptx, "test");
  const Buffer out = Buffer::of(std::vector<uint32_t>(size_t(blocks) * threads));
  device.run(function, {blocks}, {threads}, shared, out.address());
  return out.read<uint32_t>();
}

// The report of a launch that must fail; "" where it did not.
inline std::string report_of(const std::string& ptx, unsigned blocks, unsigned threads,
                             unsigned shared = 0, uint64_t seed = 1) {
  Device device;
  device.seed(seed);
  const CUfunction function = device.load(ptx, "test");
  const Buffer out = Buffer::of(std::vector<uint32_t>(size_t(blocks) * threads));
  const CUresult code = device.launch(function, {blocks}, {threads}, shared, out.address());
  return code == CUDA_SUCCESS ? "" : device.report();
}

}  // namespace emulator_test
