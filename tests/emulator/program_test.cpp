// What a program is made of: registers, parameters, variables in all spaces, special registers; and
// that a seed gives the same run again.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "tests/emulator/ptx_kernel.h"

namespace emulator_test {
namespace {

using Catch::Contains;

const std::string kStore = "\nst.global.u32 [%out], %r0;";

std::vector<uint32_t> run(const std::string& body, unsigned blocks = 1, unsigned threads = 32,
                          const std::string& before = "", unsigned shared = 0) {
  Device device;
  return results(device, ptx_kernel(body + kStore, before), blocks, threads, shared);
}

std::vector<uint32_t> expected(const std::function<uint32_t(uint32_t)>& thread,
                               uint32_t threads = 32) {
  std::vector<uint32_t> values(threads);
  for (uint32_t i = 0; i < threads; ++i) values[i] = thread(i);
  return values;
}

// A program of random steps on registers of three sizes, with branches by lane and loops; and the
// same on the host. A few registers live from the start to the end, the others are written once and
// read for a while, in the block that wrote them or in blocks within it.
class RandomProgram {
 public:
  static constexpr int kLasting = 8, kSteps = 14;

  explicit RandomProgram(unsigned seed) : random_(seed) {
    for (int r = 0; r < kLasting; ++r) {
      add("mad.lo.u32 " + lasting(r) + ", %i, 77, " + std::to_string(r));
      for (uint32_t i = 0; i < 32; ++i) values_[r][i] = i * 77 + uint32_t(r);
    }
    block(~0u, 4);
    add("mov.u32 %r0, 0");
    for (int r = 0; r < kLasting; ++r) add("mad.lo.u32 %r0, %r0, 31, " + lasting(r));
    results_.assign(32, 0);
    for (uint32_t i = 0; i < 32; ++i) {
      for (int r = 0; r < kLasting; ++r) results_[i] = results_[i] * 31 + uint32_t(values_[r][i]);
    }
  }
  std::string text() const {
    const std::string count = "<" + std::to_string(most_) + ">; ";
    return ".reg .b32 %lasting<8>, %w" + count + ".reg .b64 %l" + count + ".reg .b16 %h" + count +
           "\n" + text_;
  }
  std::vector<uint32_t> results() const { return results_; }

 private:
  struct Written {
    char kind;  // w l h: 32, 64 and 16 bits
    std::string name;
    std::array<uint64_t, 32> values;
  };

  static std::string lasting(int r) { return "%lasting" + std::to_string(r); }
  int below(size_t n) { return int(random_() % n); }
  void add(const std::string& line) { text_ += line + ";\n"; }

  // A value of 32 bits for an operand: of any register that is written on this way.
  std::string operand(std::array<uint64_t, 32>& values) {
    if (written_.empty() || below(4) == 0) {
      const int r = below(kLasting);
      values = values_[size_t(r)];
      return lasting(r);
    }
    const Written& from =
        written_[written_.size() - 1 - below(std::min<size_t>(written_.size(), 60))];
    values = from.values;
    if (from.kind == 'w') return from.name;
    add(std::string("cvt.u32.") + (from.kind == 'l' ? "u64" : "u16") + " %r1, " + from.name);
    for (uint64_t& value : values) value = uint32_t(value);
    return "%r1";
  }

