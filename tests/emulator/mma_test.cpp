// mma.sync of every shape and type against a plain product. Fragments are laid out by the formulas
// of the ISA's figures, one function a figure.

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tests/emulator/harness.h"

namespace emulator_test {
namespace {

// Element `row`, `column` of product number `product` (m8n8k4 of f16 makes four at once).
struct Place {
  int product, row, column;
};
using Figure = Place (*)(int lane, int i);

int group(int lane) { return lane >> 2; }
int in_group(int lane) { return lane % 4; }

// m8n8k4, f16.
Place quad_a_row(int lane, int i) {
  return {lane % 16 / 4, lane < 16 ? lane % 4 : lane % 4 + 4, i};
}
Place quad_a_col(int lane, int i) {
  return {lane % 16 / 4, lane < 16 ? i % 4 : i % 4 + 4, lane % 4};
}
Place quad_b_row(int lane, int i) { return {lane % 16 / 4, lane % 4, lane < 16 ? i : i + 4}; }
Place quad_b_col(int lane, int i) {
  return {lane % 16 / 4, i, lane < 16 ? lane % 4 : lane % 4 + 4};
}
Place quad_c_half(int lane, int i) {
  return {lane % 16 / 4, lane < 16 ? lane % 4 : lane % 4 + 4, i};
}
Place quad_c_single(int lane, int i) {
  const int x = (lane & 1) + (i & 2);
  return {lane % 16 / 4, lane < 16 ? x : x + 4, (i & 4) + (lane & 2) + (i & 1)};
}

// m8n8k4, f64.
Place a_8x4_double(int lane, int) { return {0, group(lane), in_group(lane)}; }
Place b_4x8_double(int lane, int) { return {0, in_group(lane), group(lane)}; }
Place c_8x8(int lane, int i) { return {0, group(lane), in_group(lane) * 2 + (i & 1)}; }

// Accumulators of all shapes with m = 16.
Place c_16x8(int lane, int i) {
  return {0, i < 2 ? group(lane) : group(lane) + 8, in_group(lane) * 2 + (i & 1)};
}

// m16n8k4, tf32 and f64.
Place a_16x4(int lane, int i) {
  return {0, i == 0 ? group(lane) : group(lane) + 8, in_group(lane)};
}
Place b_4x8(int lane, int) { return {0, in_group(lane), group(lane)}; }

// m16n8k8, f16 and bf16.
Place a_16x8_half(int lane, int i) {
  return {0, i < 2 ? group(lane) : group(lane) + 8, in_group(lane) * 2 + (i & 1)};
}
Place b_8x8_half(int lane, int i) { return {0, in_group(lane) * 2 + i, group(lane)}; }

// m16n8k8, tf32 and f64.
Place a_16x8_wide(int lane, int i) {
  return {0, i == 0 || i == 2 ? group(lane) : group(lane) + 8,
          i < 2 ? in_group(lane) : in_group(lane) + 4};
}
Place b_8x8_wide(int lane, int i) {
  return {0, i == 0 ? in_group(lane) : in_group(lane) + 4, group(lane)};
}

// m16n8k16, f16 and bf16.
Place a_16x16_half(int lane, int i) {
  return {0, i < 2 || (4 <= i && i < 6) ? group(lane) : group(lane) + 8,
          in_group(lane) * 2 + (i & 1) + (i < 4 ? 0 : 8)};
}
Place b_16x8_half(int lane, int i) {
  return {0, in_group(lane) * 2 + (i & 1) + (i < 2 ? 0 : 8), group(lane)};
}

// m16n8k16, f64.
Place a_16x16_double(int lane, int i) {
  return {0, i % 2 == 0 ? group(lane) : group(lane) + 8,
          i % 2 == 0 ? i * 2 + in_group(lane) : i * 2 - 2 + in_group(lane)};
}
Place b_16x8_double(int lane, int i) { return {0, in_group(lane) + i * 4, group(lane)}; }

// m8n8k16, 8-bit integers.
Place a_8x16_byte(int lane, int i) { return {0, group(lane), in_group(lane) * 4 + i}; }
Place b_16x8_byte(int lane, int i) { return {0, in_group(lane) * 4 + i, group(lane)}; }

// m16n8k16, 8-bit integers and floats.
Place a_16x16_byte(int lane, int i) {
  return {0, i < 4 ? group(lane) : group(lane) + 8, in_group(lane) * 4 + (i & 3)};
}

// m16n8k32, 8-bit integers and floats.
Place a_16x32_byte(int lane, int i) {
  return {0, i < 4 || (8 <= i && i < 12) ? group(lane) : group(lane) + 8,
          in_group(lane) * 4 + (i & 3) + (i < 8 ? 0 : 16)};
}
Place b_32x8_byte(int lane, int i) {
  return {0, in_group(lane) * 4 + (i & 3) + (i < 4 ? 0 : 16), group(lane)};
}

struct Case {
  std::string shape, layouts;
  int m, k;  // n is 8
  std::string d, a, b, c;
  Figure figure_a, figure_b, figure_c, figure_d;
  std::string modifier = "";

