// What a layer keeps between steps.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/layer.h"

namespace krait {

/// One step in the making: its bindings, and places of states that cannot be updated where they
/// are.
struct Layer::StepCall {
  std::vector<const TensorRef*> bound;  // by object of the plan
  std::vector<Memory> left;             // by object, while the step runs
  std::vector<TensorRef> left_refs;
};

struct Layer::StepCalls {
  std::mutex mutex;
  std::vector<std::unique_ptr<StepCall>> idle;
};

}  // namespace krait
