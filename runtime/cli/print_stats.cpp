#include "runtime/cli/print_stats.h"

#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

namespace krait {
namespace {

KernelStats sums_of(const std::vector<KernelStats>& stats) {
  KernelStats sums;
  sums.name = "all";
  for (const KernelStats& kernel : stats) {
    sums.flops += kernel.flops;
    sums.product_flops += kernel.product_flops;
    sums.load_bytes += kernel.load_bytes;
    sums.store_bytes += kernel.store_bytes;
  }
  return sums;
}

std::string statements_text(const KernelStats& kernel) {
  std::string all;
  for (const auto& [name, count] : kernel.statements)
    all += (all.empty() ? "" : ", ") + std::to_string(count) + ' ' + name;
  return all;
}

}  // namespace

std::string stats_text(const Plan& plan, const Sizes& sizes, const std::vector<KernelStats>& stats,
                       std::int64_t temporaries) {
  std::ostringstream out;
  out << name(plan.pass) << ':';
  for (const auto& [symbol, size] : sizes) out << ' ' << symbol << '=' << size;
  out << ", " << stats.size() << " of " << plan.kernels.size() << " kernels, temporaries "
      << temporaries << " bytes\n";
  std::size_t width = 6;
  for (const KernelStats& kernel : stats) width = std::max(width, kernel.name.size());
  const auto row = [&](const auto& name, const auto& kind, const auto& grid, const auto& scratch,
                       const auto& flops, const auto& products, const auto& loads,
                       const auto& stores, const std::string& statements) {
    out << std::left << std::setw(static_cast<int>(width)) << name << ' ' << std::setw(8) << kind
        << std::right << std::setw(8) << grid << std::setw(10) << scratch << std::setw(14) << flops
        << std::setw(14) << products << std::setw(13) << loads << std::setw(13) << stores;
    if (!statements.empty()) out << "  " << statements;
    out << '\n';
  };
  row("kernel", "kind", "grid", "scratch B", "flop", "of products", "loads B", "stores B",
      "statements");
  for (const KernelStats& kernel : stats)
    row(kernel.name, kernel.kind, kernel.grid, kernel.scratch_bytes, kernel.flops,
        kernel.product_flops, kernel.load_bytes, kernel.store_bytes, statements_text(kernel));
  const KernelStats sums = sums_of(stats);
  row(sums.name, "", "", "", sums.flops, sums.product_flops, sums.load_bytes, sums.store_bytes, "");
  return out.str();
}

std::string stats_json(const Plan& plan, const Sizes& sizes, const std::vector<KernelStats>& stats,
                       std::int64_t temporaries) {
  nlohmann::json kernels = nlohmann::json::array();
  const auto numbers = [](const KernelStats& kernel) {
    return nlohmann::json{{"flops", kernel.flops},
                          {"product_flops", kernel.product_flops},
                          {"load_bytes", kernel.load_bytes},
                          {"store_bytes", kernel.store_bytes}};
  };
  for (const KernelStats& kernel : stats) {
    nlohmann::json each = numbers(kernel);
    each["name"] = kernel.name;
    each["kind"] = kernel.kind;
    each["grid"] = kernel.grid;
    each["scratch_bytes"] = kernel.scratch_bytes;
    each["statements"] = kernel.statements;
    kernels.push_back(std::move(each));
  }
  nlohmann::json all = numbers(sums_of(stats));
  all["pass"] = name(plan.pass);
  all["schedule"] = to_text(plan.schedule);
  all["sizes"] = sizes;
  all["temporaries_bytes"] = temporaries;
  all["kernels"] = std::move(kernels);
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace krait
