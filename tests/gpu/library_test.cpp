// Libraries that are missing, others, or broken: the environment's error with what to do, and a
// host that works on.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/run_program.h"

namespace krait {
namespace {

const std::string fixture = KRAIT_TEST_DATA "/m2_ssd_one.safetensors";
const std::string emulator = "KRAIT_LIBCUDA=" KRAIT_EMULATOR_LIBRARY;

ProgramResult check_on(const std::string& device, std::vector<std::string> environment) {
  const TestFolder cache;
  environment.push_back("KRAIT_CACHE_DIR=" + cache.path.string());
  return run_program({"check", fixture, "--device", device, "--dtype", "f32"}, environment);
}

void expect_error(const ProgramResult& result, const std::vector<std::string>& said) {
  INFO(result.out << result.err);
  CHECK(result.status == 3);
  for (const std::string& text : said) CHECK(result.err.find(text) != std::string::npos);
}

/// Files that are no CUDA driver and no NVRTC, and what is said of each.
struct Unfit {
  std::string file, said;
};

std::vector<Unfit> unfit_files(const TestFolder& folder) {
  std::ifstream whole(KRAIT_EMULATOR_LIBRARY, std::ios::binary);
  std::string bytes(std::filesystem::file_size(KRAIT_EMULATOR_LIBRARY), '\0');
  whole.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto written = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder.file(name), std::ios::binary) << content;
    return folder.file(name);
  };
  return {{"/no/such/library.so", "is missing"},
          {"libm.so.6", "another library"},
          {written("text.so", "no library at all"), "is missing"},
          {written("empty.so", ""), "is missing"},
          {written("cut.so", bytes.substr(0, bytes.size() / 2)), "cut short"},
          {written("header.so", bytes.substr(0, 80)), "is missing"}};
}

TEST_CASE("a driver that is missing, another library or broken is told, and the host works on") {
  const TestFolder folder;
  for (const Unfit& unfit : unfit_files(folder)) {
    INFO(unfit.file);
    const std::string setting = "KRAIT_LIBCUDA=" + unfit.file;
    expect_error(check_on("cuda:0", {setting}), {"the CUDA driver", "KRAIT_LIBCUDA", unfit.said});
  }
  const ProgramResult host =
      check_on("host", {"KRAIT_LIBCUDA=" + folder.file("cut.so"), "KRAIT_LIBNVRTC=libm.so.6"});
  INFO(host.out << host.err);
  CHECK(host.status == 0);
}

TEST_CASE("NVRTC that is missing, another library or broken is told where a kernel is compiled") {
  const TestFolder folder;
  for (const Unfit& unfit : unfit_files(folder)) {
    INFO(unfit.file);
    const std::string setting = "KRAIT_LIBNVRTC=" + unfit.file;
    expect_error(check_on("cuda:0", {emulator, setting}),
                 {"NVRTC", "KRAIT_LIBNVRTC", "nvidia-cuda-nvrtc", unfit.said});
    expect_error(run_program({"print", "--block", "ssd", "--stage", "ptx", "--arch", "8.0",
                              "--no-gradients"},
                             {setting}),
                 {"NVRTC", "KRAIT_LIBNVRTC", unfit.said});
  }
}

TEST_CASE("without a driver a GPU is an error of the environment") {
  if (void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY)) {
    ::dlclose(driver);
    return;  // here is one
  }
  expect_error(check_on("cuda:0", {"KRAIT_LIBCUDA="}),
               {"the CUDA driver is missing", "libcuda.so.1", "KRAIT_LIBCUDA"});
}

TEST_CASE("a driver that cannot initialise is told with its own words") {
  // The emulated driver knows no such part, and says so.
  expect_error(check_on("cuda:0", {emulator, "KRAIT_EMULATED_ARCH=1.0"}), {"CUDA"});
}

}  // namespace
}  // namespace krait
