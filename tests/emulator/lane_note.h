#pragma once

// What the lane-by-lane emulation prints, kept.

#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

namespace emulator_test {

inline std::string& noted() {
  static std::string all;
  return all;
}

inline int note(const char* format, ...) {
  char text[2000];
  va_list values;
  va_start(values, format);
  const int length = std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  noted() += text;
  return length;
}

}  // namespace emulator_test
