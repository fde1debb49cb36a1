#include "runtime/cuda/defaults.h"

#include <algorithm>
#include <atomic>
#include <future>

#include "codegen/generate.h"
#include "dsl/error.h"
#include "runtime/cuda/decisions.h"
#include "runtime/host/pool.h"
#include "schedules/lower.h"
#include "schedules/tile_states.h"

namespace krait {
namespace {

/// Which kernels of a plan have room on the part: those that work on rows, and the others.
struct Room {
  bool rows = true, others = true;
};

/// The schedules that are tried, one after another. Chunks and tiles of states are as small as
/// shared memory asks for; states go to memory as often as if chunks were not.
class Tries {
 public:
  Tries(const Schedule& given, const ScheduleRequest& request, const Target& target)
      : given_(given), now_(with_defaults(given, request, target)) {
    if (!now_.chunk) return;  // nothing runs along an axis
    // A product shared by the heads of a group is small beside what each of them does, and a kernel
    // of its own waits for memory that the heads' kernel then reads again.
    if (!given.recompute) now_.recompute = 50;
    usual_ = with_defaults({}, request, target);
    if (!given.save_every && !given.backward_save_every && !request.wanted.empty() && usual_.chunk)
      usual_chunk_ = usual_.chunk_of(Pass::backward);
    const std::int64_t backward = now_.chunk_of(Pass::backward);
    if (!given.chunk) now_.chunk = std::min(most, *now_.chunk);
    if (!given.chunk && !given.backward_chunk) now_.backward_chunk = std::min(most, backward);
    if (usual_chunk_ > now_.chunk_of(Pass::backward)) now_.backward_save_every = usual_chunk_;
    if (const std::string axis = tiled_axis(request.graph); !axis.empty())
      whole_ = request.graph.axis(axis).extent.offset;
  }

  /// Of a step.
  explicit Tries(const Schedule& given) : given_(given), now_(given) {}

  const Schedule& now() const { return now_; }
  /// Where nothing is asked for and there is room for everything.
  const Schedule& usual() const { return usual_; }

  /// The next one where the pass has no room under this one; false where there is none. Smaller
  /// chunks leave kernels on rows more room too: these are cut last.
  bool next(Pass pass, const Room& room) {
    if (!room.others) return smaller(pass);
    return !room.rows && narrower(pass);
  }

 private:
  static constexpr std::int64_t most = 64, least_chunk = 8, widest = 16384, narrowest = 1024;

  bool smaller(Pass pass) {
    if (!now_.chunk) return false;
    const bool backward = pass == Pass::backward;
    const bool free_chunk = !given_.chunk && !(backward && given_.backward_chunk);
    std::int64_t& chunk = backward && free_chunk ? *now_.backward_chunk : *now_.chunk;
    const std::int64_t tile = now_.tile_of(pass).value_or(whole_);
    for (const std::int64_t least : {32, 16, 8, 1}) {
      // What states that are made again take is all that is left to save but for tiles of few
      // positions, which do everything else over and over.
      if (least == 1 && backward && usual_chunk_ && now_.backward_save_every) {
        now_.backward_save_every.reset();
        return true;
      }
      if (free_chunk && chunk > std::max(least, least_chunk)) {
        chunk = std::max(least, chunk / 2);
        return true;
      }
      const std::int64_t smaller = tile_size(whole_, std::max(least, tile / 2));
      if (!given_.tile_of(pass) && smaller < tile && 2 * smaller >= least) {
        if (backward)
          now_.backward_tile = smaller;
        else
          set_forward(now_.tile, now_.backward_tile, smaller, whole_);
        return true;
      }
    }
    return false;
  }
  bool narrower(Pass pass) {
    const std::int64_t width = now_.width_of(pass).value_or(widest);
    if (given_.width_of(pass) || width <= narrowest) return false;
    if (pass == Pass::backward)
      now_.backward_width = width / 2;
    else if (pass == Pass::step)
      now_.width = width / 2;
    else
      set_forward(now_.width, now_.backward_width, width / 2, widest);
    return true;
  }

  /// A key of forward, that of backward stays as it is.
  static void set_forward(std::optional<std::int64_t>& key, std::optional<std::int64_t>& backward,
                          std::int64_t value, std::int64_t unset) {
    if (!backward) backward = key.value_or(unset);
    key = value;
  }

