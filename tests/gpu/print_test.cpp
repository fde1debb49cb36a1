// krait print and krait warm for GPUs that are not here, and what an emulated one counted.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/cuda/code_report.h"
#include "runtime/file.h"
#include "tests/run_program.h"

namespace krait {
namespace {

using nlohmann::json;

std::vector<std::string> ssd(const std::string& command, const std::vector<std::string>& more) {
  std::vector<std::string> all{command, "--block",   "ssd", "--heads",  "2", "--headdim",
                               "8",     "--d-state", "16",  "--seqlen", "40"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

json parsed(const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment = {}) {
  const ProgramResult result = run_program(arguments, environment);
  INFO(result.err);
  REQUIRE(result.status == 0);
  return json::parse(result.out);
}

TEST_CASE("stats stand side by side for all architectures, without a GPU") {
  const json all = parsed(ssd("print", {"--stage", "stats", "--arch", "all", "--json"}));
  CHECK(all.at("parts").size() == 10);
  for (const json& part : all.at("parts")) {
    INFO(part.at("arch"));
    CHECK(part.at("launches") == part.at("kernels").size());
    for (const json& kernel : part.at("kernels")) {
      CHECK(kernel.at("registers").get<int>() >= 10);
      CHECK(kernel.at("registers").get<int>() <= 255);
      CHECK(kernel.at("spill_store_bytes") == 0);
      CHECK(kernel.at("static_shared_bytes") == 0);
      CHECK(kernel.at("code_bytes").get<int>() >= 128);
      CHECK(kernel.at("blocks_per_multiprocessor").get<int>() >= 1);
    }
  }
  const ProgramResult text = run_program(ssd("print", {"--stage", "stats", "--arch", "7.5,9.0"}));
  CHECK(text.out.find("sm_75: ") != std::string::npos);
  CHECK(text.out.find("sm_90a: ") != std::string::npos);
}

TEST_CASE("what the emulated driver counted stands beside the kernels that it ran") {
  const TestFolder folder;
  const std::string counts = folder.file("counts.json");
  const std::vector<std::string> bench =
      ssd("bench", {"--device", "cuda:0", "--repeat", "1", "--passes", "forward", "--json"});
  const json timed =
      parsed(bench, {"KRAIT_LIBCUDA=" KRAIT_EMULATOR_LIBRARY, "KRAIT_EMULATED_ARCH=8.0",
                     "KRAIT_EMULATOR_STATS=" + counts, "KRAIT_CACHE_DIR=" + folder.file("cache")});
  CHECK(timed.at("limits").at("copy_gb_s") > 0);
  CHECK(timed.at("forward_ms") > 0);
  const std::vector<std::string> print =
      ssd("print", {"--stage", "stats", "--no-gradients", "--json", "--arch", "8.0", "--counts"});
  // bench's ssd takes its steps as they are; print's has a bias: no run of those kernels.
  std::vector<std::string> with = print;
  with.push_back(counts);
  const ProgramResult other = run_program(with);
  CHECK((other.status == 0 || other.err.find("counts of a run of these") != std::string::npos));

  // A file as the driver writes it, about a kernel of this plan.
  const json plain = parsed(ssd("print", {"--stage", "stats", "--json", "--arch", "8.0"}));
  json launches = json::array({json::parse(read_text(counts)).at("launches").at(0)});
  for (const json& kernel : plain.at("parts").at(0).at("kernels")) {
    json launch = launches.at(0);
    launch["kernel"] = kernel.at("entry");
    launch["grid"] = {kernel.at("grid"), 1, 1};
    launch["block"] = {kernel.at("threads"), 1, 1};
    launch["dynamic_shared"] = kernel.at("dynamic_shared_bytes");
    launch["barriers"] = 77;
    launch["global"]["load"]["sectors"] = 10;
    launch["global"]["store"]["sectors"] = 200;
    launch["global"]["atomic"]["sectors"] = 3000;
    launches.push_back(launch);
  }
  write_file_atomically(counts, json{{"launches", launches}}.dump());
  const json counted =
      parsed(ssd("print", {"--stage", "stats", "--json", "--arch", "8.0", "--counts", counts}));
  for (const json& kernel : counted.at("parts").at(0).at("kernels")) {
    CHECK(kernel.at("counts").at("barriers") == 77);
    CHECK(kernel.at("counts").at("sectors") == 3210);
  }
  write_file_atomically(counts, R"({"launches": []})");
  with = ssd("print", {"--stage", "stats", "--arch", "8.0", "--counts", counts});
  CHECK(run_program(with).status == 2);
  write_file_atomically(counts, "soup");
  CHECK(run_program(with).status == 2);
}

TEST_CASE("blocks of a multiprocessor are limited by threads, registers, shared memory, number") {
  const CudaTarget turing = cuda_target(75), ampere = cuda_target(80), hopper = cuda_target(90);
  CHECK(blocks_per_multiprocessor(ampere, 256, 64, 0) == 4);
  CHECK(blocks_per_multiprocessor(ampere, 256, 32, 0) == 8);
  CHECK(blocks_per_multiprocessor(ampere, 256, 65, 0) == 3);  // 72 registers are given
  CHECK(blocks_per_multiprocessor(ampere, 32, 16, 0) == 32);
  CHECK(blocks_per_multiprocessor(turing, 32, 16, 0) == 16);
  CHECK(blocks_per_multiprocessor(turing, 1024, 32, 0) == 1);
  CHECK(blocks_per_multiprocessor(hopper, 128, 32, 100 << 10) == 2);
  CHECK(blocks_per_multiprocessor(hopper, 128, 32, 114 << 10) == 1);  // 1 KiB a block is taken
  CHECK(blocks_per_multiprocessor(hopper, 128, 32, 228 << 10) == 0);
}

TEST_CASE("SASS comes from the disassembler that is named; without one that is said") {
  const TestFolder folder;
  const std::string tool = folder.file("tool");
  write_file_atomically(tool, "#!/bin/sh\necho \"$1\"\nhead -c 4 \"$2\" | tail -c 3\necho\n");
  ::chmod(tool.c_str(), 0755);
  const std::vector<std::string> sass =
      ssd("print", {"--stage", "sass", "--arch", "8.0", "--kernel", "h"});
  CHECK(run_program(sass, {"KRAIT_NVDISASM=" + tool}).out == "--print-code\nELF\n");
  std::filesystem::rename(tool, folder.file("cuobjdump"));
  CHECK(run_program(sass, {"KRAIT_NVDISASM=" + folder.file("cuobjdump")}).out ==
        "--dump-sass\nELF\n");
  CHECK(run_program(sass, {"PATH=" + folder.path.string() + ":/usr/bin:/bin"}).out ==
        "--dump-sass\nELF\n");
  const ProgramResult none = run_program(sass, {"KRAIT_NVDISASM=/no/such/program"});
  CHECK(none.status == 3);
  CHECK(none.err.find("KRAIT_NVDISASM is /no/such/program") != std::string::npos);
}

TEST_CASE("texts of kernels go into a folder under the names that edited ones take") {
  const TestFolder folder;
  const ProgramResult result =
      run_program(ssd("print", {"--stage", "cuda", "--arch", "8.0", "--into", folder.file("new")}));
  CHECK(result.out.find(folder.file("new/ssd.forward.h.cu\n")) != std::string::npos);
  CHECK(read_text(folder.file("new/ssd.forward.h.cu")).find("__global__") != std::string::npos);
}

TEST_CASE("what is compiled ahead for a part is found by a layer on a device of its kind") {
  const TestFolder cache;
  const std::vector<std::string> environment{"KRAIT_LIBCUDA=" KRAIT_EMULATOR_LIBRARY,
                                             "KRAIT_EMULATED_ARCH=8.6",
                                             "KRAIT_CACHE_DIR=" + cache.path.string()};
  const json first =
      parsed(ssd("warm", {"--arch", "8.6", "--json"}), {"KRAIT_CACHE_DIR=" + cache.path.string()});
  const std::int64_t compiled = first.at("compiled");
  CHECK(compiled > 0);
  CHECK(first.at("from_cache") == 0);
  const json second = parsed(ssd("warm", {"--device", "cuda:0", "--json"}), environment);
  CHECK(second.at("compiled") == 0);
  CHECK(second.at("from_cache") == compiled);
  const json host = parsed(ssd("warm", {"--shapes", "1x40,2x64", "--json"}), environment);
  CHECK(host.at("specs").size() == 2);
  CHECK(host.at("compiled") > 0);
}

TEST_CASE("info names the GPUs that the driver knows") {
  const json info = parsed({"info", "--json"},
                           {"KRAIT_LIBCUDA=" KRAIT_EMULATOR_LIBRARY, "KRAIT_EMULATED_ARCH=8.9"});
  CHECK(info.at("gpus").at(0).at("compute_capability") == "8.9");
  CHECK(info.at("gpus").at(0).at("multiprocessors") == 128);
  CHECK(info.at("nvrtc_compute_capabilities").size() > 5);
  CHECK(info.at("libraries").at(2).at("version").get<std::string>().find('.') != std::string::npos);
}

}  // namespace
}  // namespace krait
