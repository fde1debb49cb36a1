// The functions that kernels call, as text: each kernel bears those that it needs.
//
// Elementary functions compute what codegen/llvm/vector_math.h computes, step by step, with its
// bounds; with math=exact bit by bit. Else exp is by ex2.approx: at most 2 ulp more.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <vector>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/math_constants.h"
#include "dsl/error.h"

namespace krait {
namespace {

struct Function {
  std::string name, text;
  std::vector<std::string> calls{};
  /// Of two functions of one name: the one by approximate instructions, f32 only.
  bool has_twin = false, fast = false;
};

std::string number(double value, bool wide) {
  char digits[64];
  const std::to_chars_result end =
      wide ? std::to_chars(digits, digits + sizeof digits, value)
           : std::to_chars(digits, digits + sizeof digits, static_cast<float>(value));
  std::string made(digits, end.ptr);
  if (made.find_first_of(".e") == std::string::npos) made += ".0";
  return wide ? made : made + "f";
}

/// Puts in types, constants and polynomials: $T, $(1.5), $magic, $exp(r) and so on.
std::string filled(const std::string& text, const MathConstants& c, bool wide) {
  const std::map<std::string, double> values = {{"magic", c.magic},
                                                {"exp_low", c.exp_low},
                                                {"exp_high", c.exp_high},
                                                {"expm1_low", c.expm1_low},
                                                {"ln2_high", c.ln2_high},
                                                {"ln2_low", c.ln2_low},
                                                {"turn_high", c.turn_high},
                                                {"turn_low", c.turn_low},
                                                {"log2e", 1.4426950408889634},
                                                {"least_normal", std::ldexp(1.0, 1 - c.bias)},
                                                {"lift", std::ldexp(1.0, c.mantissa + 2)},
                                                {"lifted", c.mantissa + 2},
                                                {"minute", std::ldexp(1.0, -c.mantissa - 2)}};
  const std::map<std::string, const std::vector<double>*> polynomials = {{"P_exp", &c.exp},
                                                                         {"P_log", &c.log},
                                                                         {"P_sin", &c.sin},
                                                                         {"P_cos", &c.cos},
                                                                         {"P_tanh", &c.tanh}};
  const std::map<std::string, std::string> words = {
      {"T", wide ? "double" : "float"},
      {"I", wide ? "i64" : "int"},
      {"fma", wide ? "__fma_rn" : "__fmaf_rn"},
      {"bits", wide ? "__double_as_longlong" : "__float_as_int"},
      {"from", wide ? "__longlong_as_double" : "__int_as_float"},
      {"sqrt", wide ? "__dsqrt_rn" : "__fsqrt_rn"},
      {"f", wide ? "" : "f"},
      {"root", wide ? "0x3fe6a09e667f3bcdLL" : "0x3f3504f3"},
      {"inf", wide ? "__longlong_as_double(0x7ff0000000000000LL)" : "__int_as_float(0x7f800000)"},
      {"nan", wide ? "__longlong_as_double(0x7ff8000000000000LL)" : "__int_as_float(0x7fc00000)"},
      {"mantissa", std::to_string(c.mantissa)},
      {"bias", std::to_string(c.bias)}};
  std::string made;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      made += text[i++];
      continue;
    }
    std::size_t end = i + 1;
    if (text[end] == '(') {
      const std::size_t close = text.find(')', end);
      made += number(std::stod(text.substr(end + 1, close - end - 1)), wide);
      i = close + 1;
      continue;
    }
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
      ++end;
    const std::string name = text.substr(i + 1, end - i - 1);
    if (const auto word = words.find(name); word != words.end()) {
      made += word->second;
    } else if (const auto value = values.find(name); value != values.end()) {
      made += number(value->second, wide);
    } else {
      // A polynomial of the name that stands in parentheses behind it.
      const std::vector<double>& coefficients = *polynomials.at(name);
      const std::size_t close = text.find(')', end);
      const std::string x = text.substr(end + 1, close - end - 1);
      std::string sum = number(coefficients.back(), wide);
      for (std::size_t k = coefficients.size() - 1; k-- > 0;)
        sum = words.at("fma") + "(" + sum + ", " + x + ", " + number(coefficients[k], wide) + ")";
      made += sum;
      end = close + 1;
    }
    i = end;
  }
  return made;
}

