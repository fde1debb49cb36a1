// Fixtures on a GPU of several architectures, whose driver is the emulated one: numbers of forward
// and backward, and no report of its checks.
#include <catch2/catch.hpp>

#include "tests/run_program.h"

namespace krait {
namespace {

std::vector<std::string> emulated(const std::string& architecture, const TestFolder& cache) {
  return {"KRAIT_LIBCUDA=" KRAIT_EMULATOR_LIBRARY, "KRAIT_EMULATED_ARCH=" + architecture,
          "KRAIT_CACHE_DIR=" + cache.path.string()};
}

void check_on(const std::string& architecture, const std::vector<std::string>& fixtures,
              const std::string& schedule = "") {
  const TestFolder cache;
  std::vector<std::string> arguments{"check", "--device", "cuda:0", "--dtype", "f32"};
  if (!schedule.empty()) arguments.insert(arguments.end(), {"--schedule", schedule});
  for (const std::string& fixture : fixtures)
    arguments.push_back(KRAIT_TEST_DATA "/" + fixture + ".safetensors");
  const ProgramResult result = run_program(arguments, emulated(architecture, cache));
  INFO(architecture << " " << schedule << "\n" << result.out << result.err);
  CHECK(result.status == 0);
  CHECK(result.out.find(std::to_string(fixtures.size()) + " passed, 0 failed") !=
        std::string::npos);
}

TEST_CASE("fixtures on an emulated GPU") {
  check_on("9.0", {"m2_ssd_odd", "m2_ssd_one", "m2_ssd_docs_state", "m3_scan_one", "m3_scan_odd"});
}

TEST_CASE("a fixture on emulated GPUs of other architectures") {
  for (const char* architecture : {"7.5", "8.0", "12.0"}) check_on(architecture, {"m2_ssd_odd"});
  // Products and chunks that must be smaller where there is less shared memory.
  check_on("7.5", {"m2_block"});
}

TEST_CASE("fixtures whose products go to cuBLASLt") {
  ::setenv("KRAIT_LIBCUBLASLT", KRAIT_EMULATOR_CUBLASLT, 1);
  check_on("9.0", {"m2_block"});
  ::unsetenv("KRAIT_LIBCUBLASLT");
}

TEST_CASE("segments and steps on an emulated GPU") {
  check_on("8.0", {"m2_ssd_odd"}, "segments=3");
  check_on("9.0", {"m2_ssd_odd", "m2_ssd_docs_state"}, "chunk=8 save.every=24");
  check_on("7.5", {"m2_ssd_odd", "m2_ssd_docs_state", "m3_scan_one"}, "chunk=8 tile=4");
  check_on("9.0", {"m2_ssd_groups"}, "chunk=8 save.every=16 segments=2 tile=3");
  check_on("8.0", {"m2_ssd_odd", "m3_scan_one"}, "plan=step");
}

TEST_CASE("fixtures of whole blocks whose products go to cuBLASLt", "[slow]") {
  ::setenv("KRAIT_LIBCUBLASLT", KRAIT_EMULATOR_CUBLASLT, 1);
  check_on("8.0", {"m2_block_docs_state", "m2_block_no_norm", "m3_block", "m3_mimo_block"});
  check_on("9.0", {"m2_block"}, "plan=step");
  ::unsetenv("KRAIT_LIBCUBLASLT");
}

TEST_CASE("all fixtures on emulated GPUs", "[slow]") {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(KRAIT_TEST_DATA))
    if (const std::string name = entry.path().stem().string();
        name.rfind("m2_", 0) == 0 || name.rfind("m3_", 0) == 0)
      all.push_back(name);
  for (const char* architecture : {"7.5", "8.0", "9.0", "12.0"}) check_on(architecture, all);
}

TEST_CASE("a GPU that is not there ends with the environment's status") {
  const TestFolder cache;
  const std::string fixture = KRAIT_TEST_DATA "/m2_ssd_one.safetensors";
  const ProgramResult missing =
      run_program({"check", fixture, "--device", "cuda:0"}, {"KRAIT_LIBCUDA=/no/such/library.so"});
  CHECK(missing.status == 3);
  CHECK(missing.err.find("KRAIT_LIBCUDA") != std::string::npos);
  const ProgramResult number =
      run_program({"check", fixture, "--device", "cuda:7"}, emulated("9.0", cache));
  CHECK(number.status == 3);
  CHECK(number.err.find("there is no device cuda:7") != std::string::npos);
}

TEST_CASE("the emulated driver stands in for the system's, by its name") {
  const TestFolder folder;
  std::filesystem::create_symlink(KRAIT_EMULATOR_LIBRARY, folder.file("libcuda.so.1"));
  const ProgramResult result =
      run_program({"check", KRAIT_TEST_DATA "/m2_ssd_one.safetensors", "--device", "cuda:0"},
                  {"KRAIT_LIBCUDA=", "LD_LIBRARY_PATH=" + folder.path.string(),
                   "KRAIT_CACHE_DIR=" + folder.file("cache")});
  INFO(result.err);
  CHECK(result.status == 0);
}

TEST_CASE("the text of kernels is the same every time, and compiles without a warning") {
  const auto print = [](const std::string& stage, const std::string& arch,
                        const std::string& pass) {
    const ProgramResult result =
        run_program({"print", "--block", "mamba3_scan", "--heads", "2", "--headdim", "5",
                     "--d-state", "20", "--stage", stage, "--arch", arch, "--pass", pass});
    INFO(result.err);
    CHECK(result.status == 0);
    CHECK(result.err.empty());
    return result.out;
  };
  for (const char* pass : {"forward", "backward", "step"}) {
    const std::string text = print("cuda", "8.0", pass);
    CHECK(text == print("cuda", "8.0", pass));
    CHECK(text.find("__global__") != std::string::npos);
    CHECK(text.find("#include") == std::string::npos);
  }
  for (const char* arch : {"7.5", "8.0", "8.6", "9.0", "10.0", "12.0"})
    CHECK(print("ptx", arch, "forward").find(".entry") != std::string::npos);
}

}  // namespace
}  // namespace krait
