// Libraries: PTX that every context loads when it first needs it.

#include <cstring>

#include "tests/cuda_emulator/driver/modules.h"
#include "tests/cuda_emulator/ptx/module.h"

using namespace emulator::driver;

namespace emulator::driver {
namespace {

std::shared_ptr<LoadedModule> module_of(Call& call, Library& library,
                                        const std::shared_ptr<Context>& context) {
  std::shared_ptr<LoadedModule>& module = library.modules[context->handle];
  if (!module) {
    try {
      module = load(call, context, library.text, nullptr);
    } catch (...) {
      library.modules.erase(context->handle);
      throw;
    }
    module->of_library = true;
  }
  return module;
}

std::shared_ptr<Function> function_of(Call& call, const Kernel& kernel,
                                      const std::shared_ptr<Context>& context) {
  const std::shared_ptr<Library> library = kernel.library.lock();
  require(library != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return function_of(call, module_of(call, *library, context), kernel.name);
}

}  // namespace

std::shared_ptr<Function> function_at(Call& call, CUfunction handle,
                                      const std::shared_ptr<Context>& context) {
  std::shared_ptr<Function> function = call.driver.functions.find(handle);
  if (!function) {
    const std::shared_ptr<Kernel> kernel =
        call.driver.kernels.at(reinterpret_cast<CUkernel>(handle));
    function = function_of(call, *kernel, context ? context : call.context());
  }
  const std::shared_ptr<LoadedModule> module = function->module.lock();
  require(module && module->module, CUDA_ERROR_INVALID_HANDLE);
  return function;
}

}  // namespace emulator::driver

namespace {

std::shared_ptr<Library> make_library(Call& call, std::string text, const JitLog& log) {
  auto library = std::make_shared<Library>();
  library->text = std::move(text);
  try {
    const emulator::ptx::Module module = emulator::ptx::parse(library->text);
    call.driver.libraries.add(library);
    for (const emulator::ptx::Function& function : module.functions) {
      if (!function.entry) continue;
      auto kernel = std::make_shared<Kernel>();
      kernel->library = library;
      kernel->name = function.name;
      call.driver.kernels.add(kernel);
      library->kernels[function.name] = std::move(kernel);
    }
  } catch (const emulator::ptx::Error& error) {
    log.error(error.what());
    fail(CUDA_ERROR_INVALID_PTX);
  }
  return library;
}

std::shared_ptr<Function> current_function(Call& call, CUkernel kernel) {
  return function_at(call, reinterpret_cast<CUfunction>(kernel));
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                           void** jitOptionsValues, unsigned int numJitOptions, CUlibraryOption*,
                           void**, unsigned int) {
  return entry("cuLibraryLoadData", [&](Call& call) {
    require(library && code);
    const JitLog log(numJitOptions, jitOptions, jitOptionsValues);
    *library = make_library(call, text_of_image(code), log)->handle;
  });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption*, void**, unsigned int) {
  return entry("cuLibraryLoadFromFile", [&](Call& call) {
    require(library && fileName);
    const JitLog log(numJitOptions, jitOptions, jitOptionsValues);
    const std::string bytes = read_file(fileName);
    *library = make_library(call, text_of_image(bytes.c_str()), log)->handle;
  });
}

CUresult cuLibraryUnload(CUlibrary handle) {
  return entry("cuLibraryUnload", [&](Call& call) {
    const std::shared_ptr<Library> library = call.driver.libraries.at(handle);
    for (const auto& [context, module] : library->modules) unload(call, module);
    for (const auto& [name, kernel] : library->kernels) call.driver.kernels.remove(kernel->handle);
    call.driver.libraries.remove(handle);
  });
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary handle, const char* name) {
  return entry("cuLibraryGetKernel", [&](Call& call) {
    require(pKernel && name);
    const std::shared_ptr<Library> library = call.driver.libraries.at(handle);
    const auto it = library->kernels.find(name);
    require(it != library->kernels.end(), CUDA_ERROR_NOT_FOUND);
    *pKernel = it->second->handle;
  });
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  return entry("cuLibraryGetKernelCount", [&](Call& call) {
    require(count);
    *count = static_cast<unsigned>(call.driver.libraries.at(lib)->kernels.size());
  });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  return entry("cuLibraryEnumerateKernels", [&](Call& call) {
    require(kernels);
    unsigned i = 0;
    for (const auto& [name, kernel] : call.driver.libraries.at(lib)->kernels) {
      if (i < numKernels) kernels[i++] = kernel->handle;
    }
  });
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  return entry("cuLibraryGetModule", [&](Call& call) {
    const std::shared_ptr<Context> context = call.sound_context();
    require(pMod);
    *pMod = module_of(call, *call.driver.libraries.at(library), context)->handle;
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  return entry("cuLibraryGetGlobal", [&](Call& call) {
    const std::shared_ptr<Context> context = call.sound_context();
    require(name && (dptr || bytes));
    global_of(*module_of(call, *call.driver.libraries.at(library), context), name, dptr, bytes);
  });
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  return entry("cuKernelGetFunction", [&](Call& call) {
    call.sound_context();
    require(pFunc);
    call.driver.kernels.at(kernel);
    *pFunc = current_function(call, kernel)->handle;
  });
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  return entry("cuKernelGetLibrary", [&](Call& call) {
    require(pLib);
    *pLib = call.driver.kernels.at(kernel)->library.lock()->handle;
  });
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  return entry("cuKernelGetName", [&](Call& call) {
    require(name);
    *name = call.driver.kernels.at(hfunc)->name.c_str();
  });
}

// The attributes of a kernel are those of its function in the current context.
CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  return entry("cuKernelGetAttribute", [&](Call& call) {
    require(pi);
    call.check_device(dev);
    call.driver.kernels.at(kernel);
    *pi = attribute_of(call, *current_function(call, kernel), attrib);
  });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  return entry("cuKernelSetAttribute", [&](Call& call) {
    call.check_device(dev);
    call.driver.kernels.at(kernel);
    set_attribute(call, *current_function(call, kernel), attrib, val);
  });
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
  return entry("cuKernelSetCacheConfig", [&](Call& call) {
    call.check_device(dev);
    require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    call.driver.kernels.at(kernel);
    current_function(call, kernel)->cache = config;
  });
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset,
                              size_t* paramSize) {
  return entry("cuKernelGetParamInfo", [&](Call& call) {
    require(paramOffset);
    call.driver.kernels.at(kernel);
    const auto& parameters = current_function(call, kernel)->info->parameters;
    require(paramIndex < parameters.size());
    *paramOffset = parameters[paramIndex].offset;
    if (paramSize) *paramSize = parameters[paramIndex].bytes;
  });
}
