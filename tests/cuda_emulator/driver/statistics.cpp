#include "tests/cuda_emulator/driver/statistics.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cuda_emulator/driver/driver.h"

namespace emulator::driver {
namespace {

using Json = nlohmann::ordered_json;

Json by_class(const std::array<uint64_t, kClasses>& counts) {
  Json json = Json::object();
  for (int i = 0; i < kClasses; ++i) {
    if (counts[i]) json[emulator::name_of(static_cast<Class>(i))] = counts[i];
  }
  return json;
}

Json by_width(const std::array<uint64_t, 5>& lanes) {
  Json json = Json::object();
  for (int i = 0; i < 5; ++i) {
    if (lanes[i]) json[std::to_string(1 << i)] = lanes[i];
  }
  return json;
}

uint64_t sum(const std::array<uint64_t, kClasses>& counts) {
  uint64_t total = 0;
  for (const uint64_t count : counts) total += count;
  return total;
}

Json shared_of(const Counters& c) {
  return {{"load",
           {{"lanes_by_bytes", by_width(c.shared_load_lanes)},
            {"wavefronts", c.shared_load_wavefronts},
            {"ideal", c.shared_load_ideal}}},
          {"store",
           {{"lanes_by_bytes", by_width(c.shared_store_lanes)},
            {"wavefronts", c.shared_store_wavefronts},
            {"ideal", c.shared_store_ideal}}},
          {"async",
           {{"lanes_by_bytes", by_width(c.shared_async_lanes)},
            {"wavefronts", c.shared_async_wavefronts},
            {"ideal", c.shared_async_ideal}}},
          {"ldmatrix",
           {{"instructions", c.ldmatrix},
            {"wavefronts", c.ldmatrix_wavefronts},
            {"ideal", c.ldmatrix_ideal}}},
          {"stmatrix",
           {{"instructions", c.stmatrix},
            {"wavefronts", c.stmatrix_wavefronts},
            {"ideal", c.stmatrix_ideal}}},
          {"worst_bank_conflict", c.worst_bank_conflict}};
}

Json counts_of(const Counters& c, const DistinctSectors& sectors) {
  Json json;
  json["blocks"] = c.blocks;
  json["warp_instructions"] = {{"all", sum(c.warp_instructions)},
                               {"by_class", by_class(c.warp_instructions)},
                               {"skipped", c.skipped}};
  json["thread_instructions"] = {{"all", sum(c.thread_instructions)},
                                 {"by_class", by_class(c.thread_instructions)}};
  json["branches"] = {{"all", c.branches}, {"divergent", c.divergent_branches}};
  json["barriers"] = c.barriers;
  json["mma"] = {{"flops", c.mma_flops}, {"by_shape", c.mma}};
  json["global"] = {
      {"load", {{"bytes", c.global_load_bytes}, {"sectors", c.global_load_sectors}}},
      {"store", {{"bytes", c.global_store_bytes}, {"sectors", c.global_store_sectors}}},
      {"atomic", {{"bytes", c.global_atomic_bytes}, {"sectors", c.global_atomic_sectors}}},
      {"distinct_sectors",
       {{"read", sectors.read}, {"written", sectors.written}, {"any", sectors.any}}}};
  json["shared"] = shared_of(c);
  return json;
}

}  // namespace

std::string json_of(const std::vector<LaunchStatistics>& launches) {
  struct Sum {
    uint64_t launches = 0;
    Counters counters;
    DistinctSectors sectors;
    double seconds = 0;
  };
  std::map<std::string, Sum> sums;
  Json json = {{"launches", Json::array()}, {"kernels", Json::object()}};
  const auto dim = [](const Dim& d) { return Json{d.x, d.y, d.z}; };
  for (const LaunchStatistics& launch : launches) {
    Json one = {{"kernel", launch.kernel},
                {"grid", dim(launch.grid)},
                {"block", dim(launch.block)},
                {"static_shared", launch.static_shared},
                {"dynamic_shared", launch.dynamic_shared},
                {"seed", launch.seed},
                {"seconds", launch.seconds}};
    one.update(counts_of(launch.counters, launch.sectors));
    json["launches"].push_back(std::move(one));
    Sum& total = sums[launch.kernel];
    ++total.launches;
    total.counters += launch.counters;
    total.sectors.read += launch.sectors.read;
    total.sectors.written += launch.sectors.written;
    total.sectors.any += launch.sectors.any;
    total.seconds += launch.seconds;
  }
  for (const auto& [name, total] : sums) {
    Json one = {{"launches", total.launches}, {"seconds", total.seconds}};
    one.update(counts_of(total.counters, total.sectors));
    json["kernels"][name] = std::move(one);
  }
  return json.dump(1);
}

void Driver::write_statistics() const {
  const char* file = std::getenv("KRAIT_EMULATOR_STATS");
  if (!file || !*file) return;
  // Whole or not at all, also where several processes write the same file.
  const std::string temporary = std::string(file) + "." + std::to_string(getpid());
  std::vector<LaunchStatistics> all = earlier_launches;
  all.insert(all.end(), launches.begin(), launches.end());
  {
    std::ofstream out(temporary);
    out << json_of(all) << '\n';
    if (!out.flush()) {
      std::fprintf(stderr, "cuda_emulator: cannot write %s\n", temporary.c_str());
      return;
    }
  }
  if (std::rename(temporary.c_str(), file) != 0)
    std::fprintf(stderr, "cuda_emulator: cannot write %s\n", file);
}

}  // namespace emulator::driver