  void step(uint32_t lanes) {
    std::array<uint64_t, 32> a, b;
    const int what = below(5);
    const std::string first = operand(a);
    add("mov.u32 %r2, " + first);
    const std::string second = operand(b);
    if (what == 0) {
      const int r = below(kLasting);
      add("mad.lo.u32 " + lasting(r) + ", %r2, 3, " + second);
      for (int i = 0; i < 32; ++i) {
        if (lanes >> i & 1)
          values_[size_t(r)][size_t(i)] = uint32_t(a[size_t(i)] * 3 + b[size_t(i)]);
      }
      return;
    }
    Written fresh{what == 1 ? 'l' : what == 2 ? 'h' : 'w', "", {}};
    fresh.name = std::string("%") + fresh.kind + std::to_string(names_++);
    most_ = std::max(most_, names_);
    if (fresh.kind == 'l') {
      add("mul.wide.u32 " + fresh.name + ", %r2, " + second);
      add("shr.u64 " + fresh.name + ", " + fresh.name + ", 7");
    } else {
      add("xor.b32 %r3, %r2, " + second);
      add(fresh.kind == 'h' ? "cvt.u16.u32 " + fresh.name + ", %r3"
                            : "add.u32 " + fresh.name + ", %r3, 99");
    }
    for (size_t i = 0; i < 32; ++i) {
      fresh.values[i] = fresh.kind == 'l'   ? (a[i] * b[i]) >> 7
                        : fresh.kind == 'h' ? uint16_t(a[i] ^ b[i])
                                            : uint32_t((a[i] ^ b[i]) + 99);
    }
    written_.push_back(fresh);
  }

  void steps(uint32_t lanes) {
    for (int i = 0; i < kSteps; ++i) step(lanes);
  }

  void block(uint32_t lanes, int depth) {
    steps(lanes);
    if (depth > 0) {
      if (depth % 2) loop(lanes);
      branch(lanes, depth);
      steps(lanes);
    }
  }

  // Steps again as often as the lane's number says, modulo four, and once.
  void loop(uint32_t lanes) {
    const std::string name = "LOOP" + std::to_string(labels_++);
    const std::string counter = "%w" + std::to_string(names_++);
    add("and.b32 " + counter + ", %i, 3");
    text_ += name + ":\n";
    const std::mt19937 before = random_;
    const std::vector<Written> outside = written_;
    const int names = names_;
    steps(lanes);
    add("sub.u32 " + counter + ", " + counter + ", 1");
    add("setp.ge.s32 %p0, " + counter + ", 0");
    add("@%p0 bra " + name);
    const std::string text = text_;
    for (uint32_t round = 1; round < 4; ++round) {
      uint32_t still = 0;
      for (uint32_t i = 0; i < 32; ++i) still |= uint32_t((i & 3) >= round) << i;
      random_ = before;
      written_ = outside;
      names_ = names;
      steps(lanes & still);
    }
    text_ = text;
    written_ = outside;
  }

  // if (word < bound) ... else ...
  void branch(uint32_t lanes, int depth) {
    const std::string name = std::to_string(labels_++);
    std::array<uint64_t, 32> by;
    const std::string operand_text = operand(by);
    const uint32_t bound = uint32_t(random_());
    uint32_t then = 0;
    for (size_t i = 0; i < 32; ++i) then |= uint32_t((lanes >> i & 1) && by[i] < bound) << i;
    add("setp.lt.u32 %p0, " + operand_text + ", " + std::to_string(bound));
    add("@%p0 bra THEN" + name);
    const size_t outside = written_.size();
    block(lanes & ~then, depth - 1);
    written_.resize(outside);
    add("bra JOIN" + name);
    text_ += "THEN" + name + ":\n";
    block(then, depth - 1);
    written_.resize(outside);
    text_ += "JOIN" + name + ":\n";
  }

  std::mt19937 random_;
  std::string text_;
  int labels_ = 0, names_ = 0, most_ = 1;
  std::array<std::array<uint64_t, 32>, kLasting> values_{};
  std::vector<Written> written_;
  std::vector<uint32_t> results_;
};

}  // namespace

TEST_CASE("Program: many registers of all sizes under divergence", "[program]") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const RandomProgram program(seed);
    INFO("seed " << seed);
    CHECK(run(program.text()) == program.results());
  }
}