  int products() const { return figure_a == quad_a_row || figure_a == quad_a_col ? 4 : 1; }
  std::string text() const {
    return "mma.sync.aligned." + shape + "." + layouts + modifier + "." + d + "." + a + "." + b +
           "." + c;
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* a : {"row", "col"})
    for (const char* b : {"row", "col"})
      for (int types = 0; types < 3; ++types) {
        const char* c = types == 0 ? "f32" : "f16";
        const char* d = types == 1 ? "f16" : "f32";
        cases.push_back(
            {"m8n8k4", std::string(a) + "." + b, 8, 4, d, "f16", "f16", c,
             a[0] == 'r' ? quad_a_row : quad_a_col, b[0] == 'r' ? quad_b_row : quad_b_col,
             c[1] == '3' ? quad_c_single : quad_c_half, d[1] == '3' ? quad_c_single : quad_c_half});
      }
  const auto add = [&](const char* shape, int m, int k, const std::string& acc,
                       const std::string& a, const std::string& b, Figure fa, Figure fb) {
    const Figure c = m == 8 ? c_8x8 : c_16x8;
    cases.push_back({shape, "row.col", m, k, acc, a, b, acc, fa, fb, c, c});
  };
  add("m8n8k4", 8, 4, "f64", "f64", "f64", a_8x4_double, b_4x8_double);
  add("m16n8k4", 16, 4, "f64", "f64", "f64", a_16x4, b_4x8);
  add("m16n8k8", 16, 8, "f64", "f64", "f64", a_16x8_wide, b_8x8_wide);
  add("m16n8k16", 16, 16, "f64", "f64", "f64", a_16x16_double, b_16x8_double);
  add("m16n8k4", 16, 4, "f32", "tf32", "tf32", a_16x4, b_4x8);
  add("m16n8k8", 16, 8, "f32", "tf32", "tf32", a_16x8_wide, b_8x8_wide);
  for (const char* acc : {"f16", "f32"}) {
    add("m16n8k8", 16, 8, acc, "f16", "f16", a_16x8_half, b_8x8_half);
    add("m16n8k16", 16, 16, acc, "f16", "f16", a_16x16_half, b_16x8_half);
  }
  add("m16n8k8", 16, 8, "f32", "bf16", "bf16", a_16x8_half, b_8x8_half);
  add("m16n8k16", 16, 16, "f32", "bf16", "bf16", a_16x16_half, b_16x8_half);
  for (const char* a : {"s8", "u8"})
    for (const char* b : {"s8", "u8"}) {
      add("m8n8k16", 8, 16, "s32", a, b, a_8x16_byte, b_16x8_byte);
      add("m16n8k16", 16, 16, "s32", a, b, a_16x16_byte, b_16x8_byte);
      add("m16n8k32", 16, 32, "s32", a, b, a_16x32_byte, b_32x8_byte);
    }
  for (const char* acc : {"f16", "f32"})
    for (const char* a : {"e4m3", "e5m2"})
      for (const char* b : {"e4m3", "e5m2"}) {
        add("m16n8k16", 16, 16, acc, a, b, a_16x16_byte, b_16x8_byte);
        add("m16n8k32", 16, 32, acc, a, b, a_16x32_byte, b_32x8_byte);
      }
  return cases;
}

// Formats by their fields.
struct Format {
  int bits, exponent, mantissa, bias;
};
Format format_of(const std::string& type) {
  if (type == "f16") return {16, 5, 10, 15};
  if (type == "bf16") return {16, 8, 7, 127};
  if (type == "e4m3") return {8, 4, 3, 7};
  if (type == "e5m2") return {8, 5, 2, 15};
  if (type == "f64") return {64, 11, 52, 1023};
  if (type == "s8" || type == "u8") return {8, 0, 0, 0};
  if (type == "s32") return {32, 0, 0, 0};
  return {32, 8, 23, 127};  // f32 and tf32
}

// Bits of a finite value that the type holds exactly.
uint64_t encode(const std::string& type, double value) {
  const Format f = format_of(type);
  if (f.exponent == 0) {
    return static_cast<uint64_t>(static_cast<int64_t>(value)) & ((uint64_t{1} << f.bits) - 1);
  }
  const uint64_t sign = uint64_t{std::signbit(value)} << (f.bits - 1);
  if (value == 0) return sign;
  int exponent = std::ilogb(value) + f.bias;
  const double fraction = std::fabs(value) / std::ldexp(1.0, std::max(exponent, 1) - f.bias);
  const double scaled = std::ldexp(fraction, f.mantissa);
  REQUIRE(scaled == std::floor(scaled));
  const auto mantissa = static_cast<uint64_t>(scaled);  // with its leading one where normal
  if (exponent < 1) return sign | mantissa;
  const uint64_t leading = uint64_t{1} << f.mantissa;
  return sign | uint64_t(exponent) << f.mantissa | (mantissa - leading);
}

double decode(const std::string& type, uint64_t bits) {
  const Format f = format_of(type);
  if (type == "s32") return static_cast<int32_t>(bits);
  const double sign = bits >> (f.bits - 1) & 1 ? -1 : 1;
  const int exponent = int(bits >> f.mantissa & ((1u << f.exponent) - 1));
  const auto mantissa = double(bits & ((uint64_t{1} << f.mantissa) - 1));
  const double fraction = std::ldexp(mantissa, -f.mantissa);
  if (exponent == (1 << f.exponent) - 1)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - f.bias)
                       : sign * std::ldexp(1 + fraction, exponent - f.bias);
}

// Matrices of all products, by rows.
struct Matrices {
  std::vector<double> values;
  int rows, columns;
  Matrices(int products, int rows, int columns)
      : values(size_t(products * rows * columns)), rows(rows), columns(columns) {}
  double& at(const Place& p) {
    return values[size_t((p.product * rows + p.row) * columns + p.column)];
  }
};

std::string register_of(const std::string& type) {
  return type == "f32" || type == "f64" || type == "s32" ? type : "b32";
}
int register_bits(const std::string& type) { return type == "f64" ? 64 : 32; }

// Registers of a fragment, 32 lanes each.
std::vector<Column> pack(const std::string& type, Figure figure, int elements, Matrices& from) {
  const int bits = format_of(type).bits, each = register_bits(type) / bits;
  std::vector<Column> columns;
  for (int r = 0; r < elements / each; ++r) {
    Column column{register_of(type), std::vector<uint64_t>(32)};
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < each; ++i)
        column.values[lane] |= encode(type, from.at(figure(lane, r * each + i))) << i * bits;
    columns.push_back(column);
  }
  return columns;
}

