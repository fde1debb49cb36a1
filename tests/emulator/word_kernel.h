#pragma once

// A kernel of a few lines of PTX on one block, with words in and words out.

#include <string>
#include <vector>

#include "tests/emulator/harness.h"

namespace emulator_test::words {

struct Kernel {
  // Names at hand: %thread, %lane, %warp (b32); %in, %out, %own (b64 addresses; %own is the
  // thread's word of out), %own_in (its word of in); scratch registers %r0 .. %r39, %f0 .. %f9
  // (f32), %d0 .. %d19 (b64), %p0 .. %p9; shared memory `tile` of 8192 bytes, aligned to 128, and
  // mbarrier objects bar0 .. bar3.
  std::string body;
  unsigned threads = 32;
  std::string target = "sm_90a";

  std::string text() const {
    std::string all =
        ".version 9.0\n.target " + target +
        "\n.address_size 64\n.visible .entry k(.param .u64 pin, .param .u64 pout)\n{\n"
        ".reg .b32 %thread, %lane, %warp, %r<40>;\n.reg .b64 %in, %out, %own, %own_in, "
        "%d<20>;\n.reg .f32 %f<10>;\n.reg .pred %p<10>;\n"
        ".shared .align 128 .b8 tile[8192];\n";
    for (int i = 0; i < 4; ++i) all += ".shared .align 8 .b64 bar" + std::to_string(i) + ";\n";
    return all +
           "ld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\nmov.u32 %thread, %tid.x;\n"
           "and.b32 %lane, %thread, 31;\nshr.u32 %warp, %thread, 5;\n"
           "mad.wide.u32 %own, %thread, 4, %out;\nmad.wide.u32 %own_in, %thread, 4, %in;\n" +
           body + "\nret;\n}\n";
  }
};

struct Outcome {
  CUresult code;
  std::string report;            // "" where there is none
  std::vector<uint32_t> output;  // of a launch that succeeded
};

inline Outcome launch(Device& device, const Kernel& kernel,
                      const std::vector<uint32_t>& input = {0}, size_t outputs = 1024) {
  const CUfunction function = device.load(kernel.text(), "k");
  const Buffer in = Buffer::of(input), out = Buffer::of(std::vector<uint32_t>(outputs));
  Outcome outcome{};
  outcome.code = device.launch(function, {1}, {kernel.threads}, 0, in.address(), out.address());
  if (outcome.code == CUDA_SUCCESS)
    outcome.output = out.read<uint32_t>();
  else
    outcome.report = device.report();
  return outcome;
}

// The same on a device of its own: the report of a kernel that should not pass.
inline std::string report_of(const std::string& body, unsigned threads = 32,
                             const std::vector<uint32_t>& input = {0}, uint64_t seed = 1) {
  Device device;
  device.seed(seed);
  Kernel kernel;
  kernel.body = body;
  kernel.threads = threads;
  return launch(device, kernel, input).report;
}

// Whether a module with that body loads.
inline bool loads(const std::string& body, const std::string& target = "sm_90a") {
  CUmodule module = nullptr;
  Kernel kernel;
  kernel.body = body;
  kernel.target = target;
  const std::string text = kernel.text();
  const CUresult code =
      call<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData")(&module, text.c_str());
  if (code == CUDA_SUCCESS) call<CUresult (*)(CUmodule)>("cuModuleUnload")(module);
  return code == CUDA_SUCCESS;
}

inline std::vector<uint32_t> counting(size_t count, uint32_t first = 1) {
  std::vector<uint32_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<uint32_t>(i);
  return values;
}

}  // namespace emulator_test::words