TEST_CASE("Program: thousands of registers that live shortly", "[program]") {
  // A chain of 7000 registers, and a sum of 200 that all live at the end.
  std::string text = ".reg .b32 %c<7200>;\nmov.u32 %c0, %i;\n";
  uint32_t value = 5;
  for (int r = 1; r < 7000; ++r) {
    text += "mad.lo.u32 %c" + std::to_string(r) + ", %c" + std::to_string(r - 1) + ", 3, " +
            std::to_string(r) + ";\n";
    value = value * 3 + uint32_t(r);
  }
  uint32_t sum = 0;
  for (int r = 0; r < 200; ++r) {
    text += "add.u32 %c" + std::to_string(7000 + r) + ", %c6999, " + std::to_string(r * r) + ";\n";
    sum += value + uint32_t(r * r);
  }
  text += "mov.u32 %r0, 0;\n";
  for (int r = 0; r < 200; ++r) text += "add.u32 %r0, %r0, %c" + std::to_string(7000 + r) + ";\n";
  CHECK(run(text)[5] == sum);
}

TEST_CASE("Program: registers are undefined until they are written, on every way", "[program]") {
  const auto report = [](const std::string& body) {
    return report_of(ptx_kernel(body + kStore), 1, 32);
  };
  CHECK_THAT(report(""), Contains("undefined value: the stored value"));
  // Another register had the same place before.
  CHECK_THAT(report("mov.u32 %r1, 4; add.u32 %r2, %r1, 1; st.global.u32 [%out], %r2;"),
             Contains("undefined value"));
  CHECK_THAT(report("setp.lt.u32 %p0, %i, 9; @%p0 mov.u32 %r0, 1;"), Contains("thread (9, 0, 0)"));
  CHECK_THAT(report("setp.lt.u32 %p0, %i, 9; @%p0 bra END; mov.u32 %r0, 1;\nEND:"),
             Contains("thread (0, 0, 0)"));
  // Written in the first round of a loop, but not by all.
  CHECK_THAT(report("mov.u32 %r1, 0;\nLOOP: add.u32 %r2, %r1, %i; setp.ne.u32 %p0, %r2, 5;"
                    "@%p0 bra SKIP; mov.u32 %r0, 1;\nSKIP: add.u32 %r1, %r1, 1;"
                    "setp.lt.u32 %p1, %r1, 3; @%p1 bra LOOP;"),
             Contains("thread (0, 0, 0)"));
  CHECK(report("mov.u32 %r1, 0;\nLOOP: add.u32 %r2, %r1, %i; setp.ge.u32 %p0, %r2, 40;"
               "@%p0 bra SKIP; mov.u32 %r0, 1;\nSKIP: add.u32 %r1, %r1, 1;"
               "setp.lt.u32 %p1, %r1, 3; @%p1 bra LOOP;") == "");
}

TEST_CASE("Program: parameters of all types lie at their alignment", "[program]") {
  Device device;
  const CUfunction function = device.load(R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry test(.param .u8 a, .param .f64 b, .param .u16 c, .param .u64 out, .param .f32 d,
                     .param .align 8 .b8 e[24], .param .s8 f) {
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f64 %f<9>; .reg .f32 %s<9>;
ld.param.u64 %rd0, [out];
ld.param.u8 %r0, [a]; st.global.u32 [%rd0], %r0;
ld.param.f64 %f0, [b]; cvt.rzi.u32.f64 %r1, %f0; st.global.u32 [%rd0+4], %r1;
ld.param.u16 %r2, [c]; st.global.u32 [%rd0+8], %r2;
ld.param.f32 %s0, [d]; cvt.rzi.u32.f32 %r3, %s0; st.global.u32 [%rd0+12], %r3;
ld.param.u64 %rd1, [e+16]; cvt.u32.u64 %r4, %rd1; st.global.u32 [%rd0+16], %r4;
ld.param.s8 %r5, [f]; st.global.u32 [%rd0+20], %r5;
mov.b64 %rd2, e; ld.param.u32 %r6, [%rd2+8]; st.global.u32 [%rd0+24], %r6;
mov.b64 %rd3, e; cvta.param.u64 %rd3, %rd3; ld.u32 %r7, [%rd3+4]; st.global.u32 [%rd0+28], %r7;
ret;
}
)",
                                          "test");
  const Buffer out = Buffer::of(std::vector<uint32_t>(8));
  struct {
    uint32_t words[6] = {1, 2, 3, 4, 5, 6};
  } e;
  device.run(function, {1}, {1}, 0, uint8_t(200), 1234.5, uint16_t(60000), out.address(), 77.0f, e,
             int8_t(-3));
  CHECK(out.read<uint32_t>() == std::vector<uint32_t>{200, 1234, 60000, 77, 5, uint32_t(-3), 3, 2});
}