void unpack(const std::string& type, Figure figure,
            const std::vector<std::vector<uint64_t>>& registers, Matrices& to) {
  const int bits = format_of(type).bits, each = register_bits(type) / bits;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  for (size_t r = 0; r < registers.size(); ++r)
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < each; ++i)
        to.at(figure(lane, int(r) * each + i)) =
            decode(type, registers[r][lane] >> i * bits & mask);
}

std::string list(const char* name, size_t first, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", %" : "%") + std::string(name) + std::to_string(first + i);
  return text + "}";
}

int count_of(const std::string& type, int elements) {
  return elements * format_of(type).bits / register_bits(type);
}

// D of the emulated instruction, as bits of its registers.
std::vector<std::vector<uint64_t>> execute(Device& device, const Case& one, Matrices& a,
                                           Matrices& b, Matrices& c) {
  const int products = one.products();
  std::vector<Column> columns = pack(one.a, one.figure_a, one.m * one.k * products / 32, a);
  const size_t first_b = columns.size();
  for (const Column& column : pack(one.b, one.figure_b, 8 * one.k * products / 32, b))
    columns.push_back(column);
  const size_t first_c = columns.size();
  for (const Column& column : pack(one.c, one.figure_c, one.m * 8 * products / 32, c))
    columns.push_back(column);
  const auto results = size_t(count_of(one.d, one.m * 8 * products / 32));
  const std::string body = one.text() + " " + list("d", 0, results) + ", " + list("a", 0, first_b) +
                           ", " + list("a", first_b, first_c - first_b) + ", " +
                           list("a", first_c, columns.size() - first_c) + ";";
  return evaluate(device, body, std::vector<std::string>(results, register_of(one.d)), columns);
}

