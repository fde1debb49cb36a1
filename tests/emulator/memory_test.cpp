// Loads and stores: every space, type, register and vector, by bytes worked out on the host.

#include <catch2/catch.hpp>

#include "tests/emulator/ptx_kernel.h"

namespace emulator_test {
namespace {

struct Space {
  const char* name;     // of the instruction, with its dot
  const char* declare;  // in the body
  const char* address;  // puts the address of the thread's 64 bytes into %at
};

// 128 threads with 64 bytes each.
const Space kSpaces[] = {
    {".shared", ".shared .align 32 .b8 area[8192];",
     "mov.u64 %at, area; mad.wide.u32 %at, %i, 64, %at;"},
    {".local", ".local .align 32 .b8 area[64];", "mov.u64 %at, area;"},
    {".global", "", "mov.u64 %at, global_area; mad.wide.u32 %at, %i, 64, %at;"},
    {"", ".shared .align 32 .b8 area[8192];",
     "mov.u64 %at, area; cvta.shared.u64 %at, %at; mad.wide.u32 %at, %i, 64, %at;"},
    {"", ".local .align 32 .b8 area[64];", "mov.u64 %at, area; cvta.local.u64 %at, %at;"},
    {"", "", "mov.u64 %at, global_area; cvta.global.u64 %at, %at; mad.wide.u32 %at, %i, 64, %at;"},
};

// What 128 threads store in two 64-bit words each, from a body that leaves them in %lo and %hi. The
// bytes at [%in] are those of pattern(thread).
std::vector<uint64_t> run_threads(const std::string& body, const std::string& target = "sm_90a") {
  const std::string text = ".version 9.0\n.target " + target + R"(
.address_size 64
.global .align 32 .b8 global_area[8192];
.visible .entry test(.param .u64 in, .param .u64 out) {
.reg .b32 %i; .reg .b64 %in, %out, %at, %lo, %hi;
.reg .b16 %h<16>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .f32 %f<16>; .reg .f64 %d<16>;
.reg .b128 %q<4>;
mov.u32 %i, %tid.x; mov.b64 %lo, 0; mov.b64 %hi, 0;
ld.param.u64 %in, [in]; mad.wide.u32 %in, %i, 64, %in;
ld.param.u64 %out, [out]; mad.wide.u32 %out, %i, 16, %out;
)" + body + "\nst.global.v2.b64 [%out], {%lo, %hi};\nret;\n}\n";
  const bool later = target.find("100") != std::string::npos;
  Device device(later ? 10 : 9, 0);
  std::vector<uint8_t> bytes;
  for (unsigned i = 0; i < 128 * 64; ++i) bytes.push_back(uint8_t(i * 181 + i / 64 * 7 + 101));
  const Buffer in = Buffer::of(bytes), out(128 * 16);
  device.run(device.load(text, "test"), {1}, {128}, 0, in.address(), out.address());
  return out.read<uint64_t>();
}

uint64_t pattern(unsigned thread, unsigned offset, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned k = 0; k < bytes; ++k) {
    const unsigned i = thread * 64 + offset + k;
    value |= uint64_t(uint8_t(i * 181 + i / 64 * 7 + 101)) << 8 * k;
  }
  return value;
}

uint64_t extended(uint64_t value, unsigned bytes, bool sign, unsigned to) {
  if (sign && bytes < 8 && value >> (8 * bytes - 1) & 1) value |= ~uint64_t{0} << 8 * bytes;
  return to < 8 ? value & ((uint64_t{1} << 8 * to) - 1) : value;
}

// Moves 64 bytes from [%in] to [%at], a weak byte at a time where `by` is 1.
std::string copy_in(const Space& space, unsigned by = 16) {
  std::string text;
  for (unsigned at = 0; at < 64; at += by) {
    const std::string offset = "+" + std::to_string(at) + "]";
    if (by == 16) {
      text += "ld.global.v2.b64 {%rd0, %rd1}, [%in" + offset + "; st" + space.name +
              ".v2.b64 [%at" + offset + ", {%rd0, %rd1};\n";
    } else {
      text += "ld.global.u8 %r0, [%in" + offset + "; st" + space.name + ".u8 [%at" + offset +
              ", %r0;\n";
    }
  }
  return text;
}