TEST_CASE("Program: kernel parameters are not written, nor read beyond", "[program]") {
  CHECK_THAT(report_of(ptx_kernel("mov.b64 %rd0, out; cvta.param.u64 %rd0, %rd0;"
                                  "st.u32 [%rd0], %i;"),
                       1, 32),
             Contains("read-only"));
  CHECK_THAT(report_of(ptx_kernel("mov.b64 %rd0, out; ld.param.u64 %rd1, [%rd0+8];"), 1, 32),
             Contains("out of bounds"));
}

TEST_CASE("Program: shared variables lie where banks agree with a packed layout", "[program]") {
  const std::string shared =
      ".shared .align 4 .b8 one[100]; .shared .align 16 .b8 two[40];"
      ".shared .align 4 .b8 three[8]; .extern .shared .align 16 .b8 rest[];";
  const auto address = [&](const std::string& name) {
    return run("mov.u32 %r0, " + name +
                   "; mov.u32 %r1, one; st.shared.u32 [%r1], 0;"
                   "mov.u32 %r1, two; st.shared.u32 [%r1], 0; mov.u32 %r1, three;"
                   "st.shared.u32 [%r1], 0; mov.u32 %r1, rest; st.shared.u32 [%r1], 0;",
               1, 1, shared, 64)[0];
  };
  CHECK(address("one") % 128 == 0);
  CHECK(address("two") % 128 == 112);
  CHECK(address("three") % 128 == 152 - 128);
  CHECK(address("rest") % 128 == 160 - 128);
  Device device;
  const CUfunction function = device.load(
      ptx_kernel("mov.u32 %r0, one; mov.u32 %r0, two; mov.u32 %r0, three; mov.u32 %r0, rest;",
                 shared),
      "test");
  int bytes = 0;
  call<decltype(&cuFuncGetAttribute)>("cuFuncGetAttribute")(
      &bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
  CHECK(bytes == 160);
}

TEST_CASE("Program: shared memory beyond a variable is out of bounds", "[program]") {
  const auto report = [](const std::string& body, unsigned dynamic) {
    return report_of(ptx_kernel("mov.u32 %r1, one; mov.u32 %r2, two; mov.u32 %r3, rest;"
                                "setp.ne.u32 %p0, %i, 0; @%p0 exit;" +
                                    body,
                                ".shared .align 4 .b8 one[100]; .shared .align 16 .b8 two[40];"
                                ".extern .shared .align 16 .b8 rest[];"),
                     1, 32, dynamic);
  };
  CHECK(report("st.shared.u32 [%r1+96], 0; st.shared.u32 [%r2+36], 0; st.shared.u32 [%r3+60], 0;",
               64) == "");
  CHECK_THAT(report("st.shared.u32 [%r1+100], 0;", 64), Contains("out of bounds"));
  CHECK_THAT(report("st.shared.u32 [%r1+240], 0;", 64), Contains("out of bounds"));
  CHECK_THAT(report("st.shared.u32 [%r2+40], 0;", 64), Contains("out of bounds"));
  CHECK_THAT(report("st.shared.u32 [%r2+-4], 0;", 64), Contains("out of bounds"));
  CHECK_THAT(report("st.shared.u32 [%r3+64], 0;", 64), Contains("out of bounds"));
  CHECK_THAT(report("st.shared.u32 [%r3], 0;", 0), Contains("out of bounds"));
  CHECK_THAT(report("ld.shared.u32 %r4, [%r3+-4];", 64), Contains("out of bounds"));
}

TEST_CASE("Program: variables that kernels do not share may share their place", "[program]") {
  // Two kernels with 30000 bytes each: more than one has, were they laid out in a row.
  const std::string second =
      ".visible .entry other() {\n.shared .align 4 .b8 mine[30000];\n.reg .b32 %r0;\n"
      "mov.u32 %r0, mine; st.shared.u32 [%r0+29996], 1; ret;\n}\n";
  const std::string body =
      ".shared .align 4 .b8 here[30000]; mov.u32 %r1, here;"
      "st.shared.u32 [%r1+29996], 5; ld.shared.u32 %r0, [%r1+29996];";
  CHECK(run(body, 1, 1, second)[0] == 5);
}

TEST_CASE("Program: a function uses the caller's dynamic shared memory", "[program]") {
  const std::string function =
      ".extern .shared .align 16 .b8 rest[]; .shared .align 4 .b8 own[12];\n"
      ".func put(.param .b32 v) { .reg .b32 %v, %a; ld.param.b32 %v, [v]; mov.u32 %a, rest;"
      "st.shared.u32 [%a+4], %v; ret; }\n";
  CHECK(run("mov.u32 %r1, own; st.shared.u32 [%r1], 3;"
            "{ .param .b32 p; st.param.b32 [p], 41; call put, (p); }\n"
            "mov.u32 %r2, rest; ld.shared.u32 %r0, [%r2+4]; ld.shared.u32 %r3, [%r1];"
            "add.u32 %r0, %r0, %r3;",
            1, 1, function, 16)[0] == 44);
}

TEST_CASE("Program: local variables of activations", "[program]") {
  // Each activation has its own; a caller's is reached by its address.
  const std::string function = R"(
.func (.param .b32 r) deeper(.param .b32 n, .param .b64 a) {
.local .align 4 .b8 own[8]; .reg .b32 %n, %m, %v; .reg .b64 %a, %b; .reg .pred %p;
ld.param.b32 %n, [n]; ld.param.b64 %a, [a];
mov.u64 %b, own; st.local.u32 [%b], %n; st.local.u32 [own+4], %n;
setp.eq.u32 %p, %n, 0; mov.u32 %v, 0; @%p bra END;
sub.u32 %m, %n, 1;
{ .param .b32 p; .param .b64 q; .param .b32 s; st.param.b32 [p], %m; st.param.b64 [q], %b;
call (s), deeper, (p, q); ld.param.b32 %v, [s]; }
END: ld.local.u32 %m, [own]; ld.local.u32 %n, [%a]; mad.lo.u32 %v, %v, 10, %n; add.u32 %v, %v, %m;
st.param.b32 [r], %v; ret;
}
)";
  // value(n) = 10 value(n - 1) + word at the caller's address + n; the kernel's word is 7.
  const auto got =
      run(".local .align 8 .b8 mine[16]; and.b32 %r1, %i, 3; mov.u32 %r9, 7;"
          "st.local.u32 [mine+8], %r9; mov.u64 %rd0, mine; add.u64 %rd0, %rd0, 8;"
          "{ .param .b32 p; .param .b64 q; .param .b32 s; st.param.b32 [p], %r1;"
          "st.param.b64 [q], %rd0; call (s), deeper, (p, q); ld.param.b32 %r0, [s]; }",
          1, 32, function);
  const auto value = [](uint32_t n) {
    uint32_t v = 0;
    for (uint32_t k = 0; k <= n; ++k) v = v * 10 + (k == n ? 7 : k + 1) + k;
    return v;
  };
  CHECK(got == expected([&](uint32_t i) { return value(i & 3); }));
  const auto report = [](const std::string& body) {
    return report_of(
        ptx_kernel(".local .align 4 .b8 mine[16]; .local .align 4 .b8 more[4];" + body), 1, 32);
  };
  CHECK_THAT(report("st.local.u32 [mine+16], %i;"), Contains("out of bounds"));
  CHECK_THAT(report("st.local.u32 [more+4], %i;"), Contains("out of bounds"));
  CHECK_THAT(report("st.local.u32 [more+-4], %i;"), Contains("out of bounds"));
}

