// KRAIT_DUMP and KRAIT_OVERRIDE_DIR with kernels for a GPU.
#include <catch2/catch.hpp>

#include "runtime/file.h"
#include "tests/run_program.h"

namespace krait {
namespace {

TEST_CASE("a kernel of a GPU is dumped, edited and run in place of the generated one") {
  const TestFolder cache, dump, edited;
  const std::string fixture = KRAIT_TEST_DATA "/m2_ssd_one.safetensors";
  const auto check = [&](const std::string& more) {
    return run_program(
        {"check", fixture, "--device", "cuda:0"},
        {"KRAIT_LIBCUDA=" KRAIT_EMULATOR_LIBRARY, "KRAIT_EMULATED_ARCH=8.0",
         "KRAIT_CACHE_DIR=" + cache.path.string(), "KRAIT_DUMP_DIR=" + dump.path.string(), more});
  };
  REQUIRE(check("KRAIT_DUMP=cuda,ptx,log,tile@place:h").status == 0);
  for (const char* suffix : {".cu", ".ptx", ".log", ".tile@place.txt"})
    CHECK(std::filesystem::exists(dump.file(std::string("ssd.forward.h") + suffix)));

  // Nothing is left of the kernel's work: the outputs are wrong, and the next run is right again.
  std::string text = read_text(dump.file("ssd.forward.h.cu"));
  const std::size_t body = text.find(") {\n", text.find("__global__"));
  REQUIRE(body != std::string::npos);
  text.insert(body + 4, "  return;\n");
  const std::string file = edited.file("ssd.forward.h.cu");
  write_file_atomically(file, text);
  const std::string folder = "KRAIT_OVERRIDE_DIR=" + edited.path.string();
  const ProgramResult wrong = check(folder);
  CHECK(wrong.status == 1);
  CHECK(wrong.out.find("FAILED") != std::string::npos);
  CHECK(wrong.err.find("kernel ssd.forward.h runs edited, from " + file) != std::string::npos);
  CHECK(check("KRAIT_DUMP=").status == 0);

  text.insert(body + 4, "  soup;\n");
  write_file_atomically(file, text);
  const ProgramResult broken = check(folder);
  CHECK(broken.status == 1);
  CHECK(broken.err.find("KRAIT_OVERRIDE_DIR, file " + file) != std::string::npos);
  CHECK(broken.err.find("\"soup\" is undefined") != std::string::npos);
  CHECK(broken.err.find(" |   soup;") != std::string::npos);
}

}  // namespace
}  // namespace krait