Matrices result(Device& device, const Case& one, Matrices& a, Matrices& b, Matrices& c) {
  Matrices d(one.products(), one.m, 8);
  unpack(one.d, one.figure_d, execute(device, one, a, b, c), d);
  return d;
}

const Case& find(const std::string& text) {
  static const std::vector<Case> cases = all_cases();
  for (const Case& one : cases)
    if (one.text() == "mma.sync.aligned." + text) return one;
  throw std::runtime_error("no case " + text);
}

bool is_unsigned(const std::string& type) { return type == "u8"; }

// Whole numbers: every sum is exact in every accumulator.
void check_whole_numbers(Device& device, const Case& one) {
  INFO(one.text());
  std::mt19937 random(7);
  const auto draw = [&](Matrices& m, int low, int high) {
    for (double& value : m.values) value = std::uniform_int_distribution<int>(low, high)(random);
  };
  const int products = one.products();
  Matrices a(products, one.m, one.k), b(products, one.k, 8), c(products, one.m, 8);
  draw(a, is_unsigned(one.a) ? 0 : -4, 4);
  draw(b, is_unsigned(one.b) ? 0 : -4, 4);
  draw(c, -9, 9);
  if (one.a == "s8") a.at({0, 0, 0}) = -128;
  if (one.a == "u8") a.at({0, 0, 0}) = 255;
  Matrices d = result(device, one, a, b, c);
  int wrong = 0;
  for (int p = 0; p < products; ++p)
    for (int i = 0; i < one.m; ++i)
      for (int j = 0; j < 8; ++j) {
        double sum = c.at({p, i, j});
        for (int k = 0; k < one.k; ++k) sum += a.at({p, i, k}) * b.at({p, k, j});
        if (d.at({p, i, j}) != sum) ++wrong;
      }
  CHECK(wrong == 0);
}

// One row of A, one column of B and one accumulator matter; the rest is zero.
struct Sum {
  std::string text;
  std::vector<double> a, b;
  double c;
};

double single_sum(Device& device, const Sum& sum) {
  const Case& one = find(sum.text);
  Matrices a(one.products(), one.m, one.k), b(one.products(), one.k, 8),
      c(one.products(), one.m, 8);
  for (size_t k = 0; k < sum.a.size(); ++k) {
    a.at({0, 3, int(k)}) = sum.a[k];
    b.at({0, int(k), 5}) = sum.b[k];
  }
  c.at({0, 3, 5}) = sum.c;
  return result(device, one, a, b, c).at({0, 3, 5});
}

const char* const kHalf = "m16n8k16.row.col.f16.f16.f16.f16";
const char* const kSingle = "m16n8k16.row.col.f32.f16.f16.f32";
const char* const kBfloat = "m16n8k16.row.col.f32.bf16.bf16.f32";

CUresult load(const std::string& ptx) {
  CUmodule module = nullptr;
  const CUresult code =
      call<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData")(&module, ptx.c_str());
  if (code == CUDA_SUCCESS) call<CUresult (*)(CUmodule)>("cuModuleUnload")(module);
  return code;
}

// A kernel of that instruction, with a few registers of each kind.
std::string kernel(const std::string& instruction, const std::string& target) {
  return ".version 9.0\n.target " + target +
         "\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<16>;\n.reg .f32 %f<16>;\n"
         ".reg .f64 %g<16>;\n" +
         instruction + "\nret;\n}\n";
}

}  // namespace

TEST_CASE("mma: every shape and type against a plain product", "[mma]") {
  Device device;
  for (const Case& one : all_cases()) check_whole_numbers(device, one);
}

