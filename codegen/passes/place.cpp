// place: says which thread computes what, and what stands in registers.
//
// What: the number of warps; a layout for every statement; what threads alone touch becomes
// fragments (fragments.cpp), and lone numbers that all threads compute alike become scalars. A
// product gives each thread a block of rows and columns.
// Why here: first of the passes for GPUs, since all others ask which thread does what.
// Limits: products by multiply-adds, no tensor cores; a sum of one statement is never shared by
// warps (share_sums.cpp makes two); a scan is walked by one thread a point of its domain.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/fragments.h"
#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

using Body = std::vector<Statement>;

void for_each_statement(Body& body, const std::function<void(Statement&)>& f) {
  for (Statement& statement : body) {
    f(statement);
    if (For* loop = std::get_if<For>(&statement)) for_each_statement(loop->body, f);
  }
}

class Placer {
 public:
  Placer(TileProgram& program, const CudaTarget& target) : program_(program), target_(target) {}

  void run() {
    see_through_views(program_);
    program_.warps = program_.warps > 0 ? std::min(program_.warps, target_.warps) : warps();
    share_sums(program_);
    scalars();
    for_each_statement(program_.body, [&](Statement& statement) {
      if (Mma* mma = std::get_if<Mma>(&statement)) mma->layout = product_layout(*mma);
    });
    make_fragments(program_, target_,
                   [&](const Statement& statement) { return own_layout(statement); });
    for_each_statement(program_.body, [&](Statement& statement) { lay_out(statement); });
  }

 private:
  std::int64_t extent(int var) const {
    return program_.vars[static_cast<std::size_t>(var)].extent.offset;
  }
  std::vector<std::int64_t> extents(const std::vector<int>& vars) const {
    std::vector<std::int64_t> all;
    for (int var : vars) all.push_back(extent(var));
    return all;
  }