const std::vector<Function> elementary = {
    {"least", "DEV $T least($T a, $T b) { return b < a || b != b ? b : a; }\n"},
    {"greatest", "DEV $T greatest($T a, $T b) { return b > a || b != b ? b : a; }\n"},
    {"floor_", "DEV $T floor_($T x) { return floor$f(x); }\n"},
    {"sqrt_", "DEV $T sqrt_($T x) { return $sqrt(x); }\n"},
    {"rsqrt_", "DEV $T rsqrt_($T x) { return $(1) / $sqrt(x); }\n"},
    {"wrap", "DEV $T wrap($T x) { return x - floor$f(x + $(0.5)); }\n"},
    {"power_of_two", "DEV $T power_of_two_$f($I e) { return $from((e + $bias) << $mantissa); }\n"},
    {"exp_",
     R"(// e^x: 2^n e^r with n the integer nearest to x / ln 2; 1 ulp.
DEV $T exp_($T x) {
  $T v = x > $exp_high ? $exp_high : x;
  v = v < $exp_low ? $exp_low : v;
  const $T sum = $fma(v, $log2e, $magic), n = sum - $magic;
  const $I bits = $bits(sum) - $bits($magic), half = bits >> 1;
  const $T r = $fma(n, -$ln2_low, $fma(n, -$ln2_high, v));
  const $T small = $fma(r * r, $P_exp(r), r);
  return (small + $(1)) * power_of_two_$f(half) * power_of_two_$f(bits - half);
}
)",
     {"power_of_two"},
     true,
     false},
    {"exp_",
     R"(// e^x by ex2.approx, with what x log2 e loses put back: 4 ulp; 0 below 2^-126.
DEV float exp_(float x) {
  const float v = x < -104.0f ? -104.0f : x;
  const float t = v * 1.442695f, lost = __fmaf_rn(v, 1.9259629e-8f, __fmaf_rn(v, 1.442695f, -t));
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(t));
  return x > 88.72283f ? x * __int_as_float(0x7f800000) : __fmaf_rn(e, lost * 0.6931472f, e);
}
)",
     {},
     true,
     true},
    {"exp_nonpositive",
     "DEV $T exp_nonpositive($T x) { return exp_(x > $(0) ? $(0) : x); }\n",
     {"exp_"}},
    {"expm1_",
     R"(// e^x - 1; 2 ulp.
DEV $T expm1_($T x) {
  $T v = x > $exp_high ? $exp_high : x;
  v = v < $expm1_low ? $expm1_low : v;
  const $T sum = $fma(v, $log2e, $magic), n = sum - $magic;
  const $I bits = $bits(sum) - $bits($magic);
  const $T r = $fma(n, -$ln2_low, $fma(n, -$ln2_high, v));
  const $T small = $fma(r * r, $P_exp(r), r);
  const $T t = power_of_two_$f(bits - 1), half = $fma(t, small, t - $(0.5));
  return n == $(0) ? small : half + half;
}
)",
     {"power_of_two"}},
    {"log_of",
     R"(// e ln 2 + log(1 + g) + low, by s = g / (2 + g).
DEV $T log_of($T e, $T g, $T low) {
  const $T s = g / (g + $(2)), z = s * s, half = g * $(0.5) * g;
  const $T rest = $fma(s, $fma(z, $P_log(z), half), $fma(e, $ln2_low, low));
  return $fma(e, $ln2_high, g - (half - rest));
}
// x = 2^e m with m in [sqrt(1/2), sqrt(2)).
DEV $T split($T x, $T& m) {
  const $I bits = $bits(x), e = (bits - $root) >> $mantissa;
  m = $from(bits - (e << $mantissa));
  return $from(e + $bits($magic)) - $magic;
}
DEV $T special_log($T x, $T usual) {
  const $T sign = x >= $(0) ? usual : $nan, top = x == $inf ? x : sign;
  return x == $(0) ? -$inf : top;
}
)"},
    {"log_",
     R"(// 1.5 ulp.
DEV $T log_($T x) {
  const bool tiny = x < $least_normal;
  $T m;
  const $T e = split(tiny ? x * $lift : x, m);
  return special_log(x, log_of(e - (tiny ? $lifted : $(0)), m - $(1), $(0)));
}
)",
     {"log_of"}},
    {"log1p_",
     R"(// 2 ulp: u + low = 1 + x exactly.
DEV $T log1p_($T x) {
  const $T u = x + $(1), back = u - $(1), low = ($(1) - (u - back)) + (x - back);
  $T m;
  const $T e = split(u, m);
  const $T result = special_log(u, log_of(e, m - $(1), low / u));
  return fabs$f(x) < $minute ? x : result;
}
)",
     {"log_of"}},
    {"tanh_",
     R"(// 2 ulp.
DEV $T tanh_($T x) {
  const $T size = fabs$f(x), z = x * x;
  const $T near = $fma(x * z, $P_tanh(z), x);
  const $T far = copysign$f($(1) - $(2) / (exp_(size + size) + $(1)), x);
  return size < $(0.625) ? near : far;
}
)",
     {"exp_"}},
    {"sigmoid",
     R"(// 2.3 ulp.
DEV $T sigmoid($T x) {
  const $T e = exp_(-fabs$f(x));
  return (x < $(0) ? e : $(1)) / (e + $(1));
}
)",
     {"exp_"}},
    {"softplus",
     "// log(1 + e^x), x itself above 20; 2.5 ulp.\n"
     "DEV $T softplus($T x) { return x > $(20) ? x : log1p_(exp_(x)); }\n",
     {"exp_", "log1p_"}},
    {"turn",
     R"(// x is a whole number, q quarters and s turns, |s| <= 1/8, without rounding.
DEV $T turn($T x, $T& sine, $T& cosine) {
  const $T part = x - rint$f(x), q = rint$f(part * $(4)), s = $fma(q, -$(0.25), part), z = s * s;
  sine = $fma(s, $turn_high, s * $fma(z, $P_sin(z), $turn_low));
  cosine = $fma(z, $P_cos(z), $(1));
  return q;
}
)"},
    {"sin_turns",
     R"(// sin(2 pi x); 2 ulp.
DEV $T sin_turns($T x) {
  $T sine, cosine;
  const $T q = turn(x, sine, cosine), size = fabs$f(q);
  const $T up = size == $(1) ? q * cosine : sine;
  return size == $(2) ? -up : up;
}
)",
     {"turn"}},
    {"cos_turns",
     R"(// cos(2 pi x); 1e-7 (3e-16 in double), absolute.
DEV $T cos_turns($T x) {
  $T sine, cosine;
  const $T q = turn(x, sine, cosine), size = fabs$f(q);
  const $T right = size == $(1) ? -(q * sine) : cosine;
  return size == $(2) ? -right : right;
}
)",
     {"turn"}},
};

