// Padding: what stands past the end of an axis that was split, where its parts are not all full.
//
// A chunked graph computes there what nobody reads in the end: 0 where a whole value was split,
// anything that a Map makes of that elsewhere. A value that is kept for whole time has no such
// positions and reads 0 there, which must come to the same.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "schedules/analysis.h"

namespace krait {

class Padding {
 public:
  explicit Padding(const Analysis& analysis);

  /// Whether the value may read 0 past the end along this axis of positions inside a chunk.
  bool may_be_zero(Value value, const std::string& position) const;

 private:
  /// What those who read a value ask of it past the end. finite: they take zero times it. nonzero:
  /// that, once they have divided by it.
  enum class Need : std::uint8_t { nothing, finite, nonzero, exact };

  /// Whether the axis of positions has an end in this value: it varies along the chunks too.
  bool has_end(Value value, const std::string& position) const;
  bool is_zero(Value value, const std::string& position) const;
  Need need(Value value, const std::string& position) const;
  void ask(Value value, const std::string& position, Need asked);

  bool gives_zero(int number, const std::string& position) const;
  void ask_operands(int number);
  Need asked_of(int number, std::size_t operand, const std::string& position) const;
  Need asked_by_map(int number, std::size_t operand, const std::string& position) const;
  Need asked_by_running(int number, const std::string& position) const;
  Need asked_by_results(int number, const std::string& position) const;
  Scalar past_end(int number, const std::string& position) const;
  bool is_inside(const Scalar& expression, int id, const std::string& position) const;
  bool divides_by_zero(const Scalar& expression, const std::vector<Interval>& operands,
                       std::size_t operand) const;

  const Graph& graph_;
  std::map<std::string, std::pair<std::string, std::string>> ends_;  // position: chunks, axis
  std::map<Value, std::set<std::string>> zero_;
  std::map<Value, std::map<std::string, Need>> needs_;
};

}  // namespace krait