TEST_CASE("Program: constant and global variables with initial values and addresses", "[program]") {
  const std::string variables = R"(
.const .align 4 .u32 table[4] = {10, 20, 30};
.const .align 8 .u64 where = generic(table);
.global .align 4 .u32 counter = 5;
.global .align 8 .u64 pointer = counter;
.global .align 8 .u64 inside = table + 8;
)";
  CHECK(run("and.b32 %r1, %i, 3; shl.b32 %r1, %r1, 2; mov.u32 %r2, table; add.u32 %r2, %r2, %r1;"
            "ld.const.u32 %r0, [%r2];",
            1, 32, variables) == expected([](uint32_t i) { return 10 * ((i & 3) + 1) % 40; }));
  CHECK(run("ld.const.u64 %rd0, [where]; ld.u32 %r0, [%rd0+4];", 1, 1, variables)[0] == 20);
  CHECK(run("ld.global.u64 %rd0, [inside]; ld.const.u32 %r0, [%rd0];", 1, 1, variables)[0] == 30);
  CHECK(run("ld.global.u64 %rd0, [pointer]; atom.global.add.u32 %r1, [%rd0], 3;"
            "ld.global.u32 %r0, [counter];",
            1, 1, variables)[0] == 8);
  Device device;
  device.load(ptx_kernel("", variables), "test");
  CUdeviceptr address = 0;
  size_t bytes = 0;
  require_success(call<CUresult (*)(CUdeviceptr*, size_t*, CUmodule, const char*)>(
                      "cuModuleGetGlobal_v2")(&address, &bytes, device.module(), "table"),
                  "cuModuleGetGlobal");
  CHECK(bytes == 16);
  uint32_t values[4] = {};
  require_success(call<CUresult (*)(void*, CUdeviceptr, size_t)>("cuMemcpyDtoH_v2")(values, address,
                                                                                    sizeof values),
                  "cuMemcpyDtoH");
  CHECK(values[1] == 20);
  CHECK(values[3] == 0);
}