/// In the order in which they stand in a kernel.
std::vector<Function> make_functions(bool exact) {
  std::vector<Function> all = {
      {"near",
       "// A bound near the tile, as an int: what lies further away does not matter.\n"
       "DEV int near(i64 n) { return n < -(1 << 30) ? -(1 << 30) : n > 1 << 30 ? 1 << 30 : (int)n; "
       "}\n",
       {}},
      {"floor_div",
       "DEV int floor_div(int a, int b) {\n"
       "  const int q = a / b;\n"
       "  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;\n"
       "}\n",
       {}},
      {"bf16", "struct bf16 { unsigned short bits; };\n", {}},
      {"f16", "struct f16 { unsigned short bits; };\n", {}},
      {"from_bf16",
       "DEV float from_bf16(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }\n",
       {"bf16"}},
      {"to_bf16",
       "// To the nearest, ties to even; a NaN stays one.\n"
       "DEV bf16 to_bf16(float x) {\n"
       "  const unsigned bits = __float_as_uint(x);\n"
       "  const unsigned nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;\n"
       "  return bf16{(unsigned short)(x != x ? bits >> 16 | 0x40 : nearest)};\n"
       "}\n",
       {"bf16"}},
      {"from_f16",
       "DEV float from_f16(f16 x) {\n"
       "  float y;\n"
       "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x.bits));\n"
       "  return y;\n"
       "}\n",
       {"f16"}},
      {"to_f16",
       "// To the nearest, ties to even.\n"
       "DEV f16 to_f16(float x) {\n"
       "  f16 y;\n"
       "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));\n"
       "  return y;\n"
       "}\n",
       {"f16"}},
      {"least_i64", "DEV i64 least_i64(i64 a, i64 b) { return a < b ? a : b; }\n", {}},
      {"Four", "struct __align__(16) Four { float x, y, z, w; };\n", {}},
      {"Two", "struct __align__(8) Two { float x, y; };\n", {}},
      {"load4",
       "DEV void load4(float (&x)[4], const float* p, bool wide) {\n"
       "  if (wide) {\n"
       "    const Four f = *(const Four*)p;\n"
       "    x[0] = f.x, x[1] = f.y, x[2] = f.z, x[3] = f.w;\n"
       "  } else {\n"
       "    x[0] = p[0], x[1] = p[1], x[2] = p[2], x[3] = p[3];\n"
       "  }\n"
       "}\n",
       {"Four"}},
      {"store4",
       "DEV void store4(float* p, const float (&x)[4], bool wide) {\n"
       "  if (wide) {\n"
       "    *(Four*)p = Four{x[0], x[1], x[2], x[3]};\n"
       "  } else {\n"
       "    p[0] = x[0], p[1] = x[1], p[2] = x[2], p[3] = x[3];\n"
       "  }\n"
       "}\n",
       {"Four"}},
      {"store4_global",
       "// Written out, since compilers make four stores of both ways.\n"
       "DEV void store4_global(float* p, const float (&x)[4], bool wide) {\n"
       "  if (wide) {\n"
       "    asm volatile(\"st.global.v4.f32 [%0], {%1, %2, %3, %4};\"\n"
       "                 :: \"l\"(p), \"f\"(x[0]), \"f\"(x[1]), \"f\"(x[2]), \"f\"(x[3]) : "
       "\"memory\");\n"
       "  } else {\n"
       "    p[0] = x[0], p[1] = x[1], p[2] = x[2], p[3] = x[3];\n"
       "  }\n"
       "}\n",
       {}},
      {"load2",
       "DEV void load2(float (&x)[2], const float* p, bool wide) {\n"
       "  if (wide) {\n"
       "    const Two f = *(const Two*)p;\n"
       "    x[0] = f.x, x[1] = f.y;\n"
       "  } else {\n"
       "    x[0] = p[0], x[1] = p[1];\n"
       "  }\n"
       "}\n",
       {"Two"}},
      {"store2",
       "DEV void store2(float* p, const float (&x)[2], bool wide) {\n"
       "  if (wide) {\n"
       "    *(Two*)p = Two{x[0], x[1]};\n"
       "  } else {\n"
       "    p[0] = x[0], p[1] = x[1];\n"
       "  }\n"
       "}\n",
       {"Two"}},
      {"copy_ahead",
       "// Bytes to shared memory that land by a wait; zeros, and nothing is read, unless inside.\n"
       "template <int bytes>\n"
       "DEV void copy_ahead(void* to, const void* from, bool inside) {\n"
       "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2, %3;\" ::\n"
       "               \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from), \"n\"(bytes),\n"
       "               \"r\"(inside ? bytes : 0) : \"memory\");\n"
       "}\n",
       {}},
      {"copy_ahead4",
       "DEV void copy_ahead4(float* to, const float* from, bool inside, bool wide) {\n"
       "  if (wide) {\n"
       "    copy_ahead<16>(to, from, inside);\n"
       "  } else {\n"
       "#pragma unroll\n"
       "    for (int i = 0; i < 4; ++i) copy_ahead<4>(to + i, from + i, inside);\n"
       "  }\n"
       "}\n",
       {"copy_ahead"}},
      {"copy_ahead2",
       "DEV void copy_ahead2(float* to, const float* from, bool inside, bool wide) {\n"
       "  if (wide) {\n"
       "    copy_ahead<8>(to, from, inside);\n"
       "  } else {\n"
       "    copy_ahead<4>(to, from, inside);\n"
       "    copy_ahead<4>(to + 1, from + 1, inside);\n"
       "  }\n"
       "}\n",
       {"copy_ahead"}},
      {"commit_copies",
       "DEV void commit_copies() { asm volatile(\"cp.async.commit_group;\" ::: \"memory\"); }\n",
       {}},
      {"wait_for_copies",
       "// Until at most so many groups of copies are under way.\n"
       "template <int pending>\n"
       "DEV void wait_for_copies() {\n"
       "  asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(pending) : \"memory\");\n"
       "}\n",
       {}},
      {"store2_global",
       "DEV void store2_global(float* p, const float (&x)[2], bool wide) {\n"
       "  if (wide) {\n"
       "    asm volatile(\"st.global.v2.f32 [%0], {%1, %2};\"\n"
       "                 :: \"l\"(p), \"f\"(x[0]), \"f\"(x[1]) : \"memory\");\n"
       "  } else {\n"
       "    p[0] = x[0], p[1] = x[1];\n"
       "  }\n"
       "}\n",
       {}},
      {"add_to_pair",
       "// sum + rest + x as a sum and what it lost: Knuth's TwoSum, then brought back to a pair.\n"
       "DEV void add_to_pair(float& sum, float& rest, float x) {\n"
       "  const float s = sum + x, part = s - sum;\n"
       "  const float error = (sum - (s - part)) + (x - part);\n"
       "  const float low = rest + error, top = s + low;\n"
       "  rest = low - (top - s);\n"
       "  sum = top;\n"
       "}\n",
       {}},
  };
  for (const bool wide : {false, true}) {
    const MathConstants& constants = math_constants(wide ? DType::f64 : DType::f32);
    for (const Function& function : elementary) {
      if (function.fast != (!exact && !wide) && function.has_twin) continue;
      Function made = function;
      made.text = filled(function.text, constants, wide);
      if (wide) {
        made.name += "_f64";
        for (std::string& call : made.calls) call += "_f64";
      }
      all.push_back(std::move(made));
    }
  }
  return all;
}

