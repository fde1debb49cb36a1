// ldmatrix, stmatrix and movmatrix by the formulas of the ISA, with their counts and checks.

#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "tests/emulator/harness.h"

namespace emulator_test {
namespace {

constexpr int kTileBytes = 2048;

// Declares a tile in shared memory and what all bodies need; `fill` is what lane l stores into each
// of its words w = l + 32 j, by its value: 2w and 2w + 1, which number the halves of the tile.
std::string tile(bool filled) {
  std::string text = ".shared .align 128 .b8 tile[" + std::to_string(kTileBytes) +
                     "];\n.reg .b32 %lane, %at, %row, %value;\n.reg .b64 %wide, %generic;\n"
                     "mov.u32 %lane, %laneid;\nmov.u32 %at, tile;\nadd.u32 %row, %at, %a0;\n"
                     "mad.lo.u32 %at, %lane, 4, %at;\n";
  for (int j = 0; filled && j < kTileBytes / 128; ++j) {
    text += "add.u32 %value, %lane, " + std::to_string(32 * j) +
            ";\nmad.lo.u32 %value, %value, 0x20002, 0x10000;\nst.shared.b32 [%at + " +
            std::to_string(128 * j) + "], %value;\n";
  }
  return text + "bar.warp.sync -1;\n";
}

// The same address as a generic one.
const char* const kGeneric = "cvt.u64.u32 %wide, %row;\ncvta.shared.u64 %generic, %wide;\n";

std::string registers(const char* name, int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += (i ? ", %" : "%") + std::string(name) + std::to_string(first + i);
  return text + "}";
}

std::vector<std::string> types(int count) { return std::vector<std::string>(size_t(count), "b32"); }

using Offsets = std::function<int(int lane)>;

Column column_of(const Offsets& offset) {
  Column column{"b32", {}};
  for (int lane = 0; lane < 32; ++lane) column.values.push_back(uint64_t(offset(lane)));
  return column;
}

// Rows that permute the tile's 16-byte units.
int shuffled(int lane) { return lane * 77 % 128 * 16; }

// Row and column that element e of a lane holds.
int row_of(bool transposed, int lane, int e) { return transposed ? lane % 4 * 2 + e : lane / 4; }
int column_of(bool transposed, int lane, int e) { return transposed ? lane / 4 : lane % 4 * 2 + e; }

void check_load(Device& device, int count, bool transposed, const std::string& text,
                const std::string& before = "") {
  INFO(text);
  const auto results =
      evaluate(device, tile(true) + before + text, types(count), {column_of(shuffled)});
  int wrong = 0;
  for (int i = 0; i < count; ++i)
    for (int lane = 0; lane < 32; ++lane)
      for (int e = 0; e < 2; ++e) {
        const int row = row_of(transposed, lane, e), column = column_of(transposed, lane, e);
        const uint64_t expected = uint64_t(shuffled(8 * i + row) / 2 + column);
        if ((results[size_t(i)][size_t(lane)] >> 16 * e & 0xffff) != expected) ++wrong;
      }
  CHECK(wrong == 0);
}

// The words of the tile after a body that wrote into it.
std::vector<uint16_t> tile_after(Device& device, const std::string& body,
                                 const std::vector<Column>& columns) {
  std::string read = "bar.warp.sync -1;\n";
  const int words = kTileBytes / 128;
  for (int j = 0; j < words; ++j)
    read += "ld.shared.b32 %d" + std::to_string(j) + ", [%at + " + std::to_string(128 * j) + "];\n";
  const auto results = evaluate(device, tile(true) + body + read, types(words), columns);
  std::vector<uint16_t> halves(kTileBytes / 2);
  for (int j = 0; j < words; ++j)
    for (int lane = 0; lane < 32; ++lane)
      for (int e = 0; e < 2; ++e)
        halves[size_t((lane + 32 * j) * 2 + e)] =
            uint16_t(results[size_t(j)][size_t(lane)] >> 16 * e);
  return halves;
}

void check_store(Device& device, int count, bool transposed, const std::string& text,
                 const std::string& before = "") {
  INFO(text);
  std::vector<Column> columns = {column_of(shuffled)};
  for (int i = 0; i < count; ++i)
    columns.push_back(column_of([i](int lane) { return 0x40008000 + (i * 32 + lane) * 0x20002; }));
  std::vector<uint16_t> expected(kTileBytes / 2);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = uint16_t(i);
  for (int i = 0; i < count; ++i)
    for (int lane = 0; lane < 32; ++lane)
      for (int e = 0; e < 2; ++e) {
        const int row = row_of(transposed, lane, e), column = column_of(transposed, lane, e);
        expected[size_t(shuffled(8 * i + row) / 2 + column)] =
            uint16_t(columns[size_t(i) + 1].values[size_t(lane)] >> 16 * e);
      }
  CHECK(tile_after(device, before + text, columns) == expected);
}

// Most rows of the eight of a matrix that lie, at different addresses, in the same 16 bytes of the
// 128 that all banks give at once; over all matrices.
int degree(const Offsets& offset, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    std::set<int> rows[8];
    size_t most = 0;
    for (int r = 0; r < 8; ++r) {
      const int unit = offset(8 * i + r) / 16;
      rows[unit % 8].insert(unit);
      most = std::max(most, rows[unit % 8].size());
    }
    sum += int(most);
  }
  return sum;
}

nlohmann::json shared_counts(Device& device, size_t launch) {
  return device.statistics()["launches"][launch]["shared"];
}

std::string fails(Device& device, const std::string& body, const Offsets& offset, int results) {
  std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .b32 %a<5>, %d<5>;\n.reg .pred %p;\n.reg .b64 %out;\n"
      ".reg .b32 %table;\n";
  // Offsets by a chain of selections: there is no memory to read them from.
  text += "mov.u32 %a0, 0;\nmov.u32 %table, %laneid;\n";
  for (int lane = 0; lane < 32; ++lane)
    text += "setp.eq.u32 %p, %table, " + std::to_string(lane) + ";\n@%p mov.u32 %a0, " +
            std::to_string(offset(lane)) + ";\n";
  for (int i = 1; i <= results; ++i) text += "mov.u32 %a" + std::to_string(i) + ", 7;\n";
  text += "{\n" + body + "\n}\nret;\n}\n";
  const CUfunction function = device.load(text, "k");
  const CUresult code = device.launch(function, {1}, {32}, 0);
  return code == CUDA_SUCCESS ? "" : device.report();
}

CUresult load(const std::string& instruction, const std::string& target) {
  CUmodule module = nullptr;
  const std::string text = ".version 9.0\n.target " + target +
                           "\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<8>;\n"
                           ".reg .b64 %g;\n" +
                           instruction + "\nret;\n}\n";
  const CUresult code =
      call<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData")(&module, text.c_str());
  if (code == CUDA_SUCCESS) call<CUresult (*)(CUmodule)>("cuModuleUnload")(module);
  return code;
}

const char* const kLoad = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%row];\n";

}  // namespace

