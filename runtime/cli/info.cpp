// krait info: what this machine has.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "dsl/error.h"
#include "runtime/cli/commands.h"
#include "runtime/cuda/disassemble.h"
#include "runtime/cuda/facts.h"
#include "runtime/device.h"
#include "runtime/environment.h"
#include "runtime/host/target.h"
#include "runtime/library.h"
#include "runtime/runner.h"

namespace krait {
namespace {

using nlohmann::json;

/// What `ask` gives, or nothing and why in `problem`.
template <typename T>
std::optional<T> attempt(std::string& problem, T (*ask)()) {
  try {
    return ask();
  } catch (const EnvironmentError& error) {
    problem = error.what();
    return std::nullopt;
  }
}

/// What does the matrix products of a device, or why there is no such device.
std::string products_of(const std::string& device) {
  try {
    return make_device(device)->library_text();
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

std::string capability_text(int capability) { return text(capability / 10, ".", capability % 10); }

std::string joined(const std::vector<int>& capabilities) {
  std::string all;
  for (const int each : capabilities) all += (all.empty() ? "" : ", ") + capability_text(each);
  return all;
}

struct Facts {
  Environment environment = read_environment();
  HostTarget host = host_target(environment.host_cpu);
  unsigned threads = std::thread::hardware_concurrency();
  LibraryStatus blas = find_library("BLAS", "KRAIT_LIBBLAS", {"libopenblas.so.0", "libblas.so.3"});
  std::string no_cuda, no_nvrtc, no_disassembler;
  std::optional<CudaFacts> cuda = attempt(no_cuda, cuda_facts);
  std::optional<NvrtcFacts> nvrtc = attempt(no_nvrtc, nvrtc_facts);
  std::optional<std::string> disassembler = attempt(no_disassembler, disassembler_path);

  std::string cache() const {
    return environment.cache_directory ? environment.cache_directory->string() : "";
  }
};

int print_json(const Facts& facts) {
  json parts = json::array();
  if (facts.cuda)
    for (const CudaFacts::Part& part : facts.cuda->parts)
      parts.push_back({{"name", part.name},
                       {"compute_capability", part.capability},
                       {"memory_bytes", part.memory_bytes},
                       {"multiprocessors", part.multiprocessors}});
  const auto library = [](const char* name, const std::string& path, const std::string& version,
                          const std::string& problem) {
    return json{{"name", name}, {"path", path}, {"version", version}, {"problem", problem}};
  };
  json libraries = json::array();
  libraries.push_back(library("BLAS", facts.blas.path, "", facts.blas.problem));
  libraries.push_back(library("CUDA driver", facts.cuda ? facts.cuda->path : "",
                              facts.cuda ? facts.cuda->version : "", facts.no_cuda));
  libraries.push_back(library("NVRTC", facts.nvrtc ? facts.nvrtc->path : "",
                              facts.nvrtc ? facts.nvrtc->version : "", facts.no_nvrtc));
  libraries.push_back(
      library("disassembler", facts.disassembler.value_or(""), "", facts.no_disassembler));
  json capabilities = json::array();
  if (facts.nvrtc)
    for (const int each : facts.nvrtc->capabilities) capabilities.push_back(capability_text(each));
  const json all{{"devices", runner_devices()},
                 {"gpus", std::move(parts)},
                 {"threads", facts.threads},
                 {"host_cpu", facts.host.cpu},
                 {"host_vector_bits", facts.host.vector_bits},
                 {"kernel_cache", facts.cache()},
                 {"libraries", std::move(libraries)},
                 {"nvrtc_compute_capabilities", std::move(capabilities)},
                 {"products", {{"host", products_of("host")}, {"cuda:0", products_of("cuda:0")}}}};
  std::cout << all.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  return kOk;
}

void print_devices(const Facts& facts) {
  std::ostream& out = std::cout;
  out << "devices:\n  evaluate: float64, slow, the meaning of a block\n  host: " << facts.host.cpu
      << ", vectors of " << facts.host.vector_bits << " bits, " << facts.threads << " threads\n";
  if (!facts.cuda) {
    out << "  cuda:N: none (" << facts.no_cuda << ")\n";
    return;
  }
  if (facts.cuda->parts.empty()) out << "  cuda:N: none (the driver knows no device)\n";
  for (std::size_t i = 0; i < facts.cuda->parts.size(); ++i) {
    const CudaFacts::Part& part = facts.cuda->parts[i];
    std::ostringstream memory;
    memory << std::fixed << std::setprecision(1)
           << static_cast<double>(part.memory_bytes) / (1 << 30);
    out << "  cuda:" << i << ": " << part.name << ", compute capability " << part.capability << ", "
        << memory.str() << " GiB, " << part.multiprocessors << " multiprocessors\n";
  }
}

int print_text(const Facts& facts) {
  print_devices(facts);
  std::ostream& out = std::cout;
  const auto none = [](const std::string& problem) { return "none (" + problem + ")"; };
  out << "kernel cache: " << (facts.cache().empty() ? "none (memory only)" : facts.cache())
      << "\nlibraries:\n  BLAS: "
      << (facts.blas.path.empty() ? none(facts.blas.problem) : facts.blas.path)
      << "\n  CUDA driver: "
      << (facts.cuda ? facts.cuda->path + ", for CUDA " + facts.cuda->version : none(facts.no_cuda))
      << "\n  NVRTC: "
      << (facts.nvrtc ? facts.nvrtc->path + ", " + facts.nvrtc->version + ", for compute " +
                            "capabilities " + joined(facts.nvrtc->capabilities)
                      : none(facts.no_nvrtc))
      << "\n  disassembler: " << facts.disassembler.value_or(none(facts.no_disassembler))
      << "\nlibrary for products (else generated):\n";
  for (const char* device : {"host", "cuda:0"})
    out << "  " << device << ": " << products_of(device) << '\n';
  out << "without a GPU: KRAIT_LIBCUDA=build/libcuda_emulator.so is a CUDA driver that executes "
         "PTX on\n  the CPU, checked and counted, for tests of kernels; it proves nothing about "
         "speed\n  (README, \"The emulated CUDA driver\")\n";
  return kOk;
}

}  // namespace

void add_info(CLI::App& program, Command& command) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* const info =
      program.add_subcommand("info", "Devices, libraries and paths of this machine");
  info->add_flag("--json", *json, "One JSON object");
  info->callback([json, &command] {
    command.run = [json] {
      const Facts facts;
      return *json ? print_json(facts) : print_text(facts);
    };
  });
}

}  // namespace krait
