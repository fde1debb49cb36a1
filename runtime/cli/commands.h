// One function a command: it adds the command's flags to the program and, where the command was
// given, leaves what is to run.
#pragma once

#include <functional>
#include <vector>

#include "runtime/cli/cli.h"

namespace CLI {
class App;
}

namespace krait {

struct Command {
  const std::vector<CliBlock>& blocks;
  /// Set by the command that was given; gives the exit status.
  std::function<int()> run = {};
};

inline constexpr int kOk = 0, kFailed = 1, kWrongUse = 2, kEnvironment = 3;

void add_bench(CLI::App& program, Command& command);
void add_cache(CLI::App& program, Command& command);
void add_check(CLI::App& program, Command& command);
void add_info(CLI::App& program, Command& command);
void add_print(CLI::App& program, Command& command);
void add_warm(CLI::App& program, Command& command);

/// Runs `body` and turns what it throws into a message on stderr and an exit status.
int guarded(const std::function<int()>& body);

}  // namespace krait
