// Atomic operations against values of the host, alone and under contention.

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>

#include "tests/emulator/ptx_kernel.h"

namespace emulator_test {
namespace {

using Bytes = std::array<uint8_t, 16>;
struct Case {
  Bytes start{}, b{}, c{};
};
struct Outcome {
  Bytes old{}, after{};
};

// Each thread does the operation on 16 bytes of its own in that space ("global", "shared", "": by a
// generic address in shared memory). `registers`: kind and number of an operand, "%r" 1 ...
std::vector<Outcome> run_cases(Device& device, const std::string& operation, const char* space,
                               const std::string& kind, unsigned element, unsigned count,
                               bool compares, bool returns, const std::vector<Case>& cases) {
  const std::string type = "b" + std::to_string(8 * element);
  const auto list = [&](unsigned first) {
    std::string text;
    for (unsigned i = 0; i < count; ++i) text += (i ? ", " : "") + kind + std::to_string(first + i);
    return count > 1 ? "{" + text + "}" : text;
  };
  const auto move = [&](const std::string& op, unsigned first, const std::string& at, int offset) {
    std::string text;
    for (unsigned i = 0; i < count; ++i) {
      const std::string address = "[" + at + "+" + std::to_string(offset + int(i * element)) + "]";
      const std::string reg = kind + std::to_string(first + i);
      text += op == "ld" ? "ld.global." + type + " " + reg + ", " + address + ";\n"
                         : "st.global." + type + " " + address + ", " + reg + ";\n";
    }
    return text;
  };
  const bool global = std::string(space) == "global";
  const std::string text =
      std::string(R"(.version 9.0
.target sm_90a
.address_size 64
.global .align 16 .b8 places[4096];
.visible .entry test(.param .u64 in, .param .u64 out) {
.shared .align 16 .b8 area[4096];
.reg .b32 %i; .reg .b64 %in, %out, %at, %x, %y;
.reg .b16 %h<32>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<32>; .reg .f64 %d<32>;
.reg .b128 %q<32>;
mov.u32 %i, %tid.x;
ld.param.u64 %in, [in]; mad.wide.u32 %in, %i, 48, %in;
ld.param.u64 %out, [out]; mad.wide.u32 %out, %i, 32, %out;
)") + (global ? "mov.u64 %at, places;" : "mov.u64 %at, area;") +
      (*space ? "" : "cvta.shared.u64 %at, %at;") + "mad.wide.u32 %at, %i, 16, %at;\n" +
      "ld.global.v2.b64 {%x, %y}, [%in]; st" + (*space ? "." : "") + space +
      ".v2.b64 [%at], {%x, %y};\n" + move("ld", 8, "%in", 16) + move("ld", 16, "%in", 32) +
      operation + " " + (returns ? list(0) + ", " : "") + "[%at], " + list(8) +
      (compares ? ", " + list(16) : "") + ";\n" + (returns ? move("st", 0, "%out", 0) : "") + "ld" +
      (*space ? "." : "") + space + ".v2.b64 {%x, %y}, [%at];\n" +
      "st.global.v2.b64 [%out+16], {%x, %y};\nret;\n}\n";
  INFO(text);
  const Buffer in = Buffer::of(cases), out = Buffer::of(std::vector<Outcome>(cases.size()));
  device.run(device.load(text, "test"), {1}, {unsigned(cases.size())}, 0, in.address(),
             out.address());
  return out.read<Outcome>();
}

template <class T>
T get(const Bytes& bytes, unsigned i = 0) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void put(Bytes& bytes, T value, unsigned i = 0) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

std::vector<Case> random_cases(unsigned seed, size_t count = 128) {
  std::mt19937_64 random(seed);
  std::vector<Case> cases(count);
  for (Case& one : cases) {
    for (Bytes* bytes : {&one.start, &one.b, &one.c})
      for (uint8_t& byte : *bytes) byte = uint8_t(random());
    // Small and equal values too.
    if (random() % 4 == 0) one.start = one.b;
    if (random() % 4 == 0) one.start = {uint8_t(random() % 4)}, one.b = {uint8_t(random() % 4)};
  }
  return cases;
}

// An operation of whole numbers: the new value from the old one, b and c.
template <class T>
void check_integers(const char* name, const char* type, bool compares,
                    const std::function<T(T, T, T)>& expected) {
  Device device;
  const auto cases = random_cases(7);
  const std::string kind = sizeof(T) == 8 ? "%rd" : sizeof(T) == 4 ? "%r" : "%h";
  for (const char* space : {"global", "shared", ""}) {
    for (bool returns : {true, false}) {
      const bool exchanges = compares || std::string(name) == "exch";
      if (!returns && exchanges) continue;
      const std::string operation = std::string(returns ? "atom" : "red") + (*space ? "." : "") +
                                    space + "." + name + "." + type;
      INFO(operation);
      const auto results =
          run_cases(device, operation, space, kind, sizeof(T), 1, compares, returns, cases);
      for (size_t i = 0; i < cases.size(); ++i) {
        const T old = get<T>(cases[i].start);
        Bytes after = cases[i].start;
        put(after, expected(old, get<T>(cases[i].b), get<T>(cases[i].c)));
        REQUIRE(results[i].after == after);
        if (returns) REQUIRE(get<T>(results[i].old) == old);
      }
    }
  }
}

template <class T>
void check_arithmetic(const char* type) {
  using U = std::make_unsigned_t<T>;
  if (std::string(type) != "s64")
    check_integers<T>("add", type, false, [](T a, T b, T) { return T(U(a) + U(b)); });
  check_integers<T>("min", type, false, [](T a, T b, T) { return std::min(a, b); });
  check_integers<T>("max", type, false, [](T a, T b, T) { return std::max(a, b); });
}

template <class T>
void check_bits(const char* type) {
  check_integers<T>("and", type, false, [](T a, T b, T) { return a & b; });
  check_integers<T>("or", type, false, [](T a, T b, T) { return a | b; });
  check_integers<T>("xor", type, false, [](T a, T b, T) { return a ^ b; });
  check_integers<T>("exch", type, false, [](T, T b, T) { return b; });
  check_integers<T>("cas", type, true, [](T a, T b, T c) { return a == b ? c : a; });
}

// Value of a 16-bit float by its definition.
double half_value(uint16_t bits, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * fraction * std::pow(2.0, 1 - bias - fraction_bits);
  return sign * (1 + fraction * std::pow(2.0, -fraction_bits)) * std::pow(2.0, exponent - bias);
}

// The half nearest to a finite number among all there are, the even one of two; the sum of two
// halves, taken in long double, is exact.
uint16_t nearest_half(long double value, bool negative_zero, int fraction_bits) {
  if (value == 0) return negative_zero ? 0x8000 : 0;
  const uint16_t infinity = uint16_t(((1 << (15 - fraction_bits)) - 1) << fraction_bits);
  const auto magnitude = std::fabs(value);
  // Halves rise with their bits; the one behind the largest stands for infinity.
  const auto of = [&](int bits) {
    if (bits < infinity) return static_cast<long double>(half_value(uint16_t(bits), fraction_bits));
    return std::pow(2.0L, 1 << (14 - fraction_bits));
  };
  int low = 0, high = infinity;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (of(middle) <= magnitude ? low : high) = middle;
  }
  const long double below = magnitude - of(low), above = of(high) - magnitude;
  int bits = below < above || (below == above && low % 2 == 0) ? low : high;
  if (magnitude >= of(infinity)) bits = infinity;
  return uint16_t(bits | (value < 0 ? 0x8000 : 0));
}

uint16_t half_result(const std::string& operation, uint16_t a, uint16_t b, int fraction_bits) {
  const double x = half_value(a, fraction_bits), y = half_value(b, fraction_bits);
  if (operation == "add") {
    if (std::isnan(x) || std::isnan(y) || (std::isinf(x) && x == -y)) return 0x7fff;
    if (std::isinf(x)) return a;
    if (std::isinf(y)) return b;
    return nearest_half(static_cast<long double>(x) + y, std::signbit(x) && std::signbit(y),
                        fraction_bits);
  }
  const bool min = operation == "min";
  if (std::isnan(x)) return std::isnan(y) ? 0x7fff : b;
  if (std::isnan(y)) return a;
  if (x == 0 && y == 0) return min ? (a | b) & 0x8000 : a & b & 0x8000;
  return (x < y) == min ? a : b;
}

void check_halves(const std::string& operation, const char* type, unsigned packed, unsigned vector,
                  int fraction_bits) {
  Device device;
  auto cases = random_cases(11, 192);
  const uint16_t special[] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x7c00, 0xfc00, 0x7c01,
                              0x7bff, 0xfbff, 0x7f80, 0xff80, 0x7f7f, 0xff7f, 0x3c00, 0x3f80};
  for (size_t i = 0; i < std::size(special) * 2; ++i) {
    put(cases[i].start, special[i % 16]);
    put(cases[i].b, special[(i * 5 + i / 16) % 16]);
  }
  // Numbers of about the same size, whose sums are rounded.
  for (size_t i = 64; i < cases.size(); ++i)
    for (unsigned k = 0; k < 8; ++k) {
      const auto a = get<uint16_t>(cases[i].start, k), b = get<uint16_t>(cases[i].b, k);
      put(cases[i].b, uint16_t((a & 0x7c00) ^ (b & 0x87ff)), k);
    }
  const std::string form = std::string("atom.global.") + operation + ".noftz" +
                           (vector > 1 ? ".v" + std::to_string(vector) : "") + "." + type;
  INFO(form);
  const auto results = run_cases(device, form, "global", packed == 2 ? "%r" : "%h", 2 * packed,
                                 vector, false, true, cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    Bytes after = cases[i].start;
    for (unsigned k = 0; k < packed * vector; ++k) {
      const auto a = get<uint16_t>(cases[i].start, k), b = get<uint16_t>(cases[i].b, k);
      put(after, half_result(operation, a, b, fraction_bits), k);
      REQUIRE(get<uint16_t>(results[i].old, k) == a);
    }
    REQUIRE(results[i].after == after);
  }
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.f, x) : x; }

