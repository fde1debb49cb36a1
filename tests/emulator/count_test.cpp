// Counts of memory transactions, against numbers worked out by hand.

#include <catch2/catch.hpp>

#include "tests/emulator/ptx_kernel.h"

namespace emulator_test {
namespace {

nlohmann::json counts_of(const std::string& body, const std::string& before = "",
                         unsigned blocks = 1, unsigned threads = 32,
                         const std::string& target = "sm_90a") {
  Device device(target.find("100") != std::string::npos ? 10 : 9, 0);
  const CUfunction function = device.load(ptx_kernel(body, before, target), "test");
  const Buffer out = Buffer::of(std::vector<uint32_t>(size_t(blocks) * threads));
  device.run(function, {blocks}, {threads}, 0, out.address());
  return device.statistics()["launches"][0];
}

std::string load_of(const char* space, unsigned bytes, const std::string& address) {
  const std::string start = std::string("ld.") + space + ".";
  switch (bytes) {
    case 1: return start + "u8 %r0, " + address + ";";
    case 2: return start + "u16 %r0, " + address + ";";
    case 4: return start + "b32 %r0, " + address + ";";
    case 8: return start + "b64 %rd0, " + address + ";";
    case 16: return start + "v2.b64 {%rd0, %rd1}, " + address + ";";
    default: return start + "v4.b64 {%rd0, %rd1, %rd2, %rd3}, " + address + ";";
  }
}

std::string store_of(const char* space, unsigned bytes, const std::string& address) {
  const std::string start = std::string("st.") + space + ".";
  switch (bytes) {
    case 1: return start + "u8 " + address + ", %i;";
    case 2: return start + "u16 " + address + ", %i;";
    case 4: return start + "b32 " + address + ", %i;";
    case 8: return start + "v2.b32 " + address + ", {%i, %i};";
    default: return start + "v4.b32 " + address + ", {%i, %i, %i, %i};";
  }
}

}  // namespace

TEST_CASE("Counts: bank conflicts of shared accesses by width and stride", "[counts]") {
  // Wavefronts for strides of 1 2 4 8 16 32 33 elements, without and with conflicts.
  struct Row {
    unsigned bytes, ideal, wavefronts[7];
  };
  const Row rows[] = {{1, 1, {1, 1, 1, 2, 4, 8, 1}},
                      {2, 1, {1, 1, 2, 4, 8, 16, 1}},
                      {4, 1, {1, 2, 4, 8, 16, 32, 1}},
                      {8, 2, {2, 4, 8, 16, 32, 32, 2}},
                      {16, 4, {4, 8, 16, 32, 32, 32, 4}}};
  const unsigned strides[] = {1, 2, 4, 8, 16, 32, 33};
  for (const Row& row : rows) {
    for (int s = 0; s < 7; ++s) {
      INFO(row.bytes << " bytes, stride " << strides[s]);
      const std::string address =
          ".shared .align 128 .b8 area[17000];\nmov.u64 %rd8, area; mad.wide.u32 %rd8, %i, " +
          std::to_string(strides[s] * row.bytes) + ", %rd8;\n";
      const auto shared = counts_of(address + store_of("shared", row.bytes, "[%rd8]") +
                                    load_of("shared", row.bytes, "[%rd8]"))["shared"];
      for (const char* direction : {"load", "store"}) {
        CHECK(shared[direction]["wavefronts"] == row.wavefronts[s]);
        CHECK(shared[direction]["ideal"] == row.ideal);
        CHECK(shared[direction]["lanes_by_bytes"] ==
              nlohmann::json{{std::to_string(row.bytes), 32}});
      }
      CHECK(shared["worst_bank_conflict"] == row.wavefronts[s] / row.ideal);
    }
  }
}

TEST_CASE("Counts: words that lanes share, and lanes that are not there", "[counts]") {
  const std::string area = ".shared .align 128 .b8 area[17000];\n.reg .b64 %a; mov.u64 %a, area;\n";
  const auto load = [&](const std::string& body) {
    return counts_of(area + body)["shared"]["load"];
  };
  // All read one place: once, in every part of the warp.
  CHECK(load("ld.shared.b32 %r0, [%a];")["wavefronts"] == 1);
  CHECK(load("ld.shared.b64 %rd0, [%a];")["wavefronts"] == 2);
  CHECK(load("ld.shared.v2.b64 {%rd0, %rd1}, [%a];")["wavefronts"] == 4);
  // Two words of one bank, whatever the number of lanes.
  CHECK(load("and.b32 %r1, %i, 1; mad.wide.u32 %rd8, %r1, 128, %a;"
             "ld.shared.b32 %r0, [%rd8];")["wavefronts"] == 2);
  // Lanes 0 to 9 with 8 bytes each: a half-warp; lanes 12 to 19: both.
  auto some = load(
      "setp.lt.u32 %p0, %i, 10; mad.wide.u32 %rd8, %i, 8, %a;"
      "@%p0 ld.shared.b64 %rd0, [%rd8];");
  CHECK(some["wavefronts"] == 1);
  CHECK(some["ideal"] == 1);
  CHECK(some["lanes_by_bytes"] == nlohmann::json{{"8", 10}});
  some = load(
      "sub.u32 %r1, %i, 12; setp.lt.u32 %p0, %r1, 8; mad.wide.u32 %rd8, %i, 8, %a;"
      "@%p0 ld.shared.b64 %rd0, [%rd8];");
  CHECK(some["wavefronts"] == 2);
  CHECK(some["ideal"] == 2);
  // Lanes 0-3 and 8-11 with 16 bytes each, side by side: two quarters of the warp.
  some = load(
      "shr.u32 %r1, %i, 3; shl.b32 %r1, %r1, 2; and.b32 %r2, %i, 7; add.u32 %r3, %r1, %r2;"
      "mad.wide.u32 %rd8, %r3, 16, %a; setp.lt.u32 %p0, %i, 16;"
      "setp.lt.and.u32 %p0, %r2, 4, %p0; @%p0 ld.shared.v2.b64 {%rd0, %rd1}, [%rd8];");
  CHECK(some["wavefronts"] == 2);
  CHECK(some["ideal"] == 2);
  // Generic addresses are counted in the space where they lie.
  some = load("cvta.shared.u64 %rd8, %a; mad.wide.u32 %rd8, %i, 16, %rd8; ld.b32 %r0, [%rd8];");
  CHECK(some["wavefronts"] == 4);
}

TEST_CASE("Counts: sectors of global memory by width, stride and offset", "[counts]") {
  struct Row {
    unsigned bytes, stride, offset, sectors;
  };
  const Row rows[] = {{4, 4, 0, 4},     {4, 4, 4, 5},    {4, 4, 32, 4},  {4, 4, 28, 5},
                      {4, 8, 0, 8},     {4, 16, 0, 16},  {4, 32, 0, 32}, {4, 128, 0, 32},
                      {4, 0, 64, 1},    {1, 1, 0, 1},    {1, 1, 31, 2},  {2, 2, 0, 2},
                      {2, 6, 0, 6},     {8, 8, 0, 8},    {8, 8, 8, 9},   {16, 16, 0, 16},
                      {16, 16, 16, 17}, {16, 48, 0, 32}, {8, 24, 0, 24}, {4, 36, 0, 32}};
  for (const Row& row : rows) {
    INFO(row.bytes << " bytes, stride " << row.stride << ", offset " << row.offset);
    const std::string module = ".global .align 256 .b8 area[8192];\n";
    const std::string address =
        "mov.u64 %rd8, area; mad.wide.u32 %rd8, %i, " + std::to_string(row.stride) + ", %rd8;\n";
    const std::string at = "[%rd8+" + std::to_string(row.offset) + "]";
    const auto load = counts_of(address + load_of("global", row.bytes, at), module)["global"];
    CHECK(load["load"]["bytes"] == 32 * row.bytes);
    CHECK(load["load"]["sectors"] == row.sectors);
    CHECK(load["distinct_sectors"] ==
          nlohmann::json{{"read", row.sectors}, {"written", 0}, {"any", row.sectors}});
    if (row.stride == 0) continue;
    const auto store = counts_of(address + store_of("global", row.bytes, at), module)["global"];
    CHECK(store["store"]["bytes"] == 32 * row.bytes);
    CHECK(store["store"]["sectors"] == row.sectors);
    CHECK(store["distinct_sectors"] ==
          nlohmann::json{{"read", 0}, {"written", row.sectors}, {"any", row.sectors}});
    if (row.bytes != 4) continue;
    const auto add = counts_of(
        address + "red.global.add.u32 [%rd8+" + std::to_string(row.offset / 4 * 4) + "], 1;",
        module)["global"];
    CHECK(add["atomic"]["bytes"] == 128);
    CHECK(add["atomic"]["sectors"] == row.sectors);
    CHECK(add["distinct_sectors"] ==
          nlohmann::json{{"read", row.sectors}, {"written", row.sectors}, {"any", row.sectors}});
  }
  const auto wide = counts_of(
      "mov.u64 %rd8, area; mad.wide.u32 %rd8, %i, 32, %rd8;" + load_of("global", 32, "[%rd8]"),
      ".global .align 256 .b8 area[8192];\n", 1, 32, "sm_100a")["global"];
  CHECK(wide["load"]["bytes"] == 1024);
  CHECK(wide["load"]["sectors"] == 32);
}

TEST_CASE("Counts: distinct sectors of a launch are counted once", "[counts]") {
  // Six warps in two blocks: each reads the same 128 bytes twice and writes 128 of its own, the
  // last one 64 of them again through atomics, and reads 32 bytes that it wrote.
  const std::string body = R"(
mov.u64 %rd8, area; mad.wide.u32 %rd9, %i, 4, %rd8;
and.b32 %r8, %i, 31; mad.wide.u32 %rd10, %r8, 4, %rd8;
ld.global.b32 %r0, [%rd10]; ld.global.b32 %r0, [%rd10];
mad.wide.u32 %rd11, %g, 4, %rd8; st.global.b32 [%rd11+128], %g;
setp.lt.u32 %p0, %g, 176; @%p0 bra done;
red.global.add.u32 [%rd11+128], 1;
setp.lt.u32 %p0, %g, 184; @%p0 bra done;
ld.global.b32 %r0, [%rd11+128];
done:)";
  const auto global = counts_of(body, ".global .align 256 .b8 area[8192];\n", 2, 96)["global"];
  CHECK(global["load"]["bytes"] == 6 * 256 + 32);
  CHECK(global["load"]["sectors"] == 6 * 8 + 1);
  CHECK(global["store"]["bytes"] == 6 * 128);
  CHECK(global["store"]["sectors"] == 6 * 4);
  CHECK(global["atomic"]["bytes"] == 64);
  CHECK(global["atomic"]["sectors"] == 2);
  CHECK(global["distinct_sectors"] == nlohmann::json{{"read", 6}, {"written", 24}, {"any", 28}});
  // The next launch counts from nothing.
  Device device;
  const CUfunction function =
      device.load(ptx_kernel(body, ".global .align 256 .b8 area[8192];\n"), "test");
  const Buffer out = Buffer::of(std::vector<uint32_t>(192));
  for (int i = 0; i < 2; ++i) device.run(function, {2}, {96}, 0, out.address());
  const auto statistics = device.statistics();
  for (int i = 0; i < 2; ++i)
    CHECK(statistics["launches"][size_t(i)]["global"]["distinct_sectors"]["any"] == 28);
  CHECK(statistics["kernels"]["test"]["global"]["distinct_sectors"]["any"] == 56);
}

