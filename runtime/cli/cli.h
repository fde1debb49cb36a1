// The command line of krait, for its own program and for a user's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dsl/axis.h"
#include "dsl/expr.h"

namespace krait {

/// A block of the user's own, for the commands that take --block.
struct CliBlock {
  std::string name;
  /// Its axes of constant size with the sizes that they have without --size AXIS=N.
  Sizes sizes;
  /// Writes the block into a scope; `sizes` has every axis named above.
  std::function<void(Scope&, const Sizes& sizes)> build;
};

/// Runs one command. Gives the exit status: 0; 1, a check failed or krait made a mistake; 2, wrong
/// use; 3, something outside the program is missing or failed. Errors go to stderr; nothing is
/// thrown.
int cli(int argc, const char* const* argv, const std::vector<CliBlock>& blocks = {});

}  // namespace krait