  /// Where the program wishes for none: as many as give every thread eight points of the largest
  /// statement, at least one.
  int warps() const {
    std::int64_t most = 1;
    visit_statements(program_.body, [&](const Statement& statement) {
      std::int64_t points = 1;
      const Mma* mma = std::get_if<Mma>(&statement);
      for (int var : own_variables(statement))
        if (mma == nullptr || !one_of(var, mma->sum)) points *= extent(var);
      most = std::max(most, points);
    });
    const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(1, most / (32 * 8)));
    return static_cast<int>(
        std::min<std::uint64_t>(std::bit_ceil(wanted), static_cast<std::uint64_t>(target_.warps)));
  }

  /// Aliases, and what they alias.
  std::set<int> aliased() const {
    std::set<int> found;
    for (std::size_t i = 0; i < program_.buffers.size(); ++i)
      if (const int of = program_.buffers[i].alias_of; of >= 0)
        found.insert({static_cast<int>(i), of});
    return found;
  }

  // ------------------------------------------------------------------------------------- scalars
  /// Numbers without a dimension that maps alone compute, from what all threads can read.
  void scalars() {
    std::map<int, int> writers;  // buffers written by something else count twice
    const std::set<int> shared = aliased();
    visit_statements(program_.body, [&](const Statement& statement) {
      const bool uniform =
          (std::holds_alternative<MapTile>(statement) || std::holds_alternative<Fill>(statement) ||
           std::holds_alternative<Copy>(statement)) &&
          points_of(statement) == 1;
      for_each_access(statement, [&](const Access& access, Use use) {
        if (use != Use::read) writers[access.buffer] += uniform ? 0 : 1;
      });
    });
    for (auto& [number, others] : writers) {
      Buffer& buffer = program_.buffers[static_cast<std::size_t>(number)];
      if (buffer.space == Space::shared && others == 0 && !shared.count(number) &&
          elements_of(buffer) == 1)
        buffer.space = Space::scalar;
    }
  }

  static std::int64_t elements_of(const Buffer& buffer) {
    std::int64_t count = 1;
    for (const Dim& dim : buffer.dims) count *= dim.extent.is_constant() ? dim.extent.offset : 2;
    return count;
  }

  std::int64_t points_of(const Statement& statement) const {
    std::int64_t points = 1;
    for (int var : own_variables(statement)) points *= extent(var);
    return points;
  }

  // ------------------------------------------------------------------------------------ products
  std::int64_t stride_along(const Access& access, int var) const {
    const Buffer& buffer = program_.buffers[static_cast<std::size_t>(access.buffer)];
    std::int64_t stride = 0;
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      const std::int64_t factor = access.index[d].factor_of(var);
      if (factor == 0) continue;
      if (!buffer.dims[d].stride.is_constant()) return -1;  // unknown
      stride += factor * buffer.dims[d].stride.constant;
    }
    return stride;
  }

  static std::vector<int> domain_of(const Mma& mma) {
    std::vector<int> vars = mma.batch;
    vars.insert(vars.end(), mma.rows.begin(), mma.rows.end());
    vars.insert(vars.end(), mma.columns.begin(), mma.columns.end());
    return vars;
  }

  Layout product_layout(const Mma& mma) const {
    const std::vector<int> vars = domain_of(mma);
    const std::vector<std::int64_t> sizes = extents(vars);
    std::vector<int> order(vars.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<int>(order.size() - 1 - i);
    std::int64_t points = 1;
    for (std::int64_t size : sizes) points *= size;
    const std::int64_t each = std::max<std::int64_t>(1, points / (32 * program_.warps));
    // Four columns, or eight where there are so many results, and up to eight rows a thread.
    // Columns that the right operand holds side by side come in vectors of four; others lie far
    // apart, so that neighbouring lanes read neighbouring rows.
    constexpr std::int64_t vector = 4, square = 8;
    const std::int64_t most_columns = each >= square * square ? square : vector;
    const int columns = mma.columns.empty() ? -1 : mma.columns.back();
    const int rows = mma.rows.empty() ? -1 : mma.rows.back();
    const std::int64_t wide =
        columns < 0 ? 1 : std::min<std::int64_t>({most_columns, each, extent(columns)});
    const std::int64_t high =
        rows < 0 ? 1
                 : std::min<std::int64_t>(
                       {8, std::max<std::int64_t>(1, each / std::max<std::int64_t>(1, wide)),
                        extent(rows)});
    const bool side_by_side = columns >= 0 && stride_along(mma.right, columns) == 1;
    std::vector<Layout::Loop> first;
    const auto dim_of = [&](int var) {
      return static_cast<int>(std::find(vars.begin(), vars.end(), var) - vars.begin());
    };
    const auto power = [](std::int64_t n) {
      return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
    };
    const std::int64_t near = side_by_side ? std::min(vector, power(wide)) : 1;
    if (columns >= 0) first.push_back({dim_of(columns), 1, power(wide) / near});
    if (rows >= 0) first.push_back({dim_of(rows), 1, power(high)});
    const Layout layout = deal(sizes, order, near, program_.warps, first);
    // Rows that the left operand holds side by side are a vector too, where no other product has a
    // say in who holds what.
    const bool rows_side_by_side = rows >= 0 && stride_along(mma.left, rows) == 1;
    return rows_side_by_side && products() == 1 ? brought_together(layout, dim_of(rows)) : layout;
  }

  int products() const {
    int count = 0;
    visit_statements(program_.body, [&](const Statement& statement) {
      count += std::holds_alternative<Mma>(statement) ? 1 : 0;
    });
    return count;
  }

  /// The same points for each warp, but four that a thread has far apart along the dimension stand
  /// side by side.
  static Layout brought_together(Layout layout, int dim) {
    constexpr std::int64_t wide = 4;
    const auto kept = std::find_if(layout.registers.begin(), layout.registers.end(),
                                   [&](const Layout::Loop& loop) { return loop.dim == dim; });
    if (kept == layout.registers.end() || kept->count % wide != 0 || kept->stride == 1)
      return layout;
    for (auto* bits : {&layout.lanes, &layout.warps})
      for (Layout::Bit& bit : *bits)
        if (bit.dim == dim) bit.stride *= wide;
    const Layout::Loop rest{dim, kept->stride * wide, kept->count / wide};
    *kept = {dim, 1, wide};
    if (rest.count > 1) layout.registers.insert(kept + 1, rest);
    return layout;
  }

  // ------------------------------------------------------------------------------------- the rest
  /// Variables in the order in which points are dealt out: along which memory is read side by side
  /// first, then as they stand, the last one first.
  std::vector<int> dealt_order(const std::vector<int>& vars,
                               const std::vector<const Access*>& accesses,
                               std::int64_t& vector) const {
    std::vector<int> order;
    for (std::size_t i = vars.size(); i-- > 0;) order.push_back(static_cast<int>(i));
    int best = -1;
    std::int64_t best_score = 0;
    for (int dim : order) {
      const int var = vars[static_cast<std::size_t>(dim)];
      if (extent(var) == 1) continue;
      std::int64_t score = 0;
      for (const Access* access : accesses)
        if (stride_along(*access, var) == 1)
          score += program_.buffers[static_cast<std::size_t>(access->buffer)].space == Space::global
                       ? 8
                       : 1;
      if (score > best_score) {
        best = dim;
        best_score = score;
      }
    }
    vector = 1;
    if (best >= 0) {
      std::erase(order, best);
      order.insert(order.begin(), best);
      const std::int64_t size = extent(vars[static_cast<std::size_t>(best)]);
      vector = size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
    }
    return order;
  }

  Layout elementwise(const std::vector<int>& vars,
                     const std::vector<const Access*>& accesses) const {
    std::int64_t vector = 1;
    const std::vector<int> order = dealt_order(vars, accesses, vector);
    // Threads come before vectors where there are too few points for both.
    std::int64_t points = 1;
    for (int var : vars) points *= split_extent(extent(var)).power;
    while (vector > 1 && points < vector * 32 * program_.warps) vector /= 2;
    return deal(extents(vars), order, vector, program_.warps);
  }

  void lay_out(Statement& statement) {
    std::optional<Layout>* layout = layout_of(statement);
    if (layout != nullptr && !*layout) *layout = own_layout(statement);
  }

  Layout own_layout(const Statement& statement) const {
    std::vector<const Access*> accesses;
    for_each_access(statement, [&](const Access& access, Use) { accesses.push_back(&access); });
    if (const ReduceTile* reduce = std::get_if<ReduceTile>(&statement))
      return sum_layout(*reduce, accesses);
    if (const ScanTile* scan = std::get_if<ScanTile>(&statement))
      return deal(extents(scan->domain), backwards(scan->domain.size()), 1, program_.warps);
    return elementwise(own_variables(statement), accesses);
  }

  static std::vector<int> backwards(std::size_t count) {
    std::vector<int> order;
    for (std::size_t i = count; i-- > 0;) order.push_back(static_cast<int>(i));
    return order;
  }

  /// Lanes go to what is summed, so that they read side by side and add up among themselves; where
  /// the domain is what memory holds side by side, to the domain. Warps go to the domain alone.
  Layout sum_layout(const ReduceTile& s, const std::vector<const Access*>& accesses) const {
    std::vector<int> vars = s.domain;
    vars.insert(vars.end(), s.reduced.begin(), s.reduced.end());
    std::int64_t vector = 1;
    const std::vector<int> order = dealt_order(vars, accesses, vector);
    const int domain = static_cast<int>(s.domain.size());
    std::vector<int> summed, kept;
    for (int dim : order) (dim < domain ? kept : summed).push_back(dim);
    std::int64_t kept_points = 1;
    for (int var : s.domain) kept_points *= extent(var);
    const bool along_domain = !order.empty() && order[0] < domain && kept_points >= 32;
    const std::vector<std::int64_t> sizes = extents(vars);
    std::vector<int> lanes_first = along_domain ? kept : summed;
    const std::vector<int>& then = along_domain ? summed : kept;
    Layout layout;
    if (along_domain) {
      // All of the domain before the first summed variable: sums stay in a thread or a warp's
      // lanes.
      lanes_first.insert(lanes_first.end(), then.begin(), then.end());
      layout = deal(sizes, lanes_first, 1, program_.warps, {}, summed);
    } else {
      lanes_first.insert(lanes_first.end(), then.begin(), then.end());
      layout = deal(sizes, lanes_first, vector, program_.warps, {}, summed);
    }
    return layout;
  }

  TileProgram& program_;
  const CudaTarget& target_;
};

}  // namespace

void place(TileProgram& program, const CudaTarget& target) { Placer(program, target).run(); }

}  // namespace krait