TEST_CASE("matrix: ldmatrix of one, two and four matrices, transposed too", "[matrix]") {
  Device device;
  for (const bool transposed : {false, true})
    for (const int count : {1, 2, 4}) {
      const std::string number = ".x" + std::to_string(count), to = registers("d", 0, count);
      const std::string trans = transposed ? ".trans" : "";
      const std::string start = "ldmatrix.sync.aligned.m8n8";
      check_load(device, count, transposed,
                 start + number + trans + ".shared.b16 " + to + ", [%row];");
      check_load(device, count, transposed,
                 start + number + trans + ".shared::cta.b16 " + to + ", [%row + 0];");
      check_load(device, count, transposed, start + number + trans + ".b16 " + to + ", [%generic];",
                 kGeneric);
    }
  // Other orders, which the assembler takes and CUDA libraries write.
  check_load(
      device, 4, true,
      "ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16 " + registers("d", 0, 4) + ", [%row];");
  check_load(
      device, 2, true,
      "ldmatrix.sync.aligned.m8n8.x2.shared.trans.b16 " + registers("d", 0, 2) + ", [%row];");
}

TEST_CASE("matrix: stmatrix of one, two and four matrices, transposed too", "[matrix]") {
  Device device;
  for (const bool transposed : {false, true})
    for (const int count : {1, 2, 4}) {
      const std::string start =
          "stmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "");
      check_store(device, count, transposed,
                  start + ".shared.b16 [%row], " + registers("a", 1, count) + ";\n");
      check_store(device, count, transposed,
                  start + ".b16 [%generic], " + registers("a", 1, count) + ";\n", kGeneric);
    }
}

