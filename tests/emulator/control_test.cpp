// Control flow: branches and where lanes meet again, indirect branches, calls, exits.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/emulator/ptx_kernel.h"

namespace emulator_test {
namespace {

using Catch::Contains;

const std::string kStore = "\nst.global.u32 [%out], %r0;";
// Marks a place: the only instructions of their class, so that their number is known.
const std::string kMark = "add.rn.f64 %mark, %mark, %mark;";
const std::string kDeclare =
    ".reg .f64 %mark; mov.f64 %mark, 0d0000000000000000; mov.u32 %r0, 0;\n";

struct Ran {
  std::vector<uint32_t> values;
  uint64_t marks = 0, marked_threads = 0, branches = 0, divergent = 0;
};

Ran run(const std::string& body, unsigned threads = 32, const std::string& before = "") {
  Device device;
  Ran ran;
  ran.values = results(device, ptx_kernel(kDeclare + body + kStore, before), 1, threads);
  const nlohmann::json launch = device.statistics().at("launches").at(0);
  ran.marks = launch.at("warp_instructions").at("by_class").value("float64", 0);
  ran.marked_threads = launch.at("thread_instructions").at("by_class").value("float64", 0);
  ran.branches = launch.at("branches").at("all");
  ran.divergent = launch.at("branches").at("divergent");
  return ran;
}

std::string report(const std::string& body, const std::string& before = "") {
  return report_of(ptx_kernel(kDeclare + body + kStore, before), 1, 32);
}

std::vector<uint32_t> expected(const std::function<uint32_t(uint32_t)>& lane,
                               uint32_t threads = 32) {
  std::vector<uint32_t> values(threads);
  for (uint32_t i = 0; i < threads; ++i) values[i] = lane(i);
  return values;
}

}  // namespace

TEST_CASE("Control: two sides of a branch meet behind it", "[control]") {
  const Ran ran = run("setp.lt.u32 %p0, %i, 10; @%p0 bra LESS;\n" + kMark +
                      "mov.u32 %r0, 5; bra JOIN;\nLESS: mov.u32 %r0, 6;" + kMark +
                      "\nJOIN:" + kMark + "add.u32 %r0, %r0, %i;");
  CHECK(ran.values == expected([](uint32_t i) { return i + (i < 10 ? 6 : 5); }));
  CHECK(ran.marks == 3);
  CHECK(ran.marked_threads == 64);
  CHECK(ran.branches == 2);
  CHECK(ran.divergent == 1);
}

TEST_CASE("Control: the order of writing does not matter to where lanes meet", "[control]") {
  // The join is written first, the sides behind it.
  const Ran ran = run("bra START;\nJOIN:" + kMark +
                      "add.u32 %r0, %r0, %i; bra END;\n"
                      "LESS: mov.u32 %r0, 6; bra JOIN;\nMORE: mov.u32 %r0, 5; bra JOIN;\n"
                      "START: setp.lt.u32 %p0, %i, 10; @%p0 bra LESS; bra MORE;\nEND:");
  CHECK(ran.values == expected([](uint32_t i) { return i + (i < 10 ? 6 : 5); }));
  CHECK(ran.marks == 1);
}

TEST_CASE("Control: lanes leave a loop at different times and meet behind it", "[control]") {
  const Ran ran = run("and.b32 %r1, %i, 7; mov.u32 %r2, 0;\nLOOP:" + kMark +
                      "add.u32 %r0, %r0, %r2; add.u32 %r2, %r2, 1; setp.le.u32 %p0, %r2, %r1;"
                      "@%p0 bra LOOP;\n" +
                      kMark);
  CHECK(ran.values == expected([](uint32_t i) { return (i & 7) * ((i & 7) + 1) / 2; }));
  CHECK(ran.marks == 8 + 1);
  CHECK(ran.marked_threads == 4 * 36 + 32);
  CHECK(ran.divergent == 7);
}

TEST_CASE("Control: sides of a branch within a loop meet in each round", "[control]") {
  const Ran ran =
      run("mov.u32 %r1, 0;\nLOOP: add.u32 %r2, %i, %r1; and.b32 %r2, %r2, 3;"
          "setp.eq.u32 %p0, %r2, 0; @%p0 bra ZERO;\nadd.u32 %r0, %r0, 1; bra JOIN;\n"
          "ZERO: add.u32 %r0, %r0, 10;\nJOIN:" +
          kMark + "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 8; @%p1 bra LOOP;\n" + kMark);
  CHECK(ran.values == expected([](uint32_t) { return 2 * 10 + 6u; }));
  CHECK(ran.marks == 9);
}

TEST_CASE("Control: loops in loops, with breaks out of both", "[control]") {
  // Sum over a < 6, b < 6 of a * b until a * b reaches the lane's number; written inside out.
  const Ran ran =
      run("mov.u32 %r1, 0; bra OUTER;\n"
          "INNER: mul.lo.u32 %r3, %r1, %r2; setp.ge.u32 %p0, %r3, %i;"
          "setp.ne.u32 %p1, %r3, 0; and.pred %p0, %p0, %p1; @%p0 bra DONE;\n"
          "add.u32 %r0, %r0, %r3; add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 6;"
          "@%p0 bra INNER;\nadd.u32 %r1, %r1, 1; setp.ge.u32 %p0, %r1, 6;"
          "@%p0 bra DONE;\nOUTER: mov.u32 %r2, 0; bra INNER;\nDONE:" +
          kMark);
  CHECK(ran.values == expected([](uint32_t i) {
          uint32_t sum = 0;
          for (uint32_t a = 0; a < 6; ++a) {
            for (uint32_t b = 0; b < 6; ++b) {
              if (a * b >= i && a * b != 0) return sum;
              sum += a * b;
            }
          }
          return sum;
        }));
  CHECK(ran.marks == 1);
}

TEST_CASE("Control: a loop with two entries", "[control]") {
  const Ran ran =
      run("mov.u32 %r2, 0; and.b32 %r1, %i, 1; setp.eq.u32 %p0, %r1, 0;"
          "@%p0 bra SECOND;\nFIRST: add.u32 %r0, %r0, 1;\n"
          "SECOND: add.u32 %r0, %r0, 100; add.u32 %r2, %r2, 1;"
          "setp.le.u32 %p0, %r2, %i; @%p0 bra FIRST;\n" +
          kMark);
  CHECK(ran.values == expected([](uint32_t i) { return 100 * (i + 1) + i + (i & 1); }));
  CHECK(ran.marks == 1);
}

TEST_CASE("Control: guards", "[control]") {
  CHECK(run("and.b32 %r1, %i, 3; setp.eq.u32 %p0, %r1, 2; mov.u32 %r0, 1;"
            "@%p0 mov.u32 %r0, 2; @!%p0 add.u32 %r0, %r0, 5;")
            .values == expected([](uint32_t i) { return (i & 3) == 2 ? 2 : 6; }));
  CHECK_THAT(report("@%p5 mov.u32 %r0, 1;"), Contains("undefined value: the guard"));
  CHECK_THAT(report("setp.gt.u32 %p0, %i, 3; @%p0 mov.u32 %r1, 1;\n"
                    "@%p0 setp.eq.u32 %p1, %r1, 1; @%p1 bra END; END:"),
             Contains("undefined value") && Contains("thread (0, 0, 0)"));
  CHECK_THAT(report("ld.global.u32 %r1, [%out]; setp.lt.u32 %p0, %r60, 5; @%p0 bra END;\nEND:"),
             Contains("undefined value"));
}

TEST_CASE("Control: a branch marked uniform must be", "[control]") {
  CHECK(report("setp.lt.u32 %p0, %i, 32; @%p0 bra.uni END; mov.u32 %r0, 1;\nEND:") == "");
  CHECK_THAT(report("setp.lt.u32 %p0, %i, 31; @%p0 bra.uni END; mov.u32 %r0, 1;\nEND:"),
             Contains("divergence") && Contains(".uni"));
}

TEST_CASE("Control: indirect branches", "[control]") {
  const std::string body =
      "table: .branchtargets A, B, C, A;\n"
      "and.b32 %r1, %i, 3; brx.idx %r1, table;\n"
      "C: mov.u32 %r0, 3;" +
      kMark + "bra JOIN;\nA: mov.u32 %r0, 1;" + kMark + "bra JOIN;\nB: mov.u32 %r0, 2;" + kMark +
      "\nJOIN:" + kMark;
  const Ran ran = run(body);
  CHECK(ran.values == expected([](uint32_t i) { return (i & 3) == 3 ? 1 : (i & 3) + 1; }));
  CHECK(ran.marks == 4);
  CHECK(ran.divergent == 1);
  const std::string two = "table: .branchtargets A, B;\n";
  const std::string ends = "A: B: mov.u32 %r0, 1;";
  CHECK_THAT(report(two + "mov.u32 %r1, 2; brx.idx %r1, table;" + ends),
             Contains("index 2") && Contains("2 targets"));
  CHECK_THAT(report(two + "brx.idx %r60, table;" + ends), Contains("undefined value"));
  CHECK_THAT(report(two + "and.b32 %r1, %i, 1; brx.idx.uni %r1, table;\n"
                          "A: mov.u32 %r0, 1; B: mov.u32 %r0, 2;"),
             Contains("divergence"));
  // With a guard: the others go on behind it.
  CHECK(run(two + "setp.lt.u32 %p0, %i, 4; mov.u32 %r1, 1; @%p0 brx.idx %r1, table;\n"
                  "mov.u32 %r0, 9; bra END;\nA: mov.u32 %r0, 1; bra END;\nB: mov.u32 %r0, 2;\nEND:")
            .values == expected([](uint32_t i) { return i < 4 ? 2 : 9; }));
}

TEST_CASE("Control: the body may end without a return, and code that nothing reaches is read",
          "[control]") {
  Device device;
  const std::string head =
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry test(.param .u64 out) {\n.reg .b32 %r<4>;\n";
  const CUfunction function = device.load(head + "mov.u32 %r0, 1;\n}\n", "test");
  device.run(function, {1}, {32}, 0, CUdeviceptr(0));
  const CUfunction empty = device.load(head + "}\n", "test");
  device.run(empty, {1}, {32}, 0, CUdeviceptr(0));
  const std::string unknown = head + "ret;\nfrobnicate.b32 %r0, %r1;\n}\n";
  CUmodule module = nullptr;
  CHECK(call<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData")(&module, unknown.c_str()) ==
        CUDA_ERROR_INVALID_PTX);
}

TEST_CASE("Control: lanes exit in the middle", "[control]") {
  const Ran ran = run("setp.ge.u32 %p0, %i, 20; @%p0 exit;\n" + kMark +
                      "mov.u32 %r0, 4;"
                      "setp.lt.u32 %p1, %i, 5; @%p1 ret;\n" +
                      kMark + "mov.u32 %r0, 5;");
  CHECK(ran.values == expected([](uint32_t i) { return i >= 5 && i < 20 ? 5 : 0; }));
  CHECK(ran.marks == 2);
  CHECK(ran.marked_threads == 35);
}

TEST_CASE("Control: traps", "[control]") {
  CHECK_THAT(report("setp.eq.u32 %p0, %i, 17;\n@%p0 trap;"),
             Contains("trap") && Contains("thread (17, 0, 0)"));
  CHECK_THAT(report("brkpt;"), Contains("trap"));
  CHECK(report("setp.eq.u32 %p0, %i, 99;\n@%p0 trap;") == "");
}

TEST_CASE("Control: lanes that spin let others of their warp run", "[control]") {
  // A lock among the lanes of one warp: whoever holds it is behind the loop of the others.
  Device device;
  const std::string lock = ptx_kernel(
      "mov.u32 %r1, lock; mov.u32 %r2, count;\n"
      "TRY: atom.acquire.cta.shared.cas.b32 %r3, [%r1], 0, 1; setp.ne.u32 %p0, %r3, 0;"
      "@%p0 bra TRY;\n"
      "ld.shared.u32 %r0, [%r2]; add.u32 %r4, %r0, 1; st.shared.u32 [%r2], %r4;"
      "atom.release.cta.shared.exch.b32 %r5, [%r1], 0; setp.ne.u32 %p1, %r5, 1; @%p1 trap;" +
          kStore,
      ".shared .align 4 .u32 lock; .shared .align 4 .u32 count;");
  const std::string begin =
      "setp.ne.u32 %p3, %i, 0; mov.u32 %r6, lock; mov.u32 %r7, count;"
      "@!%p3 st.shared.u32 [%r6], 0; @!%p3 st.shared.u32 [%r7], 0;"
      "bar.sync 0;";
  std::string whole = lock;
  whole.insert(whole.find("mov.u32 %r1, lock"), begin);
  std::vector<uint32_t> order = results(device, whole, 1, 64);
  std::sort(order.begin(), order.end());
  CHECK(order == expected([](uint32_t i) { return i; }, 64));
}

TEST_CASE("Control: calls with arguments and results", "[control]") {
  const std::string function = R"(
.func (.param .b32 sum) add3(.param .b32 a, .param .b64 b, .param .align 4 .b8 c[12]) {
.reg .b32 %r<9>; .reg .b64 %rd<3>;
ld.param.u32 %r0, [a]; ld.param.u64 %rd0, [b]; cvt.u32.u64 %r1, %rd0; ld.param.u32 %r2, [c+8];
add.u32 %r3, %r0, %r1; add.u32 %r3, %r3, %r2; st.param.b32 [sum], %r3; ret;
}
)";
  const Ran ran =
      run("mul.wide.u32 %rd0, %i, 10;\n{ .param .b32 p0; .param .b64 p1;"
          ".param .align 4 .b8 p2[12]; .param .b32 back;"
          "st.param.b32 [p0], %i; st.param.b64 [p1], %rd0; st.param.b32 [p2+8], 7;"
          "call.uni (back), add3, (p0, p1, p2); ld.param.b32 %r0, [back]; }",
          32, function);
  CHECK(ran.values == expected([](uint32_t i) { return 11 * i + 7; }));
}

namespace {

// fibonacci(n) by two calls of itself.
const char* const kFibonacci = R"(
.func (.param .b32 result) fibonacci(.param .b32 n) {
.reg .pred %p; .reg .b32 %n, %a, %b; .reg .f64 %mark;
ld.param.u32 %n, [n]; setp.lt.u32 %p, %n, 2; @%p bra SMALL;
sub.u32 %a, %n, 1;
{ .param .b32 p; .param .b32 q; st.param.b32 [p], %a; call (q), fibonacci, (p); ld.param.b32 %a, [q]; }
sub.u32 %b, %n, 2;
{ .param .b32 p; .param .b32 q; st.param.b32 [p], %b; call (q), fibonacci, (p); ld.param.b32 %b, [q]; }
add.u32 %n, %a, %b;
SMALL: st.param.b32 [result], %n; ret;
}
)";

const std::string kCallFibonacci =
    "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;"
    "call (q), fibonacci, (p); ld.param.b32 %r0, [q]; }\n";

}  // namespace

