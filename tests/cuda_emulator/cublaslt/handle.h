#pragma once

// A handle: the page-locked memory through which its products pass.

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/cuda_emulator/cublaslt/driver.h"
#include "tests/cuda_emulator/cublaslt/product.h"

namespace cublaslt_emulator {

// Memory for one product on its way through a stream, and what that product is.
struct Staging {
  std::byte* memory = nullptr;
  size_t bytes = 0;
  std::atomic<bool> busy{false};
  Problem problem;
  Operands operands;
};

class Handle {
 public:
  explicit Handle(const Driver& driver) : driver(driver) {}
  ~Handle();

  // Memory that nothing uses, marked busy; null where there is none left.
  Staging* take(size_t bytes);

  const Driver& driver;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Staging>> all_;
};

// The handle, or null where it is none that is alive.
Handle* get(cublasLtHandle_t handle);

}  // namespace cublaslt_emulator
