#pragma once

#include <stdexcept>
#include <string>

namespace emulator::ptx {

// What is wrong with a PTX text: unknown or malformed, never repaired. `line` counts from 1.
class Error : public std::runtime_error {
 public:
  Error(int line, const std::string& what)
      : std::runtime_error("line " + std::to_string(line) + ": " + what), line(line) {}

  int line;
};

}  // namespace emulator::ptx
