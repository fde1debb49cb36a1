// Three kinds of error, never an abort: the caller's, the environment's, and our own.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace krait {

/// Base of everything that krait throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller's error: the message names the field, its value and what is allowed. Exit status 2.
class UsageError : public Error {
 public:
  using Error::Error;
  /// "FIELD is VALUE; allowed: ALLOWED".
  UsageError(const std::string& field, const std::string& value, const std::string& allowed)
      : Error(field + " is " + value + "; allowed: " + allowed) {}
};

/// Something outside the program is missing or failed: a library, a device, a file. Exit status 3.
class EnvironmentError : public Error {
 public:
  using Error::Error;
};

/// krait's own mistake. The message asks for a report and prints what reproduces it.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& what)
      : Error("internal error in krait, please report it with this text: " + what), said_(what) {}
  /// The message alone.
  const std::string& said() const { return said_; }

 private:
  std::string said_;
};

/// Joins anything printable into one string, for messages.
template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace krait

/// The two checks. KRAIT_REQUIRE: the caller's error. KRAIT_ASSERT: ours.
#define KRAIT_REQUIRE(condition, ...)                                        \
  do {                                                                       \
    if (!(condition)) throw ::krait::UsageError(::krait::text(__VA_ARGS__)); \
  } while (false)
#define KRAIT_ASSERT(condition, ...)                                                    \
  do {                                                                                  \
    if (!(condition))                                                                   \
      throw ::krait::InternalError(                                                     \
          ::krait::text(__FILE__, ":", __LINE__, ": ", #condition, ": ", __VA_ARGS__)); \
  } while (false)
