// One instruction on many values, as a kernel around it.

#include <catch2/catch.hpp>
#include <sstream>

#include "tests/emulator/harness.h"

namespace emulator_test {
namespace {

constexpr unsigned kOneBlock = 1024, kBlock = 256;

// Bits of a register type: the number in its name, doubled for the packed ones.
unsigned bits_of(const std::string& type) {
  if (type == "pred") return 32;
  const size_t digits = type.find_first_of("0123456789");
  if (digits == std::string::npos) throw std::runtime_error("no register type: " + type);
  const unsigned bits = unsigned(std::stoul(type.substr(digits)));
  return type.size() > 2 && type.substr(type.size() - 2) == "x2" ? bits * 2 : bits;
}

std::string address(const char* base, size_t column, size_t count) {
  return std::string("[") + base + "+" + std::to_string(column * count * 8) + "]";
}

std::string kernel(const std::string& body, const std::vector<std::string>& results,
                   const std::vector<Column>& columns, size_t count, const std::string& target) {
  std::ostringstream out;
  out << ".version 9.0\n.target " << target << "\n.address_size 64\n"
      << ".visible .entry evaluate(.param .u64 harness_in, .param .u64 harness_out)\n{\n"
      << ".reg .b64 %harness_in, %harness_out, %harness_offset;\n"
      << ".reg .b32 %harness_i, %harness_block, %harness_word;\n.reg .pred %harness_past;\n";
  for (size_t i = 0; i < columns.size(); ++i)
    out << ".reg ." << columns[i].type << " %a" << i << ";\n";
  for (size_t i = 0; i < results.size(); ++i) out << ".reg ." << results[i] << " %d" << i << ";\n";
  out << "ld.param.u64 %harness_in, [harness_in];\nld.param.u64 %harness_out, [harness_out];\n"
      << "mov.u32 %harness_i, %tid.x;\n";
  if (count > kOneBlock) {
    out << "mov.u32 %harness_block, %ctaid.x;\n"
        << "mad.lo.u32 %harness_i, %harness_block, " << kBlock << ", %harness_i;\n"
        << "setp.ge.u32 %harness_past, %harness_i, " << count << ";\n@%harness_past ret;\n";
  }
  out << "mul.wide.u32 %harness_offset, %harness_i, 8;\n"
      << "add.s64 %harness_in, %harness_in, %harness_offset;\n"
      << "add.s64 %harness_out, %harness_out, %harness_offset;\n";
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string from = address("%harness_in", i, count);
    if (columns[i].type == "pred") {
      out << "ld.global.b32 %harness_word, " << from << ";\n"
          << "setp.ne.u32 %a" << i << ", %harness_word, 0;\n";
    } else {
      out << "ld.global.b" << bits_of(columns[i].type) << " %a" << i << ", " << from << ";\n";
    }
  }
  out << "{\n" << body << "\n}\n";
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string to = address("%harness_out", i, count);
    if (results[i] == "pred") {
      out << "selp.b32 %harness_word, 1, 0, %d" << i << ";\n"
          << "st.global.b32 " << to << ", %harness_word;\n";
    } else {
      out << "st.global.b" << bits_of(results[i]) << " " << to << ", %d" << i << ";\n";
    }
  }
  out << "ret;\n}\n";
  return out.str();
}

}  // namespace

std::vector<std::vector<uint64_t>> evaluate(Device& device, const std::string& body,
                                            const std::vector<std::string>& result_types,
                                            const std::vector<Column>& columns,
                                            const std::string& target) {
  const size_t count = columns.empty() ? 1 : columns.front().values.size();
  std::vector<uint64_t> inputs;
  for (const Column& column : columns) {
    if (column.values.size() != count) throw std::runtime_error("columns of different lengths");
    inputs.insert(inputs.end(), column.values.begin(), column.values.end());
  }
  if (inputs.empty()) inputs.resize(1);
  const CUfunction function =
      device.load(kernel(body, result_types, columns, count, target), "evaluate");
  const Buffer in = Buffer::of(inputs);
  const Buffer out = Buffer::of(std::vector<uint64_t>(result_types.size() * count));
  const bool one = count <= kOneBlock;
  device.run(function, {one ? 1 : unsigned((count + kBlock - 1) / kBlock)},
             {one ? unsigned(count) : kBlock}, 0, in.address(), out.address());
  const std::vector<uint64_t> all = out.read<uint64_t>();
  std::vector<std::vector<uint64_t>> results;
  for (size_t i = 0; i < result_types.size(); ++i) {
    results.emplace_back(all.begin() + i * count, all.begin() + (i + 1) * count);
  }
  return results;
}

}  // namespace emulator_test
