// The numbers that elementary functions are computed with, the same on every device: for equal
// steps, equal bits.
#pragma once

#include <vector>

#include "dsl/dtype.h"

namespace krait {

using Polynomial = std::vector<double>;  // lowest power first

/// What differs between float and double.
struct MathConstants {
  int mantissa;  // bits behind the point
  int bias;      // of the exponent
  double magic;  // adding it rounds to an integer and leaves that integer in the low bits
  double exp_low, exp_high;  // exp is 0 below and inf above
  double expm1_low;          // expm1 is -1 below
  double ln2_high, ln2_low;  // few enough bits that n ln2_high is exact for every exponent n
  double turn_high, turn_low;
  Polynomial exp;   // (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2
  Polynomial log;   // (2 atanh(s) / s - 2) / s^2 of s^2, |s| <= (sqrt 2 - 1) / (sqrt 2 + 1)
  Polynomial sin;   // (sin(2 pi s) / s - 2 pi) / s^2 of s^2, |s| <= 1/8
  Polynomial cos;   // (cos(2 pi s) - 1) / s^2 of s^2, |s| <= 1/8
  Polynomial tanh;  // (tanh(x) / x - 1) / x^2 of x^2, |x| <= 5/8
};

/// Of f32 or f64. Coefficients: Chebyshev interpolation of the functions that the comments name,
/// computed to 60 digits.
const MathConstants& math_constants(DType dtype);

}  // namespace krait