TEST_CASE("mma: f32 sums are rounded one by one in rising k", "[mma]") {
  Device device;
  const double big = 4096.0;  // big * big is 2^24, where an f32 loses its ones
  CHECK(single_sum(device, {kSingle, {1, big, big}, {1, big, -big}, 0}) == 0);
  CHECK(single_sum(device, {kSingle, {big, big, 1}, {big, -big, 1}, 0}) == 1);
  CHECK(single_sum(device, {kSingle, {big, 1}, {-big, 1}, 0x1p24}) == 1);
  // Ties go to even: 2^24 + 1 down, 2^24 + 3 up.
  CHECK(single_sum(device, {kSingle, {1}, {1}, 0x1p24}) == 0x1p24);
  CHECK(single_sum(device, {kSingle, {3}, {1}, 0x1p24}) == 0x1p24 + 4);
  // 8-bit mantissas multiply exactly.
  CHECK(single_sum(device, {kBfloat, {0x1.fep0}, {0x1.fep0}, 0}) == 0x1.fep0 * 0x1.fep0);
}

TEST_CASE("mma: f16 accumulators are rounded once, to nearest and ties to even", "[mma]") {
  Device device;
  CHECK(single_sum(device, {kHalf, {0x1p-11}, {1}, 1}) == 1);
  CHECK(single_sum(device, {kHalf, {0x1p-11}, {1}, 1 + 0x1p-10}) == 1 + 0x1p-9);
  CHECK(single_sum(device, {kHalf, {0x1p-12, 0x1p-12, 0x1p-12}, {1, 1, 1}, 1}) == 1 + 0x1p-10);
  CHECK(single_sum(device, {kHalf, {0x1p-12, 0x1p-24}, {1, 0x1p-1}, 1 + 0x1p-10}) == 1 + 0x1p-10);
  // Denormal halves as operands, as a result, and rounded away.
  CHECK(single_sum(device, {kHalf, {0x1p-24}, {1}, 0}) == 0x1p-24);
  CHECK(single_sum(device, {kHalf, {0x1.8p-23}, {0x1p-1}, 0}) == 0x1p-23);
  CHECK(single_sum(device, {kHalf, {0x1p-24}, {0x1p-1}, 0}) == 0);
  CHECK(single_sum(device, {kHalf, {0x1p-24}, {-1}, 0x1p-14}) == 0x1.ff8p-15);
  // 65504 is the most; from the tie at 65520 on it is infinity.
  CHECK(single_sum(device, {kHalf, {15}, {1}, 65504}) == 65504);
  CHECK(std::isinf(single_sum(device, {kHalf, {16}, {1}, 65504})));
}

TEST_CASE("mma: tf32 ignores the low 13 bits of its operands", "[mma]") {
  Device device;
  const char* text = "m16n8k8.row.col.f32.tf32.tf32.f32";
  CHECK(single_sum(device, {text, {1 + 0x1p-11}, {1}, 0}) == 1);
  CHECK(single_sum(device, {text, {1 + 0x1p-10}, {1}, 0}) == 1 + 0x1p-10);
  CHECK(single_sum(device, {text, {1}, {-(1 + 0x1.ffcp-10)}, 0}) == -(1 + 0x1p-10));
}

TEST_CASE("mma: f64 products are fused into the sum", "[mma]") {
  Device device;
  const double a = 1 + 0x1p-30, square = 1 + 0x1p-29 + 0x1p-60;
  CHECK(single_sum(device, {"m8n8k4.row.col.f64.f64.f64.f64", {a}, {a}, -(1 + 0x1p-29)}) ==
        0x1p-60);
  CHECK(single_sum(device, {"m16n8k8.row.col.f64.f64.f64.f64", {a}, {a}, 0}) == square);
}

TEST_CASE("mma: 8-bit floats with their extremes", "[mma]") {
  Device device;
  const char* text = "m16n8k32.row.col.f32.e4m3.e5m2.f32";
  CHECK(single_sum(device, {text, {448}, {57344}, 0}) == 448.0 * 57344);
  CHECK(single_sum(device, {text, {0x1p-9}, {0x1p-16}, 0}) == 0x1p-25);
  CHECK(single_sum(device, {text, {-0x1.cp-7}, {0x1.8p-15}, 0}) == -0x1.cp-7 * 0x1.8p-15);
}