void check_f32(const char* space, unsigned vector, bool flush) {
  Device device;
  auto cases = random_cases(13);
  const uint32_t special[] = {0,        0x80000000, 1,          0x80000001, 0x7fffff,
                              0x800000, 0x80800001, 0x7f800000, 0xff800000, 0x7fc00000};
  for (size_t i = 0; i < 40; ++i) {
    put(cases[i].start, special[i % 10]);
    put(cases[i].b, special[(i * 7 + i / 10) % 10]);
  }
  const std::string form = std::string("atom") + (*space ? "." : "") + space + ".add" +
                           (vector > 1 ? ".v" + std::to_string(vector) : "") + ".f32";
  INFO(form);
  const auto results = run_cases(device, form, space, "%f", 4, vector, false, true, cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    Bytes after = cases[i].start;
    for (unsigned k = 0; k < vector; ++k) {
      float a = get<float>(cases[i].start, k), b = get<float>(cases[i].b, k);
      if (flush) a = flushed(a), b = flushed(b);
      const float sum = flush ? flushed(a + b) : a + b;
      if (std::isnan(sum))
        put(after, uint32_t{0x7fffffff}, k);
      else
        put(after, sum, k);
    }
    REQUIRE(results[i].after == after);
  }
}

}  // namespace

TEST_CASE("Atomics: whole numbers", "[atomics]") {
  check_arithmetic<uint32_t>("u32");
  check_arithmetic<int32_t>("s32");
  check_arithmetic<uint64_t>("u64");
  check_arithmetic<int64_t>("s64");
  check_bits<uint32_t>("b32");
  check_bits<uint64_t>("b64");
  check_integers<uint16_t>("cas", "b16", true,
                           [](uint16_t a, uint16_t b, uint16_t c) { return a == b ? c : a; });
  using T = uint32_t;
  check_integers<T>("inc", "u32", false, [](T a, T b, T) { return a >= b ? 0 : a + 1; });
  check_integers<T>("dec", "u32", false, [](T a, T b, T) { return a == 0 || a > b ? b : a - 1; });
}

