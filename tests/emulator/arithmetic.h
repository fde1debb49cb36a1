#pragma once

// Tables of instructions checked against values computed here.

#include <functional>
#include <random>

#include "tests/emulator/harness.h"

namespace emulator_test {

using Values = std::vector<uint64_t>;  // of the columns, on one thread

// `text` is PTX with %d for the result; the columns are %a0, %a1 ... Braces around it are added, so
// it may declare registers of its own.
struct Case {
  std::string text, result;  // type of the result's register
  std::function<uint64_t(const Values&)> expected;
  // Where it is given: whether a result is right, instead of the only right one.
  std::function<bool(const Values&, uint64_t)> accepts = nullptr;
};
// Runs all of them, some in a kernel, on every row of the columns and compares; a failure names the
// instruction, its sources and both results.
void check(Device& device, const std::vector<Column>& columns, const std::vector<Case>& cases,
           const std::string& target = "sm_90a");
// Results alone, a row an instruction; `expected` is not looked at.
std::vector<Values> results_of(Device& device, const std::vector<Column>& columns,
                               const std::vector<Case>& cases,
                               const std::string& target = "sm_90a");

// Columns that hold every combination of these values in the first two or three columns, then
// random ones up to `count` rows.
Values with_random(Values values, size_t count, unsigned bits, uint64_t seed);
std::vector<Column> combinations(const std::vector<std::string>& types,
                                 const std::vector<Values>& values, size_t count, uint64_t seed);

// Error where a module with this body is not refused as invalid PTX; registers r0.. (b32), d0..
// (b64), h0.. (b16), f0.. (f32), g0.. (f64), p0.. (pred), q0.. (b128), c0.. (b8).
void check_refused(const std::vector<std::string>& bodies, const std::string& target = "sm_90a");
// Error where a module with this body is refused.
void check_accepted(const std::vector<std::string>& bodies, const std::string& target = "sm_90a");

// Stores %d of the type after the body on one thread: whether the launch reports the stored value
// as undefined. u0.. (b32), v0.. (b64), w0.. (b16) and o0.. (pred) are registers without a value,
// i0.. ones that hold 0 to 3 (b32), t and f true and false predicates.
bool stores_undefined(const std::string& type, const std::string& body,
                      const std::string& target = "sm_90a");

template <class T>
T as(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

}  // namespace emulator_test
