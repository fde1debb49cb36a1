// Malformed PTX: each text is refused at the line where it is wrong, with words that say why.

#include <catch2/catch.hpp>
#include <string>

#include "tests/cuda_emulator/ptx/module.h"

using emulator::ptx::Error;
using emulator::ptx::parse;

namespace {

// `text` fails at that line of it, with these words.
struct Malformed {
  std::string text;
  int line;
  std::string words;
};

void check(const std::string& before, const std::string& behind, const Malformed& malformed) {
  int lines = 0;
  for (char c : before) lines += c == '\n';
  CAPTURE(malformed.text);
  try {
    parse(before + malformed.text + behind);
    FAIL_CHECK("was read");
  } catch (const Error& error) {
    CHECK(error.line - lines == malformed.line);
    CHECK_THAT(error.what(), Catch::Matchers::Contains(malformed.words));
    CHECK_THAT(error.what(), Catch::Matchers::StartsWith("line "));
  }
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Declarations of ranges of registers with different names.
std::string many_ranges(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += ".reg .b32 r" + std::to_string(i) + "_<2>; ";
  return out;
}

const std::string kHeader = ".version 8.0\n.target sm_90a\n.address_size 64\n";
const std::string kEntry =
    kHeader +
    ".global .b32 x[4];\n.func f;\n.func (.param .b32 r) g(.param .b64 a);\n.entry e;\n"
    ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<10>;\n"
    ".reg .b64 %rd<10>;\n.param .b32 small;\n";

}  // namespace

TEST_CASE("Malformed headers are refused", "[emulator][ptx]") {
  const Malformed table[] = {
      {"", 1, "text ends where .version"},
      {".target sm_90\n", 1, "expected .version"},
      {".version 8\n", 1, "expected a version"},
      {".version 8.15\n", 1, "malformed version"},
      {".version 5.0\n.target sm_90\n", 1, "before 6.0"},
      {".version 8.0\n\n.address_size 64\n", 3, "expected .target"},
      {".version 8.0\n.target compute_90\n", 2, "unknown target 'compute_90'"},
      {".version 8.0\n.target sm_9\n", 2, "unknown target"},
      {".version 8.0\n.target sm_90, texmode_independent\n", 2, "texmode_independent"},
      {".version 8.0\n.target sm_90\n.func f;", 3, "expected .address_size"},
      {".version 8.0\n.target sm_90\n.address_size 32\n", 3, "only addresses of 64"},
      {"/* no end\n\n", 1, "comment that begins here"},
      {"#define a\n", 1, "unexpected character '#'"},
  };
  for (const Malformed& malformed : table) check("", "", malformed);
}

TEST_CASE("Malformed declarations are refused", "[emulator][ptx]") {
  const Malformed table[] = {
      {".nonsense 1;", 1, "unknown directive '.nonsense'"},
      {"mov.b32 a, b;", 1, "expected a directive before 'mov'"},
      {".alias a, b;", 1, "unknown directive '.alias'"},
      {".global .texref t;", 1, "textures"},
      {".visible .extern .func f;", 1, "expected a function or a variable"},
      {".local .b32 x;", 1, "unknown directive '.local'"},
      {".global .b32 x\n.global .b32 y;", 2, "expected ';' before '.global'"},
      {".global .b33 x;", 1, "expected a type of variables before '.b33'"},
      {".global .bf16 x;", 1, "expected a type of variables"},
      {".global .pred x;", 1, "predicates can only be registers"},
      {".global .align 3 .b32 x;", 1, "power of two"},
      {".global .align 131072 .b32 x;", 1, "from 1 to 65536"},
      {".extern .global .b32 x;\n.const .u8 x;", 2, "'x' is declared otherwise"},
      {".global .b32 x;\n\n.global .b32 x;", 3, "'x' is declared already in line 4"},
      {".func x;\n.global .b32 x;", 2, "'x' is declared already in line 4"},
      {".global .b32 x[];", 1, "an array of unknown size"},
      {".global .b32 x[0];", 1, "from 1 to 2147483648"},
      {".global .b32 x[4][];", 1, "only the first dimension"},
      {".global .b32 x[2147483649];", 1, "the size of an array must be"},
      {".global .b32 x[65536][65536];", 1, "too many elements"},
      {".global .v4 .b64 x[2147483648];", 1, "too many bytes"},
      {".global .b32 x" + repeated("[1]", 17) + ";", 1, "too many dimensions"},
      {".global .b32 x[18446744073709551616];", 1, "beyond 64 bits"},
      {".global .b32 x[2] = {1,\n2,\n3};", 3, "more than 2 initial values"},
      {".global .b32 x[2][2] = {1, 2};", 1, "expected '{' before '1'"},
      {".global .b32 x = ;", 1, "expected a constant before ';'"},
      {".global .u8 x = 256;", 1, "does not fit the type"},
      {".global .s16 x = -32769;", 1, "does not fit the type"},
      {".global .b32 x = 1.5;", 1, "a float for a variable of integers"},
      {".global .f32 x = 1;", 1, "an integer for a variable of floating point"},
      {".global .u64 x = y;", 1, "'y' is not declared"},
      {".global .u64 x = x;", 1, "'x' is not declared"},
      {".global .b32 y;\n.global .u16 x = y;", 2, "an address does not fit"},
      {".global .b32 y;\n.global .b128 x = y;", 2, "an address does not fit"},
      {".global .b32 y;\n.global .f64 x = y;", 2, "an address does not fit"},
      {".shared .b32 y;\n.global .u64 x = generic(y);", 2, "is not known before a launch"},
      {".func f;\n.global .u64 x = generic(f);", 2, "functions have no generic address"},
      {".global .b32 y;\n.global .u8 x[2] = {0xFF(y), 1};", 2, "masked addresses must give all"},
      {".global .b32 y;\n.global .u8 x[8] = {0xFF00(y)};", 2, "masked addresses must give all"},
      {".global .b32 y;\n.global .b32 x = 0xFF(y);", 2, "only for bytes"},
      {".shared .b32 x = 1;", 1, "only variables in .global and .const"},
      {".extern .global .b32 x = 1;", 1, "external variable"},
      {".const .attribute(.managed) .b32 x;", 1, "only variables in .global can be managed"},
      {".file 1 \"a\n\"", 1, "string does not end"},
      {".file 1 \"a\"\n.file 1 \"b\"", 2, "file 1 is declared already"},
      {".section .debug_str\n{ .b8 1", 2, "ends within a section"},
      {".func f { ret; }\n.func f { ret; }", 2, "'f' is declared already in line 4"},
      {".func f(.param .b32 a);\n.func f(.param .b64 a) { ret; }", 2, "'f' is declared otherwise"},
      {".func f(.reg .b32 a) { ret; }", 1, "parameters in registers"},
      {".func f(.param .b32 a, .param .b8 a) { ret; }", 1, "'a' is declared already"},
      {".func (.param .b32 a, .param .b32 b) f;", 1, "more than 1 result"},
      {".entry f(.param .b8 a[]) { ret; }", 1, "parameters of unknown size"},
      {".entry f .maxntid 0 { ret; }", 1, "a number of threads must be"},
      {".entry f .maxntid 32 .reqntid 32 { ret; }", 1, "exclude each other"},
      {".func f .maxntid 32 { ret; }", 1, "unknown directive '.maxntid' of a function"},
      {".extern .func f { ret; }", 1, "external function has no body"},
      {".entry f {\nret;", 2, "the text ends where a statement is expected"},
  };
  for (const Malformed& malformed : table) check(kHeader, "", malformed);
}

TEST_CASE("Malformed statements are refused", "[emulator][ptx]") {
  const Malformed table[] = {
      {".maxntid 3;", 1, "unknown directive '.maxntid' in a function"},
      {".global .b32 y;", 1, "unknown directive '.global' in a function"},
      {".reg .v4 .b32 v;", 1, "registers that are vectors"},
      {".reg .b32 %z<1048577>;", 1, "the number of registers must be"},
      {".reg .b32 a, %r5;", 1, "'%r5' is declared already in line 11"},
      {".reg .b32 %r<2>;", 1, "'%r' is declared already"},
      {".reg .b32 %q12; .reg .b32 %q<13>;", 1, "'%q12' is declared already"},
      {".reg .b32 %q1<3>; .reg .b32 %q<11>;", 1, "'%q1' is declared already"},
      {".shared .b32 y = 3;", 1, "initial values"},
      {".shared .b32 y[];", 1, "a variable of unknown size"},
      {"mov.b32 %r1, %r2", 2, "expected ';'"},
      {"\nmov.b32 %r1, %r10;", 2, "'%r10' is not declared"},
      {"mov.b32 %r1, %r01;", 1, "'%r01' is not declared"},
      {"mov.b32 %r1, %tid;", 1, "needs a part .x"},
      {"mov.b32 %r1, %tid.q;", 1, "needs a part .x"},
      {"mov.b32 %r1, %laneid.x;", 1, "expected the next operand"},
      {"mov.b32 %r1, %r2.x;", 1, "parts of registers"},
      {"mov.b32 %r1, -%r2;", 1, "'%r2' is not a constant"},
      {"mov.b32 %r1, 1/0;", 1, "division by zero"},
      {"mov.b32 %r1, 1<<64;", 1, "a shift by more"},
      {"mov.b32 %r1, 08;", 1, "malformed number"},
      {"mov.b32 %r1, 3u;", 1, "malformed number"},
      {"mov.b32 %r1, 0x;", 1, "a number without digits"},
      {"mov.f32 %r1, 0f3F8;", 1, "needs 8 digits"},
      {"mov.f32 %r1, 1e999;", 1, "no double holds"},
      {"mov.b64 %rd1, (.s64) 1e30;", 1, "64 bits do not hold"},
      {"mov.b64 %rd1, " + repeated("(", 100) + "1;", 1, "nested too deep"},
      {"mov.b64 %rd1, " + repeated("-", 100) + "1;", 1, "nested too deep"},
      {"mov.b32 %r1, {{%r2}};", 1, "an element of a vector"},
      {"mov.b32 %r1, {};", 1, "expected an operand before '}'"},
      {"mov.b32 {" + repeated("_,", 256) + "_}, %r1;", 1, "too many elements"},
      {"op " + repeated("_,", 64) + "_;", 1, "too many operands"},
      {"ld.b32 %r1, [%rd1-4];", 1, "expected ']' before '-'"},
      {"ld.b32 %r1, [%rd1+%rd2];", 1, "'%rd2' is not a constant"},
      {"ld.b32 %r1, [%tid.x];", 1, "an address needs a register"},
      {"ld.b32 %r1, [%rd1;", 1, "expected ']'"},
      {"ld.b32 %r1, x[1];", 1, "elements of arrays"},
      {"mov.b64 %rd1, generic(x);", 1, "'generic' is not declared"},
      {"setp.lt.s32 %p1|5, %r1, %r2;", 1, "expected a register before '5'"},
      {"@%r1 ret;", 1, "'%r1' is not a predicate"},
      {"@%p9 ret;", 1, "'%p9' is not declared"},
      {"@%p1 L: ret;", 1, "expected an instruction before 'L'"},
      {"and.pred %p1, %p2, !%r1;", 1, "'%r1' is not a predicate"},
      {"bra L;\nret;", 1, "'L' is not declared"},
      {"bra L; { L: }", 1, "'L' is not declared"},
      {"bra %r1;", 1, "'%r1' is not a label"},
      {"L: bra L;\nL: ret;", 2, "'L' is declared already"},
      {"bra x;\nx: ret; y: .branchtargets x; bra y;", 2, "'y' is not a label"},
      {"brx.idx %r1, L;\nL:", 1, "'L' is not declared"},
      {"L: brx.idx %r1, L;", 1, "'L' is not a list of branch targets"},
      {"t: .branchtargets L;", 1, "'L' is not declared"},
      {"t: .calltargets f;", 1, "lists of call targets"},
      {"mov.b64 %rd1, f+4;", 1, "expected ';' before '+'"},
      {"L: mov.b64 %rd1, L;", 1, "'L' cannot be an operand"},
      {"call h;", 1, "'h' is not declared"},
      {"call x;", 1, "'x' is not a function"},
      {"call e;", 1, "is an entry"},
      {"call f, (small);", 1, "1 arguments instead of 0"},
      {"call g, (small);", 1, "0 results instead of 1"},
      {"call (small), g, (small);", 1, "'small' has 4 bytes instead of 8"},
      {"call f, (x);", 1, "'x' is not a variable in .param"},
      {"call f, (%r1);", 1, "registers as arguments"},
      {"call f, (1);", 1, "constants as arguments"},
      {"call %rd1;", 1, "expected ',' before ';'"},
      {"call %rd1, f;", 1, "'f' is not a prototype"},
      {"P: .callprototype _ (.param .b32 _); call %rd1, P;", 1, "0 arguments instead of 1"},
      {"P: .callprototype f ();", 1, "expected _ for the name"},
      {repeated("{", 128), 1, "scopes nested too deep"},
      {repeated("{ .reg .b32 a<2>; }", 2000) + many_ranges(1022), 1, "too many ranges"},
      {".loc 7 1 1\nret;", 1, "file 7 is not declared"},
      {".loc 0 1 1, inlined 3", 1, "expected function_name or inlined_at"},
      {"Ret;", 1, "expected an instruction before 'Ret'"},
      {"5;", 1, "expected a statement before '5'"},
      {";", 1, "expected a statement before ';'"},
  };
  for (const Malformed& malformed : table) check(kEntry, "\n}\n", malformed);
}
