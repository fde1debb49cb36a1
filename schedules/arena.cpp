// Temporaries in one piece of memory. Largest first, each as low as the ones that live at the same
// time allow: within a few percent of the largest sum of what lives together, and the same for the
// same plan and sizes.
#include <algorithm>
#include <limits>
#include <numeric>

#include "dsl/error.h"
#include "schedules/plan.h"

namespace krait {
namespace {

constexpr std::int64_t alignment = 64;

bool live_together(const MemoryObject& a, const MemoryObject& b) {
  return a.first_kernel <= b.last_kernel && b.first_kernel <= a.last_kernel;
}

}  // namespace

Arena arena(const Plan& plan, const Sizes& sizes) {
  const std::size_t count = plan.objects.size();
  Arena result;
  result.offset.assign(count, -1);
  std::vector<std::int64_t> bytes(count, 0);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < count; ++i) {
    const MemoryObject& object = plan.objects[i];
    if (object.kind != MemoryObject::Kind::temporary || object.first_kernel < 0) continue;
    const std::int64_t exact = object.bytes(sizes);
    KRAIT_REQUIRE(exact <= std::numeric_limits<std::int64_t>::max() - alignment, "temporary ",
                  object.name, " has ", exact, " bytes; allowed: what 63 bits can count");
    bytes[i] = (exact + alignment - 1) / alignment * alignment;
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::size_t i = order[k];
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // begin, end
    for (std::size_t j = 0; j < k; ++j) {
      const std::size_t other = order[j];
      if (live_together(plan.objects[i], plan.objects[other]))
        taken.push_back({result.offset[other], result.offset[other] + bytes[other]});
    }
    std::sort(taken.begin(), taken.end());
    std::int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + bytes[i] <= begin) break;
      offset = std::max(offset, end);
    }
    result.offset[i] = offset;
    result.bytes = std::max(result.bytes, offset + bytes[i]);
  }
  return result;
}

}  // namespace krait