TEST_CASE("Program: special registers", "[program]") {
  const auto special = [](const std::string& name) {
    return run("mov.u32 %r0, " + name + ";", 3, 70);
  };
  const auto all = [](const std::function<uint32_t(uint32_t)>& thread) {
    return expected(thread, 210);
  };
  CHECK(special("%tid.x") == all([](uint32_t g) { return g % 70; }));
  CHECK(special("%tid.y") == all([](uint32_t) { return 0u; }));
  CHECK(special("%ntid.x") == all([](uint32_t) { return 70u; }));
  CHECK(special("%ctaid.x") == all([](uint32_t g) { return g / 70; }));
  CHECK(special("%nctaid.x") == all([](uint32_t) { return 3u; }));
  CHECK(special("%laneid") == all([](uint32_t g) { return g % 70 % 32; }));
  CHECK(special("%warpid") == all([](uint32_t g) { return g % 70 / 32; }));
  CHECK(special("%nwarpid") == all([](uint32_t) { return 3u; }));
  CHECK(special("%lanemask_lt") == all([](uint32_t g) { return (1u << g % 70 % 32) - 1; }));
  CHECK(special("%lanemask_le") == all([](uint32_t g) { return (2u << g % 70 % 32) - 1; }));
  CHECK(special("%lanemask_eq") == all([](uint32_t g) { return 1u << g % 70 % 32; }));
  CHECK(special("%lanemask_gt") == all([](uint32_t g) { return ~((2u << g % 70 % 32) - 1); }));
  CHECK(special("%lanemask_ge") == all([](uint32_t g) { return ~((1u << g % 70 % 32) - 1); }));
  CHECK(special("%cluster_nctarank") == all([](uint32_t) { return 1u; }));
  CHECK(run("mov.u32 %r0, %dynamic_smem_size;", 1, 1, "", 48)[0] == 48);
  // By cvt, in a vector; a clock that goes on.
  CHECK(run(".reg .b16 %h; cvt.u16.u32 %h, %tid.x; cvt.u32.u16 %r0, %h;", 3, 70) ==
        all([](uint32_t g) { return g % 70; }));
  CHECK(run("mov.u64 %rd0, %clock64; mov.u64 %rd1, %clock64; setp.lt.u64 %p0, %rd0, %rd1;"
            "selp.u32 %r0, 1, 0, %p0;",
            1, 1)[0] == 1);
}

