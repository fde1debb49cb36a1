#include "runtime/cuda/nvrtc.h"

#include <nvrtc.h>

#include <atomic>

#include "codegen/kernel_source.h"
#include "dsl/error.h"
#include "runtime/cuda/facts.h"
#include "runtime/library.h"

namespace krait {
namespace {

struct Nvrtc {
  std::string path;
#define KRAIT_NVRTC_FUNCTION(name) decltype(&::name) name = nullptr
  KRAIT_NVRTC_FUNCTION(nvrtcVersion);
  KRAIT_NVRTC_FUNCTION(nvrtcGetNumSupportedArchs);
  KRAIT_NVRTC_FUNCTION(nvrtcGetSupportedArchs);
  KRAIT_NVRTC_FUNCTION(nvrtcCreateProgram);
  KRAIT_NVRTC_FUNCTION(nvrtcDestroyProgram);
  KRAIT_NVRTC_FUNCTION(nvrtcCompileProgram);
  KRAIT_NVRTC_FUNCTION(nvrtcGetPTXSize);
  KRAIT_NVRTC_FUNCTION(nvrtcGetPTX);
  KRAIT_NVRTC_FUNCTION(nvrtcGetCUBINSize);
  KRAIT_NVRTC_FUNCTION(nvrtcGetCUBIN);
  KRAIT_NVRTC_FUNCTION(nvrtcGetProgramLogSize);
  KRAIT_NVRTC_FUNCTION(nvrtcGetProgramLog);
  KRAIT_NVRTC_FUNCTION(nvrtcGetErrorString);
#undef KRAIT_NVRTC_FUNCTION
};

Nvrtc open() {
  const Library library = open_library(
      "NVRTC", "KRAIT_LIBNVRTC", nvrtc_names(),
      "install a CUDA toolkit or the package nvidia-cuda-nvrtc, or name the library in "
      "KRAIT_LIBNVRTC");
  Nvrtc nvrtc;
  nvrtc.path = library.path;
#define KRAIT_FIND(name) library.find(#name, nvrtc.name)
  KRAIT_FIND(nvrtcVersion);
  KRAIT_FIND(nvrtcGetNumSupportedArchs);
  KRAIT_FIND(nvrtcGetSupportedArchs);
  KRAIT_FIND(nvrtcCreateProgram);
  KRAIT_FIND(nvrtcDestroyProgram);
  KRAIT_FIND(nvrtcCompileProgram);
  KRAIT_FIND(nvrtcGetPTXSize);
  KRAIT_FIND(nvrtcGetPTX);
  KRAIT_FIND(nvrtcGetCUBINSize);
  KRAIT_FIND(nvrtcGetCUBIN);
  KRAIT_FIND(nvrtcGetProgramLogSize);
  KRAIT_FIND(nvrtcGetProgramLog);
  KRAIT_FIND(nvrtcGetErrorString);
#undef KRAIT_FIND
  return nvrtc;
}

std::atomic<bool> is_open = false;

const Nvrtc& nvrtc() {
  static const Nvrtc opened = open();
  is_open = true;
  return opened;
}

void check(nvrtcResult result, const char* what) {
  if (result != NVRTC_SUCCESS)
    throw EnvironmentError(text("NVRTC: ", what, ": ", nvrtc().nvrtcGetErrorString(result)));
}

}  // namespace

const std::vector<std::string>& nvrtc_names() {
  static const std::vector<std::string> names{"libnvrtc.so.13", "libnvrtc.so",
                                              "/usr/local/cuda/lib64/libnvrtc.so",
                                              KRAIT_BUILD_NVRTC, "libnvrtc.so.12"};
  return names;
}

const std::string& nvrtc_path() { return nvrtc().path; }

NvrtcFacts nvrtc_facts() {
  NvrtcFacts facts;
  facts.path = nvrtc_path();
  int major = 0, minor = 0, count = 0;
  check(nvrtc().nvrtcVersion(&major, &minor), "its version");
  facts.version = text(major, ".", minor);
  check(nvrtc().nvrtcGetNumSupportedArchs(&count), "its architectures");
  facts.capabilities.resize(static_cast<std::size_t>(count));
  check(nvrtc().nvrtcGetSupportedArchs(facts.capabilities.data()), "its architectures");
  return facts;
}

CompiledCode nvrtc_code(const KernelSource& source) {
  NvrtcResult made = nvrtc_compile(source.name, source.text, source.options);
  return {std::move(made.cubin), std::move(made.ptx), std::move(made.log)};
}

bool nvrtc_is_open() { return is_open; }

NvrtcResult nvrtc_compile(const std::string& name, const std::string& source,
                          const std::vector<std::string>& options) {
  const Nvrtc& api = nvrtc();
  struct Program {
    const Nvrtc& api;
    nvrtcProgram handle = nullptr;
    ~Program() {
      if (handle != nullptr) api.nvrtcDestroyProgram(&handle);
    }
  } program{api};
  check(api.nvrtcCreateProgram(&program.handle, source.c_str(), (name + ".cu").c_str(), 0, nullptr,
                               nullptr),
        "creating a program");
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const nvrtcResult result =
      api.nvrtcCompileProgram(program.handle, static_cast<int>(words.size()), words.data());
  NvrtcResult made;
  std::size_t size = 0;
  // Sizes count the 0 at the end, of a log and of PTX.
  check(api.nvrtcGetProgramLogSize(program.handle, &size), "the size of its log");
  made.log.resize(size);
  check(api.nvrtcGetProgramLog(program.handle, made.log.data()), "its log");
  while (!made.log.empty() && made.log.back() == '\0') made.log.pop_back();
  if (result == NVRTC_ERROR_COMPILATION)
    throw InternalError(
        text("kernel ", name, " does not compile:\n", made.log, "\n", numbered_lines(source)));
  check(result, ("compiling " + name + " (" + made.log + ")").c_str());
  check(api.nvrtcGetPTXSize(program.handle, &size), "the size of its PTX");
  made.ptx.resize(size);
  check(api.nvrtcGetPTX(program.handle, made.ptx.data()), "its PTX");
  while (!made.ptx.empty() && made.ptx.back() == '\0') made.ptx.pop_back();
  check(api.nvrtcGetCUBINSize(program.handle, &size), "the size of its code");
  made.cubin.resize(size);
  if (size > 0) check(api.nvrtcGetCUBIN(program.handle, made.cubin.data()), "its code");
  return made;
}

}  // namespace krait
