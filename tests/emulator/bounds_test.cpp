// What is reported of memory, and how: every fault names the kernel, the line, the thread, the
// address and what lies there.

#include <catch2/catch.hpp>

#include "tests/emulator/ptx_kernel.h"

namespace emulator_test {
namespace {

struct FaultCase {
  const char* name;
  const char* before;  // of the module
  const char* body;
  const char* fault;  // how the report begins
  unsigned thread;
  std::vector<std::string> says;
};

const std::vector<FaultCase>& fault_cases() {
  static const std::vector<FaultCase> cases = {
      // Out of bounds.
      {"past an allocation",
       "",
       "ld.global.b32 %r0, [%out+132]; //!",
       "out of bounds: 4 bytes past the end of a 128-byte allocation",
       0,
       {"of global memory at 0x"}},
      {"right behind an allocation",
       "",
       "ld.global.b32 %r0, [%out+4]; //!",
       "out of bounds: right past the end of a 128-byte allocation",
       31,
       {"4 bytes of global"}},
      {"half inside",
       ".global .align 8 .b8 odd[12];\n",
       "mov.u64 %rd0, odd;\nld.global.b64 %rd1, [%rd0+8]; //!",
       "out of bounds: 8 bytes into a 12-byte variable odd, 4 bytes past its end",
       0,
       {"8 bytes of global memory"}},
      {"before an allocation",
       "",
       "st.global.b32 [%out+-8], %i; //!",
       "out of bounds: 8 bytes before the start of a 128-byte allocation",
       0,
       {}},
      {"null",
       "",
       "mov.b64 %rd0, 0;\nld.global.b32 %r0, [%rd0]; //!",
       "out of bounds: ",
       0,
       {"at 0x0"}},
      {"a number that is no address",
       "",
       "mov.b64 %rd0, 0x123456789abc;\nst.b32 [%rd0], %i; //!",
       "out of bounds: no allocation is near",
       0,
       {"at 0x123456789abc"}},
      {"past a variable of the module",
       ".global .align 8 .b8 table[40];\n",
       "mov.u64 %rd0, table; mad.wide.u32 %rd0, %i, 8, %rd0;\nld.global.b64 %rd1, [%rd0]; //!",
       "out of bounds: right past the end of a 40-byte variable table",
       5,
       {}},
      {"past a shared variable",
       "",
       ".shared .align 8 .b8 first[64]; .shared .align 8 .b8 second[64];\n"
       "mov.u64 %rd0, first; mad.wide.u32 %rd0, %i, 4, %rd0; mov.u64 %rd1, second;\n"
       "st.shared.b32 [%rd0], %i; //!",
       "out of bounds: right past the end of the 64 bytes of first",
       16,
       {"of shared memory at 0x40"}},
      {"before a shared variable",
       "",
       ".shared .align 8 .b8 first[64]; .shared .align 8 .b8 second[64];\n"
       "mov.u64 %rd0, first; mov.u64 %rd1, second;\nst.shared.b32 [%rd1+-4], %i; //!",
       "out of bounds: 4 bytes before the 64 bytes of second",
       0,
       {}},
      {"half out of a shared variable",
       "",
       ".shared .align 8 .b8 area[12];\nmov.u64 %rd0, area;\nld.shared.b64 %rd1, [%rd0+8]; //!",
       "out of bounds: byte 8 of the 12 bytes of area, 4 past its end",
       0,
       {}},
      {"far out of shared memory",
       "",
       ".shared .align 8 .b8 area[16];\nmov.u64 %rd0, area;\nld.shared.b32 %r1, [%rd0+1000000]; "
       "//!",
       "out of bounds: 999984 bytes past the end of the 16 bytes of area",
       0,
       {}},
      {"no shared memory",
       "",
       "mov.b64 %rd0, 0;\nld.shared.b32 %r1, [%rd0]; //!",
       "out of bounds: ",
       0,
       {}},
      {"generic address in shared memory",
       "",
       ".shared .align 8 .b8 area[16];\nmov.u64 %rd0, area; cvta.shared.u64 %rd0, %rd0;\n"
       "st.b32 [%rd0+16], %i; //!",
       "out of bounds: right past the end of the 16 bytes of area",
       0,
       {}},
      {"past a local variable",
       "",
       ".local .align 8 .b8 area[16];\nmov.u64 %rd0, area; mad.wide.u32 %rd0, %i, 4, %rd0;\n"
       "st.local.b32 [%rd0], %i; //!",
       "out of bounds: outside of the thread's local variables",
       4,
       {"of local memory at"}},
      {"generic address in local memory",
       "",
       ".local .align 8 .b8 area[16];\nmov.u64 %rd0, area; cvta.local.u64 %rd0, %rd0;\n"
       "ld.b32 %r1, [%rd0+64]; //!",
       "out of bounds: ",
       0,
       {}},
      {"past a constant variable",
       ".const .align 4 .b32 few[3] = {1, 2, 3};\n.const .b32 more;\n",
       "mov.u64 %rd0, few; mad.wide.u32 %rd0, %i, 4, %rd0;\nld.const.b32 %r1, [%rd0]; //!",
       "out of bounds: right past the end of the 12 bytes of few",
       3,
       {"of const memory at"}},
      {"past the parameters",
       "",
       "ld.param.b32 %r1, [out+8]; //!",
       "out of bounds: outside of the parameters",
       0,
       {}},
      {"atomic past a variable",
       ".global .align 4 .b8 counter[4];\n",
       "mov.u64 %rd0, counter; mad.wide.u32 %rd0, %i, 4, %rd0;\nred.global.add.u32 [%rd0], 1; //!",
       "out of bounds: right past the end of a 4-byte variable counter",
       1,
       {}},
      {"copy past its source",
       ".global .align 16 .b8 source[32];\n",
       ".shared .align 16 .b8 area[512]; mov.u64 %rd0, source; mov.u64 %rd1, area;\n"
       "mad.wide.u32 %rd0, %i, 16, %rd0; mad.wide.u32 %rd1, %i, 16, %rd1;\n"
       "cp.async.cg.shared.global [%rd1], [%rd0], 16; //!",
       "out of bounds: right past the end of a 32-byte variable source",
       2,
       {}},
      {"copy past its destination",
       ".global .align 16 .b8 source[512];\n",
       ".shared .align 16 .b8 area[32]; mov.u64 %rd0, source; mov.u64 %rd1, area;\n"
       "mad.wide.u32 %rd0, %i, 16, %rd0; mad.wide.u32 %rd1, %i, 16, %rd1;\n"
       "cp.async.cg.shared.global [%rd1], [%rd0], 16; //!",
       "out of bounds: right past the end of the 32 bytes of area",
       2,
       {}},
      // Alignment.
      {"misaligned",
       "",
       "ld.global.b32 %r0, [%out+2]; //!",
       "misaligned address: the address must be a multiple of 4",
       0,
       {"2 bytes into a 128-byte allocation"}},
      {"misaligned vector",
       ".global .align 16 .b8 v[512];\n",
       "mov.u64 %rd0, v; mad.wide.u32 %rd0, %i, 8, %rd0;\nld.global.v4.b32 {%r0, %r1, %r2, %r3}, "
       "[%rd0]; //!",
       "misaligned address: the address must be a multiple of 16",
       1,
       {}},
      {"misaligned in shared memory",
       "",
       ".shared .align 8 .b8 area[64];\nmov.u64 %rd0, area;\nst.shared.b64 [%rd0+4], %rd0; //!",
       "misaligned address: the address must be a multiple of 8",
       0,
       {"byte 4 of the 64 bytes of area"}},
      {"misaligned atomic",
       "",
       "atom.global.cas.b64 %rd0, [%out+4], %out, %out; //!",
       "misaligned address",
       0,
       {}},
      // Read-only.
      {"write to constant memory",
       ".const .align 4 .b32 few[3] = {1, 2, 3};\n",
       "mov.u64 %rd0, few; cvta.const.u64 %rd0, %rd0;\nst.b32 [%rd0+4], %i; //!",
       "write to read-only memory: constant memory cannot be written",
       0,
       {"byte 4 of the 12 bytes of few"}},
      // Undefined values.
      {"undefined address",
       "",
       "ld.global.b32 %r0, [%rd7]; //!",
       "undefined value: the address is undefined",
       0,
       {}},
      {"undefined value stored",
       "",
       "st.global.b32 [%out], %r7; //!",
       "undefined value: the stored value is undefined",
       0,
       {"0 bytes into a 128-byte allocation"}},
      {"one undefined element of a vector",
       "",
       ".shared .align 16 .b8 area[16]; mov.u64 %rd0, area;\n"
       "st.shared.v4.b32 [%rd0], {%i, %i, %r7, %i}; //!",
       "undefined value: the stored value is undefined",
       0,
       {}},
      {"undefined operand of an atomic operation",
       "",
       "red.global.add.u32 [%out], %r7; //!",
       "undefined value: an operand of an atomic operation is undefined",
       0,
       {}},
      {"undefined memory through a register",
       "",
       ".shared .align 16 .b8 area[256]; mov.u64 %rd0, area; mad.wide.u32 %rd0, %i, 4, %rd0;\n"
       "setp.ne.u32 %p0, %i, 9; @%p0 st.shared.b32 [%rd0], %i;\n"
       "ld.shared.b32 %r0, [%rd0];\nst.global.b32 [%out], %r0; //!",
       "undefined value: the stored value is undefined",
       9,
       {}},
      {"undefined byte through local memory",
       "",
       ".local .align 8 .b8 area[8]; mov.u64 %rd0, area; st.local.u16 [%rd0], %i;\n"
       "st.local.u8 [%rd0+3], %i; ld.local.b32 %r0, [%rd0];\nst.global.b32 [%out], %r0; //!",
       "undefined value: the stored value is undefined",
       0,
       {}},
      {"undefined memory updated",
       ".global .align 4 .b8 unused[4];\n",
       ".shared .align 4 .b8 area[4]; mov.u64 %rd0, area;\natom.shared.add.u32 %r0, [%rd0], 1; //!",
       "undefined value: the value to be updated is undefined",
       0,
       {}},
      {"discarded",
       ".global .align 128 .b8 line[128];\n",
       "mov.u64 %rd0, line; setp.eq.u32 %p0, %i, 0;\n@%p0 discard.global.L2 [%rd0], 128;\n"
       "@%p0 ld.global.b32 %r0, [%rd0+64];\n@%p0 st.global.b32 [%out], %r0; //!",
       "undefined value: the stored value is undefined",
       0,
       {}},
  };
  return cases;
}

// The line of the text that ends in //!.
int marked_line(const std::string& text) {
  const size_t at = text.find("//!");
  return int(std::count(text.begin(), text.begin() + long(at), '\n')) + 1;
}

}  // namespace

TEST_CASE("Bounds: every fault of memory is reported with its place", "[bounds]") {
  for (const FaultCase& one : fault_cases()) {
    INFO(one.name);
    const std::string text = ptx_kernel(one.body, one.before);
    const std::string report = report_of(text, 1, 32);
    INFO(report);
    CHECK(report.find(one.fault) == 0);
    CHECK(report.find("kernel test, block (0, 0, 0), thread (" + std::to_string(one.thread) +
                      ", 0, 0)\n    PTX line " + std::to_string(marked_line(text)) + ": ") !=
          std::string::npos);
    CHECK(report.find("seed 1\n") != std::string::npos);
    for (const std::string& says : one.says) CHECK(report.find(says) != std::string::npos);
  }
}

TEST_CASE("Bounds: a report of the fifth block in three dimensions", "[bounds]") {
  Device device;
  device.seed(12);
  const CUfunction function = device.load(
      ptx_kernel(".reg .b32 %y, %z; mov.u32 %y, %ctaid.y; mov.u32 %z, %tid.z;\n"
                 "setp.eq.u32 %p0, %y, 1; setp.eq.and.u32 %p0, %z, 3, %p0; mov.b64 %rd0, 16;\n"
                 "@%p0 st.global.b32 [%rd0], %y;"),
      "test");
  const Buffer out = Buffer::of(std::vector<uint32_t>(4096));
  CHECK(device.launch(function, {3, 2, 1}, {5, 2, 4}, 0, out.address()) ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
  INFO(device.report());
  CHECK(device.report().find("block (0, 1, 0), thread (0, 0, 3)") != std::string::npos);
  CHECK(device.report().find("PTX line 13: st.global.b32 [%rd0], %y") != std::string::npos);
  CHECK(device.report().find("seed 12\n") != std::string::npos);
}

TEST_CASE("Bounds: memory that was freed, and its address is not used again", "[bounds]") {
  Device device;
  const CUfunction function =
      device.load(ptx_kernel("ld.global.b32 %r0, [%out+8]; st.global.b32 [%out], %r0;"), "test");
  CUdeviceptr freed = 0;
  {
    const Buffer gone(64);
    freed = gone.address();
  }
  for (int i = 0; i < 50; ++i) {
    const Buffer fresh(64);
    CHECK(fresh.address() != freed);
  }
  CHECK(device.launch(function, {1}, {1}, 0, freed) == CUDA_ERROR_ILLEGAL_ADDRESS);
  INFO(device.report());
  CHECK(device.report().find("freed memory: 8 bytes into a 64-byte allocation that was freed") ==
        0);
}

TEST_CASE("Bounds: what moves without being used is not reported", "[bounds]") {
  Device device;
  // Undefined registers, shared and local memory are moved, selected and overwritten; a lane whose
  // guard is false has wild addresses; a half of a loaded pair is undefined and not used.
  const auto values = results(device, ptx_kernel(R"(
.shared .align 8 .b8 area[512]; .local .align 8 .b8 own[16];
mov.u64 %rd0, area; mad.wide.u32 %rd0, %i, 8, %rd0; mov.u64 %rd1, own;
mov.b32 %r1, %r2; st.local.b32 [%rd1], %r1; ld.local.b32 %r3, [%rd1];
st.shared.b32 [%rd0], %i; ld.shared.b64 %rd3, [%rd0]; cvt.u32.u64 %r4, %rd3;
setp.ge.u32 %p0, %i, 32; mov.b64 %rd4, 5; @%p0 ld.global.b32 %r5, [%rd4];
setp.lt.u32 %p1, %i, 40; selp.b32 %r6, %r4, %r3, %p1;
st.global.b32 [%out], %r6;)"),
                              1, 32);
  for (unsigned t = 0; t < 32; ++t) CHECK(values[t] == t);
}

TEST_CASE("Bounds: definedness follows copies of memory", "[bounds]") {
  Device device;
  const CUfunction function =
      device.load(ptx_kernel("ld.global.b32 %r0, [%out]; st.global.b32 [%out], %r0;"), "test");
  Buffer a(64), b = Buffer::of(std::vector<uint32_t>(16));
  require_success(
      call<decltype(&cuMemcpyDtoD)>("cuMemcpyDtoD_v2")(b.address() + 16, a.address(), 4),
      "cuMemcpyDtoD");
  require_success(call<decltype(&cuMemsetD8)>("cuMemsetD8_v2")(a.address(), 1, 16), "cuMemsetD8");
  device.run(function, {1}, {4}, 0, a.address());
  device.run(function, {1}, {4}, 0, b.address());
  CHECK(device.launch(function, {1}, {5}, 0, b.address()) != CUDA_SUCCESS);
  CHECK(device.report().find("undefined value: the stored value is undefined") == 0);
  CHECK(device.report().find("thread (4, 0, 0)") != std::string::npos);
}

}  // namespace emulator_test
