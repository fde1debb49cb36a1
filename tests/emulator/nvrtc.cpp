// NVRTC, opened with dlopen: the tests build without it.

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include "tests/emulator/harness.h"

namespace emulator_test {
namespace {

using Handle = struct Opaque*;

struct Nvrtc {
  int (*create)(Handle*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Handle, int, const char* const*);
  int (*log_size)(Handle, size_t*);
  int (*log)(Handle, char*);
  int (*ptx_size)(Handle, size_t*);
  int (*ptx)(Handle, char*);
  int (*destroy)(Handle*);
};

template <class F>
void find(void* library, const char* name, F* to) {
  *to = reinterpret_cast<F>(dlsym(library, name));
  if (!*to) throw std::runtime_error(std::string("NVRTC has no ") + name);
}

std::vector<std::string> candidates() {
  std::vector<std::string> all;
  if (const char* given = std::getenv("KRAIT_LIBNVRTC")) all.push_back(given);
  std::istringstream directories(KRAIT_NVRTC_DIRECTORIES);
  for (std::string directory; std::getline(directories, directory, ':');) {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so"})
      all.push_back(directory + "/" + name);
  }
  all.push_back("libnvrtc.so.13");
  return all;
}

const Nvrtc* nvrtc() {
  static const Nvrtc* const found = []() -> const Nvrtc* {
    void* library = nullptr;
    for (const std::string& path : candidates()) {
      if ((library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))) break;
    }
    if (!library) return nullptr;
    static Nvrtc functions;
    find(library, "nvrtcCreateProgram", &functions.create);
    find(library, "nvrtcCompileProgram", &functions.compile);
    find(library, "nvrtcGetProgramLogSize", &functions.log_size);
    find(library, "nvrtcGetProgramLog", &functions.log);
    find(library, "nvrtcGetPTXSize", &functions.ptx_size);
    find(library, "nvrtcGetPTX", &functions.ptx);
    find(library, "nvrtcDestroyProgram", &functions.destroy);
    return &functions;
  }();
  return found;
}

std::string text(int (*size_of)(Handle, size_t*), int (*get)(Handle, char*), Handle program) {
  size_t bytes = 0;
  if (size_of(program, &bytes) || bytes == 0) return "";
  std::string all(bytes, '\0');
  if (get(program, all.data())) return "";
  all.resize(bytes - 1);  // the end's zero
  return all;
}

std::string compile_now(const std::string& source, const std::vector<std::string>& options,
                        const std::vector<Header>& headers) {
  std::vector<const char*> names, texts, arguments;
  for (const Header& header : headers) {
    names.push_back(header.name.c_str());
    texts.push_back(header.text.c_str());
  }
  for (const std::string& option : options) arguments.push_back(option.c_str());
  Handle program = nullptr;
  if (nvrtc()->create(&program, source.c_str(), "kernel.cu", int(names.size()), texts.data(),
                      names.data())) {
    throw std::runtime_error("nvrtcCreateProgram");
  }
  const int code = nvrtc()->compile(program, int(arguments.size()), arguments.data());
  const std::string result = code ? text(nvrtc()->log_size, nvrtc()->log, program)
                                  : text(nvrtc()->ptx_size, nvrtc()->ptx, program);
  nvrtc()->destroy(&program);
  if (code) throw std::runtime_error("NVRTC: " + result);
  return result;
}

}  // namespace

bool has_nvrtc() { return nvrtc() != nullptr; }

std::string compile(const std::string& source, const std::string& architecture,
                    const std::vector<std::string>& options, const std::vector<Header>& headers) {
  if (!has_nvrtc()) throw std::runtime_error("there is no NVRTC here");
  std::vector<std::string> all{"--std=c++17", "-arch=" + architecture,
                               std::string("--include-path=") + KRAIT_CUDA_HEADERS};
  all.insert(all.end(), options.begin(), options.end());
  std::string key = source;
  for (const std::string& option : all) key += '\0' + option;
  for (const Header& header : headers) key += '\0' + header.name + '\0' + header.text;
  static std::map<std::string, std::string> known;
  const auto [entry, fresh] = known.try_emplace(key);
  if (fresh) {
    try {
      entry->second = compile_now(source, all, headers);
    } catch (...) {
      known.erase(entry);
      throw;
    }
  }
  return entry->second;
}

}  // namespace emulator_test
