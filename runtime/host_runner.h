// A layer on the host, for checks.
#pragma once

#include <memory>

#include "runtime/runner.h"

namespace krait {

/// Throws UsageError for a graph or a schedule that the host cannot run.
std::unique_ptr<Runner> make_host_runner(const RunRequest& request);

}  // namespace krait
