// krait warm: compiles ahead, so that programs find their kernels in the cache.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dsl/error.h"
#include "runtime/cli/shape_flags.h"
#include "runtime/cuda/facts.h"
#include "runtime/cuda/sources.h"
#include "runtime/device.h"
#include "runtime/host/device.h"
#include "runtime/layer.h"

namespace krait {
namespace {

using nlohmann::json;

struct Flags {
  ShapeFlags shape;
  std::vector<std::string> specs, shapes;
  std::string device = "host", arch, schedule;
  bool no_gradients = false, json = false;
};

/// What became of one spec at one shape.
struct Row {
  std::string spec, block, error;
  std::int64_t batch = 0, seqlen = 0;
  Compiler::Counters counters;
  double seconds = 0;
  int status = kOk;
};

/// Whoever compiles: a device, or NVRTC for a part that is not here.
class Warmer {
 public:
  explicit Warmer(const Flags& flags) : flags_(flags) {
    if (flags.arch.empty()) {
      device_ = make_device(flags.device);
      return;
    }
    gpu_ = cuda_target(flags.arch, "--arch");
    HostDeviceOptions options = HostDeviceOptions::from();
    compiler_.emplace(std::move(options.compiler), nvrtc_backend(*gpu_));
  }

  Compiler::Counters warm(const Problem& problem) {
    const Compiler::Counters made = device_ ? warm_layer(problem) : warm_sources(problem);
    const DiskCache* const disk = (device_ ? device_->compiler() : *compiler_).disk();
    if (disk != nullptr && disk->has_failed())
      throw EnvironmentError("kernels were compiled, but not all could be kept on disk");
    return made;
  }

 private:
  LayerOptions options_of(const Problem& problem) const {
    LayerOptions options;
    options.name = problem.block;
    options.dtype = problem.dtype;
    options.sizes = problem.sizes;
    options.schedule = parse_schedule(flags_.schedule);
    if (!options.schedule.chunk && problem.chunk_wish > 0)
      options.schedule.chunk = problem.chunk_wish;
    if (flags_.no_gradients) options.wanted = std::vector<std::string>();
    return options;
  }

  Compiler::Counters warm_layer(const Problem& problem) {
    LayerOptions options = options_of(problem);
    options.device = flags_.device;
    options.on = device_;
    return Layer(problem.function, options).counters();
  }

  Compiler::Counters warm_sources(const Problem& problem) {
    const Compiler::Counters before = compiler_->counters();
    compiler_->compile_all(
        gpu_sources(problem.graph(), options_of(problem), *gpu_, &pool_, compiler_->disk()), pool_);
    Compiler::Counters made = compiler_->counters();
    made.compiled -= before.compiled;
    made.from_cache -= before.from_cache;
    made.shared -= before.shared;
    return made;
  }

