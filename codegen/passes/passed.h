// Programs that are through the passes for GPUs, remembered by what they were before.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_target.h"
#include "codegen/tile/tile.h"

namespace krait {

/// The usual passes run once for each program and target; what they throw is thrown each time. Safe
/// to use from several threads at once.
class PassedPrograms {
 public:
  struct Passed {
    TileProgram program;
    /// Runs the passes once more, each with its verifier behind it: throws InternalError.
    std::function<void()> verify;
  };
  Passed get(TileProgram program, const CudaTarget& target);
  /// How many went through the passes.
  std::size_t size() const;

 private:
  struct Entry {
    TileProgram before, after;
    CudaTarget target;
    std::once_flag once;
    std::exception_ptr error;
  };
  std::shared_ptr<Entry> entry(TileProgram program, const CudaTarget& target);

  mutable std::mutex mutex_;  // guards what follows, but not what is in the entries
  std::map<std::string, std::vector<std::shared_ptr<Entry>>> entries_;  // by name
};

}  // namespace krait
