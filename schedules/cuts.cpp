#include "schedules/cuts.h"

#include "schedules/view.h"

namespace krait {

bool Cuts::add(const Cuts& other) {
  const std::size_t before = kept.size() + apart.size();
  kept.insert(other.kept.begin(), other.kept.end());
  apart.insert(other.apart.begin(), other.apart.end());
  return kept.size() + apart.size() > before;
}

Cuts cut_everywhere(const Graph& graph) {
  Cuts cuts;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const int number = static_cast<int>(i);
    const Node& node = graph.node(number);
    cuts.apart.insert(number);
    // Views are read through; inputs and literals are there.
    if (is_view(node.op) || std::holds_alternative<Input>(node.op) ||
        std::holds_alternative<Constant>(node.op))
      continue;
    for (std::size_t r = 0; r < node.results.size(); ++r)
      cuts.kept.insert({number, static_cast<int>(r)});
  }
  return cuts;
}

}  // namespace krait