TEST_CASE("matrix: movmatrix transposes", "[matrix]") {
  Device device;
  const Column from = column_of([](int lane) { return 0x10000 + lane * 0x20002; });
  const auto to =
      evaluate(device, "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;", {"b32"}, {from})[0];
  for (int lane = 0; lane < 32; ++lane)
    for (int e = 0; e < 2; ++e)  // element (i, j) is number 8 i + j, of lane 4 i + j / 2
      CHECK((to[size_t(lane)] >> 16 * e & 0xffff) == uint64_t((lane % 4 * 2 + e) * 8 + lane / 4));
}

TEST_CASE("matrix: counts of instructions, wavefronts and conflicts", "[matrix][counts]") {
  const std::vector<std::pair<const char*, Offsets>> patterns = {
      {"packed rows", [](int lane) { return lane * 16; }},
      {"every second unit", [](int lane) { return lane * 32; }},
      {"rows of 64 bytes", [](int lane) { return lane * 64; }},
      {"rows of 128 bytes", [](int lane) { return lane % 16 * 128; }},
      {"rows of 144 bytes", [](int lane) { return lane % 14 * 144; }},
      {"swizzled rows of 128 bytes",
       [](int lane) { return lane % 16 * 128 + ((lane / 16 ^ lane) & 7) * 16; }},
      {"one address", [](int) { return 256; }},
      {"two addresses", [](int lane) { return lane % 2 * 128; }},
      {"shuffled", shuffled}};
  Device device;
  size_t launch = 0;
  for (const auto& [name, offset] : patterns)
    for (const int count : {1, 2, 4}) {
      INFO(name << ", x" << count);
      const std::string form = ".sync.aligned.m8n8.x" + std::to_string(count) + ".shared.b16 ";
      evaluate(device, tile(true) + "ldmatrix" + form + registers("d", 0, count) + ", [%row];\n",
               types(count), {column_of(offset)});
      const nlohmann::json counts = shared_counts(device, launch++);
      const int sum = degree(offset, count);
      CHECK(counts["ldmatrix"]["instructions"] == 1);
      CHECK(counts["ldmatrix"]["ideal"] == count);
      CHECK(counts["ldmatrix"]["wavefronts"] == sum);
      CHECK(counts["worst_bank_conflict"] == (sum + count - 1) / count);
      CHECK(counts["load"]["wavefronts"] == 0);
    }
  const Column zero = column_of([](int) { return 0; });
  evaluate(device,
           tile(true) +
               "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%row], {%a1, %a1, %a1, "
               "%a1};\nmov.u32 %d0, 0;",
           {"b32"}, {column_of([](int lane) { return lane % 16 * 128 + lane / 16 * 16; }), zero});
  const nlohmann::json counts = shared_counts(device, launch);
  CHECK(counts["stmatrix"]["instructions"] == 1);
  CHECK(counts["stmatrix"]["ideal"] == 4);
  CHECK(counts["stmatrix"]["wavefronts"] == 32);
  CHECK(counts["store"]["wavefronts"] == kTileBytes / 128);
}

TEST_CASE("matrix: undefined elements stay so, and only their use is reported",
          "[matrix][faults]") {
  Device device;
  const Offsets rows = [](int lane) { return lane * 16; };
  // Lanes 0 to 3 write row 0, 4 to 7 row 1.
  const auto body = [](bool transposed, const std::string& guard) {
    return tile(false) +
           ".reg .pred %some;\n.shared .align 4 .b8 out[128];\n"
           "setp.lt.u32 %some, %lane, 8;\n@%some st.shared.b32 [%at], %lane;\n"
           "bar.warp.sync -1;\nldmatrix.sync.aligned.m8n8.x1" +
           (transposed ? ".trans" : "") + ".shared.b16 {%d0}, [%row];\n" + guard;
  };
  const std::string out = " st.shared.b32 [out], %d0;\n";
  CHECK(fails(device, body(false, ""), rows, 0).empty());
  CHECK(fails(device, body(true, ""), rows, 0).empty());
  const std::string lane_3 = "setp.eq.u32 %some, %lane, 3;\n@%some";
  const std::string lane_24 = "setp.eq.u32 %some, %lane, 24;\n@%some";
  CHECK(fails(device, body(false, lane_3 + out), rows, 0).empty());
  CHECK(fails(device, body(true, lane_24 + out), rows, 0).empty());  // column 6, rows 0 and 1
  CHECK_THAT(fails(device, body(false, lane_24 + out), rows, 0), Catch::Contains("undefined"));
  device.revive();
  CHECK_THAT(fails(device, body(true, lane_3 + out), rows, 0), Catch::Contains("undefined"));
  device.revive();
  // stmatrix writes, and so reports.
  CHECK_THAT(fails(device,
                   tile(false) + ".reg .b32 %never;\n"
                                 "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%row], {%never};",
                   rows, 0),
             Catch::Contains("undefined"));
}