// From a register of that kind to %lo.
std::string to_result(char kind) {
  switch (kind) {
    case 'h': return "cvt.u64.u16 %lo, %h1;";
    case 'r': return "cvt.u64.u32 %lo, %r1;";
    case 'f': return "mov.b32 %r1, %f1; cvt.u64.u32 %lo, %r1;";
    case 'd': return "mov.b64 %lo, %d1;";
    case 'q': return "mov.b128 {%lo, %hi}, %q1;";
    default: return "mov.b64 %lo, %rd1;";
  }
}

const char* register_of(char kind) {
  switch (kind) {
    case 'h': return "%h1";
    case 'r': return "%r1";
    case 'f': return "%f1";
    case 'd': return "%d1";
    case 'q': return "%q1";
    default: return "%rd1";
  }
}

unsigned width_of(char kind) {
  return kind == 'h' ? 2 : kind == 'r' || kind == 'f' ? 4 : kind == 'q' ? 16 : 8;
}

struct Scalar {
  const char* type;
  unsigned bytes;
  bool sign;
  const char* registers;  // kinds that take it
};
const Scalar kScalars[] = {
    {"b8", 1, false, "hrR"},  {"u8", 1, false, "hrRq"}, {"s8", 1, true, "hrR"},
    {"b16", 2, false, "hrR"}, {"u16", 2, false, "hrR"}, {"s16", 2, true, "hrR"},
    {"b32", 4, false, "rfR"}, {"u32", 4, false, "rR"},  {"s32", 4, true, "rR"},
    {"f32", 4, false, "rf"},  {"b64", 8, false, "Rdq"}, {"u64", 8, false, "R"},
    {"s64", 8, true, "R"},    {"f64", 8, false, "Rd"},
};

void check_threads(const std::vector<uint64_t>& results, unsigned offset, const Scalar& scalar,
                   unsigned width) {
  for (unsigned t = 0; t < 128; ++t) {
    const uint64_t value = pattern(t, offset, scalar.bytes);
    const uint64_t low = extended(value, scalar.bytes, scalar.sign, std::min(width, 8u));
    INFO("thread " << t);
    REQUIRE(results[2 * t] == low);
    REQUIRE(results[2 * t + 1] == 0);
  }
}

}  // namespace

TEST_CASE("Memory: loads of every type into every register", "[memory]") {
  for (const Space& space : kSpaces) {
    for (const Scalar& scalar : kScalars) {
      for (const char* kind = scalar.registers; *kind; ++kind) {
        const unsigned offset = 3 * scalar.bytes;
        INFO("ld" << space.name << "." << scalar.type << " into " << register_of(*kind) << ", "
                  << space.address);
        const std::string body = std::string(space.declare) + space.address + copy_in(space) +
                                 "ld" + space.name + "." + scalar.type + " " + register_of(*kind) +
                                 ", [%at+" + std::to_string(offset) + "];\n" + to_result(*kind);
        check_threads(run_threads(body), offset, scalar, width_of(*kind));
      }
    }
  }
}

TEST_CASE("Memory: stores of every type from every register", "[memory]") {
  for (const Space& space : kSpaces) {
    for (const Scalar& scalar : kScalars) {
      for (const char* kind = scalar.registers; *kind; ++kind) {
        if (*kind == 'q') continue;
        INFO("st" << space.name << "." << scalar.type << " from " << register_of(*kind));
        // The bytes go through registers by eight bytes, then by this type.
        std::string body = std::string(space.declare) + space.address;
        body +=
            "ld.global.b64 %rd1, [%in+8]; mov.b64 %d1, %rd1; cvt.u32.u64 %r1, %rd1;"
            "mov.b32 %f1, %r1; cvt.u16.u32 %h1, %r1;\n";
        body += std::string("mov.b64 %rd2, -1; st") + space.name + ".b64 [%at+8], %rd2; st" +
                space.name + "." + scalar.type + " [%at+8], " + register_of(*kind) + "; ld" +
                space.name + ".b64 %lo, [%at+8];";
        const auto results = run_threads(body);
        for (unsigned t = 0; t < 128; ++t) {
          const uint64_t rest = scalar.bytes < 8 ? ~uint64_t{0} << 8 * scalar.bytes : 0;
          REQUIRE(results[2 * t] == (pattern(t, 8, scalar.bytes) | rest));
        }
      }
    }
  }
}

