// krait check: fixtures against a device.
#include "runtime/check.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dsl/error.h"
#include "runtime/cli/commands.h"
#include "runtime/device.h"
#include "runtime/file.h"
#include "runtime/runner.h"

namespace krait {
namespace {

struct Flags {
  std::vector<std::string> files;
  std::string device = "evaluate", dtype, schedule;
  std::optional<std::int64_t> chunk;
  std::string bits, record_bits;
  bool json = false;
};

/// SHA-256 of every tensor, by the file's name without folders and the tensor's.
using Bits = std::map<std::string, std::map<std::string, std::string>>;

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

Bits read_bits(const std::string& path) {
  try {
    return nlohmann::json::parse(read_text(path)).get<Bits>();
  } catch (const nlohmann::json::exception& error) {
    throw UsageError("--bits", path, text("a file that --record-bits wrote (", error.what(), ")"));
  }
}

CheckOptions options_of(const Flags& flags) {
  CheckOptions options;
  require_device(flags.device, "--device");
  options.device = flags.device;
  // A device that is not there is no failure of a fixture.
  if (flags.device != "evaluate") make_device(flags.device);
  const std::string usual = flags.device == "evaluate" ? "f64" : "f32";
  options.dtype = dtype_from_name(flags.dtype.empty() ? usual : flags.dtype, "--dtype");
  KRAIT_REQUIRE(is_float(options.dtype), "--dtype is ", flags.dtype,
                "; allowed: f64, f32, bf16, f16");
  options.schedule = parse_schedule(flags.schedule);
  if (!flags.chunk) return options;
  KRAIT_REQUIRE(*flags.chunk >= 1, "--chunk is ", *flags.chunk, "; allowed: 1 and up");
  KRAIT_REQUIRE(options.schedule.chunk.value_or(*flags.chunk) == *flags.chunk, "--chunk is ",
                *flags.chunk, "; allowed: the chunk of --schedule, ", *options.schedule.chunk);
  KRAIT_REQUIRE(options.schedule.plan != PlanKind::step, "--chunk is ", *flags.chunk,
                "; allowed: none with plan=step");
  options.schedule.chunk = flags.chunk;
  return options;
}

/// What became of one file.
struct Outcome {
  CheckReport report;
  std::string error;  // where there is no report
  int status = kOk;
};

Outcome check_file(const std::string& file, const CheckOptions& options) {
  Outcome outcome;
  std::optional<Fixture> fixture;
  // A file that is no fixture is wrong use; a fixture that the device cannot run has failed.
  const auto attempt = [&](int status_of_usage, const auto& body) {
    try {
      body();
    } catch (const UsageError& error) {
      outcome.error = error.what();
      outcome.status = status_of_usage;
    } catch (const EnvironmentError& error) {
      outcome.error = error.what();
      outcome.status = kEnvironment;
    } catch (const InternalError& error) {
      outcome.error = error.what();
      outcome.status = kFailed;
    }
  };
  attempt(kWrongUse, [&] { fixture = load_fixture(file); });
  if (!fixture) return outcome;
  attempt(kFailed, [&] {
    outcome.report = check_fixture(*fixture, options);
    outcome.status = outcome.report.passed() ? kOk : kFailed;
  });
  return outcome;
}

void print_text(const std::string& file, const Outcome& outcome) {
  if (!outcome.error.empty()) {
    std::cout << file << "  failed\n" << std::flush;
    std::cerr << "krait: " << file << ": " << outcome.error << '\n';
    return;
  }
  std::cout << file << "  " << outcome.report.op << "  "
            << (outcome.status == kOk ? "passed" : "failed") << '\n';
  for (const std::string& note : outcome.report.notes) std::cout << "  note: " << note << '\n';
  for (const CheckRow& row : outcome.report.rows) {
    std::cout << "  " << std::left << std::setw(34) << row.name << std::right << "  error "
              << std::scientific << std::setprecision(2) << row.error << "  bound "
              << std::setprecision(1) << row.bound << (row.passed() ? "" : "  FAILED") << '\n';
  }
  std::cout.flush();
}

nlohmann::json to_json(const std::string& file, const Outcome& outcome) {
  nlohmann::json rows = nlohmann::json::array();
  for (const CheckRow& row : outcome.report.rows) {
    // JSON has no NaN; null stands for it.
    nlohmann::json error = std::isfinite(row.error) ? nlohmann::json(row.error) : nullptr;
    rows.push_back({{"name", row.name},
                    {"error", std::move(error)},
                    {"bound", row.bound},
                    {"passed", row.passed()}});
  }
  nlohmann::json result{{"file", file},
                        {"op", outcome.report.op},
                        {"passed", outcome.status == kOk},
                        {"notes", outcome.report.notes},
                        {"rows", std::move(rows)}};
  if (!outcome.error.empty()) result["error"] = outcome.error;
  return result;
}

/// Turns a report that passed into a failed one where any bit is another than was recorded.
void compare_bits(const std::string& file, const Bits& recorded, Outcome& outcome) {
  if (!outcome.error.empty()) return;
  const auto found = recorded.find(file_name(file));
  std::string differ;
  if (found == recorded.end()) {
    differ = "nothing was recorded";
  } else if (found->second != outcome.report.digests) {
    for (const auto& [name, digest] : outcome.report.digests) {
      const auto before = found->second.find(name);
      if (before == found->second.end() || before->second != digest)
        differ += (differ.empty() ? "" : ", ") + name;
    }
    if (differ.empty()) differ = "tensors are missing";
  }
  outcome.report.notes.push_back(differ.empty() ? "all bits are those recorded"
                                                : "NOT the bits recorded: " + differ);
  if (!differ.empty()) outcome.status = std::max(outcome.status, kFailed);
}

int run_check(const Flags& flags) {
  const CheckOptions options = options_of(flags);
  const Bits expected = flags.bits.empty() ? Bits() : read_bits(flags.bits);
  Bits recorded;
  nlohmann::json files = nlohmann::json::array();
  int passed = 0, failed = 0, status = kOk;
  for (const std::string& file : flags.files) {
    Outcome outcome = check_file(file, options);
    if (!flags.bits.empty()) compare_bits(file, expected, outcome);
    recorded[file_name(file)] = outcome.report.digests;
    ++(outcome.status == kOk ? passed : failed);
    status = std::max(status, outcome.status);
    if (flags.json) {
      files.push_back(to_json(file, outcome));
    } else {
      print_text(file, outcome);
    }
  }
  if (!flags.record_bits.empty())
    write_file_atomically(flags.record_bits, nlohmann::json(recorded).dump(1) + '\n');
  if (flags.json) {
    const nlohmann::json all{{"device", options.device},
                             {"dtype", name(options.dtype)},
                             {"schedule", to_text(options.schedule)},
                             {"files", std::move(files)},
                             {"passed", passed},
                             {"failed", failed}};
    std::cout << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    std::cout << passed << " passed, " << failed << " failed\n";
  }
  return status;
}

}  // namespace

void add_check(CLI::App& program, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const check =
      program.add_subcommand("check", "Run fixtures and compare outputs and gradients");
  check->add_option("FIXTURE", flags->files, "Files in safetensors format")->required();
  check
      ->add_option("--device", flags->device,
                   "evaluate: the graph itself, in float64; host: generated kernels")
      ->capture_default_str();
  check->add_option("--dtype", flags->dtype,
                    "Of activations: f64, f32, bf16, f16 (f64 on evaluate, else f32)");
  check->add_option("--chunk", flags->chunk, "Run the graph chunked, so many positions a chunk");
  check->add_option("--schedule", flags->schedule,
                    "\"plan=step\" runs windows of one position; \"chunk=64 backward.chunk=32\"");
  check->add_option("--bits", flags->bits,
                    "Fail where any bit is another than in this file; for schedules with "
                    "math=exact");
  check->add_option("--record-bits", flags->record_bits, "Write such a file");
  check->add_flag("--json", flags->json, "One JSON object in place of the table");
  check->callback([flags, &command] { command.run = [flags] { return run_check(*flags); }; });
}

}  // namespace krait
