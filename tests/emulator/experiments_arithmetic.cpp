// Products on tensor cores, packed half precision, and functions of the mathematical library.

#include <algorithm>

#include "tests/emulator/experiment.h"

namespace emulator_test {
namespace {

// A 16-bit format: bits of the fraction, and the least exponent of a normal number.
struct Format {
  int fraction, least;
  double largest;
};
constexpr Format kHalf{10, -14, 65504}, kBfloat{7, -126, 3.3895313892515355e38};

// To the nearest, ties to even; from exact arithmetic.
double rounded(double value, const Format& format) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.least);
  const double unit = std::ldexp(1.0, exponent - format.fraction);
  const double nearest = std::nearbyint(value / unit) * unit;
  return std::abs(nearest) > format.largest ? std::copysign(INFINITY, value) : nearest;
}

// Bits of a value that the format has.
uint16_t bits_of(double value, const Format& format) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (value == 0) return sign;
  const int infinite = format.fraction == 10 ? 0x7c00 : 0x7f80;
  if (std::isinf(value)) return uint16_t(sign | infinite);
  const int exponent = std::max(std::ilogb(value), format.least);
  const int fraction = int(std::ldexp(std::abs(value), format.fraction - exponent));
  return uint16_t(sign | (((exponent - format.least) << format.fraction) + fraction));
}

// Rows of `columns` values, each padded to a multiple of 16 bytes with NaN that nobody may read.
struct Matrix {
  std::vector<double> values;
  std::vector<uint16_t> bits;
  int stride;
};

Matrix matrix(Run& run, int rows, int columns, const Format& format) {
  std::normal_distribution<double> normal;
  Matrix m{std::vector<double>(size_t(rows) * columns), {}, (columns + 7) / 8 * 8};
  m.bits.assign(size_t(rows) * m.stride, 0x7fff);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const double value = rounded(normal(run.random), format);
      m.values[size_t(i) * columns + j] = value;
      m.bits[size_t(i) * m.stride + j] = bits_of(value, format);
    }
  }
  return m;
}

struct Matrices {
  CUdeviceptr a, b, c;
  int m, n, k, lda, ldb;
};

double product(Run& run, const Format& format) {
  const int m = run.size, n = run.size + 5, k = run.size % 2 ? run.size * 2 + 1 : run.size / 2;
  const Matrix a = matrix(run, m, k, format), b = matrix(run, k, n, format);
  std::vector<double> wanted(size_t(m) * n);
  for (int i = 0; i < m; ++i) {
    for (int t = 0; t < k; ++t) {
      for (int j = 0; j < n; ++j) wanted[i * n + j] += a.values[i * k + t] * b.values[t * n + j];
    }
  }
  const Buffer da = Buffer::of(a.bits), db = Buffer::of(b.bits), dc(wanted.size() * 4);
  run.launch(run.function("gemm"), {unsigned(n + 63) / 64, unsigned(m + 63) / 64}, {128}, 0,
             Matrices{da.address(), db.address(), dc.address(), m, n, k, a.stride, b.stride});
  return relative_l2(dc.read<float>(), wanted);
}

struct Two {
  float x, y;
};

// What the host makes of one half of a row of packed.
std::vector<double> packed_row(const double (&x)[2], const double (&y)[2], double z, int half,
                               const Format& f) {
  const double a = x[half], b = y[half], low = x[0], high = y[1];
  const double both = half ? rounded(low * high, f) : rounded(low + high, f);
  const double less = low < high, fused = rounded(low * high + low, f);
  return {a,
          rounded(a + b, f),
          rounded(a - b, f),
          rounded(a * b, f),
          rounded(a * b + z, f),
          std::max(a, b),
          std::min(a, b),
          -a,
          std::abs(a),
          double(a > b),
          1,
          both,
          half ? fused : less,
          x[1 - half]};
}

double packed(Run& run, const Format& format) {
  constexpr int kColumns = 14;
  std::normal_distribution<float> normal(0, 3);
  std::vector<Two> in[3];
  for (std::vector<Two>& values : in) {
    values.resize(run.size);
    for (Two& value : values) value = {normal(run.random), normal(run.random)};
  }
  std::vector<double> wanted;
  for (int i = 0; i < run.size; ++i) {
    double v[3][2];
    for (int k = 0; k < 3; ++k) {
      v[k][0] = rounded(in[k][i].x, format);
      v[k][1] = rounded(in[k][i].y, format);
    }
    const std::vector<double> low = packed_row(v[0], v[1], v[2][0], 0, format),
                              high = packed_row(v[0], v[1], v[2][1], 1, format);
    for (int k = 0; k < kColumns; ++k) wanted.insert(wanted.end(), {low[k], high[k]});
  }
  const Buffer a = Buffer::of(in[0]), b = Buffer::of(in[1]), c = Buffer::of(in[2]),
               out(wanted.size() * 4);
  run.launch(run.function("packed"), {(run.size + 63u) / 64}, {64}, 0, a.address(), b.address(),
             c.address(), out.address(), run.size);
  const std::vector<float> got = out.read<float>();
  return differing(std::vector<double>(got.begin(), got.end()), wanted);
}

