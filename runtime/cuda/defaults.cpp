#include "runtime/cuda/defaults.h"

#include "codegen/generate.h"
#include "dsl/error.h"
#include "schedules/lower.h"

namespace krait {
namespace {

bool fits(const Plan& plan, const CudaTarget& cuda) {
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    if (plan.kernels[k].kind != PlannedKernel::Kind::fused) continue;
    try {
      require_fit(plan, static_cast<int>(k), cuda);
    } catch (const UsageError&) {
      return false;
    }
  }
  return true;
}

}  // namespace

Schedule cuda_defaults(const Schedule& given, const ScheduleRequest& request, const Target& target,
                       const CudaTarget& cuda, std::optional<Lowered>* plans) {
  Schedule guess = with_defaults(given, request, target);
  if (!guess.chunk) return guess;
  // A product shared by the heads of a group is small beside what each of them does, and a kernel
  // of its own waits for memory that the heads' kernel then reads again.
  if (!given.recompute) guess.recompute = 50;
  // Chunks are as small as shared memory asks for; states go to memory as often as if they were
  // not.
  const Schedule usual = with_defaults({}, request, target);
  const bool thins = !given.save_every && !given.backward_save_every && !request.wanted.empty() &&
                     usual.chunk.has_value();
  Schedule made = guess;
  constexpr std::int64_t most = 64, least = 8;
  const auto halved = [&](std::int64_t chunk) { return std::max(least, chunk / 2); };
  if (!given.chunk) made.chunk = std::min(most, *guess.chunk);
  if (!given.backward_chunk) made.backward_chunk = std::min(most, guess.chunk_of(Pass::backward));
  const auto thin = [&] {
    if (!thins) return;
    const std::int64_t positions = usual.chunk_of(Pass::backward);
    if (positions > made.chunk_of(Pass::backward)) made.backward_save_every = positions;
  };
  thin();
  for (;;) {
    Lowered lowered = lower(request.graph, made, request.cotangents, request.wanted);
    const bool forward = fits(lowered.forward, cuda);
    const bool backward = request.wanted.empty() || fits(lowered.backward, cuda);
    if (forward && backward) {
      if (plans != nullptr) *plans = std::move(lowered);
      return made;
    }
    // States that are made again take room too; a smaller chunk would ask for more of them.
    if (!backward && thins && made.backward_save_every) {
      made.backward_save_every.reset();
      continue;
    }
    bool smaller = false;
    if (!forward && !given.chunk && *made.chunk > least) {
      made.chunk = halved(*made.chunk);
      smaller = true;
    }
    if (!backward && !given.backward_chunk && *made.backward_chunk > least) {
      made.backward_chunk = halved(*made.backward_chunk);
      smaller = true;
    }
    if (!smaller) return made;
    thin();
  }
}

}  // namespace krait
