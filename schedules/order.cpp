#include "schedules/order.h"

#include <algorithm>

namespace krait {

std::vector<int> ordered(const std::vector<std::set<int>>& waits_for) {
  std::vector<int> order;
  std::vector<bool> done(waits_for.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < waits_for.size(); ++i) {
      if (done[i] || !std::all_of(waits_for[i].begin(), waits_for[i].end(),
                                  [&](int other) { return done[static_cast<std::size_t>(other)]; }))
        continue;
      done[i] = moved = true;
      order.push_back(static_cast<int>(i));
    }
  }
  return order;
}

std::vector<std::set<int>> circles(const std::vector<std::set<int>>& waits_for) {
  const std::size_t count = waits_for.size();
  std::vector<std::set<int>> behind(count);  // all that each waits for, by way of others too
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<int> open(waits_for[i].begin(), waits_for[i].end());
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      if (!behind[i].insert(at).second) continue;
      const auto& next = waits_for[static_cast<std::size_t>(at)];
      open.insert(open.end(), next.begin(), next.end());
    }
  }
  std::vector<std::set<int>> found;
  std::vector<bool> seen(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int number = static_cast<int>(i);
    if (seen[i] || !behind[i].count(number)) continue;
    std::set<int> circle{number};
    for (int other : behind[i])
      if (behind[static_cast<std::size_t>(other)].count(number)) circle.insert(other);
    for (int member : circle) seen[static_cast<std::size_t>(member)] = true;
    if (circle.size() > 1) found.push_back(std::move(circle));
  }
  return found;
}

}  // namespace krait