TEST_CASE("Counts: asynchronous copies", "[counts]") {
  const auto counts = counts_of(
      R"(
.shared .align 128 .b8 s[2048];
mov.u64 %rd8, area; mad.wide.u32 %rd8, %i, 16, %rd8; mov.u64 %rd9, s;
mad.wide.u32 %rd9, %i, 16, %rd9;
and.b32 %r0, %i, 1; shl.b32 %r0, %r0, 3;
cp.async.cg.shared.global [%rd9], [%rd8], 16;
cp.async.ca.shared.global [%rd9+512], [%rd8+512], 8, %r0;
cp.async.wait_all;)",
      ".global .align 256 .b8 area[8192];\n");
  CHECK(counts["global"]["load"]["bytes"] == 512 + 16 * 8);
  CHECK(counts["global"]["load"]["sectors"] == 16 + 16);
  CHECK(counts["global"]["distinct_sectors"]["read"] == 32);
  CHECK(counts["shared"]["async"]["lanes_by_bytes"] == nlohmann::json{{"8", 32}, {"16", 32}});
  // 8 bytes every 16: two words of a bank in each half-warp.
  CHECK(counts["shared"]["async"]["wavefronts"] == 4 + 4);
  CHECK(counts["shared"]["async"]["ideal"] == 4 + 2);
  CHECK(counts["shared"]["load"]["wavefronts"] == 0);
  CHECK(counts["shared"]["store"]["wavefronts"] == 0);
}

}  // namespace emulator_test
