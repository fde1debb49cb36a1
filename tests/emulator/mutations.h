#pragma once

// PTX texts with things changed at random, the same for the same seed on every machine.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace emulator_test {

class Mutations {
 public:
  Mutations(uint64_t seed, std::vector<std::string> texts);

  // One of the texts with one to three changes.
  std::string next();

 private:
  uint64_t random();
  size_t below(size_t bound);  // from 0; bound > 0
  void change(std::string& text);
  void change_bytes(std::string& text);
  void change_tokens(std::string& text);
  void change_lines(std::string& text);
  std::string_view token_like(std::string_view token);

  uint64_t state_;
  std::vector<std::string> texts_;
  std::map<std::string_view, std::vector<std::string_view>> kinds_;  // tokens of all texts
};

}  // namespace emulator_test
