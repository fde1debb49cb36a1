#pragma once

// Runs a text whatever it is, as a program would that got it from elsewhere.

#include <cstdint>
#include <string>

namespace emulator_test {

enum class Outcome { malformed, refused, failed, ran };

// Parses the text alone: malformed or ran.
Outcome parse_text(const std::string& text);
// Loads the text on the part it is for, and launches each of its entries that may be launched, with
// a buffer for every parameter of eight bytes and 3 for others. Refused: not decoded, or too large.
// Failed: a launch ended with a report.
Outcome run_text(const std::string& text);

}  // namespace emulator_test