TEST_CASE("Memory: vectors", "[memory]") {
  struct Vector {
    const char* type;
    unsigned count, bytes;
  };
  const Vector vectors[] = {{"u8", 2, 1},  {"b8", 4, 1},  {"u16", 2, 2}, {"b16", 4, 2},
                            {"b32", 2, 4}, {"u32", 4, 4}, {"b64", 2, 8}};
  for (const Space& space : kSpaces) {
    for (const Vector& v : vectors) {
      const char* kind = v.bytes == 8 ? "%rd" : v.bytes == 4 ? "%r" : "%h";
      std::string list, sum;
      for (unsigned k = 0; k < v.count; ++k) {
        const std::string name = kind + std::to_string(k + 4);
        list += (k ? ", " : "") + name;
        const std::string wide =
            v.bytes == 8 ? "mov.b64 %rd2, " + name
                         : "cvt.u64.u" + std::to_string(v.bytes == 4 ? 32 : 16) + " %rd2, " + name;
        sum += wide + "; mad.lo.u64 %lo, %lo, 1000003, %rd2;\n";
      }
      const std::string form = std::string(".v") + std::to_string(v.count) + "." + v.type;
      INFO("st and ld" << space.name << form);
      const std::string body = std::string(space.declare) + space.address + "ld.global" + form +
                               " {" + list + "}, [%in+16]; st" + space.name + form +
                               " [%at+16], {" + list + "}; ld" + space.name + form + " {" + list +
                               "}, [%at+16];\n" + sum;
      const auto results = run_threads(body);
      for (unsigned t = 0; t < 128; ++t) {
        uint64_t expected = 0;
        for (unsigned k = 0; k < v.count; ++k)
          expected = expected * 1000003 + pattern(t, 16 + k * v.bytes, v.bytes);
        REQUIRE(results[2 * t] == expected);
      }
    }
  }
}

TEST_CASE("Memory: 16 and 32 bytes at a time", "[memory]") {
  const Space& global = kSpaces[2];
  const std::string start = std::string(global.address) + copy_in(global, 1);
  const auto whole = run_threads(start +
                                 "ld.global.b128 %q1, [%at+16]; st.global.b128 [%at+48], %q1;"
                                 "ld.global.v2.b64 {%lo, %hi}, [%at+48];");
  const auto words =
      run_threads(start +
                      "ld.global.v8.b32 {%r0, _, %r2, %r3, %r4, %r5, %r6, %r7}, [%at+32];"
                      "st.global.v8.b32 [%at], {%r7, %r6, %r5, %r4, %r3, %r2, %r2, %r0};"
                      "ld.global.v4.b64 {_, _, %lo, %hi}, [%at];",
                  "sm_100a");
  const auto longs = run_threads(
      start +
          "ld.v4.b64 {%rd0, %rd1, %rd2, %rd3}, [%at+32];"
          "st.v4.b64 [%at], {%rd3, %rd2, %rd1, %rd0}; ld.global.v2.b64 {%lo, %hi}, [%at];",
      "sm_100a");
  for (unsigned t = 0; t < 128; ++t) {
    REQUIRE(whole[2 * t] == pattern(t, 16, 8));
    REQUIRE(whole[2 * t + 1] == pattern(t, 24, 8));
    REQUIRE(words[2 * t] == (pattern(t, 44, 4) | pattern(t, 40, 4) << 32));
    REQUIRE(words[2 * t + 1] == (pattern(t, 40, 4) | pattern(t, 32, 4) << 32));
    REQUIRE(longs[2 * t] == pattern(t, 56, 8));
    REQUIRE(longs[2 * t + 1] == pattern(t, 48, 8));
  }
}

TEST_CASE("Memory: lanes of one access in different spaces", "[memory]") {
  // Threads 0, 4, ... in shared, 1, 5, ... in local, 2, 6, ... in global, 3, 7, ... in constant
  // memory.
  Device device;
  const std::string text = ptx_kernel(
      R"(
.shared .align 8 .b8 s[4096]; .local .align 8 .b8 l[16];
.reg .b64 %at; .reg .b32 %space;
and.b32 %space, %i, 3;
setp.eq.u32 %p0, %space, 0; setp.eq.u32 %p1, %space, 1; setp.eq.u32 %p2, %space, 2;
setp.eq.u32 %p3, %space, 3;
@%p0 mov.u64 %at, s; @%p0 cvta.shared.u64 %at, %at; @%p0 mad.wide.u32 %at, %i, 8, %at;
@%p1 mov.u64 %at, l; @%p1 cvta.local.u64 %at, %at;
@%p2 mov.u64 %at, global; @%p2 cvta.global.u64 %at, %at; @%p2 mad.wide.u32 %at, %i, 8, %at;
@%p3 mov.u64 %at, constant; @%p3 cvta.const.u64 %at, %at;
mad.lo.u32 %r1, %i, 7, 3;
@!%p3 st.u32 [%at+4], %r1;
ld.u32 %r2, [%at+4];
st.global.u32 [%out], %r2;)",
      ".global .align 8 .b8 global[4096];\n.const .align 8 .b32 constant[2] = {1, 99};\n");
  const auto values = results(device, text, 1, 96);
  for (unsigned t = 0; t < 96; ++t) CHECK(values[t] == (t % 4 == 3 ? 99 : t * 7 + 3));
}