TEST_CASE("Program: operands that assemblers refuse", "[program]") {
  Device device;
  const auto loads = [&](const std::string& body) {
    const std::string ptx = ptx_kernel(".shared .align 4 .b8 s[16]; .reg .b16 %h<3>;" + body, "");
    CUmodule module = nullptr;
    const auto load = call<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData");
    const bool good = load(&module, ptx.c_str()) == CUDA_SUCCESS;
    if (good) call<CUresult (*)(CUmodule)>("cuModuleUnload")(module);
    return good;
  };
  for (const char* good :
       {"mov.b64 %rd1, {%tid.x, %r1};", "mov.b32 %r1, {%h1, 5};", "mov.pred %p1, 1;",
        "and.pred %p1, %p2, 1;", "selp.b16 %h1, %h1, 0x3C00, %p1;", "mov.b32 %r1, 0f3F800000;",
        "add.f32 %f1, %f1, 1.0;", "add.f32 %f1, %f1, 0d3FF0000000000000;", "ld.local.u32 %r1, [4];",
        "mov.u32 %r1, s+4;", "ld.shared.u32 %r1, [s+4];", "cvta.shared.u64 %rd1, s;",
        "mov.u32 %r1, %gridid;", "mov.u64 %rd1, %gridid;", "mov.b32 %r1, %f1;",
        "mov.pred %p1, %is_explicit_cluster;"}) {
    INFO(good);
    CHECK(loads(good));
  }
  for (const char* bad : {"add.u32 %r1, %r2, %tid.x;",
                          "st.shared.u32 [s], %tid.x;",
                          "mov.u64 %rd1, %tid.x;",
                          "mov.u32 %r1, %clock64;",
                          "mov.u32 %r1, %nothing;",
                          "add.f32 %f1, %f1, 1;",
                          "fma.rn.f16 %h1, %h1, 0x3C00, %h1;",
                          "add.u32 %r1, s, 4;",
                          "st.shared.u64 [s], out;",
                          "ld.shared.u32 %r1, [100];",
                          "ld.global.u32 %r1, [s];",
                          "st.global.u32 [%r1], %r1;",
                          "mov.u32 %r1, %f1;",
                          "and.b32 %r1, %rd1, 3;",
                          "add.u32 %f1, %r1, %r2;",
                          "mov.b32 %r1, 1.5;",
                          "add.u32 %r1|%p1, %r2, %r3;",
                          "mov.u32 _, %r1;",
                          "mov.u32 5, %r1;",
                          "add.u32 %r1, {%r1, %r2}, 3;",
                          "mov.u32 %r1, !%p1;",
                          "bra 5;",
                          "exit.uni;"}) {
    INFO(bad);
    CHECK_FALSE(loads(bad));
  }
}