TEST_CASE("Control: recursion, to another depth in every lane", "[control]") {
  const Ran ran = run("and.b32 %r1, %i, 15;" + kCallFibonacci + kMark, 64, kFibonacci);
  const std::function<uint32_t(uint32_t)> fibonacci = [&](uint32_t n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
  };
  CHECK(ran.values == expected([&](uint32_t i) { return fibonacci(i & 15); }, 64));
  CHECK(ran.marks == 2);
  CHECK_THAT(report("mov.u32 %r1, 5000;" + kCallFibonacci, kFibonacci), Contains("stack overflow"));
}

TEST_CASE("Control: lanes that call later meet those that are still there", "[control]") {
  // The upper half calls in the second round, when the lower half is within and waits for it;
  // behind that they go on together.
  const std::string function =
      ".func (.param .b32 r) all(.param .b32 v) {\n"
      ".reg .b32 %v; .reg .f64 %mark; mov.f64 %mark, 0d0000000000000000;"
      "ld.param.b32 %v, [v]; redux.sync.add.u32 %v, %v, -1;" +
      kMark + "st.param.b32 [r], %v; ret;\n}\n";
  const Ran ran =
      run("mov.u32 %r1, 0; setp.lt.u32 %p0, %i, 16;\n"
          "ROUND: setp.eq.u32 %p1, %r1, 0; xor.pred %p2, %p0, %p1; @%p2 bra SKIP;\n"
          "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %i;"
          "call (q), all, (p); ld.param.b32 %r0, [q]; }\n"
          "SKIP: add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 2; @%p3 bra ROUND;\n",
          32, function);
  CHECK(ran.values == expected([](uint32_t) { return 31 * 16u; }));
  CHECK(ran.marks == 1);
}