TEST_CASE("matrix: addresses are checked", "[matrix][faults]") {
  const auto with_lane = [](int lane, int offset) {
    return [=](int l) { return l == lane ? offset : l * 16; };
  };
  struct Fault {
    std::string body;
    Offsets offset;
    const char* report;
  };
  const std::string load = tile(true) + kLoad;
  const std::string store =
      tile(true) + "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%row], {%a1, %a2};";
  const std::string generic =
      tile(true) +
      "cvt.u64.u32 %generic, %row;\nldmatrix.sync.aligned.m8n8.x1.b16 {%d0}, [%generic];";
  for (const Fault& fault :
       std::vector<Fault>{{load, with_lane(7, 8), "multiple of 16"},
                          {load, with_lane(3, kTileBytes), "out of bounds"},
                          {load, with_lane(8, 8), ""},  // not an address of .x1
                          {store, with_lane(15, 4), "multiple of 16"},
                          {store, with_lane(0, -16), "out of bounds"},
                          {generic, with_lane(0, 0), "shared memory"}}) {
    Device device;
    const std::string report = fails(device, fault.body, fault.offset, 2);
    INFO(report);
    if (*fault.report)
      CHECK_THAT(report, Catch::Contains(fault.report));
    else
      CHECK(report.empty());
  }
}

TEST_CASE("matrix: reading before others' writes are ordered is a race", "[matrix][faults]") {
  // Lane l writes the row whose address lane l ^ 1 gives.
  const auto body = [](const std::string& between) {
    return tile(false) +
           ".reg .b32 %to;\nshl.b32 %to, %lane, 4;\nxor.b32 %to, %to, 16;\n"
           "mov.u32 %value, tile;\nadd.u32 %to, %to, %value;\n"
           "st.shared.v4.b32 [%to], {%lane, %lane, %lane, %lane};\n" +
           between + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0, %d1, %d2, %d3}, [%row];";
  };
  const Offsets rows = [](int lane) { return lane * 16; };
  Device device;
  CHECK(fails(device, body("bar.warp.sync -1;\n"), rows, 0).empty());
  CHECK_THAT(fails(device, body(""), rows, 0), Catch::Contains("race"));
}

TEST_CASE("matrix: what there is not is refused", "[matrix]") {
  Device device;
  const auto accepted = [](const std::string& text, const std::string& target = "sm_90a") {
    INFO(text);
    CHECK(load(text, target) == CUDA_SUCCESS);
  };
  const auto refused = [](const std::string& text, const std::string& target = "sm_90a") {
    INFO(text);
    CHECK(load(text, target) != CUDA_SUCCESS);
  };
  const std::string end = ".shared.b16 {%r0}, [%r1];";
  accepted("ldmatrix.sync.aligned.m8n8.x1" + end, "sm_75");
  refused("ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r0, [%r1];");
  refused("ldmatrix.sync.aligned.m8n8.x2" + end);
  refused("ldmatrix.sync.aligned.m8n8" + end);
  refused("ldmatrix.sync.aligned.x1" + end);
  refused("ldmatrix.sync.m8n8.x1" + end);
  refused("ldmatrix.sync.aligned.m8n8.x1.trans.trans" + end);
  refused("ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r0}, [%g];");
  refused("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r2}, [%r1];");
  refused("ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r0}, [%r1];");
  accepted("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r0};");
  refused("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r0};", "sm_80");
  refused("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r1], {%r0};");
  accepted("movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;", "sm_75");
  refused("movmatrix.sync.aligned.m8n8.b16 %r0, %r1;");
}

}  // namespace emulator_test