TEST_CASE("Program: threads of blocks and grids with three axes", "[program]") {
  Device device;
  const CUfunction function = device.load(
      ptx_kernel("mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;"
                 "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;"
                 // The number of the thread in the grid, x fastest, by block.
                 "mad.lo.u32 %r7, %r6, 3, %r5; mad.lo.u32 %r7, %r7, 2, %r4;"
                 "mad.lo.u32 %r8, %r3, 3, %r2; mad.lo.u32 %r8, %r8, 5, %r1;"
                 "mad.lo.u32 %r9, %r7, 60, %r8; ld.param.u64 %rd0, [out];"
                 "mul.wide.u32 %rd1, %r9, 4; add.u64 %rd0, %rd0, %rd1; add.u32 %r9, %r9, 1;"
                 "st.global.u32 [%rd0], %r9;"),
      "test");
  const Buffer out = Buffer::of(std::vector<uint32_t>(24 * 60));
  device.run(function, {2, 3, 4}, {5, 3, 4}, 0, out.address());
  CHECK(out.read<uint32_t>() == expected([](uint32_t g) { return g + 1; }, 24 * 60));
}

namespace {

// The order in which warps come to one place, by an atomic counter in shared memory.
const std::string kOrder =
    "mov.u32 %r1, next; setp.ne.u32 %p0, %i, 0; @!%p0 st.shared.u32 [%r1], 0; bar.sync 0;"
    "mov.u32 %r2, 0;\nLOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 50; @%p1 bra LOOP;\n"
    "atom.relaxed.cta.shared.add.u32 %r0, [%r1], 1;";
const std::string kNext = ".shared .align 4 .u32 next;";

}  // namespace

TEST_CASE("Program: a seed gives the same interleaving again, others give others", "[program]") {
  const auto order = [](uint64_t seed) {
    Device device;
    device.seed(seed);
    return results(device, ptx_kernel(kOrder + kStore, kNext), 4, 256);
  };
  const auto first = order(1);
  CHECK(order(1) == first);
  int others = 0;
  for (uint64_t seed = 2; seed < 8; ++seed) others += order(seed) != first;
  CHECK(others == 6);
  // The blocks of one launch differ too.
  CHECK(std::vector(first.begin(), first.begin() + 256) !=
        std::vector(first.begin() + 256, first.begin() + 512));
}

TEST_CASE("Program: a seed gives the same report again, that of the first block", "[program]") {
  // Blocks 2, 3, 4 ... store an undefined value, at the warp that comes last. Block 2 waits for
  // block 3 to begin; one of the two goes round a loop before it stores.
  const auto body = [](const std::string& late) {
    return kOrder +
           "mov.u32 %r4, %ctaid.x; setp.lt.u32 %p2, %r4, 2; @%p2 exit;"
           "setp.lt.u32 %p3, %r0, 224; @%p3 exit; mov.u32 %r5, 0;"
           "setp.eq.u32 %p6, %r4, 3; @%p6 atom.relaxed.gpu.global.exch.b32 %r6, [begun], 1;"
           "setp.ne.u32 %p6, %r4, 2; @%p6 bra GO;\n"
           "WAIT: ld.relaxed.gpu.global.u32 %r6, [begun]; setp.eq.u32 %p6, %r6, 0;"
           "@%p6 bra WAIT;\nGO: setp.ne.u32 %p4, %r4, " +
           late +
           "; @%p4 bra NOW;\nAGAIN: add.u32 %r5, %r5, 1; setp.lt.u32 %p5, %r5, 8000;"
           "@%p5 bra AGAIN;\nNOW: st.global.u32 [%out], %r60;";
  };
  const std::string variables = kNext + ".global .align 4 .u32 begun = 0;";
  for (const std::string late : {"2", "3"}) {
    const std::string first = report_of(ptx_kernel(body(late), variables), 40, 256, 0, 3);
    CHECK_THAT(first, Contains("block (2, 0, 0)"));
    CHECK(report_of(ptx_kernel(body(late), variables), 40, 256, 0, 3) == first);
  }
}

}  // namespace emulator_test