TEST_CASE("Atomics: 16 bytes", "[atomics]") {
  Device device;
  const auto cases = random_cases(5);
  const auto swapped =
      run_cases(device, "atom.global.exch.b128", "global", "%q", 16, 1, false, true, cases);
  const auto compared =
      run_cases(device, "atom.shared.cas.b128", "shared", "%q", 16, 1, true, true, cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    CHECK(swapped[i].after == cases[i].b);
    CHECK(swapped[i].old == cases[i].start);
    const bool same = cases[i].start == cases[i].b;
    CHECK(compared[i].after == (same ? cases[i].c : cases[i].start));
    CHECK(compared[i].old == cases[i].start);
  }
}

TEST_CASE("Atomics: halves, packed and in vectors", "[atomics]") {
  for (const auto& [type, packed, fraction] :
       {std::tuple{"f16", 1u, 10}, {"f16x2", 2u, 10}, {"bf16", 1u, 7}, {"bf16x2", 2u, 7}}) {
    for (unsigned vector : {1, 2, 4, 8}) {
      if (packed * vector > 8) continue;
      check_halves("add", type, packed, vector, fraction);
      if (vector == 1) continue;
      check_halves("min", type, packed, vector, fraction);
      check_halves("max", type, packed, vector, fraction);
    }
  }
}

