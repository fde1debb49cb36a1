#include "runtime/cuda/defaults.h"

#include <algorithm>
#include <atomic>
#include <future>

#include "codegen/generate.h"
#include "dsl/error.h"
#include "runtime/host/pool.h"
#include "schedules/lower.h"
#include "schedules/tile_states.h"

namespace krait {
namespace {

/// The schedules that are tried, one after another. Chunks and tiles of states are as small as
/// shared memory asks for; states go to memory as often as if chunks were not.
class Tries {
 public:
  Tries(const Schedule& given, const ScheduleRequest& request, const Target& target)
      : given_(given), now_(with_defaults(given, request, target)) {
    if (!now_.chunk) return;
    // A product shared by the heads of a group is small beside what each of them does, and a kernel
    // of its own waits for memory that the heads' kernel then reads again.
    if (!given.recompute) now_.recompute = 50;
    const Schedule usual = with_defaults({}, request, target);
    if (!given.save_every && !given.backward_save_every && !request.wanted.empty() && usual.chunk)
      usual_chunk_ = usual.chunk_of(Pass::backward);
    const std::int64_t backward = now_.chunk_of(Pass::backward);
    if (!given.chunk) now_.chunk = std::min(most, *now_.chunk);
    if (!given.chunk && !given.backward_chunk) now_.backward_chunk = std::min(most, backward);
    if (usual_chunk_ > now_.chunk_of(Pass::backward)) now_.backward_save_every = usual_chunk_;
    if (const std::string axis = tiled_axis(request.graph); !axis.empty())
      whole_ = request.graph.axis(axis).extent.offset;
  }

  const Schedule& now() const { return now_; }

  /// The next one where the pass has no room under this one; false where there is none.
  bool next(Pass pass) {
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
        set_tile(pass, smaller);
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::int64_t most = 64, least_chunk = 8;

  void set_tile(Pass pass, std::int64_t size) {
    const std::int64_t backward = now_.tile_of(Pass::backward).value_or(whole_);
    if (pass == Pass::forward) now_.tile = size;
    now_.backward_tile = pass == Pass::backward ? size : backward;
  }

  const Schedule& given_;
  Schedule now_;
  std::int64_t whole_ = 1;                   // positions of what tiles cut
  std::optional<std::int64_t> usual_chunk_;  // of backward, where states may be thinned out
};

/// Whether passes have room on the part under one schedule after another.
class Search {
 public:
  Search(const ScheduleRequest& request, CudaKernels& kernels, Pool* pool)
      : kernels_(kernels),
        pool_(pool),
        lowering_(request.graph, request.cotangents, request.wanted) {}

  struct Fits {
    bool forward = true, backward = true;
  };
  Fits fits(const Schedule& schedule) {
    lowering_.begin(schedule);
    // Both at once: a layer that finds its kernels in the cache waits for little else.
    std::future<void> backward;
    if (lowering_.has_backward())
      backward = std::async(std::launch::async, [&] { look(Pass::backward, fits_.backward); });
    look(Pass::forward, fits_.forward);
    if (backward.valid()) backward.get();
    return fits_;
  }

  Lowered take() && { return std::move(lowering_).take(); }

 private:
  void look(Pass pass, bool& fits) {
    if (lowering_.lower(pass)) fits = has_room(lowering_.plan(pass));
  }

  bool has_room(const Plan& plan) {
    std::vector<int> fused;
    for (std::size_t k = 0; k < plan.kernels.size(); ++k)
      if (plan.kernels[k].kind == PlannedKernel::Kind::fused) fused.push_back(static_cast<int>(k));
    std::atomic<bool> room = true;
    const auto look = [&](std::int64_t begin, std::int64_t end, void*) {
      for (std::int64_t i = begin; i < end && room; ++i) {
        try {
          kernels_.require_fit(plan, fused[static_cast<std::size_t>(i)]);
        } catch (const UsageError&) {
          room = false;
        }
      }
    };
    const auto count = static_cast<std::int64_t>(fused.size());
    pool_ != nullptr ? pool_->parallel_for(count, 0, look) : look(0, count, nullptr);
    return room;
  }

  CudaKernels& kernels_;
  Pool* const pool_;
  Lowering lowering_;
  Fits fits_;
};

}  // namespace

Schedule cuda_defaults(const Schedule& given, const ScheduleRequest& request, const Target& target,
                       const CudaTarget& cuda, Prepared* prepared, Pool* pool) {
  Tries tries(given, request, target);
  if (!tries.now().chunk) return tries.now();
  auto kernels = std::make_shared<CudaKernels>(cuda);
  Search search(request, *kernels, pool);
  for (bool more = true; more;) {
    const auto [forward, backward] = search.fits(tries.now());
    more = false;
    if (!forward) more |= tries.next(Pass::forward);
    if (!backward) more |= tries.next(Pass::backward);
  }
  if (prepared != nullptr) *prepared = {std::move(search).take(), std::move(kernels)};
  return tries.now();
}

}  // namespace krait
