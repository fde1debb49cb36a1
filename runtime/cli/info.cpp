// krait info: what this machine has.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "dsl/error.h"
#include "runtime/cli/commands.h"
#include "runtime/device.h"
#include "runtime/environment.h"
#include "runtime/host/target.h"
#include "runtime/library.h"
#include "runtime/runner.h"

namespace krait {
namespace {

std::vector<LibraryStatus> libraries() {
  return {
      find_library("BLAS", "KRAIT_LIBBLAS", {"libopenblas.so.0", "libblas.so.3"}),
      find_library("CUDA driver", "KRAIT_LIBCUDA", {"libcuda.so.1"}),
      find_library("NVRTC", "KRAIT_LIBNVRTC", {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}),
      find_library("cuBLASLt", "KRAIT_LIBCUBLASLT",
                   {"libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"}),
  };
}

/// What does the matrix products of a device, or why there is no such device.
std::string products_of(const std::string& device) {
  try {
    return make_device(device)->library_text();
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

int run_info(bool json) {
  const unsigned threads = std::thread::hardware_concurrency();
  const Environment environment = read_environment();
  const HostTarget host = host_target(environment.host_cpu);
  const std::string cache =
      environment.cache_directory ? environment.cache_directory->string() : "";
  if (json) {
    nlohmann::json found = nlohmann::json::array();
    for (const LibraryStatus& library : libraries()) {
      found.push_back(
          {{"name", library.name}, {"path", library.path}, {"problem", library.problem}});
    }
    const nlohmann::json all{
        {"devices", runner_devices()},
        {"threads", threads},
        {"host_cpu", host.cpu},
        {"host_vector_bits", host.vector_bits},
        {"kernel_cache", cache},
        {"libraries", std::move(found)},
        {"products", {{"host", products_of("host")}, {"cuda:0", products_of("cuda:0")}}}};
    std::cout << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return kOk;
  }
  std::cout << "devices:";
  for (const std::string& device : runner_devices()) std::cout << ' ' << device;
  std::cout << "\nthreads: " << threads << "\nhost: " << host.cpu << ", vectors of "
            << host.vector_bits << " bits"
            << "\nkernel cache: " << (cache.empty() ? "none (memory only)" : cache)
            << "\nlibraries:\n";
  for (const LibraryStatus& library : libraries()) {
    std::cout << "  " << library.name << ": "
              << (library.path.empty() ? "none (" + library.problem + ")" : library.path) << '\n';
  }
  std::cout << "library for products (else generated):\n";
  for (const char* device : {"host", "cuda:0"})
    std::cout << "  " << device << ": " << products_of(device) << '\n';
  std::cout
      << "without a GPU: KRAIT_LIBCUDA=build/libcuda_emulator.so is a CUDA driver that executes "
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
  info->callback([json, &command] { command.run = [json] { return run_info(*json); }; });
}

}  // namespace krait