TEST_CASE("Control: registers are undefined again in each activation", "[control]") {
  // Lanes below 16 wait within the function for the others, which call it twice: the first time
  // they write the register, the second time they do not.
  const std::string function =
      ".func (.param .b32 r) some(.param .b32 v) {\n.reg .b32 %v, %x; .reg .pred %p;"
      "ld.param.b32 %v, [v]; setp.eq.u32 %p, %v, 0; @%p bra SET; bar.warp.sync -1; bra END;\n"
      "SET: mov.u32 %x, 5;\nEND: st.param.b32 [r], %x; ret;\n}\n";
  const std::string body =
      "mov.u32 %r1, 0; setp.lt.u32 %p0, %i, 16; mov.u32 %r2, 0; @%p0 mov.u32 %r2, 1;\n"
      "ROUND: { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2;"
      "call (q), some, (p); ld.param.b32 %r3, [q]; }\n"
      "@%p0 bra END; mov.u32 %r2, 1; add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 2;"
      "@%p3 bra ROUND;\nmov.u32 %r0, %r3;\nEND:";
  CHECK_THAT(report(body, function),
             Contains("undefined value: the stored value") && Contains("thread (16, 0, 0)"));
}

TEST_CASE("Control: lanes exit within a function", "[control]") {
  const std::string function =
      ".func leave(.param .b32 v) {\n.reg .b32 %v; .reg .pred %p;"
      "ld.param.b32 %v, [v]; setp.lt.u32 %p, %v, 12; @%p exit; ret;\n}\n";
  const Ran ran =
      run("{ .param .b32 p; st.param.b32 [p], %i; call leave, (p); }\n"
          "mov.u32 %r0, 1;" +
              kMark,
          32, function);
  CHECK(ran.values == expected([](uint32_t i) { return i < 12 ? 0 : 1; }));
  CHECK(ran.marked_threads == 20);
}

