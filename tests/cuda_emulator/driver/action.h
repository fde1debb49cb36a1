#pragma once

// What a stream or a node of a graph does. Everything that a call says is copied here, so that it
// is of no matter what the program does to its arguments later.

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tests/cuda_emulator/driver/cuda_api.h"
#include "tests/cuda_emulator/machine/device.h"

namespace emulator::driver {

struct Event;
struct Function;
struct LoadedModule;

struct KernelAction {
  std::shared_ptr<Function> function;
  std::shared_ptr<LoadedModule> module;
  Dim grid, block;
  unsigned dynamic_shared = 0;
  std::vector<std::byte> parameters;
  bool cooperative = false;
  int priority = 0;
};

// One side of a copy, host or device: rows of Copy::width bytes, `pitch` apart, in slices.
struct Side {
  bool host = false;
  uint64_t address = 0;
  uint64_t pitch = 0, slice = 0;
};

struct CopyAction {
  Side to, from;
  uint64_t width = 0, height = 1, depth = 1;
  CUDA_MEMCPY3D given{};  // for a node's parameters
  // Bytes of pageable memory taken at the call; `from` points to them.
  std::shared_ptr<std::vector<std::byte>> staged;
};

struct FillAction {
  CUDA_MEMSET_NODE_PARAMS given{};
};

struct HostAction {
  CUhostFn function = nullptr;
  void* data = nullptr;
  // cuStreamAddCallback: also called after an error, which it gets.
  CUstreamCallback callback = nullptr;
  CUstream stream = nullptr;
};

struct FreeAction {
  uint64_t address = 0;
};

struct EmptyAction {};

struct ChildAction;  // a graph within a graph, copied

struct RecordAction {
  std::shared_ptr<Event> event;
};

struct WaitAction {
  std::shared_ptr<Event> event;
};

using Action = std::variant<EmptyAction, KernelAction, CopyAction, FillAction, HostAction,
                            FreeAction, RecordAction, WaitAction, std::shared_ptr<ChildAction>>;

// Performs it on the worker's thread, without the driver's lock; gives the error that it leaves in
// the context.
CUresult perform(const Action& action, CUresult context_error);

}  // namespace emulator::driver
