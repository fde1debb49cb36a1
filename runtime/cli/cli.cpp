#include "runtime/cli/cli.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <iostream>
#include <new>

#include "dsl/error.h"
#include "runtime/cli/commands.h"

namespace krait {

int guarded(const std::function<int()>& body) {
  const auto say = [](const std::string& what, int status) {
    std::cout.flush();
    std::cerr << "krait: " << what << '\n';
    return status;
  };
  try {
    return body();
  } catch (const UsageError& error) {
    return say(error.what(), kWrongUse);
  } catch (const EnvironmentError& error) {
    return say(error.what(), kEnvironment);
  } catch (const std::bad_alloc&) {
    return say("out of memory", kEnvironment);
  } catch (const InternalError& error) {
    return say(error.what(), kFailed);
  } catch (const std::exception& error) {
    return say(InternalError(error.what()).what(), kFailed);
  }
}

int cli(int argc, const char* const* argv, const std::vector<CliBlock>& blocks) {
  return guarded([&] {
    CLI::App program("Kernels for linear recurrences, compiled while the program runs", "krait");
    Command command{blocks};
    add_bench(program, command);
    add_cache(program, command);
    add_check(program, command);
    add_info(program, command);
    add_print(program, command);
    add_warm(program, command);
    try {
      program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      // 0 where help was asked for; it has been printed by then.
      return program.exit(error) == 0 ? kOk : kWrongUse;
    }
    std::string names;
    for (const CLI::App* const known : program.get_subcommands({})) {
      names += (names.empty() ? "" : ", ") + known->get_name();
    }
    KRAIT_REQUIRE(command.run != nullptr, "no command is given; allowed: ", names, ", --help");
    const int status = command.run();
    std::cout.flush();
    if (!std::cout)
      throw EnvironmentError("standard output takes no more: its disk is full, or it was closed");
    return status;
  });
}

}  // namespace krait
