#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/cli/gpu_stats.h"

namespace krait {
namespace {

using nlohmann::json;

struct Sums {
  std::int64_t code_bytes = 0, load_bytes = 0, store_bytes = 0, spilling = 0;
};

Sums sums_of(const ArchStats& stats) {
  Sums sums;
  for (const GpuKernelStats& kernel : stats.kernels) {
    sums.code_bytes += kernel.code.code_bytes;
    sums.load_bytes += kernel.load_bytes;
    sums.store_bytes += kernel.store_bytes;
    sums.spilling += kernel.code.spills() ? 1 : 0;
  }
  return sums;
}

/// Right-aligned columns but for the first two.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      if (row.size() == 1) continue;
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::ostringstream out;
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (i > 0) out << "  ";
        if (row.size() == 1)
          out << row[i];
        else
          out << (i < 2 ? std::left : std::right) << std::setw(static_cast<int>(widths[i]))
              << row[i];
      }
      out << '\n';
    }
    return out.str();
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::vector<std::string> cells_of(const GpuKernelStats& kernel, const ArchStats& stats) {
  const auto number = [](auto value) { return std::to_string(value); };
  // Wavefronts of shared memory as times of what they would be without bank conflicts.
  const auto times = [](const SharedTraffic& shared) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(2)
         << (shared.ideal == 0
                 ? 1.0
                 : static_cast<double>(shared.wavefronts) / static_cast<double>(shared.ideal))
         << 'x';
    return text.str();
  };
  std::vector<std::string> cells{kernel.name,
                                 stats.target.architecture,
                                 number(kernel.grid),
                                 number(kernel.threads),
                                 number(kernel.code.registers),
                                 kernel.code.spills() ? number(kernel.code.spill_stores) + "+" +
                                                            number(kernel.code.spill_loads)
                                                      : "0",
                                 number(kernel.dynamic_shared + kernel.code.static_shared),
                                 times(kernel.shared),
                                 number(kernel.code.code_bytes),
                                 number(kernel.blocks_per_multiprocessor),
                                 number(kernel.load_bytes),
                                 number(kernel.store_bytes)};
  if (kernel.counts)
    for (const std::int64_t count : {kernel.counts->instructions, kernel.counts->sectors,
                                     kernel.counts->bank_conflicts, kernel.counts->barriers})
      cells.push_back(number(count));
  return cells;
}

}  // namespace

std::string gpu_stats_text(const std::vector<ArchStats>& all) {
  std::ostringstream out;
  out << all.front().pass << ':';
  for (const auto& [symbol, size] : all.front().sizes) out << ' ' << symbol << '=' << size;
  out << '\n';
  std::vector<std::string> names;
  Table table;
  std::vector<std::string> head{"kernel",    "part",      "grid",     "threads",
                                "registers", "spilled B", "shared B", "wavefronts",
                                "code B",    "blocks/SM", "loads B",  "stores B"};
  const auto counted = [](const GpuKernelStats& kernel) { return kernel.counts.has_value(); };
  const std::vector<GpuKernelStats>& first = all.front().kernels;
  if (std::any_of(first.begin(), first.end(), counted))
    head.insert(head.end(), {"instructions", "sectors", "bank conflicts", "barriers"});
  table.row(std::move(head));
  for (const ArchStats& stats : all)
    for (const GpuKernelStats& kernel : stats.kernels)
      if (std::find(names.begin(), names.end(), kernel.name) == names.end())
        names.push_back(kernel.name);
  for (const std::string& name : names)
    for (const ArchStats& stats : all)
      for (const GpuKernelStats& kernel : stats.kernels) {
        if (kernel.name != name) continue;
        if (kernel.problem.empty())
          table.row(cells_of(kernel, stats));
        else
          table.row({name + "  " + stats.target.architecture + "  cannot be: " + kernel.problem});
      }
  out << table.text();
  for (const ArchStats& stats : all) {
    const Sums sums = sums_of(stats);
    out << stats.target.architecture << ": " << stats.kernels.size() << " launches, "
        << sums.spilling << " of them spill, " << sums.code_bytes << " bytes of code, loads "
        << sums.load_bytes << " and stores " << sums.store_bytes << " bytes, temporaries "
        << stats.temporary_bytes << " bytes; " << stats.schedule << '\n';
  }
  return out.str();
}

std::string gpu_stats_json(const std::vector<ArchStats>& all) {
  json parts = json::array();
  for (const ArchStats& stats : all) {
    json kernels = json::array();
    for (const GpuKernelStats& kernel : stats.kernels) {
      json one{{"name", kernel.name}, {"kind", kernel.kind}};
      if (!kernel.problem.empty()) {
        one["problem"] = kernel.problem;
        kernels.push_back(std::move(one));
        continue;
      }
      one.update({{"entry", kernel.entry},
                  {"grid", kernel.grid},
                  {"threads", kernel.threads},
                  {"registers", kernel.code.registers},
                  {"spill_store_bytes", kernel.code.spill_stores},
                  {"spill_load_bytes", kernel.code.spill_loads},
                  {"stack_bytes", kernel.code.stack},
                  {"dynamic_shared_bytes", kernel.dynamic_shared},
                  {"static_shared_bytes", kernel.code.static_shared},
                  {"shared_wavefronts", kernel.shared.wavefronts},
                  {"shared_wavefronts_ideal", kernel.shared.ideal},
                  {"code_bytes", kernel.code.code_bytes},
                  {"blocks_per_multiprocessor", kernel.blocks_per_multiprocessor},
                  {"load_bytes", kernel.load_bytes},
                  {"store_bytes", kernel.store_bytes}});
      if (kernel.counts)
        one["counts"] = {{"instructions", kernel.counts->instructions},
                         {"sectors", kernel.counts->sectors},
                         {"bank_conflicts", kernel.counts->bank_conflicts},
                         {"barriers", kernel.counts->barriers}};
      kernels.push_back(std::move(one));
    }
    const Sums sums = sums_of(stats);
    parts.push_back({{"arch", stats.target.architecture},
                     {"schedule", stats.schedule},
                     {"launches", stats.kernels.size()},
                     {"code_bytes", sums.code_bytes},
                     {"load_bytes", sums.load_bytes},
                     {"store_bytes", sums.store_bytes},
                     {"temporaries_bytes", stats.temporary_bytes},
                     {"kernels", std::move(kernels)}});
  }
  const json whole{
      {"pass", all.front().pass}, {"sizes", all.front().sizes}, {"parts", std::move(parts)}};
  return whole.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace krait
