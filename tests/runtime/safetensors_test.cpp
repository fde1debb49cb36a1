#include "runtime/safetensors.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#include "dsl/error.h"
#include "runtime/file.h"
#include "tests/run_program.h"

namespace krait {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::string error_of(const std::vector<std::byte>& bytes) {
  try {
    parse_safetensors(bytes, "some.file");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

SafeTensors sample() {
  SafeTensors content;
  const Tensor64 values{[] {
    Tensor64 tensor({2, 3});
    tensor.data = {1, -2.5, 0, 1e6, 3.25, -7};
    return tensor;
  }()};
  content.tensors["double"] = to_stored(values, DType::f64);
  content.tensors["float"] = to_stored(values, DType::f32);
  content.tensors["brain"] = to_stored(values, DType::bf16);
  content.tensors["half"] = to_stored(Tensor64({3}, 0.5), DType::f16);
  content.tensors["int"] = to_stored(Tensor64({4}, -3), DType::i32);
  content.tensors["none"] = to_stored(Tensor64({0, 5}), DType::f32);
  content.tensors["scalar"] = to_stored(Tensor64({}, 8), DType::f64);
  content.metadata["op"] = "nothing";
  return content;
}

TEST_CASE("a file gives back what was saved, every dtype") {
  const TestFolder folder;
  save_safetensors(folder.file("a"), sample());
  const SafeTensors loaded = load_safetensors(folder.file("a"));
  CHECK(loaded.metadata == sample().metadata);
  REQUIRE(loaded.tensors.size() == sample().tensors.size());
  for (const auto& [name, tensor] : sample().tensors) {
    INFO(name);
    const StoredTensor& got = loaded.tensors.at(name);
    CHECK(got.dtype == tensor.dtype);
    CHECK(got.shape == tensor.shape);
    CHECK(got.bytes == tensor.bytes);
  }
  CHECK(to_tensor64(loaded.tensors.at("double")).data ==
        std::vector<double>{1, -2.5, 0, 1e6, 3.25, -7});
  CHECK(to_tensor64(loaded.tensors.at("half")).data == std::vector<double>(3, 0.5));
  CHECK(to_tensor64(loaded.tensors.at("int")).data == std::vector<double>(4, -3));
  CHECK(to_tensor64(loaded.tensors.at("brain")).data[3] == 999424);  // 1e6 to 8 bits
}

TEST_CASE("a fixture has the tensors and the values that its writer gave it") {
  const SafeTensors fixture = load_safetensors(KRAIT_TEST_DATA "/m2_ssd_strong_decay.safetensors");
  CHECK(fixture.metadata.at("op") == "ssd");
  CHECK(fixture.tensors.at("out.y").dtype == DType::f64);
  CHECK(fixture.tensors.at("in.x").shape == std::vector<std::int64_t>{1, 96, 2, 16});
  CHECK(to_tensor64(fixture.tensors.at("in.A")).data == std::vector<double>{-16, -16});
  CHECK(to_tensor64(fixture.tensors.at("in.dt")).data == std::vector<double>(192, 0.125));
}

TEST_CASE(
    "every malformed file is an error that names the file, the tensor, the field, the value") {
  const auto tensor = [](const std::string& fields) { return "{\"w\": {" + fields + "}}"; };
  const std::string shape = "\"shape\": [2], ", dtype = "\"dtype\": \"F32\", ";
  const std::string offsets = "\"data_offsets\": [0, 8]";
  REQUIRE(error_of(file_of(tensor(dtype + shape + offsets), 8)) == "no error");

  struct Case {
    std::vector<std::byte> bytes;
    std::vector<std::string> named;
  };
  const auto header = [](const std::string& text, std::size_t data = 8) {
    return file_of(text, data);
  };
  std::vector<std::byte> lying = header(tensor(dtype + shape + offsets));
  lying[6] = std::byte{1};  // 2^48 more
  std::vector<std::byte> one_more = header("{}", 0);
  one_more[0] = std::byte{3};
  const std::string deep(5000, '[');
  std::string objects;
  for (int i = 0; i < 5000; ++i) objects += "{\"a\":";
  const std::vector<Case> cases{
      {{}, {"0 bytes", "at least 8"}},
      {std::vector<std::byte>(7), {"7 bytes"}},
      {lying, {"header length is 281474976710"}},
      {one_more, {"header length is 3", "at most 2"}},
      {header("{\"w\": "), {"header is not JSON"}},
      {header("\xff\xfe{}"), {"header is not JSON"}},
      {header("{\"\xff\": 1}"), {"header is not JSON"}},
      {header(deep), {"header nests"}},
      {header(objects), {"header nests"}},
      {header("[]", 0), {"header is []", "a JSON object"}},
      {header("", 0), {"header is not JSON"}},
      {header("{\"w\": 3}"), {"\"w\"", "is 3"}},
      {header(tensor(shape + offsets)), {"\"w\"", "no dtype"}},
      {header(tensor(dtype + offsets)), {"\"w\"", "no shape"}},
      {header(tensor(dtype + "\"shape\": [2]")), {"\"w\"", "no data_offsets"}},
      {header(tensor(dtype + shape + offsets + ", \"order\": 1")), {"\"w\"", "\"order\""}},
      {header(tensor("\"dtype\": \"I64\", " + shape + offsets)),
       {"\"w\"", "dtype is \"I64\"", "F64, F32, F16, BF16, I32"}},
      {header(tensor("\"dtype\": 4, " + shape + offsets)), {"\"w\"", "dtype is 4"}},
      {header(tensor(dtype + "\"shape\": 2, " + offsets)), {"\"w\"", "shape is 2"}},
      {header(tensor(dtype + "\"shape\": [-2], " + offsets)), {"\"w\"", "shape is -2"}},
      {header(tensor(dtype + "\"shape\": [2.0], " + offsets)), {"\"w\"", "shape is 2.0"}},
      {header(tensor(dtype + "\"shape\": [\"2\"], " + offsets)), {"\"w\"", "shape is \"2\""}},
      {header(tensor(dtype + "\"shape\": [99999999999999999999], " + offsets)), {"shape is 1e+20"}},
      {header(tensor(dtype + "\"shape\": [18446744073709551615], " + offsets)), {"at most"}},
      {header(tensor(dtype + "\"shape\": [4294967296, 4294967296], " + offsets)), {"64 bits"}},
      {header(tensor(dtype + "\"shape\": [4611686018427387904], " + offsets)), {"64 bits"}},
      {header(tensor(dtype + "\"shape\": [3], " + offsets)), {"\"w\"", "[0,8]", "12 bytes"}},
      {header(tensor(dtype + shape + "\"data_offsets\": [0]")), {"\"w\"", "data_offsets is [0]"}},
      {header(tensor(dtype + shape + "\"data_offsets\": 8")), {"\"w\"", "data_offsets is 8"}},
      {header(tensor(dtype + shape + "\"data_offsets\": [8, 0]")), {"\"w\"", "[8,0]"}},
      {header(tensor(dtype + shape + "\"data_offsets\": [-8, 0]")), {"\"w\"", "-8"}},
      {header(tensor(dtype + shape + "\"data_offsets\": [0.0, 8]")), {"\"w\"", "0.0"}},
      {header(tensor(dtype + shape + "\"data_offsets\": [8, 16]"), 16), {"begins at 8"}},
      {header(tensor(dtype + shape + offsets), 7), {"\"w\"", "ends at 8", "at most 7"}},
      {header(tensor(dtype + shape + offsets), 9), {"data has 9 bytes", "8"}},
      {header("{}", 1), {"data has 1 bytes", "allowed: 0"}},
      {header("{\"a\": {" + dtype + shape + offsets + "}, \"b\": {" + dtype + shape +
                  "\"data_offsets\": [4, 12]}}",
              12),
       {"\"b\"", "begins at 4", "allowed: 8"}},
      {header("{\"a\": {" + dtype + shape + offsets + "}, \"a\": {" + dtype + shape +
                  "\"data_offsets\": [8, 16]}}",
              16),
       {"\"a\" twice"}},
      {header(tensor(dtype + dtype + shape + offsets)), {"\"dtype\" twice"}},
      {header("{\"__metadata__\": 1}", 0), {"__metadata__ is 1"}},
      {header("{\"__metadata__\": {\"op\": 1}}", 0), {"__metadata__ \"op\" is 1", "a string"}},
  };
  for (const Case& bad : cases) {
    const std::string error = error_of(bad.bytes);
    INFO(error);
    CHECK(error.find("some.file") != std::string::npos);
    for (const std::string& part : bad.named) {
      INFO(part);
      CHECK(error.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("a file cut anywhere is an error") {
  const TestFolder folder;
  save_safetensors(folder.file("a"), sample());
  std::vector<std::byte> whole = read_file(folder.file("a"));
  REQUIRE(error_of(whole) == "no error");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + length);
    INFO("of " << whole.size() << " bytes: " << length);
    CHECK(error_of(part) != "no error");
  }
  whole.push_back({});
  CHECK(error_of(whole) != "no error");
}

TEST_CASE("a file with any bytes flipped loads or is an error of krait") {
  const TestFolder folder;
  save_safetensors(folder.file("a"), sample());
  const std::vector<std::byte> whole = read_file(folder.file("a"));
  std::mt19937 random(7);
  int refused = 0;
  const auto attempt = [&](const std::vector<std::byte>& bytes) {
    try {
      for (const auto& [name, tensor] : parse_safetensors(bytes, "f").tensors) to_tensor64(tensor);
    } catch (const Error&) {
      ++refused;
    }
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> bytes = whole;
      bytes[at] ^= std::byte(1u << bit);
      attempt(bytes);
    }
  }
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes = whole;
    for (int flips = 0; flips < 4; ++flips) {
      bytes[random() % bytes.size()] = std::byte(random() % 256);
    }
    attempt(bytes);
  }
  CHECK(refused > 1000);
}

TEST_CASE("a failed save leaves nothing behind") {
  const TestFolder folder;
  SafeTensors bad = sample();
  bad.tensors["double"].bytes.pop_back();
  CHECK_THROWS_AS(save_safetensors(folder.file("a"), bad), UsageError);
  CHECK(fs::is_empty(folder.path));

  fs::create_directories(folder.path / "taken" / "inside");
  CHECK_THROWS_AS(save_safetensors(folder.file("taken"), sample()), EnvironmentError);
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);

  CHECK_THROWS_AS(save_safetensors(folder.file("no/such/folder"), sample()), EnvironmentError);
  CHECK_THROWS_AS(load_safetensors(folder.file("absent")), EnvironmentError);
  CHECK_THROWS_AS(load_safetensors(folder.path.string()), EnvironmentError);
}

TEST_CASE("a value that an i32 cannot hold is refused") {
  CHECK_THROWS_AS(to_stored(Tensor64({1}, 0.5), DType::i32), UsageError);
  CHECK_THROWS_AS(to_stored(Tensor64({1}, 3e9), DType::i32), UsageError);
  CHECK_THROWS_AS(to_stored(Tensor64({1}, std::nan("")), DType::i32), UsageError);
}

}  // namespace
}  // namespace krait