namespace {

const char* const kFunctions = R"(
.func (.param .b32 r) twice(.param .b32 v) {
.reg .b32 %v; ld.param.b32 %v, [v]; shl.b32 %v, %v, 1; st.param.b32 [r], %v; ret;
}
.func (.param .b32 r) plus(.param .b32 v) {
.reg .b32 %v; ld.param.b32 %v, [v]; add.u32 %v, %v, 1000; st.param.b32 [r], %v; ret;
}
.func (.param .b64 r) other(.param .b32 v) { st.param.b64 [r], 0; ret; }
.global .u64 table[2] = {twice, plus};
)";

std::string indirect(const std::string& address) {
  return address +
         "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %i;\n"
         "kind: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
         "call (q), %rd0, (p), kind; ld.param.b32 %r0, [q]; }\n" +
         kMark;
}

}  // namespace

TEST_CASE("Control: calls by address", "[control]") {
  const auto values = expected([](uint32_t i) { return i % 3 == 0 ? i + 1000 : 2 * i; });
  const std::string choose = "rem.u32 %r1, %i, 3; setp.eq.u32 %p0, %r1, 0;";
  const Ran direct = run(indirect(choose + "mov.u64 %rd1, twice; mov.u64 %rd2, plus;"
                                           "selp.b64 %rd0, %rd2, %rd1, %p0;"),
                         32, kFunctions);
  CHECK(direct.values == values);
  CHECK(direct.marks == 1);
  const Ran table = run(indirect(choose + "selp.b32 %r2, 8, 0, %p0; cvt.u64.u32 %rd2, %r2;"
                                          "mov.u64 %rd1, table; add.u64 %rd1, %rd1, %rd2;"
                                          "ld.global.u64 %rd0, [%rd1];"),
                        32, kFunctions);
  CHECK(table.values == values);
  CHECK_THAT(report(indirect("mov.u64 %rd0, 4096;"), kFunctions), Contains("no function at"));
  CHECK_THAT(report(indirect(""), kFunctions),
             Contains("undefined value") && Contains("called function"));
  CHECK_THAT(report(indirect("mov.u64 %rd0, other;"), kFunctions), Contains("prototype"));
}