  const Schedule& given_;
  Schedule now_, usual_;
  std::int64_t whole_ = 1;                   // positions of what tiles cut
  std::optional<std::int64_t> usual_chunk_;  // of backward, where states may be thinned out
};

Room room_for(const Plan& plan, CudaKernels& kernels, Pool* pool) {
  std::vector<int> fused;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k)
    if (plan.kernels[k].kind == PlannedKernel::Kind::fused) fused.push_back(static_cast<int>(k));
  // Those that compute most come first: where one has no room, the others need no look.
  const auto size = [&](int k) { return plan.kernels[static_cast<std::size_t>(k)].nodes.size(); };
  std::stable_sort(fused.begin(), fused.end(), [&](int a, int b) { return size(a) > size(b); });
  std::atomic<bool> rows = true, others = true;
  const auto look = [&](std::int64_t begin, std::int64_t end, void*) {
    for (std::int64_t i = begin; i < end; ++i) {
      const int kernel = fused[static_cast<std::size_t>(i)];
      std::atomic<bool>& room = plan.kernels[static_cast<std::size_t>(kernel)].rows ? rows : others;
      if (!room) continue;
      try {
        kernels.require_fit(plan, kernel);
      } catch (const UsageError&) {
        room = false;
      }
    }
  };
  const auto count = static_cast<std::int64_t>(fused.size());
  pool != nullptr ? pool->parallel_for(count, 0, look) : look(0, count, nullptr);
  return {rows, others};
}

/// Which passes have room under one schedule after another.
class Search {
 public:
  Search(const ScheduleRequest& request, CudaKernels& kernels, Pool* pool)
      : kernels_(kernels),
        pool_(pool),
        lowering_(request.graph, request.cotangents, request.wanted) {}

  /// Of forward and backward.
  std::pair<Room, Room> room(const Schedule& schedule) {
    lowering_.begin(schedule);
    // Both at once: a layer that finds its kernels in the cache waits for little else.
    std::future<void> backward;
    if (lowering_.has_backward())
      backward = std::async(std::launch::async, [&] { look(Pass::backward, backward_); });
    look(Pass::forward, forward_);
    if (backward.valid()) backward.get();
    return {forward_, backward_};
  }

  Lowered take() && { return std::move(lowering_).take(); }

 private:
  void look(Pass pass, Room& room) {
    if (lowering_.lower(pass)) room = room_for(lowering_.plan(pass), kernels_, pool_);
  }

  CudaKernels& kernels_;
  Pool* const pool_;
  Lowering lowering_;
  Room forward_, backward_;
};

}  // namespace

Schedule cuda_defaults(const Schedule& given, const ScheduleRequest& request, const Target& target,
                       const CudaTarget& cuda, Prepared* prepared, Pool* pool, DiskCache* memory) {
  Tries tries(given, request, target);
  auto kernels = std::make_shared<CudaKernels>(cuda);
  const bool keeps = memory != nullptr && memory->directory().has_value();
  const std::string key =
      keeps ? decision_key(request, cuda, {given, tries.usual(), tries.now()}) : "";
  if (!key.empty())
    if (const std::optional<Schedule> known = decided(*memory, key)) {
      if (prepared != nullptr)
        *prepared = {lower(request.graph, *known, request.cotangents, request.wanted),
                     std::move(kernels)};
      return *known;
    }
  Search search(request, *kernels, pool);
  for (bool more = true; more;) {
    const auto [forward, backward] = search.room(tries.now());
    more = tries.next(Pass::forward, forward);
    more |= tries.next(Pass::backward, backward);
  }
  if (!key.empty()) decide(*memory, key, cuda, tries.now());
  if (prepared != nullptr) *prepared = {std::move(search).take(), std::move(kernels)};
  return tries.now();
}

Plan cuda_step(const Graph& graph, const Schedule& given, const CudaTarget& cuda,
               Prepared& prepared, Pool* pool) {
  if (!prepared.kernels) prepared.kernels = std::make_shared<CudaKernels>(cuda);
  Tries tries(given);
  for (;;) {
    Plan plan = lower_step(graph, tries.now());
    if (!tries.next(Pass::step, room_for(plan, *prepared.kernels, pool))) return plan;
  }
}

}  // namespace krait