TEST_CASE("Memory: parameters of kernels and functions, constants", "[memory]") {
  Device device;
  const std::string functions = R"(
.const .align 4 .b8 bytes[8] = {1, 2, 3, 4, 5, 6, 7, 200};
.func (.param .b32 result) third(.param .align 4 .b8 values[12]) {
.reg .b32 %a, %b; ld.param.u32 %a, [values+8]; ld.param.u8 %b, [values+3];
add.u32 %a, %a, %b; st.param.b32 [result], %a; ret; }
)";
  const std::string text = ptx_kernel(R"(
{ .param .align 4 .b8 values[12]; .param .b32 result;
st.param.b32 [values], 0x09000000; st.param.b32 [values+8], %i;
call.uni (result), third, (values);
ld.param.b32 %r1, [result]; }
ld.const.s8 %r2, [bytes+7]; add.u32 %r1, %r1, %r2; st.global.u32 [%out], %r1;)",
                                      functions);
  const auto values = results(device, text, 1, 64);
  for (unsigned t = 0; t < 64; ++t) CHECK(values[t] == t + 9 - 56);
}

TEST_CASE("Memory: every form that assemblers take", "[memory]") {
  const char* const forms[] = {
      "ld.weak.global.b32 %r2, [%out];",
      "ld.volatile.global.b32 %r2, [%out];",
      "ld.relaxed.cta.global.b32 %r2, [%out];",
      "ld.relaxed.gpu.global.L1::no_allocate.b32 %r2, [%out];",
      "ld.acquire.sys.global.b32 %r2, [%out];",
      "ld.acquire.cluster.b32 %r2, [%out];",
      "ld.mmio.relaxed.sys.global.b32 %r2, [%out];",
      "ld.global.ca.L2::128B.b32 %r2, [%out];",
      "ld.global.cg.b32 %r2, [%out];",
      "ld.global.cs.b32 %r2, [%out];",
      "ld.global.lu.b32 %r2, [%out];",
      "ld.global.cv.b32 %r2, [%out];",
      "ld.global.nc.b32 %r2, [%other];",
      "ld.global.nc.L1::evict_last.L2::64B.b32 %r2, [%other];",
      "ld.global.L1::no_allocate.nc.b32 %r2, [%other];",
      "ld.global.L1::evict_first.L2::cache_hint.L2::256B.b32 %r2, [%out], %policy;",
      "ldu.global.b32 %r2, [%other];",
      "st.weak.global.b32 [%out], %r1; ld.global.b32 %r2, [%out];",
      "st.volatile.global.b32 [%out], %r1; ld.global.b32 %r2, [%out];",
      "st.relaxed.sys.global.b32 [%out], %r1; ld.global.b32 %r2, [%out];",
      "st.release.gpu.global.b32 [%out], %r1; ld.global.b32 %r2, [%out];",
      "st.release.cta.b32 [%out], %r1; ld.global.b32 %r2, [%out];",
      "st.mmio.relaxed.sys.global.b32 [%out], %r1; ld.global.b32 %r2, [%out];",
      "st.global.wb.b32 [%out], %r1; ld.global.b32 %r2, [%out];",
      "st.global.wt.b32 [%out], %r1; ld.global.b32 %r2, [%out];",
      "st.global.L1::evict_last.L2::cache_hint.b32 [%out], %r1, %policy;"
      "ld.global.b32 %r2, [%out];",
      "prefetch.global.L2 [%wild]; prefetch.L1 [%wild]; prefetchu.L1 [%wild]; mov.b32 %r2, %r1;",
      "prefetch.global.L2::evict_last [%out]; applypriority.global.L2::evict_normal [%line], 128;"
      "mov.b32 %r2, %r1;",
      "fence.proxy.async; fence.proxy.alias; fence.mbarrier_init.release.cluster; membar.gl;"
      "fence.sc.sys; fence.acq_rel.cta; fence.acquire.gpu; fence.release.gpu; membar.cta;"
      "membar.sys; fence.gpu; fence.proxy.async.shared::cta; "
      "fence.proxy.tensormap::generic.release.gpu;"
      "mov.b32 %r2, %r1;",
  };
  Device device;
  for (const char* form : forms) {
    INFO(form);
    const auto values = results(device,
                                ptx_kernel(std::string(R"(
.reg .b64 %policy, %other, %wild, %line;
createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %policy, 0f3f000000;
createpolicy.fractional.L2::evict_first.b64 %policy;
mov.u64 %other, other; mad.wide.u32 %other, %i, 4, %other; mov.b64 %wild, 77;
and.b64 %line, %out, -128;
mad.lo.u32 %r1, %i, 3, 5; st.global.b32 [%out], %r1;
)") + form + "\nadd.u32 %r2, %r2, 1; st.global.b32 [%out], %r2;",
                                           ".global .align 4 .b32 other[4] = {5, 8, 11, 14};"),
                                1, 4);
    for (unsigned t = 0; t < 4; ++t) CHECK(values[t] == t * 3 + 6);
  }
}