TEST_CASE("Control: a function that does not return must not", "[control]") {
  const auto function = [](const std::string& body) {
    return ".func end(.param .b32 v)\n.noreturn\n{ .reg .b32 %v; " + body + " }\n";
  };
  const std::string body = "{ .param .b32 p; st.param.b32 [p], %i; call end, (p); }";
  CHECK(report(body, function("exit;")) == "");
  CHECK_THAT(report(body, function("ret;")), Contains("noreturn"));
}

TEST_CASE("Control: functions that are defined nowhere are refused", "[control]") {
  Device device;
  const auto refuses = [&](const std::string& body, const std::string& before) {
    const std::string ptx = ptx_kernel(body, before);
    CUmodule module = nullptr;
    CHECK(call<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData")(&module, ptx.c_str()) ==
          CUDA_ERROR_INVALID_PTX);
  };
  refuses("call missing;", ".extern .func missing;");
  refuses("{ .param .b64 p; .param .b64 q; call (q), malloc, (p); }",
          ".extern .func (.param .b64 r) malloc(.param .b64 size);");
  refuses("call twice;", kFunctions);
  refuses("call test;", "");
}

TEST_CASE("Control: printf and assert", "[control]") {
  if (!has_nvrtc()) return;
  const std::string source = R"(
extern "C" __global__ void test(int* out) {
  if (threadIdx.x < 2 && !out) printf("%d|%5.2f|%s|%lld|%c|%x%%\n", threadIdx.x, 1.5, "text", -7ll, 'c', 255u);
  assert(threadIdx.x != 3 || out == nullptr);
})";
  const std::string file = std::filesystem::temp_directory_path() / "krait_emulator_printf";
  std::fflush(stdout);
  const int before = dup(1), to = open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  Device device;
  const CUfunction function = device.load(compile(source, "sm_90"), "test");
  dup2(to, 1);
  const CUresult good = device.launch(function, {1}, {32}, 0, CUdeviceptr(0));
  std::fflush(stdout);
  dup2(before, 1);
  close(before);
  close(to);
  CHECK(good == CUDA_SUCCESS);
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  std::filesystem::remove(file);
  CHECK(text.str() == "0| 1.50|text|-7|c|ff%\n1| 1.50|text|-7|c|ff%\n");
  CHECK(device.launch(function, {1}, {32}, 0, CUdeviceptr(64)) != CUDA_SUCCESS);
  CHECK_THAT(device.report(),
             Contains("assertion") && Contains("threadIdx.x != 3") && Contains("thread (3, 0, 0)"));
}

}  // namespace emulator_test
