// One graph on one device, for checks: tensors in, outputs and gradients out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dsl/evaluate.h"
#include "dsl/graph.h"
#include "schedules/schedule.h"

namespace krait {

struct RunResult {
  Tensors64 outputs;    // by name
  Tensors64 gradients;  // by the name of the input
};

struct RunRequest {
  std::string name;  // of the layer, for files about its kernels
  Graph graph;
  Sizes sizes;        // what a device that compiles for a shape is told
  Schedule schedule;  // plan=step: `run` is called with windows of one position only
  /// Outputs that will bear a cotangent, and inputs whose gradient is wanted; both empty for a run
  /// without gradients.
  std::vector<std::string> cotangents, wanted;
};

class Runner {
 public:
  virtual ~Runner() = default;
  /// `inputs` by the graph's names, `cotangents` by the outputs'. Tensors are in storage order.
  virtual RunResult run(const Tensors64& inputs, const Tensors64& cotangents) = 0;
  /// What the reader of a result should know, e.g. that the graph was run whole.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// Devices that make_runner knows: "evaluate", "host".
const std::vector<std::string>& runner_devices();

/// Throws UsageError for a device that is not known.
void require_device(const std::string& device, const std::string& field);

/// Throws UsageError for a device that is not known, and for a graph or a schedule that the device
/// cannot run, with the reason.
std::unique_ptr<Runner> make_runner(const std::string& device, const RunRequest& request);

}  // namespace krait