  const Flags& flags_;
  std::shared_ptr<Device> device_;
  std::optional<CudaTarget> gpu_;
  std::optional<Compiler> compiler_;
  Pool pool_;
};

/// "8x2048": batch and seqlen.
std::pair<std::int64_t, std::int64_t> shape_of(const std::string& text) {
  std::istringstream in(text);
  std::int64_t batch = 0, seqlen = 0;
  char by = 0, more = 0;
  if (!(in >> batch >> by >> seqlen) || by != 'x' || in >> more || batch < 1 || seqlen < 1)
    throw UsageError("--shapes", text, "BATCHxSEQLEN, as in 8x2048");
  return {batch, seqlen};
}

Row warm_one(const ShapeFlags& shape, const std::vector<CliBlock>& blocks, Warmer& warmer) {
  Row row;
  row.spec = shape.spec_file.empty() ? shape.block : shape.spec_file;
  row.batch = shape.batch;
  row.seqlen = shape.seqlen;
  const auto start = std::chrono::steady_clock::now();
  const auto failed = [&](const std::string& what, int status) {
    row.error = what;
    row.status = status;
  };
  try {
    const Problem problem = problem_of(shape, blocks);
    row.block = problem.block;
    row.counters = warmer.warm(problem);
  } catch (const UsageError& error) {
    failed(error.what(), kWrongUse);
  } catch (const EnvironmentError& error) {
    failed(error.what(), kEnvironment);
  } catch (const InternalError& error) {
    failed(error.what(), kFailed);
  }
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return row;
}

void print_row(const Row& row) {
  if (!row.error.empty()) {
    std::cout.flush();
    std::cerr << "krait: " << row.spec << ": " << row.error << '\n';
    return;
  }
  std::cout << row.spec << "  " << row.block << "  " << row.batch << 'x' << row.seqlen << "  "
            << row.counters.compiled << " compiled, " << row.counters.from_cache
            << " from the cache, " << std::fixed << std::setprecision(2) << row.seconds << " s"
            << std::endl;
}

json to_json(const Row& row) {
  json one{{"spec", row.spec},
           {"block", row.block},
           {"batch", row.batch},
           {"seqlen", row.seqlen},
           {"compiled", row.counters.compiled},
           {"from_cache", row.counters.from_cache},
           {"seconds", row.seconds}};
  if (!row.error.empty()) one["error"] = row.error;
  return one;
}

int run_warm(const Flags& flags, const std::vector<CliBlock>& blocks) {
  KRAIT_REQUIRE(flags.arch.empty() || flags.device == "host", "--device is ", flags.device,
                "; allowed: none with --arch");
  KRAIT_REQUIRE(flags.device == "host" || is_cuda_device(flags.device), "--device is ",
                flags.device, "; allowed: host, cuda:N");
  if (!read_environment().cache_directory)
    throw EnvironmentError(
        "there is no cache on disk to warm: none of KRAIT_CACHE_DIR, XDG_CACHE_HOME and HOME is "
        "set");
  std::vector<ShapeFlags> wanted;
  for (const std::string& spec : flags.specs) {
    wanted.push_back(flags.shape);
    wanted.back().spec_file = spec;
  }
  if (wanted.empty()) wanted.push_back(flags.shape);
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const std::string& shape : flags.shapes) shapes.push_back(shape_of(shape));
  if (shapes.empty()) shapes.emplace_back(flags.shape.batch, flags.shape.seqlen);

  Warmer warmer(flags);
  json rows = json::array();
  Row all;
  for (ShapeFlags& shape : wanted)
    for (const auto& [batch, seqlen] : shapes) {
      shape.batch = batch;
      shape.seqlen = seqlen;
      const Row row = warm_one(shape, blocks, warmer);
      all.counters.compiled += row.counters.compiled;
      all.counters.from_cache += row.counters.from_cache;
      all.seconds += row.seconds;
      all.status = std::max(all.status, row.status);
      if (flags.json)
        rows.push_back(to_json(row));
      else
        print_row(row);
    }
  if (flags.json) {
    const json whole{{"device", flags.arch.empty() ? flags.device : flags.arch},
                     {"compiled", all.counters.compiled},
                     {"from_cache", all.counters.from_cache},
                     {"seconds", all.seconds},
                     {"specs", std::move(rows)}};
    std::cout << whole.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  } else {
    std::cout << all.counters.compiled << " compiled, " << all.counters.from_cache
              << " from the cache, " << std::fixed << std::setprecision(2) << all.seconds << " s\n";
  }
  return all.status;
}

}  // namespace

void add_warm(CLI::App& program, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const warm =
      program.add_subcommand("warm", "Compile forward, backward and step ahead, into the cache");
  warm->add_option("SPEC", flags->specs, "JSON files with the fields of blocks (or --block)");
  add_shape_flags(*warm, flags->shape);
  warm->add_option("--shapes", flags->shapes,
                   "\"1x2048,8x512\": batch and seqlen, several (or --batch and --seqlen)")
      ->delimiter(',');
  warm->add_option("--device", flags->device, "host, cuda:N")->capture_default_str();
  warm->add_option("--arch", flags->arch,
                   "Compute capability of a GPU that need not be here, such as 9.0");
  warm->add_option("--schedule", flags->schedule, "\"chunk=64 backward.chunk=32\"");
  warm->add_flag("--no-gradients", flags->no_gradients, "No backward");
  warm->add_flag("--json", flags->json, "One JSON object");
  warm->callback([flags, &command] {
    command.run = [flags, &command] { return run_warm(*flags, command.blocks); };
  });
}

}  // namespace krait
