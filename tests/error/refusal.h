// A command that must be refused.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/run_program.h"

namespace krait {

/// `krait COMMAND ARGUMENTS` ends with this status, says this on stderr, and prints nothing.
inline void expect_refusal(const std::string& command, const std::vector<std::string>& arguments,
                           int status, const std::string& said) {
  std::vector<std::string> all{command};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const ProgramResult result = run_program(all);
  std::string line = "krait";
  for (const std::string& argument : all) line += " " + argument;
  INFO(line << "\n" << result.err);
  CHECK(result.status == status);
  CHECK(result.err.find(said) != std::string::npos);
  CHECK(result.out.empty());
}

}  // namespace krait