double converted(Run& run, const Format& format) {
  const std::vector<int> values = run.integers(run.size, -60000, 60000);
  std::vector<int> wanted;
  for (int value : values) {
    const double there = rounded(value, format);
    wanted.push_back(int(there) + (bits_of(there, format) << 8));
  }
  const Buffer in = Buffer::of(values), out(values.size() * 4);
  run.launch(run.function("converted"), {(run.size + 63u) / 64}, {64}, 0, in.address(),
             out.address(), run.size);
  return differing(out.read<int>(), wanted);
}

double half_arithmetic(Run& run, const Format& format) {
  return packed(run, format) + converted(run, format);
}

constexpr int kFunctions = 20;

// The functions of maths.cu in a wider type; `T` is the one that the kernel computes in.
template <class T, class Wide>
Wide applied(int function, T narrow) {
  const Wide x = narrow;
  switch (function) {
    case 0: return std::exp(x);
    case 1: return std::log(std::abs(x));
    case 2: return std::sin(x);
    case 3: return std::cos(x);
    case 4: return std::tan(x);
    case 5: return std::sqrt(std::abs(x));
    case 6: return std::cbrt(x);
    case 7: return std::tanh(x);
    case 8: return std::atan(x);
    case 9: return std::erf(x);
    case 10: return std::log1p(std::abs(x));
    case 11: return std::expm1(x);
    case 12: return std::pow(std::abs(x), Wide(1.75));
    case 13: return std::exp2(x);
    case 14: return 1 / x;
    case 15: return std::asinh(x);
    case 16: return std::rint(narrow) + std::floor(narrow) * T(2) + std::trunc(narrow) * T(4);
    case 17: return std::fmod(narrow, T(0.7));
    case 18: return x / Wide(T(narrow + T(3)));
    default: return std::hypot(x, Wide(2));
  }
}

// Greatest distance in units in the last place of T.
template <class T, class Wide>
double mathematics(Run& run, const char* kernel) {
  std::vector<T> values;
  std::normal_distribution<double> normal;
  for (int i = 0; i < run.size; ++i) {
    values.push_back(T(normal(run.random) * std::pow(10.0, int(run.random() % 5) - 3)));
  }
  values[0] = T(1.0e6);  // angles that need many digits of pi
  const Buffer in = Buffer::of(values), out(values.size() * kFunctions * sizeof(T));
  run.launch(run.function(kernel), {(run.size + 63u) / 64, kFunctions}, {64}, 0, in.address(),
             out.address(), run.size);
  const std::vector<T> got = out.read<T>();
  double worst = 0;
  for (int function = 0; function < kFunctions; ++function) {
    for (int i = 0; i < run.size; ++i) {
      const Wide wanted = applied<T, Wide>(function, values[i]);
      const T value = got[size_t(function) * run.size + i], nearest = T(wanted);
      if (value == nearest) continue;
      const Wide unit = std::abs(std::nextafter(nearest, T(INFINITY)) - nearest);
      const double error = double(std::abs(value - wanted) / unit);
      if (!(error <= worst)) worst = error;  // NaN too
    }
  }
  return worst;
}

}  // namespace

std::vector<Experiment> arithmetic_experiments() {
  const std::vector<std::string> bfloat{"-DELEMENT_BF16"};
  const std::vector<int> sizes{1, 17, 64, 99};
  // Sums of products in f32 against float64; functions within the errors that the CUDA C++
  // Programming Guide gives them, and half a unit for the nearest value.
  return {
      {"product f16",
       75,
       kernel_file("gemm.cu"),
       {},
       sizes,
       67,
       1e-6,
       [](Run& run) { return product(run, kHalf); }},
      {"product bf16", 80, kernel_file("gemm.cu"), bfloat, sizes, 67, 1e-6,
       [](Run& run) { return product(run, kBfloat); }},
      {"packed f16",
       75,
       kernel_file("half.cu"),
       {},
       {1, 65, 301},
       65,
       0,
       [](Run& run) { return half_arithmetic(run, kHalf); }},
      {"packed bf16",
       80,
       kernel_file("half.cu"),
       bfloat,
       {1, 65, 301},
       65,
       0,
       [](Run& run) { return half_arithmetic(run, kBfloat); }},
      {"maths double",
       75,
       kernel_file("maths.cu"),
       {},
       {1, 127},
       65,
       3.5,
       [](Run& run) { return mathematics<double, long double>(run, "maths_double"); }},
      {"maths float",
       75,
       kernel_file("maths.cu"),
       {},
       {1, 127},
       65,
       4.5,
       [](Run& run) { return mathematics<float, double>(run, "maths_float"); }},
  };
}

}  // namespace emulator_test