TEST_CASE("Atomics: f32 and f64", "[atomics]") {
  check_f32("global", 1, true);
  check_f32("shared", 1, false);
  check_f32("", 1, false);
  check_f32("global", 2, true);
  check_f32("global", 4, true);
  Device device;
  auto cases = random_cases(17);
  const auto results =
      run_cases(device, "atom.global.add.f64", "global", "%d", 8, 1, false, true, cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    const double a = get<double>(cases[i].start), sum = a + get<double>(cases[i].b);
    if (!std::isnan(sum)) CHECK(get<double>(results[i].after) == sum);
    CHECK(std::isnan(get<double>(results[i].after)) == std::isnan(sum));
    CHECK(get<uint64_t>(results[i].old) == get<uint64_t>(cases[i].start));
  }
}

TEST_CASE("Atomics: the order of modifiers, semantics and scopes", "[atomics]") {
  Device device;
  const auto cases = random_cases(19);
  for (const char* form :
       {"atom.global.add.u32", "atom.relaxed.gpu.global.add.u32", "atom.acq_rel.sys.global.add.u32",
        "atom.acquire.cta.global.add.u32", "atom.release.cluster.global.add.u32",
        "atom.global.gpu.add.u32", "atom.cta.global.add.u32", "atom.gpu.add.u32",
        "red.relaxed.sys.global.add.u32", "red.release.gpu.global.add.u32", "red.gpu.add.u32"}) {
    const bool returns = form[0] == 'a';
    const auto results = run_cases(device, form, "global", "%r", 4, 1, false, returns, cases);
    for (size_t i = 0; i < cases.size(); ++i)
      REQUIRE(get<uint32_t>(results[i].after) ==
              get<uint32_t>(cases[i].start) + get<uint32_t>(cases[i].b));
  }
  const auto vectors =
      run_cases(device, "atom.global.v4.f32.add", "global", "%f", 4, 4, false, true, cases);
  for (size_t i = 0; i < cases.size(); ++i)
    for (unsigned k = 0; k < 4; ++k)
      CHECK(get<uint32_t>(vectors[i].old, k) == get<uint32_t>(cases[i].start, k));
}

TEST_CASE("Atomics: many blocks at one place", "[atomics]") {
  const std::string module = ".global .align 16 .b8 all[256];\n";
  const std::string body = R"(
mov.u64 %rd0, all; add.u32 %r0, %g, 1; cvt.u64.u32 %rd1, %r0; cvt.rn.f32.u32 %f0, 1;
red.global.add.u32 [%rd0], %r0;
red.global.add.u64 [%rd0+8], %rd1;
red.global.add.f32 [%rd0+16], %f0;
red.global.max.u32 [%rd0+20], %r0;
red.global.inc.u32 [%rd0+24], 999;
red.global.xor.b32 [%rd0+28], %r0;
red.global.or.b32 [%rd0+32], %r0;
mov.b32 %r1, 0x3f803f80; red.global.add.noftz.bf16x2 [%rd0+36], %r1;
again: ld.relaxed.gpu.global.u32 %r2, [%rd0+40];
add.u32 %r3, %r2, 3; atom.global.cas.b32 %r4, [%rd0+40], %r2, %r3;
setp.ne.u32 %p0, %r4, %r2; @%p0 bra again;
atom.global.add.u32 %r5, [%rd0+44], 1; st.global.u32 [%out], %r5;)";
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Device device;
    device.seed(seed);
    const unsigned blocks = 48, threads = 96, count = blocks * threads;
    const auto tickets = results(device, ptx_kernel(body, module), blocks, threads);
    CUdeviceptr at = 0;
    size_t bytes = 0;
    require_success(call<decltype(&cuModuleGetGlobal)>("cuModuleGetGlobal_v2")(
                        &at, &bytes, device.module(), "all"),
                    "cuModuleGetGlobal");
    uint32_t all[64];
    require_success(call<decltype(&cuMemcpyDtoH)>("cuMemcpyDtoH_v2")(all, at, sizeof all), "copy");
    const uint64_t sum = uint64_t{count} * (count + 1) / 2;
    uint32_t bits_xor = 0, bits_or = 0;
    for (unsigned i = 1; i <= count; ++i) bits_xor ^= i, bits_or |= i;
    CHECK(all[0] == uint32_t(sum));
    CHECK((all[2] | uint64_t{all[3]} << 32) == sum);
    float ones;
    std::memcpy(&ones, &all[4], 4);
    CHECK(ones == float(count));
    CHECK(all[5] == count);
    CHECK(all[6] == count % 1000);
    CHECK(all[7] == bits_xor);
    CHECK(all[8] == bits_or);
    CHECK(all[9] == 0x43804380);  // sums of ones stick at 256 in bf16
    CHECK(all[10] == 3 * count);
    CHECK(all[11] == count);
    std::vector<bool> taken(count);
    for (uint32_t ticket : tickets) taken.at(ticket) = true;
    CHECK(std::count(taken.begin(), taken.end(), true) == int(count));
  }
}

}  // namespace emulator_test
