#include "runtime/cli/kernel_stats.h"

#include <algorithm>

#include "codegen/build.h"
#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"

namespace krait {
namespace {

std::int64_t operators_of(const std::vector<Scalar>& expressions) {
  std::int64_t count = 0;
  for (const Scalar& expression : expressions)
    for (const ScalarNode& node : expression.nodes()) count += arity(node.op) > 0;
  return count;
}

class Counter {
 public:
  Counter(const TileProgram& program, const Sizes& sizes) : program_(program), sizes_(sizes) {
    stats_.name = program.name;
    stats_.scratch_bytes = program.scratch_bytes;
    for (const int var : program.grid) stats_.grid *= extent(var);
  }

  KernelStats run() {
    count(program_.body, stats_.grid);
    return std::move(stats_);
  }

 private:
  std::int64_t extent(int var) const {
    return program_.vars[static_cast<std::size_t>(var)].extent.value(sizes_);
  }
  std::int64_t points(const std::vector<int>& vars) const {
    std::int64_t product = 1;
    for (const int var : vars) product *= extent(var);
    return product;
  }

  void count(const std::vector<Statement>& body, std::int64_t times) {
    for (const Statement& statement : body) {
      count_memory(statement, times);
      std::visit([&](const auto& s) { count(s, times); }, statement);
    }
  }

  void count_memory(const Statement& statement, std::int64_t times) {
    const std::vector<int> own = own_variables(statement);
    for_each_access(statement, [&](const Access& access, Use use) {
      const Buffer& buffer = program_.buffers[static_cast<std::size_t>(access.buffer)];
      if (buffer.space != Space::global) return;
      std::int64_t bytes = times * size_in_bytes(buffer.dtype);
      for (const int var : own) {
        const bool occurs = std::any_of(access.index.begin(), access.index.end(),
                                        [&](const Index& i) { return i.factor_of(var) != 0; });
        if (occurs) bytes *= extent(var);
      }
      // What counts in one position of a run only.
      for (std::size_t d = 0; d < access.index.size(); ++d)
        for (const Index::Term& term : access.index[d].terms)
          if (const Var& var = program_.vars[term.var];
              var.rest && buffer.dims[d].extent == Extent::constant(1))
            bytes /= var.base;
      if (use != Use::write) stats_.load_bytes += bytes;
      if (use != Use::read) stats_.store_bytes += bytes;
    });
  }

  template <typename S>  // For or Prefetch
  std::int64_t turns(const S& s) const {
    return (extent(s.var) + s.blocks - 1) / s.blocks;
  }

  void count(const For& loop, std::int64_t times) {
    ++stats_.statements["for"];
    // Of a part of a run, as many rounds as it has on average.
    count(loop.body, loop.until >= 0 ? times * (loop.run - 1) / 2 : times * turns(loop));
  }
  void count(const Copy&, std::int64_t) { ++stats_.statements["copy"]; }
  void count(const Fill&, std::int64_t) { ++stats_.statements["fill"]; }
  void count(const Prefetch& s, std::int64_t times) {
    ++stats_.statements["prefetch"];
    // For the first turn, or in each turn but the last.
    count(s.body, s.first ? times : times / turns(s) * (turns(s) - 1));
  }
  void count(const Commit&, std::int64_t) { ++stats_.statements["commit"]; }
  void count(const Wait&, std::int64_t) { ++stats_.statements["wait"]; }
  void count(const Barrier&, std::int64_t) { ++stats_.statements["barrier"]; }
  void count(const Mma& s, std::int64_t times) {
    ++stats_.statements["mma"];
    const std::int64_t flops =
        2 * times * points(s.batch) * points(s.rows) * points(s.columns) * points(s.sum);
    stats_.flops += flops;
    stats_.product_flops += flops;
  }
  void count(const MapTile& s, std::int64_t times) {
    ++stats_.statements["map"];
    stats_.flops += times * points(s.domain) * operators_of(s.results);
  }
  void count(const ReduceTile& s, std::int64_t times) {
    ++stats_.statements["reduce"];
    stats_.flops += times * points(s.domain) * points(s.reduced) *
                    (operators_of(s.results) + static_cast<std::int64_t>(s.results.size()));
  }
  void count(const ScanTile& s, std::int64_t times) {
    ++stats_.statements["scan"];
    stats_.flops += times * points(s.domain) * extent(s.along);
  }

  const TileProgram& program_;
  const Sizes& sizes_;
  KernelStats stats_;
};

}  // namespace

std::string_view name(PlannedKernel::Kind kind) {
  switch (kind) {
    case PlannedKernel::Kind::fused: return "fused";
    case PlannedKernel::Kind::product: return "product";
    case PlannedKernel::Kind::finish: return "finish";
  }
  return "";
}

KernelStats kernel_stats(const TileProgram& program, const Sizes& sizes) {
  return Counter(program, sizes).run();
}

std::vector<KernelStats> plan_stats(const Plan& plan, const Sizes& sizes,
                                    const VectorTarget& target) {
  std::vector<KernelStats> all;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    BuiltKernel built = build(plan, static_cast<int>(k));
    run_passes(built.program, target, host_passes());
    all.push_back(kernel_stats(built.program, sizes));
    all.back().name = plan.kernels[k].name;
    all.back().kind = name(plan.kernels[k].kind);
  }
  return all;
}

}  // namespace krait