TEST_CASE("Memory: forms that there are not", "[memory]") {
  const char* const forms[] = {
      "ld.acquire.global.b32 %r1, [%out];",
      "ld.volatile.global.ca.b32 %r1, [%out];",
      "ld.nc.b32 %r1, [%out];",
      "ld.weak.global.nc.b32 %r1, [%out];",
      "ld.global.v2.b128 {%q0, %q1}, [%out];",
      "ld.global.v8.b16 {%h0, %h0, %h0, %h0, %h0, %h0, %h0, %h0}, [%out];",
      "ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%out];",
      "ld.global.v3.b32 {%r0, %r1, %r2}, [%out];",
      "ld.global.v2.b32 {%r0, %r1, %r2}, [%out];",
      "ld.global.f16 %h0, [%out];",
      "ld.global.f32 %d0, [%out];",
      "ld.global.b64 %r0, [%out];",
      "ld.global.b32.ca %r0, [%out];",
      "ld.global.b32 %r0, [%out], %rd1;",
      "ld.texture.b32 %r0, [%out];",
      "ld.relaxed.block.global.b32 %r0, [%out];",
      "st.acquire.gpu.global.b32 [%out], %r0;",
      "st.const.b32 [%out], %r0;",
      "st.global.nc.b32 [%out], %r0;",
      "st.global.b32 [%out], {%r0, %r1};",
      "st.global.b32 %r0, [%out];",
      "prefetch.global.L3 [%out];",
      "prefetch.shared.L1 [%out];",
      "discard.global.L2 [%out], 64;",
      "discard.global.L1 [%out], 128;",
      "applypriority.global.L2::evict_last [%out], 128;",
      "membar.gpu;",
      "fence.sc;",
      "fence.weak.gpu;",
      "fence.proxy.texture;",
      "fence.mbarrier_init.acquire.cluster;",
      "atom.global.add.s64 %rd0, [%out], %rd1;",
      "atom.global.add.b32 %r0, [%out], %r1;",
      "atom.global.exch.u32 %r0, [%out], %r1;",
      "atom.global.inc.u64 %rd0, [%out], %rd1;",
      "atom.global.min.f32 %f0, [%out], %f1;",
      "atom.global.and.u32 %r0, [%out], %r1;",
      "atom.global.cas.b32 %r0, [%out], %r1;",
      "atom.global.add.f16 %h0, [%out], %h1;",
      "atom.global.min.noftz.f16 %h0, [%out], %h1;",
      "atom.global.add.noftz.u32 %r0, [%out], %r1;",
      "atom.shared.add.v2.f32 {%f0, %f1}, [%rd0], {%f2, %f3};",
      "atom.local.add.u32 %r0, [%rd0], %r1;",
      "atom.global.add.v2.u32 {%r0, %r1}, [%out], {%r2, %r3};",
      "atom.weak.global.add.u32 %r0, [%out], %r1;",
      "red.global.exch.b32 [%out], %r1;",
      "red.acquire.gpu.global.add.u32 [%out], %r1;",
      "red.global.add.u32 %r0, [%out], %r1;",
  };
  Device device;
  for (const char* form : forms) {
    INFO(form);
    const std::string text =
        ptx_kernel(std::string(".reg .b16 %h<4>; .reg .f64 %d<4>; .reg .b128 %q<4>;\n") + form);
    CUmodule module = nullptr;
    CHECK(call<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, text.c_str()) ==
          CUDA_ERROR_INVALID_PTX);
  }
}

}  // namespace emulator_test
