// One process of a program that uses krait, for tests of the kernel cache: compiles three kernels
// with the options that the environment gives, runs them, and prints
// "compiled N from_cache N right R". Warnings go to stderr as in any program.
//
//   compile_axpy [file-limit BYTES | user ID]
//
// file-limit: no file may grow beyond BYTES, as on a full disk. user: run as that user.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/runtime/axpy.h"

int main(int argc, char** argv) {
  if (argc == 3 && argv[1] == std::string_view("file-limit")) {
    const rlimit limit = {std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[2], nullptr, 10)};
    ::signal(SIGXFSZ, SIG_IGN);  // writes fail with EFBIG then
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
  } else if (argc == 3 && argv[1] == std::string_view("user")) {
    const auto id = static_cast<uid_t>(std::strtoul(argv[2], nullptr, 10));
    if (::setgid(id) != 0 || ::setuid(id) != 0) return 1;
  } else if (argc != 1) {
    return 1;
  }
  try {
    using namespace krait;
    Compiler compiler(CompilerOptions::from(), std::make_shared<HostBackend>(host_target()));
    Pool pool(2);
    const std::vector<KernelSource> sources = {test::axpy_source(1), test::axpy_source(2),
                                               test::axpy_source(3)};
    const auto kernels = compiler.compile_all(sources, pool);
    bool right = true;
    for (int i = 0; i < 3; ++i) right = right && test::axpy_is_right(*kernels[i], i + 1, pool);
    const Compiler::Counters counters = compiler.counters();
    std::printf("compiled %d from_cache %d right %d\n", static_cast<int>(counters.compiled),
                static_cast<int>(counters.from_cache), right);
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
