#include "tests/cuda_emulator/cublaslt/product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/cuda_emulator/isa/elements.h"

namespace cublaslt_emulator {
namespace {

template <class V>
V read(Element element, const std::byte* from) {
  switch (element) {
    case Element::half:
    case Element::bfloat: {
      uint16_t bits;
      std::memcpy(&bits, from, sizeof bits);
      return static_cast<V>(element == Element::half ? emulator::value_of_half(bits)
                                                     : emulator::Bfloat::value(bits));
    }
    case Element::single: {
      float value;
      std::memcpy(&value, from, sizeof value);
      return static_cast<V>(value);
    }
    default: {
      double value;
      std::memcpy(&value, from, sizeof value);
      return static_cast<V>(value);
    }
  }
}

template <class V>
void write(Element element, std::byte* to, V value) {
  switch (element) {
    case Element::half:
    case Element::bfloat: {
      const float single = static_cast<float>(value);
      const uint16_t bits =
          element == Element::half ? emulator::half_of(single) : emulator::bfloat_of(single);
      std::memcpy(to, &bits, sizeof bits);
      break;
    }
    case Element::single: {
      const float single = static_cast<float>(value);
      std::memcpy(to, &single, sizeof single);
      break;
    }
    default: {
      const double twofold = static_cast<double>(value);
      std::memcpy(to, &twofold, sizeof twofold);
    }
  }
}

// Bytes from the start of a matrix to the element in that row and column.
uint64_t place(const Matrix& matrix, uint64_t row, uint64_t column) {
  const uint64_t major = matrix.by_rows ? row : column, minor = matrix.by_rows ? column : row;
  return (major * static_cast<uint64_t>(matrix.leading) + minor) * bytes_of(matrix.element);
}

// A matrix as `outer` vectors of `inner` values: element (o, i) is at row i, column o, or the other
// way round where `turned`.
template <class V>
std::vector<V> unpack(const Matrix& matrix, const std::byte* from, uint64_t outer, uint64_t inner,
                      bool turned) {
  std::vector<V> values(outer * inner);
  for (uint64_t o = 0; o < outer; ++o)
    for (uint64_t i = 0; i < inner; ++i)
      values[o * inner + i] =
          read<V>(matrix.element, from + (turned ? place(matrix, o, i) : place(matrix, i, o)));
  return values;
}

// sums[j][i] = sum over k of a[k][i] b[j][k], with k rising for each of them: a block of sums stays
// in the first cache while all of k passes.
template <class V>
void accumulate(const std::vector<V>& a, const std::vector<V>& b, uint64_t m, uint64_t n,
                uint64_t k, std::vector<V>& sums) {
  constexpr uint64_t kBlock = 256;
  for (uint64_t first = 0; first < m; first += kBlock) {
    const uint64_t count = std::min(kBlock, m - first);
    for (uint64_t j = 0; j < n; ++j) {
      V* to = &sums[j * m + first];
      for (uint64_t kk = 0; kk < k; ++kk) {
        const V factor = b[j * k + kk];
        const V* from = &a[kk * m + first];
        for (uint64_t i = 0; i < count; ++i) to[i] += from[i] * factor;
      }
    }
  }
}

// The form with tanh, as the library has it.
template <class V>
V gelu(V x) {
  constexpr V kScale = static_cast<V>(0.79788456080286535588), kCubic = static_cast<V>(0.044715);
  return V{0.5} * x * (V{1} + std::tanh(kScale * (x + kCubic * x * x * x)));
}

template <class V>
V finish(const Problem& problem, V value, V bias) {
  value += bias;
  // NaN stays NaN.
  if (problem.relu && value < V{0}) value = V{0};
  return problem.gelu ? gelu(value) : value;
}

template <class V>
void multiply_one(const Problem& p, const Operands& o, V alpha, V beta) {
  // op(A) by columns and op(B) by columns: op(A)(i, k) is A(k, i) where A is transposed.
  const std::vector<V> a = unpack<V>(p.a, o.a, p.k, p.m, p.transpose_a);
  const std::vector<V> b = unpack<V>(p.b, o.b, p.n, p.k, p.transpose_b);
  std::vector<V> sums(p.m * p.n);
  accumulate(a, b, p.m, p.n, p.k, sums);
  const unsigned bias_bytes = bytes_of(p.d.element);
  for (uint64_t j = 0; j < p.n; ++j)
    for (uint64_t i = 0; i < p.m; ++i) {
      V value = alpha * sums[j * p.m + i];
      if (beta != V{0}) value += beta * read<V>(p.c.element, o.c + place(p.c, i, j));
      const V bias = p.bias ? read<V>(p.d.element, o.bias + i * bias_bytes) : V{0};
      write(p.d.element, o.d + place(p.d, i, j), finish(p, value, bias));
    }
}

template <class V>
void multiply_all(const Problem& p, const Operands& operands) {
  V alpha, beta;
  std::memcpy(&alpha, operands.alpha, sizeof alpha);
  std::memcpy(&beta, operands.beta, sizeof beta);
  const auto step = [](const Matrix& matrix) {
    return static_cast<uint64_t>(matrix.stride) * bytes_of(matrix.element);
  };
  Operands o = operands;
  for (uint64_t i = 0; i < p.batch; ++i) {
    multiply_one<V>(p, o, alpha, beta);
    o.a += step(p.a);
    o.b += step(p.b);
    if (o.c) o.c += step(p.c);
    o.d += step(p.d);
    if (o.bias) o.bias += static_cast<uint64_t>(p.bias_stride) * bytes_of(p.d.element);
  }
}

}  // namespace

void multiply(const Problem& problem, const Operands& operands) {
  if (problem.twofold)
    multiply_all<double>(problem, operands);
  else
    multiply_all<float>(problem, operands);
}

}  // namespace cublaslt_emulator
