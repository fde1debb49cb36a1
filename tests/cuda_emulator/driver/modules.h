#pragma once

#include <string>

#include "tests/cuda_emulator/driver/driver.h"

namespace emulator::driver {

// The text of an image: NO_BINARY_FOR_GPU for cubins and fat binaries, INVALID_IMAGE for what is
// neither, UNSUPPORTED_PTX_VERSION.
std::string text_of_image(const void* image);

// Messages of the parser for the buffers of JIT options.
class JitLog {
 public:
  // Fails for options that cuda.h does not list.
  JitLog(unsigned count, const CUjit_option* options, void** values);
  void error(const std::string& message) const { write(CU_JIT_ERROR_LOG_BUFFER, message); }
  void info(const std::string& message) const { write(CU_JIT_INFO_LOG_BUFFER, message); }

 private:
  void write(CUjit_option buffer, const std::string& message) const;

  unsigned count_;
  const CUjit_option* options_;
  void** values_;
  mutable uintptr_t capacity_[2] = {0, 0};  // of the error and the info buffer
};

// Loads PTX into the context.
std::shared_ptr<LoadedModule> load(Call& call, const std::shared_ptr<Context>& context,
                                   const std::string& text, const JitLog* log);
// The function of that name, made at first; null where the module has none.
std::shared_ptr<Function> function_of(Call& call, const std::shared_ptr<LoadedModule>& module,
                                      const std::string& name);
// The module stays until what runs is done.
void unload(Call& call, const std::shared_ptr<LoadedModule>& module);
void global_of(const LoadedModule& module, const char* name, CUdeviceptr* address, size_t* bytes);
std::string read_file(const char* path);

// A function by its handle, or that of a kernel of a library for the current context (or that of
// the stream, where it is given).
std::shared_ptr<Function> function_at(Call& call, CUfunction handle,
                                      const std::shared_ptr<Context>& context = nullptr);
// Attributes of functions, for cuFunc... and cuKernel...
int attribute_of(Call& call, const Function& function, CUfunction_attribute attribute);
void set_attribute(Call& call, Function& function, CUfunction_attribute attribute, int value);

}  // namespace emulator::driver