TEST_CASE("mma: infinities and NaN", "[mma]") {
  Device device;
  // Lane 0 holds A(0, 0), A(0, 1) and C(0, 0) of m16n8k8, and B(0, 0), B(1, 0).
  const auto run = [&](const std::string& types, uint64_t a, uint64_t b, uint64_t c) {
    const bool half = types.substr(0, 3) == "f16";
    const std::string acc = half ? "b32" : "f32";
    const std::vector<uint64_t> zero(32);
    std::vector<Column> columns = {{"b32", zero}, {"b32", zero}, {"b32", zero}};
    for (int i = 0; i < (half ? 2 : 4); ++i) columns.push_back({acc, zero});
    columns[0].values[0] = a;
    columns[2].values[0] = b;
    columns[3].values[0] = c;
    const size_t count = half ? 2 : 4;
    return evaluate(device,
                    "mma.sync.aligned.m16n8k8.row.col." + types + " " + list("d", 0, count) +
                        ", {%a0, %a1}, {%a2}, " + list("a", 3, count) + ";",
                    std::vector<std::string>(count, acc), columns)[0][0] &
           (half ? 0xffff : 0xffffffff);  // C(0, 1) lies above the half that is C(0, 0)
  };
  const std::string single = "f32.f16.f16.f32", half = "f16.f16.f16.f16", bf = "f32.bf16.bf16.f32";
  CHECK(run(single, 0x7c00, 0x3c00, 0) == 0x7f800000);           // inf * 1
  CHECK(run(single, 0xfc00, 0x3c00, 0x3f800000) == 0xff800000);  // 1 - inf
  CHECK(run(single, 0x7c00, 0, 0) == 0x7fffffff);                // inf * 0
  CHECK(run(single, 0x7c00, 0x3c00, 0xff800000) == 0x7fffffff);  // inf - inf
  CHECK(run(single, 0x7e01, 0x3c00, 0) == 0x7fffffff);           // NaN
  CHECK(run(single, 0x3c00, 0x3c00, 0xffc12345) == 0x7fffffff);  // NaN in C
  CHECK(run(half, 0x7c00, 0x3c00, 0) == 0x7c00);                 // inf, and 0 above it
  CHECK(run(half, 0x7c00, 0, 0) == 0x7fff);                      // NaN
  CHECK(run(bf, 0x7f7f, 0x7f7f, 0) == 0x7f800000);               // overflow
  CHECK(run(bf, 0x0001, 0x3f80, 0) == 0x00010000);               // denormal
  CHECK(run(bf, 0x3f80'7f80, 0x3f80'0000, 0) == 0x7fffffff);     // inf * 0 + 1 * 1
}

TEST_CASE("mma: integer sums wrap, or stop at the ends with .satfinite", "[mma]") {
  Device device;
  const std::vector<uint64_t> a(32, 0x01010101), b(32, 0x02020202);  // 16 products of 2
  for (const char* saturate : {"", ".satfinite"}) {
    const bool stops = *saturate;
    const auto run = [&](int32_t c, uint64_t sign) {
      std::vector<uint64_t> signed_b = b;
      for (uint64_t& value : signed_b) value = sign ? 0xfefefefe : value;
      const std::vector<uint64_t> all(32, uint32_t(c));
      return int32_t(evaluate(device,
                              std::string("mma.sync.aligned.m8n8k16.row.col") + saturate +
                                  ".s32.s8.s8.s32 {%d0, %d1}, {%a0}, {%a1}, {%a2, %a3};",
                              {"s32", "s32"},
                              {{"b32", a}, {"b32", signed_b}, {"s32", all}, {"s32", all}})[1][17]);
    };
    constexpr int32_t most = std::numeric_limits<int32_t>::max(), least = -most - 1;
    CHECK(run(most - 32, 0) == most);
    CHECK(run(most - 31, 0) == (stops ? most : least));
    CHECK(run(least + 32, 1) == least);
    CHECK(run(least + 31, 1) == (stops ? least : most));
  }
}

