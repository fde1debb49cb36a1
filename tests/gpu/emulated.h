// The emulated driver as the device of a test: what it offers beyond the driver's entry points
// (tests/cuda_emulator/emulator.h).
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "runtime/device.h"
#include "tests/cuda_emulator/emulator.h"

namespace krait::testing {

template <typename F>
F emulator_function(const char* name) {
  static void* const library = ::dlopen(KRAIT_EMULATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void* const found = library != nullptr ? ::dlsym(library, name) : nullptr;
  if (found == nullptr) throw std::runtime_error(std::string("the emulator has no ") + name);
  return reinterpret_cast<F>(found);
}
#define EMULATOR(name) krait::testing::emulator_function<decltype(&::name)>(#name)

/// A new device on the emulated driver. `cublaslt`: KRAIT_LIBCUBLASLT.
inline std::shared_ptr<Device> emulated_device(const char* cublaslt = "none") {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  ::setenv("KRAIT_LIBCUBLASLT", cublaslt, 1);
  return make_device("cuda:0");
}

/// All launches so far, each with its counts.
inline nlohmann::json launches() {
  return nlohmann::json::parse(EMULATOR(cuda_emulator_statistics)()).at("launches");
}

/// Counts of kernels that were launched since it was made, by name; of several launches the last.
class Launched {
 public:
  Launched() : before_(launches().size()) {}
  nlohmann::json by_kernel() const {
    nlohmann::json found = nlohmann::json::object();
    const nlohmann::json all = launches();
    for (std::size_t i = before_; i < all.size(); ++i)
      found[all[i].at("kernel").get<std::string>()] = all[i];
    return found;
  }

 private:
  std::size_t before_;
};

}  // namespace krait::testing
