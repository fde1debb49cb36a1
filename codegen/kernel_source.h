// What a backend's emitter hands to the runtime: the text of one kernel and how to compile it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace krait {

struct KernelSource {
  enum class Backend { llvm, cuda };

  std::string name;   ///< The kernel's printable name. No part of the cache key.
  std::string entry;  ///< The symbol to call. On the host a function of type HostKernel.
  std::string text;   ///< LLVM IR (backend llvm) or CUDA C++ (backend cuda).
  Backend backend = Backend::llvm;
  std::vector<std::string> options;  ///< As passed to the compiler; the host takes none.
  /// What files about it are called, before their suffix (see file_of); "": it has none. No part of
  /// the key either.
  std::string file = {};
  /// Asked before the text is compiled: throws InternalError where what it was made of broke a rule
  /// on its way. Null where that is known. What is in a cache was asked before.
  std::function<void()> verify = {};
};

/// "llvm" or "cuda".
std::string_view name(KernelSource::Backend backend);

/// `text` with a line number before every line, for the message of a failed compile.
std::string numbered_lines(std::string_view text);

}  // namespace krait
