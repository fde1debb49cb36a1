#include "runtime/runner.h"

#include <algorithm>
#include <optional>

#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "runtime/device.h"
#include "runtime/layer_runner.h"
#include "schedules/chunk.h"

namespace krait {
namespace {

/// The tensors that `graph` reads, out of more.
Tensors64 read_by(const Graph& graph, const Tensors64& tensors) {
  Tensors64 result;
  for (const Value& value : graph.inputs()) {
    const auto found = tensors.find(graph.input_of(value).name);
    if (found != tensors.end()) result.insert(*found);
  }
  return result;
}

/// The graph as it stands, in float64; chunked where the schedule says so.
class EvaluateRunner : public Runner {
 public:
  explicit EvaluateRunner(const RunRequest& request) {
    const Schedule& schedule = request.schedule;
    KRAIT_REQUIRE(!schedule.segments && !schedule.backward_segments, "schedule is \"",
                  to_text(schedule), "\"; allowed with device evaluate: plan, chunk");
    const bool chunked = schedule.plan.value_or(PlanKind::chunks) == PlanKind::chunks &&
                         (schedule.chunk || schedule.backward_chunk);
    const std::optional<std::string> reason =
        chunked ? why_not_chunkable(request.graph) : std::nullopt;
    if (reason) notes_.push_back("evaluated whole, not chunked: " + *reason);
    const auto prepared = [&](std::optional<std::int64_t> size) {
      return chunked && !reason && size ? chunk(request.graph, *size) : request.graph;
    };
    forward_ = prepared(schedule.chunk);
    if (request.wanted.empty()) return;
    const std::optional<std::int64_t> size =
        schedule.backward_chunk ? schedule.backward_chunk : schedule.chunk;
    backward_ = differentiate(prepared(size), request.cotangents, request.wanted);
  }

  RunResult run(const Tensors64& inputs, const Tensors64& cotangents) override {
    RunResult result;
    result.outputs = evaluate(forward_, read_by(forward_, inputs));
    if (!backward_) return result;
    Tensors64 all = inputs;
    for (const auto& [name, tensor] : cotangents) all["cot." + name] = tensor;
    for (auto& [name, tensor] : evaluate(*backward_, read_by(*backward_, all))) {
      result.gradients[name.substr(std::string("grad.").size())] = std::move(tensor);
    }
    return result;
  }

  std::vector<std::string> notes() const override { return notes_; }

 private:
  Graph forward_;
  std::optional<Graph> backward_;
  std::vector<std::string> notes_;
};

}  // namespace

const std::vector<std::string>& runner_devices() {
  static const std::vector<std::string> devices{"evaluate", "host", "cuda:N"};
  return devices;
}

void require_device(const std::string& device, const std::string& field) {
  std::string allowed;
  for (const std::string& known : runner_devices()) {
    if (device == known && known != "cuda:N") return;
    allowed += (allowed.empty() ? "" : ", ") + known;
  }
  if (is_cuda_device(device)) return;
  throw UsageError(field, device, allowed);
}

std::unique_ptr<Runner> make_runner(const std::string& device, const RunRequest& request) {
  require_device(device, "device");
  if (device != "evaluate") return make_layer_runner(device, request);
  return std::make_unique<EvaluateRunner>(request);
}

}  // namespace krait