TEST_CASE("mma: undefined operands are reported with lane and register", "[mma][faults]") {
  for (const auto& [operands, name] : std::vector<std::pair<std::string, std::string>>{
           {"{%r0, %r15}, {%r1}, {%f0, %f1, %f2, %f3}", "register 1 of operand A"},
           {"{%r0, %r0}, {%r15}, {%f0, %f1, %f2, %f3}", "register 0 of operand B"},
           {"{%r0, %r0}, {%r1}, {%f0, %f1, %f2, %f15}", "register 3 of operand C"}}) {
    Device device;
    std::string set;
    for (int i = 0; i < 4; ++i)
      set += "mov.b32 %r" + std::to_string(i) + ", 0;\nmov.f32 %f" + std::to_string(i) +
             ", 0f00000000;\n";
    const std::string text =
        set + "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f4, %f5, %f6, %f7}, " + operands +
        ";";
    const CUfunction function = device.load(kernel(text, "sm_90a"), "k");
    CHECK(device.launch(function, {1}, {32}, 0) != CUDA_SUCCESS);
    CHECK_THAT(device.report(), Catch::Contains(name));
    CHECK_THAT(device.report(), Catch::Contains("undefined"));
  }
}

TEST_CASE("mma: a warp that is not whole is reported", "[mma][faults]") {
  Device device;
  const std::string text =
      "mov.b32 %r0, 0;\nmov.f64 %g0, 0d0000000000000000;\n"
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g1, %g2}, {%g0}, {%g0}, {%g0, %g0};";
  const CUfunction function = device.load(kernel(text, "sm_90a"), "k");
  CHECK(device.launch(function, {1}, {31}, 0) != CUDA_SUCCESS);
  CHECK_THAT(device.report(), Catch::Contains("lane 31"));
}

TEST_CASE("mma: what there is not is refused", "[mma]") {
  Device device;
  const std::string c = "{%f0, %f1, %f2, %f3}", ab4 = "{%r0, %r1, %r2, %r3}";
  const std::string good = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " + c + ", " + ab4 +
                           ", {%r4, %r5}, " + c + ";";
  CHECK(load(kernel(good, "sm_90a")) == CUDA_SUCCESS);
  CHECK(load(kernel(good, "sm_80")) == CUDA_SUCCESS);
  const auto refused = [&](const std::string& text, const std::string& target = "sm_90a") {
    INFO(text);
    CHECK(load(kernel(text, target)) != CUDA_SUCCESS);
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  refused(good, "sm_75");
  refused(with("mma.sync", "mma.sp.sync"));
  refused(with("mma.sync", "mma.sp::ordered_metadata.sync"));
  refused(with(".aligned", ""));
  refused(with("row.col", "col.row"));
  refused(with("m16n8k16", "m16n8k64"));
  refused(with("m16n8k16", "m16n8k4"));
  refused(with("bf16.bf16", "bf16.f16"));
  refused(with("f32.bf16.bf16.f32", "f16.bf16.bf16.f16"));
  refused(with("f32.bf16.bf16.f32", "f16.f16.f16.f32"));
  refused(with("f32.bf16", "satfinite.f32.bf16"));
  refused(with("{%r4, %r5}", "{%r4}"));
  refused(with("{%r4, %r5}", "%r4"));
  refused(with(", {%r4, %r5}", ""));
  refused(with("f32.bf16.bf16.f32 ", "kind::f8f6f4.f32.e4m3.e4m3.f32 "));
  refused("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%r0, %r1}, {%r2}, {%r3}, {%r4, %r5};");
  refused("wgmma.fence.sync.aligned;");
}

TEST_CASE("mma: counts by shape and types, and operations", "[mma][counts]") {
  Device device;
  const Case& one = find(kBfloat);
  Matrices a(1, one.m, one.k), b(1, one.k, 8), c(1, one.m, 8);
  execute(device, one, a, b, c);
  const Case& quads = find("m8n8k4.row.col.f16.f16.f16.f16");
  Matrices qa(4, 8, 4), qb(4, 4, 8), qc(4, 8, 8);
  execute(device, quads, qa, qb, qc);
  const nlohmann::json all = device.statistics();
  INFO(all.dump(1));
  const nlohmann::json &first = all["launches"][0], &second = all["launches"][1];
  CHECK(first["mma"]["by_shape"]["m16n8k16.f32.bf16.bf16.f32"] == 1);
  CHECK(first["mma"]["flops"] == 2 * 16 * 8 * 16);
  CHECK(second["mma"]["by_shape"]["m8n8k4.f16.f16.f16.f16"] == 1);
  CHECK(second["mma"]["flops"] == 4 * 2 * 8 * 8 * 4);
}

}  // namespace emulator_test
