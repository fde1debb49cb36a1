// The grammar of PTX against values: what parse() makes of each of its items.

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <ctime>
#include <sstream>

#include "tests/cuda_emulator/ptx/module.h"

using namespace emulator::ptx;

namespace {

const std::string kHeader = ".version 8.0\n.target sm_90a\n.address_size 64\n";

Module module_of(const std::string& declarations) { return parse(kHeader + declarations); }

const std::string kRegisters =
    ".reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n.reg .f32 %f<4>;\n";

// The entry `k` with that body behind some registers; its parameter is the pointer `out`.
Function body(const std::string& statements, const std::string& declarations = "") {
  const Module module = module_of(declarations + ".visible .entry k(.param .u64 out)\n{\n" +
                                  kRegisters + statements + "\n}\n");
  return *module.function("k");
}

Instruction instruction(const std::string& text, const std::string& declarations = "") {
  const Function function = body(text, declarations);
  REQUIRE(function.instructions.size() == 1);
  return function.instructions[0];
}

Operand operand(const std::string& text) { return instruction("op " + text + ";").operands.at(0); }

int64_t integer(const std::string& text) {
  const Operand found = operand(text);
  REQUIRE(found.kind == Operand::Kind::integer);
  return static_cast<int64_t>(found.bits);
}

// The initial bytes as values.
template <class T>
std::vector<T> initial(const Variable& variable) {
  std::vector<T> out(variable.initial.size() / sizeof(T));
  std::memcpy(out.data(), variable.initial.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace

TEST_CASE("Types have names and sizes", "[emulator][ptx]") {
  CHECK(type_named("u32") == Type::u32);
  CHECK(type_named("bf16x2") == Type::bf16x2);
  CHECK(type_named("e5m2x2") == Type::e5m2x2);
  CHECK(type_named("pred") == Type::pred);
  CHECK(type_named("") == Type::none);
  CHECK(type_named("u33") == Type::none);
  for (int i = 1; i <= static_cast<int>(Type::ue4m3); ++i) {
    CHECK(type_named(name_of(static_cast<Type>(i))) == static_cast<Type>(i));
  }
  CHECK(bytes_of(Type::b128) == 16);
  CHECK(bytes_of(Type::f16x2) == 4);
  CHECK(bytes_of(Type::s8) == 1);
  CHECK(bytes_of(Type::pred) == 0);
  CHECK(is_float(Type::tf32));
  CHECK(is_float(Type::e4m3));
  CHECK_FALSE(is_float(Type::b32));
  CHECK(is_signed(Type::s16x2));
  CHECK_FALSE(is_signed(Type::u64));
}

TEST_CASE("The header of a module", "[emulator][ptx]") {
  const Module module = parse(
      "// comment\n/* of\nmore lines */ .version 8.7\n.target sm_120a, debug\n"
      ".address_size 64\n.file 3 \"a b.cu\", 12, 34\n"
      ".section .debug_str { .b8 1 // }\n /* } */ }\n.pragma \"x\", \"y\";");
  CHECK(module.version_major == 8);
  CHECK(module.version_minor == 7);
  CHECK(module.target == "sm_120a");
  CHECK(module.debug);
  CHECK(module.files.at(3) == "a b.cu");
  CHECK(parse(kHeader + std::string("\0.nonsense", 10)).functions.empty());
}

TEST_CASE("Variables of a module", "[emulator][ptx]") {
  const Module module = module_of(
      ".global .b32 a, b[3], c[2][4];\n.const .align 16 .b8 bytes[5];\n"
      ".extern .shared .align 32 .f32 dynamic[];\n.visible .global .v4 .f32 quads[2];\n"
      ".weak .global .f64 weak;\n.common .global .u16 common;\n.extern .global .b64 elsewhere;\n"
      ".shared .v2 .b16 pair;\n.global .attribute(.managed, .unified(1, 2)) .align 8 .b32 "
      "managed;\n");
  const auto check = [&](const char* name, Space space, Type type, uint64_t bytes,
                         uint64_t alignment, bool visible, bool external) {
    CAPTURE(name);
    const Variable* variable = module.variable(name);
    REQUIRE(variable);
    CHECK(variable->space == space);
    CHECK(variable->type == type);
    CHECK(variable->bytes == bytes);
    CHECK(variable->alignment == alignment);
    CHECK(variable->visible == visible);
    CHECK(variable->external == external);
    CHECK(variable->initial.empty());
    CHECK(variable->relocations.empty());
  };
  check("a", Space::global, Type::b32, 4, 4, false, false);
  check("b", Space::global, Type::b32, 12, 4, false, false);
  check("c", Space::global, Type::b32, 32, 4, false, false);
  check("bytes", Space::constant, Type::b8, 5, 16, false, false);
  check("dynamic", Space::shared, Type::f32, 0, 32, false, true);
  check("quads", Space::global, Type::f32, 32, 16, true, false);
  check("weak", Space::global, Type::f64, 8, 8, true, false);
  check("common", Space::global, Type::u16, 2, 2, true, false);
  check("elsewhere", Space::global, Type::b64, 8, 8, false, true);
  check("pair", Space::shared, Type::b16, 4, 4, false, false);
  check("managed", Space::global, Type::b32, 4, 8, false, false);
  CHECK(module.variable("managed")->managed);
  CHECK(module.variable("b")->line == 4);
  CHECK(module.variable("bytes")->line == 5);
  CHECK(module.variable("absent") == nullptr);
}

TEST_CASE("Initial values", "[emulator][ptx]") {
  const Module module = module_of(
      ".global .b32 one = 7;\n.global .s16 some[4] = {-1, 0x7fff, 1 << 4};\n"
      ".global .b32 rows[2][3] = {{1}, {2, 3}};\n.global .u8 open[] = {1, 2, 255, -128};\n"
      ".global .s32 columns[][2] = {{1, 2}, {3, 4}, {5}};\n"
      ".const .f32 floats[3] = {0f3FC00000, 2.5, -1e2};\n.global .f64 wide[2] = {0f3F800000, "
      "0.1};\n"
      ".global .v2 .b32 vectors[2] = {{1, 2}, {3, 4}};\n.global .b16 half = 0x3c00;\n"
      ".global .u64 large = -1, larger = 0xffffffffffffffff;\n");
  using V = std::vector<int32_t>;
  CHECK(initial<int32_t>(*module.variable("one")) == V{7});
  CHECK(initial<int16_t>(*module.variable("some")) == std::vector<int16_t>{-1, 32767, 16});
  CHECK(module.variable("some")->bytes == 8);
  CHECK(initial<int32_t>(*module.variable("rows")) == V{1, 0, 0, 2, 3});
  CHECK(initial<uint8_t>(*module.variable("open")) == std::vector<uint8_t>{1, 2, 255, 128});
  CHECK(module.variable("open")->bytes == 4);
  CHECK(initial<int32_t>(*module.variable("columns")) == V{1, 2, 3, 4, 5});
  CHECK(module.variable("columns")->bytes == 24);
  CHECK(initial<float>(*module.variable("floats")) == std::vector<float>{1.5f, 2.5f, -100.f});
  CHECK(initial<double>(*module.variable("wide")) == std::vector<double>{1.0, 0.1});
  CHECK(initial<int32_t>(*module.variable("vectors")) == V{1, 2, 3, 4});
  CHECK(initial<uint16_t>(*module.variable("half")) == std::vector<uint16_t>{0x3c00});
  CHECK(initial<uint64_t>(*module.variable("large")) ==
        initial<uint64_t>(*module.variable("larger")));
}

TEST_CASE("Addresses as initial values", "[emulator][ptx]") {
  const Module module = module_of(
      ".func f;\n.global .b32 x[4];\n.const .b8 c[3];\n"
      ".global .u64 p[5] = {generic(x)+8, x, c+-1, f, 9};\n.global .u32 low = x + 4;\n"
      ".global .u8 q[10] = {5, 0xFF(generic(x)+4), 0xFF00(generic(x)+4), 0xFF0000(generic(x)+4), "
      "0xFF000000(generic(x)+4), 0xFF00000000(generic(x)+4), 0xFF0000000000(generic(x)+4), "
      "0xFF000000000000(generic(x)+4), 0xFF00000000000000(generic(x)+4), 6};\n");
  const auto check = [](const Relocation& r, uint64_t offset, const std::string& symbol,
                        int64_t addend, bool generic, unsigned bytes) {
    CHECK(r.offset == offset);
    CHECK(r.symbol == symbol);
    CHECK(r.addend == addend);
    CHECK(r.generic == generic);
    CHECK(r.bytes == bytes);
  };
  const Variable& p = *module.variable("p");
  REQUIRE(p.relocations.size() == 4);
  check(p.relocations[0], 0, "x", 8, true, 8);
  check(p.relocations[1], 8, "x", 0, false, 8);
  check(p.relocations[2], 16, "c", -1, false, 8);
  check(p.relocations[3], 24, "f", 0, false, 8);
  CHECK(initial<uint64_t>(p) == std::vector<uint64_t>{0, 0, 0, 0, 9});
  const Variable& low = *module.variable("low");
  REQUIRE(low.relocations.size() == 1);
  check(low.relocations[0], 0, "x", 4, false, 4);
  const Variable& q = *module.variable("q");
  REQUIRE(q.relocations.size() == 1);
  check(q.relocations[0], 1, "x", 4, true, 8);
  CHECK(initial<uint8_t>(q) == std::vector<uint8_t>{5, 0, 0, 0, 0, 0, 0, 0, 0, 6});
}

TEST_CASE("Functions, their parameters and directives", "[emulator][ptx]") {
  const Module module = module_of(
      ".extern .func (.param .b32 r) other(.param .align 8 .b8 a[12], .param .f64 b);\n"
      ".func later;\n.func stop(.param .b32 a) .noreturn .abi_preserve 4;\n"
      ".visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 64 .b8 s[128],"
      " .param .u8 .ptr .shared q)\n.maxntid 32, 4\n.minnctapersm 2\n.maxnreg 40\n"
      ".reqnctapercluster 2, 1, 1 .explicitcluster\n.pragma \"nounroll\";\n{ ret; }\n"
      ".weak .func later { ret; }\n.func stop(.param .b32 a) { exit; }\n.entry l .reqntid 8, 8, 2 "
      "{ ret; }\n.entry m;\n");
  REQUIRE(module.functions.size() == 6);
  const Function& other = *module.function("other");
  CHECK_FALSE(other.entry);
  CHECK_FALSE(other.defined);
  REQUIRE(other.results.size() == 1);
  CHECK(other.results[0].name == "r");
  CHECK(other.results[0].space == Space::param);
  REQUIRE(other.parameters.size() == 2);
  CHECK(other.parameters[0].bytes == 12);
  CHECK(other.parameters[0].alignment == 8);
  CHECK(other.parameters[1].type == Type::f64);
  CHECK(module.function("stop")->no_return);  // by its declaration
  CHECK(module.function("stop")->defined);
  CHECK(module.function("later")->defined);
  CHECK(module.function("later")->visible);
  const Function& k = *module.function("k");
  CHECK(k.entry);
  CHECK(k.defined);
  CHECK(k.visible);
  CHECK(k.line == 7);
  REQUIRE(k.parameters.size() == 3);
  CHECK(k.parameters[0].bytes == 8);
  CHECK(k.parameters[0].alignment == 8);
  CHECK(k.parameters[1].alignment == 64);
  CHECK(k.parameters[1].bytes == 128);
  CHECK(k.parameters[2].name == "q");
  CHECK(std::vector<uint32_t>(k.max_threads, k.max_threads + 3) == std::vector<uint32_t>{32, 4, 1});
  CHECK(k.required_threads[0] == 0);
  CHECK(k.min_blocks == 2);
  CHECK(k.max_registers == 40);
  CHECK(k.required_cluster[0] == 2);
  CHECK(k.explicit_cluster);
  const Function& l = *module.function("l");
  CHECK(std::vector<uint32_t>(l.required_threads, l.required_threads + 3) ==
        std::vector<uint32_t>{8, 8, 2});
  CHECK_FALSE(module.function("m")->defined);
  CHECK(module.function("absent") == nullptr);
}

TEST_CASE("Integer constants", "[emulator][ptx]") {
  CHECK(integer("12") == 12);
  CHECK(integer("-12") == -12);
  CHECK(integer("0x1F") == 31);
  CHECK(integer("0XffU") == 255);
  CHECK(integer("017") == 15);
  CHECK(integer("0b101") == 5);
  CHECK(integer("0") == 0);
  CHECK(integer("18446744073709551615") == -1);
  CHECK(integer("WARP_SZ") == 32);
}

TEST_CASE("Constant expressions", "[emulator][ptx]") {
  CHECK(integer("1 + 2 * 3") == 7);
  CHECK(integer("(1 + 2) * 3") == 9);
  CHECK(integer("10 - 2 - 3") == 5);
  CHECK(integer("-7 / 2") == -3);
  CHECK(integer("-7 % 2") == -1);
  CHECK(integer("-1 / 2U") == INT64_MAX);
  CHECK(integer("0x8000000000000000 / -1") == 0);
  CHECK(integer("(.s64) 0x8000000000000000 / -1") == INT64_MIN);
  CHECK(integer("1 << 4 | 3 & 2 ^ 1") == (1 << 4 | (3 & 2) ^ 1));
  CHECK(integer("-16 >> 2") == -4);
  CHECK(integer("(.u64) -16 >> 60") == 15);
  CHECK(integer("~0") == -1);
  CHECK(integer("!3") == 0);
  CHECK(integer("!!3 + +1") == 2);
  CHECK(integer("3 < 4 ? 5 : 6") == 5);
  CHECK(integer("0 ? 1 : 0 ? 2 : 3") == 3);
  CHECK(integer("-1 < 1U") == 0);
  CHECK(integer("-1 < 1") == 1);
  CHECK(integer("2 >= 2 && 1 != 1 || 4 == 4") == 1);
  CHECK(integer("1 > 2 <= 0") == 1);
  CHECK(integer("(.s64) 2.9") == 2);
  CHECK(integer("(.u64) 0f40600000 + 1") == 4);
  CHECK(integer("1.5 < 2") == 1);
  CHECK(operand("1.0 / 4 - 1").bits == std::bit_cast<uint64_t>(-0.75));
}

TEST_CASE("Floating-point constants", "[emulator][ptx]") {
  CHECK(operand("0f3F800000").kind == Operand::Kind::single);
  CHECK(operand("0F3f800000").bits == 0x3f800000);
  CHECK(operand("-0f3F800000").bits == 0xbf800000);
  CHECK(operand("0d3FF0000000000000").kind == Operand::Kind::number);
  CHECK(operand("0d7FF8000000000001").bits == 0x7ff8000000000001);
  CHECK(operand("1.5").bits == std::bit_cast<uint64_t>(1.5));
  CHECK(operand("1.").bits == std::bit_cast<uint64_t>(1.0));
  CHECK(operand("25e-1").bits == std::bit_cast<uint64_t>(2.5));
  CHECK(operand("-0.1E+1").bits == std::bit_cast<uint64_t>(-1.0));
}

TEST_CASE("Opcodes, modifiers and guards", "[emulator][ptx]") {
  const Instruction plain = instruction(
      "cp.async.bulk.shared::cluster .global.mbarrier::complete_tx::bytes.L2::128B.16x64b;");
  CHECK(plain.opcode == "cp");
  CHECK(plain.modifiers == std::vector<std::string>{"async", "bulk", "shared::cluster", "global",
                                                    "mbarrier::complete_tx::bytes", "L2::128B",
                                                    "16x64b"});
  CHECK(plain.operands.empty());
  CHECK_FALSE(plain.guard);
  CHECK(plain.line == 10);
  const Instruction guarded = instruction("\n@!%p2 exit;");
  REQUIRE(guarded.guard);
  CHECK(*guarded.guard == 2);
  CHECK(guarded.guard_negated);
  CHECK(guarded.line == 11);
  CHECK_FALSE(instruction("@%p1 exit;").guard_negated);
}

TEST_CASE("Registers, special registers and sinks", "[emulator][ptx]") {
  const Instruction i = instruction(
      "op %r3, %rd9, _, %p1|%p2, _|%r1, %f0|_, !%p3, %tid.x, "
      "%clock64, %lanemask_lt, %envreg31, %pm7_64, %cluster_nctaid.w;");
  const auto& o = i.operands;
  REQUIRE(o.size() == 13);
  CHECK(o[0].kind == Operand::Kind::reg);
  CHECK(o[0].index == 4 + 3);
  CHECK(o[1].index == 4 + 10 + 9);
  CHECK(o[2].kind == Operand::Kind::sink);
  REQUIRE(o[3].second);
  CHECK(o[3].index == 1);
  CHECK(o[3].second->index == 2);
  CHECK(o[4].kind == Operand::Kind::sink);
  CHECK(o[4].second->index == 4 + 1);
  CHECK(o[5].second->kind == Operand::Kind::sink);
  CHECK(o[6].negated);
  CHECK(o[6].index == 3);
  const char* special[] = {"%tid.x",    "%clock64", "%lanemask_lt",
                           "%envreg31", "%pm7_64",  "%cluster_nctaid.w"};
  for (int n = 0; n < 6; ++n) {
    CHECK(o[7 + n].kind == Operand::Kind::special);
    CHECK(o[7 + n].name == special[n]);
  }
  // A register may have the name of a special one.
  CHECK(body(".reg .b32 %laneid; op %laneid;").instructions[0].operands[0].kind ==
        Operand::Kind::reg);
}

TEST_CASE("Addresses, variables and vectors", "[emulator][ptx]") {
  const Instruction i = instruction(
      "op [%rd1], [%rd2+-8], [x+4], [0x100], [out + 2 * 4], x, x+12, f, {%r1, _, 5, %tid.x}, "
      "[%rd3+16, {%r1, 2}], [%r1 + 4 + 4];",
      ".global .b32 x[4];\n.func f;\n");
  const auto& o = i.operands;
  REQUIRE(o.size() == 11);
  for (int n : {0, 1, 2, 3, 4, 10}) {
    CHECK(o[n].kind == Operand::Kind::address);
    REQUIRE(o[n].elements.size() == 1);
  }
  CHECK(o[0].elements[0].index == 4 + 10 + 1);
  CHECK(o[0].offset == 0);
  CHECK(o[1].offset == -8);
  CHECK(o[2].elements[0].kind == Operand::Kind::variable);
  CHECK(o[2].elements[0].name == "x");
  CHECK(o[2].elements[0].offset == 0);
  CHECK(o[2].offset == 4);
  CHECK(o[3].elements[0].kind == Operand::Kind::integer);
  CHECK(o[3].elements[0].bits == 0x100);
  CHECK(o[4].elements[0].name == "out");
  CHECK(o[4].offset == 8);
  CHECK(o[5].kind == Operand::Kind::variable);
  CHECK(o[5].name == "x");
  CHECK(o[6].offset == 12);
  CHECK(o[7].name == "f");
  CHECK(o[8].kind == Operand::Kind::vector);
  REQUIRE(o[8].elements.size() == 4);
  CHECK(o[8].elements[1].kind == Operand::Kind::sink);
  CHECK(o[8].elements[2].bits == 5);
  CHECK(o[8].elements[3].name == "%tid.x");
  CHECK(o[9].kind == Operand::Kind::tensor);
  CHECK(o[9].elements[0].offset == 16);
  CHECK(o[9].elements[1].elements[1].bits == 2);
  CHECK(o[10].offset == 8);
}

TEST_CASE("Labels belong to scopes", "[emulator][ptx]") {
  const Function function = body(
      "L: bra.uni M;\n{\nbra L; M: bra M;\nL:\n}\n{\nM: bra M;\n@%p1 bra L; bra END;\n}\n"
      "M: END:");
  const auto target = [&](int n) { return function.instructions[n].operands[0].index; };
  REQUIRE(function.instructions.size() == 6);
  CHECK(function.instructions[0].operands[0].kind == Operand::Kind::label);
  CHECK(function.instructions[0].operands[0].name == "M");
  CHECK(target(0) == 6);
  CHECK(target(1) == 3);
  CHECK(target(2) == 2);
  CHECK(target(3) == 3);
  CHECK(target(4) == 0);
  CHECK(target(5) == 6);
  CHECK(function.labels.at("L") == 0);
  CHECK(function.labels.size() == 6);
}

TEST_CASE("Scopes have registers and variables of their own", "[emulator][ptx]") {
  const Function function = body(
      "mov.b32 %r1, %r2;\n{ .reg .f64 %r<2>, a; .param .b32 x; op %r1, a, [x], %r2; }\n"
      "{ .param .b64 x; .shared .align 8 .b8 out[3]; op [x], out; { .local .b16 x; op x; } op x; "
      "}\n"
      "op [out], [y];",
      ".global .b32 y;\n");
  const auto& i = function.instructions;
  REQUIRE(i.size() == 6);
  const auto name = [&](int n, int o) { return function.registers[i[n].operands[o].index].name; };
  const auto type = [&](int n, int o) { return function.registers[i[n].operands[o].index].type; };
  CHECK(type(0, 0) == Type::b32);
  CHECK(name(1, 0) == "%r1");
  CHECK(type(1, 0) == Type::f64);
  CHECK(name(1, 1) == "a");
  CHECK(type(1, 3) == Type::b32);
  REQUIRE(function.locals.size() == 4);
  const auto local = [&](const std::string& named) {
    for (const Variable& variable : function.locals) {
      if (variable.name == named) return variable;
    }
    FAIL("no variable " << named);
    return Variable{};
  };
  CHECK(local(i[1].operands[2].elements[0].name).type == Type::b32);
  CHECK(local(i[2].operands[0].elements[0].name).type == Type::b64);
  CHECK(local(i[2].operands[1].name).bytes == 3);
  CHECK(local(i[2].operands[1].name).space == Space::shared);
  CHECK(local(i[3].operands[0].name).space == Space::local);
  CHECK(local(i[4].operands[0].name).type == Type::b64);
  CHECK(i[5].operands[0].elements[0].name == "out");  // the parameter
  CHECK(i[5].operands[1].elements[0].name == "y");
}

TEST_CASE("Ranges of registers and single ones", "[emulator][ptx]") {
  const Function function = body(".reg .b32 %r1<3>, a, b<2>, c<0>; op %r9, %r10, %r12, a, b1;");
  const auto& o = function.instructions[0].operands;
  CHECK(o[0].index == 4 + 9);
  CHECK(o[1].index == 28);
  CHECK(o[2].index == 30);
  CHECK(o[3].index == 31);
  CHECK(o[4].index == 33);
  CHECK(function.registers.size() == 34);
  CHECK(function.registers[30].name == "%r12");
}

TEST_CASE("Calls and prototypes", "[emulator][ptx]") {
  const Function function = body(
      ".param .b32 r; .param .align 4 .b8 a[8];\nP: .callprototype (.param .b32 _) _ "
      "(.param .align 4 .b8 _[8]) .noreturn;\nQ: .callprototype _ ();\n"
      "call.uni (r), f, (a);\ncall g;\ncall g, ();\ncall (r), %rd1, (a), P;\ncall %rd2, Q;",
      ".func (.param .b32 r) f(.param .align 4 .b8 a[8]);\n.func g;\n");
  const auto& i = function.instructions;
  REQUIRE(i.size() == 5);
  REQUIRE(i[0].operands.size() == 3);
  CHECK(i[0].operands[0].kind == Operand::Kind::list);
  CHECK(i[0].operands[0].elements.at(0).name == "r");
  CHECK(i[0].operands[1].kind == Operand::Kind::variable);
  CHECK(i[0].operands[1].name == "f");
  CHECK(i[0].operands[2].elements.at(0).name == "a");
  CHECK(function.locals[i[0].operands[2].elements[0].index].bytes == 8);
  CHECK(i[1].operands.size() == 1);
  CHECK(i[2].operands.size() == 2);
  REQUIRE(i[3].operands.size() == 4);
  CHECK(i[3].operands[1].kind == Operand::Kind::reg);
  CHECK(i[3].operands[3].kind == Operand::Kind::table);
  CHECK(i[3].operands[3].index == 0);
  CHECK(i[4].operands.back().index == 1);
  REQUIRE(function.prototypes.size() == 2);
  CHECK(function.prototypes[0].no_return);
  CHECK(function.prototypes[0].parameters.at(0).bytes == 8);
  CHECK(function.prototypes[0].results.at(0).type == Type::b32);
  CHECK(function.prototypes[1].parameters.empty());
}

TEST_CASE("Tables of branch targets", "[emulator][ptx]") {
  const Function function = body(
      "t: .branchtargets A, B, A;\n{ u: .branchtargets B;\nbrx.idx.uni %r1, u; }\n"
      "brx.idx %r1, t;\nA: exit;\nB:");
  REQUIRE(function.branch_targets.size() == 2);
  CHECK(function.branch_targets[0] == std::vector<uint32_t>{2, 3, 2});
  CHECK(function.branch_targets[1] == std::vector<uint32_t>{3});
  CHECK(function.instructions[0].operands[1].index == 1);
  CHECK(function.instructions[1].operands[1].index == 0);
  CHECK(function.instructions[1].operands[1].kind == Operand::Kind::table);
}

TEST_CASE("Source lines", "[emulator][ptx]") {
  const Module module = module_of(
      ".entry k {\nexit;\n.loc 1 10 2\nexit;\n.loc 1 20 3, function_name L, inlined_at 1 10 "
      "2\nexit;\n"
      ".loc 2 30 4, function_name L+7, inlined_at 1 20 3\nexit;\nL: .loc 1 11 1\nexit;\n}\n"
      ".entry l { exit; }\n.file 1 \"a\"\n.file 2 \"b\"\n");
  const auto& i = module.function("k")->instructions;
  REQUIRE(i.size() == 5);
  const auto check = [](const Source& s, std::vector<uint32_t> expected) {
    CHECK(std::vector<uint32_t>{s.file, s.line, s.column, s.outer_file, s.outer_line} == expected);
  };
  check(i[0].source, {0, 0, 0, 0, 0});
  check(i[1].source, {1, 10, 2, 0, 0});
  check(i[2].source, {1, 20, 3, 1, 10});
  check(i[3].source, {2, 30, 4, 1, 10});
  check(i[4].source, {1, 11, 1, 0, 0});
  check(module.function("l")->instructions[0].source, {0, 0, 0, 0, 0});
}

TEST_CASE("Ten thousand lines are read in some milliseconds", "[emulator][ptx]") {
  std::ostringstream text;
  text << kHeader << ".entry k(.param .u64 out)\n{\n" << kRegisters;
  for (int i = 0; i < 2500; ++i) {
    text << "ld.param.u64 %rd1, [out+0];\nL" << i << ": mad.lo.s32 %r1, %r2, 0x10, %r" << i % 10
         << ";\nmma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r1, %r2}, "
            "{%r3}, {%f0, %f1, %f2, %f3};\n@%p1 bra L"
         << i << ";\n";
  }
  text << "}\n";
  double least = 1e9;  // of processor time, as others run too
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    const Module module = parse(text.str());
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    CHECK(module.functions[0].instructions.size() == 10000);
  }
  INFO("10,000 lines in " << least * 1e3 << " ms");
  CHECK(least < 0.1);  // five times what it takes, for slow machines
}
