// Wrong use of the program: its exit status and what it says.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/file.h"
#include "runtime/safetensors.h"
#include "tests/run_program.h"

namespace krait {
namespace {

const std::string kGood = KRAIT_TEST_DATA "/m2_ssd_one.safetensors";

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const std::size_t at = text.rfind('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

void expect(const std::vector<std::string>& arguments, int status, const std::string& said) {
  const ProgramResult result = run_program(arguments);
  std::string line = "krait";
  for (const std::string& argument : arguments) line += " " + argument;
  INFO(line << "\n" << result.out << result.err);
  CHECK(result.status == status);
  CHECK(result.err.find(said) != std::string::npos);
  CHECK_FALSE(result.err.empty());
}

TEST_CASE("wrong flags are refused with status 2 and the flag's name") {
  expect({}, 2, "no command is given; allowed: bench, cache, check, info, print, warm");
  expect({"chek"}, 2, "chek");
  expect({"--version-of-nothing"}, 2, "--version-of-nothing");
  expect({"check"}, 2, "FIXTURE");
  expect({"check", kGood, "--colour", "red"}, 2, "--colour");
  expect({"check", kGood, "--device", "toaster"}, 2, "--device is toaster; allowed: evaluate");
  expect({"check", kGood, "--dtype", "f8"}, 2, "--dtype is \"f8\"");
  expect({"check", kGood, "--dtype", "i32"}, 2, "--dtype is i32");
  expect({"check", kGood, "--chunk", "0"}, 2, "--chunk is 0; allowed: 1 and up");
  expect({"check", kGood, "--chunk", "-5"}, 2, "--chunk is -5");
  expect({"check", kGood, "--chunk", "many"}, 2, "--chunk");
  expect({"check", kGood, "--chunk"}, 2, "--chunk");
  expect({"check", kGood, "--schedule", "plan=fast"}, 2, "fast");
  expect({"check", kGood, "--schedule", "chunk=0"}, 2, "0");
  expect({"check", kGood, "--schedule", "colour=red"}, 2, "colour");
  expect({"check", kGood, "--schedule", "chunk=8", "--chunk", "4"}, 2, "--chunk is 4");
  expect({"check", kGood, "--schedule", "plan=step", "--chunk", "4"}, 2, "--chunk is 4");
  expect({"info", "more"}, 2, "more");
}

TEST_CASE("help is printed on stdout, status 0") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"}, {"check", "--help"}, {"info", "--help"}}) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.status == 0);
    CHECK(result.out.find("--help") != std::string::npos);
    CHECK(result.err.empty());
  }
}

TEST_CASE("files that are not there or no fixtures count as failed, the others still run") {
  const TestFolder folder;
  const SafeTensors good = load_safetensors(kGood);
  const std::vector<std::byte> bytes = read_file(kGood);
  const auto write = [&](const std::string& name, std::span<const std::byte> part) {
    write_file_atomically(folder.file(name), std::span(&part, 1));
    return folder.file(name);
  };
  const auto save = [&](const std::string& name, const auto& change) {
    SafeTensors changed = good;
    change(changed);
    save_safetensors(folder.file(name), changed);
    return folder.file(name);
  };
  struct Case {
    std::string file;
    int status;
    std::string said;
  };
  const std::vector<Case> cases{
      {folder.file("absent"), 3, "absent"},
      {folder.path.string(), 3, "not a regular file"},
      {write("empty", {}), 2, "0 bytes"},
      {write("cut", std::span(bytes).first(bytes.size() / 2)), 2, "ends at"},
      {write("head", std::span(bytes).first(100)), 2, "header length"},
      {save("no_op", [](SafeTensors& f) { f.metadata.erase("op"); }), 2, "has no \"op\""},
      {save("no_options", [](SafeTensors& f) { f.metadata.erase("options"); }), 2, "\"options\""},
      {save("op", [](SafeTensors& f) { f.metadata["op"] = "perpetuum"; }), 1, "perpetuum"},
      {save("json", [](SafeTensors& f) { f.metadata["options"] = "{"; }), 1, "options"},
      {save("option", [](SafeTensors& f) { f.metadata["options"] = "{\"colour\": 1}"; }), 1,
       "colour"},
      {save("cot", [](SafeTensors& f) { f.tensors.erase("cot.y"); }), 2, "cot."},
      {save("grad", [](SafeTensors& f) { f.tensors.erase("grad.x"); }), 2, "grad."},
      {save("out",
            [](SafeTensors& f) {
              for (const char* name : {"out.y", "out.h", "cot.y", "cot.h"}) f.tensors.erase(name);
            }),
       2, "out. are none"},
      {save("half_out",
            [](SafeTensors& f) {
              for (const char* name : {"out.h", "cot.h"}) f.tensors.erase(name);
            }),
       1, "outputs are y"},
      {save("shape",
            [](SafeTensors& f) { f.tensors["cot.y"] = to_stored(Tensor64({2}), DType::f32); }),
       2, "cot.y"},
      {save("name", [](SafeTensors& f) { f.tensors["x"] = to_stored(Tensor64({2}), DType::f32); }),
       2, "\"x\""},
      {save("more",
            [](SafeTensors& f) {
              f.tensors["in.spin"] = to_stored(Tensor64({2}), DType::f32);
              f.tensors["grad.spin"] = to_stored(Tensor64({2}), DType::f64);
            }),
       1, "spin"},
      {save("less",
            [](SafeTensors& f) {
              f.tensors.erase("in.A");
              f.tensors.erase("grad.A");
            }),
       1, "A"},
      {save("batch",
            [](SafeTensors& f) {
              f.tensors["in.dt"] = to_stored(Tensor64({2, 1, 2}), DType::f32);
              f.tensors["grad.dt"] = to_stored(Tensor64({2, 1, 2}), DType::f64);
            }),
       1, "dt"},
      {save("decay",
            [](SafeTensors& f) { f.tensors["in.A"] = to_stored(Tensor64({2}, 1), DType::f32); }),
       1, "log decay"},
  };
  for (const Case& bad : cases) {
    const ProgramResult result = run_program({"check", bad.file, kGood});
    INFO(bad.file << "\n" << result.out << result.err);
    CHECK(result.status == bad.status);
    CHECK(result.err.find(bad.said) != std::string::npos);
    CHECK(last_line(result.out) == "1 passed, 1 failed");
  }
}

TEST_CASE("a fixture that a result misses is status 1, with its row marked") {
  const TestFolder folder;
  SafeTensors wrong = load_safetensors(kGood);
  Tensor64 y = to_tensor64(wrong.tensors.at("out.y"));
  y.data[0] += 1;
  wrong.tensors["out.y"] = to_stored(y, DType::f64);
  save_safetensors(folder.file("wrong"), wrong);
  const ProgramResult text = run_program({"check", folder.file("wrong")});
  CHECK(text.status == 1);
  CHECK(text.err.empty());
  CHECK(last_line(text.out) == "0 passed, 1 failed");
  CHECK(text.out.find("FAILED") != std::string::npos);

  const ProgramResult json = run_program({"check", folder.file("wrong"), kGood, "--json"});
  CHECK(json.status == 1);
  const nlohmann::json report = nlohmann::json::parse(json.out);
  CHECK(report.at("passed") == 1);
  CHECK(report.at("failed") == 1);
  CHECK(report.at("files").at(0).at("passed") == false);
  CHECK(report.at("files").at(1).at("passed") == true);
  int missed = 0;
  for (const nlohmann::json& row : report.at("files").at(0).at("rows")) {
    CHECK(row.at("passed") == (row.at("name") != "out.y"));
    missed += row.at("passed") == false;
  }
  CHECK(missed == 1);
}

TEST_CASE("info names every library, found or not") {
  const ProgramResult text = run_program({"info"}, {"KRAIT_LIBNVRTC=/no/such/library.so"});
  CHECK(text.status == 0);
  CHECK(text.out.find("evaluate") != std::string::npos);
  CHECK(text.out.find("NVRTC: none (NVRTC is missing (KRAIT_LIBNVRTC: /no/such/library.so") !=
        std::string::npos);
  CHECK(
      text.out.find("KRAIT_LIBCUDA=build/libcuda_emulator.so is a CUDA driver that executes PTX") !=
      std::string::npos);
  const nlohmann::json report = nlohmann::json::parse(run_program({"info", "--json"}).out);
  CHECK(report.at("libraries").size() == 4);
  CHECK(report.at("host_vector_bits").get<int>() >= 128);
  const std::vector<std::string> environment = {"KRAIT_CACHE_DIR=/some/where"};
  CHECK(run_program({"info"}, environment).out.find("kernel cache: /some/where\n") !=
        std::string::npos);
  CHECK(
      nlohmann::json::parse(run_program({"info", "--json"}, environment).out).at("kernel_cache") ==
      "/some/where");
  const ProgramResult cpu = run_program({"info"}, {"KRAIT_HOST_CPU=abacus"});
  CHECK(cpu.status == 2);
  CHECK(cpu.err.find("KRAIT_HOST_CPU is abacus; allowed: ") != std::string::npos);
}

TEST_CASE("output that goes nowhere is an error of the environment") {
  for (const char* where : {"> /dev/full", ">&-"}) {
    const ProgramResult result = run_program(
        {"-c", std::string(KRAIT_PROGRAM " print --block ssd ") + where}, {}, "/bin/sh");
    INFO(where << ": " << result.err);
    CHECK(result.status == 3);
    CHECK(result.err.find("standard output takes no more") != std::string::npos);
  }
}

}  // namespace
}  // namespace krait
