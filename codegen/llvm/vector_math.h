// Elementary functions as LLVM IR, for float and double and any number of lanes, without a call
// to a library and without a branch: what one lane holds never changes another.
//
// Largest errors against long double over the sweeps of the tests, in units in the last place of
// the result (denormal results: of the smallest normal number's):
//
//                    f32   f64
//   exp              1     1.1    under- and overflow as IEEE: 0, denormals, inf
//   exp_nonpositive  1     1.1    exp(min(x, 0))
//   log              1.5   1.5    log 0 = -inf; below 0: NaN
//   log1p            2     2
//   expm1            2     2.1
//   tanh             2     2
//   sigmoid          2     2.3
//   softplus         2.5   2.5    x itself above 20
//   sin_turns        2     2      of 2 pi x: relative, also near every zero of the reduced angle
//   cos_turns        1e-7  3e-16  of 2 pi x: absolute
//
// NaN gives NaN. Coefficients: Chebyshev interpolation of the functions that the comments name,
// computed to 60 digits. Nothing is reassociated; every fused multiply-add is written out.
#pragma once

#include <string>
#include <vector>

#include "dsl/scalar.h"

namespace krait::ir {

/// Whether `op` is a function of this file (square roots, floor and the like are instructions).
bool is_math_function(ScalarOp op);

/// "krait_exp_v16f32".
std::string math_function_name(ScalarOp op, const std::string& element, int lanes);

struct MathFunction {
  std::string text;                       // define internal ... alwaysinline
  std::vector<std::string> declarations;  // of the intrinsics that it calls
  std::vector<ScalarOp> calls;            // functions of this file that it calls
};

/// `element` is "float" or "double".
MathFunction math_function(ScalarOp op, const std::string& element, int lanes);

}  // namespace krait::ir