/// Made once: every kernel asks.
const std::vector<Function>& all_functions(bool exact) {
  static const std::vector<Function> fast = make_functions(false), precise = make_functions(true);
  return exact ? precise : fast;
}

/// The functions and those that they call: these stand before them.
std::set<std::string> with_calls(const std::vector<Function>& all, std::set<std::string> wanted) {
  for (auto function = all.rbegin(); function != all.rend(); ++function)
    if (wanted.count(function->name) != 0)
      wanted.insert(function->calls.begin(), function->calls.end());
  return wanted;
}

}  // namespace

std::set<std::string> prelude_names() {
  std::set<std::string> names = {"split", "special_log", "power_of_two_", "power_of_two_f"};
  for (const Function& function : all_functions(true))
    names.insert(function.name.substr(0, function.name.find("_f64")));
  return names;
}

bool prelude_has_twins(const std::set<std::string>& functions) {
  const std::vector<Function>& all = all_functions(false);
  const std::set<std::string> wanted = with_calls(all, functions);
  return std::any_of(all.begin(), all.end(), [&](const Function& function) {
    return function.has_twin && function.fast && wanted.count(function.name) != 0;
  });
}

std::string prelude_text(const std::set<std::string>& functions, bool exact) {
  const std::vector<Function>& all = all_functions(exact);
  std::set<std::string> wanted = with_calls(all, functions);
  std::string text =
      "typedef long long i64;\n"
      "typedef unsigned long long u64;\n"
      "#define DEV __device__ __forceinline__\n";
  for (const Function& function : all) {
    if (wanted.erase(function.name) != 0) text += function.text;
  }
  KRAIT_ASSERT(wanted.empty(), "no function ", *wanted.begin(), " in the prelude");
  return text;
}

}  // namespace krait
