#include "tests/emulator/arithmetic.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

namespace emulator_test {
namespace {

std::string hex(uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

std::string body_of(const std::vector<Case>& cases) {
  std::string body;
  for (size_t i = 0; i < cases.size(); ++i) {
    body += "{ ";
    const std::string& text = cases[i].text;
    for (size_t from = 0; from < text.size();) {
      const size_t at = std::min(text.find("%d", from), text.size());
      body += text.substr(from, at - from);
      if (at < text.size()) body += "%d" + std::to_string(i);
      from = at + 2;
    }
    body += " }\n";
  }
  return body;
}

const char* const kRegisters =
    ".reg .b32 r<8>; .reg .b64 d<8>; .reg .b16 h<8>; .reg .f32 f<8>; .reg .f64 g<8>;\n"
    ".reg .pred p<8>; .reg .b128 q<4>; .reg .b8 c<8>;\n";

CUresult load_body(const std::string& body, const std::string& target) {
  const std::string text = ".version 9.0\n.target " + target +
                           "\n.address_size 64\n.shared .b32 shared_words[4];\n"
                           ".global .b32 global_words[4];\n.visible .entry k()\n{\n" +
                           kRegisters + body + "\nret;\n}\n";
  CUmodule module = nullptr;
  const CUresult code =
      call<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, text.c_str());
  if (code == CUDA_SUCCESS) call<decltype(&cuModuleUnload)>("cuModuleUnload")(module);
  return code;
}

// A device that takes code for that target.
Device device_for(const std::string& target) {
  const int number = std::stoi(target.substr(3));
  return Device(number / 10, number % 10);
}

}  // namespace

std::vector<Values> results_of(Device& device, const std::vector<Column>& columns,
                               const std::vector<Case>& cases, const std::string& target) {
  // Results are alive until the end of their kernel, so a large block has registers for a few.
  constexpr size_t together = 16;
  std::vector<Values> results;
  for (size_t first = 0; first < cases.size(); first += together) {
    const std::vector<Case> some(
        cases.begin() + static_cast<std::ptrdiff_t>(first),
        cases.begin() + static_cast<std::ptrdiff_t>(std::min(first + together, cases.size())));
    std::vector<std::string> types;
    for (const Case& one : some) types.push_back(one.result);
    for (Values& column : evaluate(device, body_of(some), types, columns, target)) {
      results.push_back(std::move(column));
    }
  }
  return results;
}

void check(Device& device, const std::vector<Column>& columns, const std::vector<Case>& cases,
           const std::string& target) {
  const std::vector<Values> results = results_of(device, columns, cases, target);
  for (size_t i = 0; i < cases.size(); ++i) {
    size_t wrong = 0;
    std::string first;
    for (size_t row = 0; row < results[i].size(); ++row) {
      Values sources;
      for (const Column& column : columns) sources.push_back(column.values[row]);
      const uint64_t result = results[i][row];
      const bool right = cases[i].accepts ? cases[i].accepts(sources, result)
                                          : result == cases[i].expected(sources);
      if (right || wrong++ > 0) continue;
      for (uint64_t source : sources) first += " " + hex(source);
      first += " -> " + hex(result);
      if (!cases[i].accepts) first += ", not " + hex(cases[i].expected(sources));
    }
    INFO(cases[i].text << ":" << first);
    CHECK(wrong == 0);
  }
}

Values with_random(Values values, size_t count, unsigned bits, uint64_t seed) {
  std::mt19937_64 random(seed);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  for (uint64_t& value : values) value &= mask;
  while (values.size() < count) values.push_back(random() & mask);
  return values;
}

std::vector<Column> combinations(const std::vector<std::string>& types,
                                 const std::vector<Values>& values, size_t count, uint64_t seed) {
  std::vector<Column> columns(types.size());
  size_t rows = 1;
  for (const Values& column : values) rows *= column.size();
  for (size_t i = 0, stride = 1; i < types.size(); stride *= values[i++].size()) {
    columns[i].type = types[i];
    for (size_t row = 0; row < rows; ++row) {
      columns[i].values.push_back(values[i][row / stride % values[i].size()]);
    }
    const std::string& type = types[i];
    const unsigned bits =
        type == "pred" ? 1
                       : static_cast<unsigned>(std::stoul(type.substr(type.find_first_of("1236"))));
    columns[i].values = with_random(columns[i].values, count, bits, seed + i);
  }
  return columns;
}

void check_refused(const std::vector<std::string>& bodies, const std::string& target) {
  Device device = device_for(target);
  for (const std::string& body : bodies) {
    INFO(body << " for " << target);
    CHECK(load_body(body, target) == CUDA_ERROR_INVALID_PTX);
  }
}

void check_accepted(const std::vector<std::string>& bodies, const std::string& target) {
  Device device = device_for(target);
  for (const std::string& body : bodies) {
    INFO(body << " for " << target);
    CHECK(load_body(body, target) == CUDA_SUCCESS);
  }
}

bool stores_undefined(const std::string& type, const std::string& body, const std::string& target) {
  Device device = device_for(target);
  const bool pred = type == "pred";
  const std::string store =
      pred ? "selp.b32 i0, 1, 0, %d;\nst.global.b32 [%out], i0;"
           : "st.global.b" + type.substr(type.find_first_of("1236")) + " [%out], %d;";
  const std::string text = ".version 9.0\n.target " + target +
                           "\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
                           ".reg .b64 %out, v<4>; .reg .b32 u<4>, i<4>; .reg .b16 w<4>;\n"
                           ".reg .pred t, f, o<4>; .reg ." +
                           type +
                           " %d;\nld.param.u64 %out, [out];\n"
                           "mov.b32 i0, 0; mov.b32 i1, 1; mov.b32 i2, 2; mov.b32 i3, 3;\n"
                           "setp.eq.u32 t, i0, 0; setp.ne.u32 f, i0, 0;\n{ " +
                           body + " }\n" + store + "\nret;\n}\n";
  const CUfunction function = device.load(text, "k");
  const Buffer out = Buffer::of(Values(2));
  const CUresult code = device.launch(function, {1}, {1}, 0, out.address());
  if (code == CUDA_SUCCESS) return false;
  INFO(device.report());
  CHECK(device.report().find("undefined") != std::string::npos);
  return true;
}

}  // namespace emulator_test
