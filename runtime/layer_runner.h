// A layer on a device, for checks.
#pragma once

#include <memory>

#include "runtime/runner.h"

namespace krait {

/// Throws UsageError for a graph or a schedule that the device cannot run, and what make_device
/// throws.
std::unique_ptr<Runner> make_layer_runner(const std::string& device, const RunRequest& request);

}  // namespace krait
