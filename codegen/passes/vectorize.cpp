// vectorize: decides which accesses move 8 or 16 bytes at once.
//
// What: where a thread holds two or four neighbours of a tile side by side, and an access runs
// along them element by element, it takes them at once if they start at a multiple of their size
// at every point: by strides, offsets and places in shared memory that are compiled in. Addresses
// of tensors and strides that are arguments are left to a test that the kernel makes once a
// statement, noted beside the width. Operands of a product run along the sum where they can.
// Why here: last, when shared memory has its places and its rows are moved apart.
// Limits: f32; guards may not part neighbours: their bounds are multiples; sums by scans go one by
// one. The verifier knows nothing of how a width was found: it asks what every lane, warp and
// register adds.
#include <algorithm>
#include <map>

#include "codegen/passes/cuda_passes.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// Elements that an address moves by for one more of a variable: a constant and arguments.
struct Move {
  std::int64_t constant = 0;
  std::map<int, std::int64_t> arguments;  // argument, factor
};

Move move_along(const TileProgram& program, const Access& access, int var) {
  Move move;
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    const std::int64_t factor = access.index[d].factor_of(var);
    const Stride& stride = buffer.dims[d].stride;
    if (factor == 0) continue;
    if (stride.is_constant())
      move.constant += factor * stride.constant;
    else
      move.arguments[stride.argument] += factor;
  }
  std::erase_if(move.arguments, [](const auto& one) { return one.second == 0; });
  return move;
}

/// Whether a bound may lie between `elements` neighbours along `var`: not where they start at a
/// multiple of their number and the bound is one too.
bool parted_along(const TileProgram& program, const Access& access, int var, int elements) {
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
  return std::any_of(access.guarded.begin(), access.guarded.end(), [&](int dim) {
    const Index& index = access.index[static_cast<std::size_t>(dim)];
    if (index.factor_of(var) == 0) return false;
    const Extent& bound = buffer.dims[static_cast<std::size_t>(dim)].extent;
    if (!bound.is_constant() || bound.offset % elements != 0 || index.constant % elements != 0)
      return true;
    return std::any_of(index.terms.begin(), index.terms.end(), [&](const Index::Term& term) {
      return term.var == var ? term.factor != 1 : term.factor % elements != 0;
    });
  });
}

/// What does not vary within a statement: shared memory's place and indices of outer variables.
bool base_is_multiple(const TileProgram& program, const Access& access, const std::vector<int>& own,
                      std::int64_t elements) {
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
  const Buffer& root = program.buffers[static_cast<std::size_t>(memory_of(program, access.buffer))];
  if (root.stages > 1 && slot_bytes(root) % (elements * size_in_bytes(buffer.dtype)) != 0)
    return false;
  if (root.scratch_offset < 0 || root.dtype != buffer.dtype ||
      root.scratch_offset % (elements * size_in_bytes(buffer.dtype)) != 0 ||
      memory_offset(program, access.buffer) % elements != 0)
    return false;
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    const std::int64_t stride = buffer.dims[d].stride.constant;
    if (access.index[d].constant * stride % elements != 0) return false;
    for (const auto& [var, factor] : access.index[d].terms)
      if (!one_of(var, own) && factor * stride % elements != 0) return false;
  }
  return true;
}

/// `elements` along `var` at once, where that can be; 1 where not.
Wide width_along(const TileProgram& program, const Access& access, const std::vector<int>& own,
                 int var, int elements) {
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
  const bool shared = buffer.space == Space::shared;
  if ((!shared && buffer.space != Space::global) || buffer.dtype != DType::f32 || elements == 1 ||
      parted_along(program, access, var, elements))
    return {};
  const Move along = move_along(program, access, var);
  if (along.constant != 1 || !along.arguments.empty()) return {};
  if (shared && !base_is_multiple(program, access, own, elements)) return {};
  Wide wide{var, elements, !shared, {}};
  for (int other : own) {
    if (other == var) continue;
    const Move move = move_along(program, access, other);
    if (move.constant % elements != 0) return {};
    for (const auto& [argument, factor] : move.arguments)
      if (factor % elements != 0 && !one_of(argument, wide.strides_tested))
        wide.strides_tested.push_back(argument);
  }
  std::sort(wide.strides_tested.begin(), wide.strides_tested.end());
  return wide;
}

class Vectorizer {
 public:
  explicit Vectorizer(TileProgram& program) : program_(program) {}
  void run() { walk(program_.body); }

 private:
  void walk(std::vector<Statement>& body) {
    for (Statement& statement : body) std::visit([&](auto& s) { widen(statement, s); }, statement);
  }

  int extent(int var) const {
    return static_cast<int>(program_.vars[static_cast<std::size_t>(var)].extent.offset);
  }

  /// The variable that a thread holds neighbours of.
  int neighbour(const Statement& statement) const {
    const std::optional<Layout>& layout = *layout_of(statement);
    return layout->neighbours() == 1
               ? -1
               : points_of(statement).vars[static_cast<std::size_t>(layout->registers[0].dim)];
  }

  template <typename S>
  void widen(Statement& statement, S& s) {
    if constexpr (requires { s.body; }) {
      walk(s.body);
    } else if constexpr (std::is_same_v<S, Mma>) {
      const int var = neighbour(statement);
      const std::vector<int> all = points_of(statement).all();
      for (Access* operand : {&s.left, &s.right}) {
        if (extent(s.sum.back()) % 4 == 0)
          operand->wide = width_along(program_, *operand, all, s.sum.back(), 4);
        const std::vector<int> vars = points_of(statement).vars;
        for (std::size_t d = 0; d < vars.size() && operand->wide.elements == 1; ++d)
          if (const int loop = s.layout->side_by_side(static_cast<int>(d)); loop >= 0)
            operand->wide = width_along(
                program_, *operand, all, vars[d],
                static_cast<int>(s.layout->registers[static_cast<std::size_t>(loop)].count));
      }
      if (var >= 0)
        s.destination.wide = width_along(program_, s.destination, points_of(statement).vars, var,
                                         s.layout->neighbours());
    } else if constexpr (requires { s.layout; } && !std::is_same_v<S, ScanTile>) {
      const int var = neighbour(statement);
      const std::vector<int> own = own_variables(statement);
      if (var < 0) return;
      if constexpr (std::is_same_v<S, ReduceTile>)
        if (one_of(var, s.domain)) return;
      if constexpr (std::is_same_v<S, Copy>)
        if (s.keep && !s.source.guarded.empty()) return;
      for_each_access(statement, [&](Access& access, Use use) {
        if (std::is_same_v<S, ReduceTile> && use != Use::read) return;
        access.wide = width_along(program_, access, own, var, s.layout->neighbours());
      });
    }
  }

  TileProgram& program_;
};

// ---------------------------------------------------------------------------------- the verifier
class Checker {
 public:
  Checker(const TileProgram& program, const Statement& statement)
      : program_(program), statement_(statement), points_(points_of(statement)) {}

  void check(const Access& access) const {
    const Wide& wide = access.wide;
    const Buffer& buffer = program_.buffers[static_cast<std::size_t>(access.buffer)];
    const std::optional<Layout>* layout = layout_of(statement_);
    require(layout != nullptr && *layout, access, "without a layout");
    require(wide.elements == 2 || wide.elements == 4, access, "no such width");
    require(buffer.space == Space::shared || buffer.space == Space::global, access,
            "no memory with addresses");
    require(buffer.dtype == DType::f32, access, "not of f32");
    require(buffer.space == Space::shared
                ? base_is_multiple(program_, access, points_.all(), wide.elements)
                : wide.address_tested,
            access, "nothing says that its first element is aligned");
    require(!parted_along(program_, access, wide.var, wide.elements), access,
            "a guard may part its neighbours");
    if (one_of(wide.var, points_.summed)) {
      const auto size = program_.vars[static_cast<std::size_t>(wide.var)].extent.offset;
      require(size % wide.elements == 0, access, "the sum does not divide");
    } else {
      const int loop = neighbour_loop(**layout, wide.var);
      require(loop >= 0 &&
                  (*layout)->registers[static_cast<std::size_t>(loop)].count == wide.elements &&
                  (loop == 0 || std::holds_alternative<Mma>(statement_)),
              access, "a thread holds no such neighbours");
    }
    check_points(**layout, access);
  }

 private:
  int neighbour_loop(const Layout& layout, int var) const {
    const auto found = std::find(points_.vars.begin(), points_.vars.end(), var);
    return found == points_.vars.end()
               ? -1
               : layout.side_by_side(static_cast<int>(found - points_.vars.begin()));
  }

  void require(bool holds, const Access& access, const char* why) const {
    KRAIT_ASSERT(holds, "tile program ", program_.name, ": ", access.wide.elements, " at once of ",
                 program_.buffers[static_cast<std::size_t>(access.buffer)].name, ": ", why, "\n",
                 to_text(program_, statement_));
  }

  /// Every first neighbour of every thread starts at a multiple, and the others follow it.
  void check_points(const Layout& layout, const Access& access) const {
    const int elements = access.wide.elements;
    std::vector<Move> moves;
    for (int var : points_.vars) moves.push_back(move_along(program_, access, var));
    for (int var : points_.summed) {
      const Move move = move_along(program_, access, var);
      if (var == access.wide.var) {
        require(move.constant == 1 && move.arguments.empty(), access, "neighbours lie apart");
        continue;
      }
      const auto size = program_.vars[static_cast<std::size_t>(var)].extent.offset;
      for (std::int64_t at = 0; at < std::min<std::int64_t>(size, elements); ++at)
        check_sum(access, at * move.constant, scaled(move.arguments, at));
    }
    // Addresses are linear, and what a lane, a warp or a register adds to a point is the same
    // everywhere: it is asked alone, where it alone stays inside of the tile.
    std::vector<std::int64_t> origin(points_.vars.size(), 0);
    const auto check_at = [&](int dim, std::int64_t position) {
      std::vector<std::int64_t> point = origin;
      if (dim >= 0) point[static_cast<std::size_t>(dim)] = position;
      if (padding(layout, point)) return;
      const Move sum = sum_at(point, moves);
      check_sum(access, sum.constant, sum.arguments);
    };
    check_at(-1, 0);
    for (const auto* bits : {&layout.lanes, &layout.warps})
      for (const Layout::Bit& bit : *bits) check_at(bit.dim, bit.stride);
    const bool along_registers = !one_of(access.wide.var, points_.summed);
    const int at = neighbour_loop(layout, access.wide.var);
    for (std::size_t i = 0; i < layout.registers.size(); ++i) {
      const Layout::Loop& loop = layout.registers[i];
      const std::int64_t step = along_registers && static_cast<int>(i) == at ? elements : 1;
      if (loop.count > step) check_at(loop.dim, step * loop.stride);
    }
    if (!along_registers) return;
    const Layout::Loop& side = layout.registers[static_cast<std::size_t>(at)];
    const Move start = sum_at(origin, moves);
    for (int next = 1; next < elements; ++next) {
      std::vector<std::int64_t> point = origin;
      point[static_cast<std::size_t>(side.dim)] = next * side.stride;
      const Move neighbour = sum_at(point, moves);
      require(neighbour.constant == next && neighbour.arguments == start.arguments, access,
              "neighbours lie apart");
    }
  }

  /// No one computes such a point; a product reads the last of the tile there, which is a point
  /// too.
  static bool padding(const Layout& layout, const std::vector<std::int64_t>& point) {
    for (std::size_t d = 0; d < point.size(); ++d)
      if (point[d] >= layout.extents[d]) return true;
    return false;
  }

  /// Where the element of a point lies.
  static Move sum_at(const std::vector<std::int64_t>& point, const std::vector<Move>& moves) {
    Move sum;
    for (std::size_t d = 0; d < point.size(); ++d) {
      sum.constant += point[d] * moves[d].constant;
      for (const auto& [argument, factor] : moves[d].arguments)
        sum.arguments[argument] += factor * point[d];
    }
    return sum;
  }

  static std::map<int, std::int64_t> scaled(std::map<int, std::int64_t> arguments,
                                            std::int64_t by) {
    for (auto& [argument, factor] : arguments) factor *= by;
    return arguments;
  }

  void check_sum(const Access& access, std::int64_t constant,
                 const std::map<int, std::int64_t>& arguments) const {
    require(constant % access.wide.elements == 0, access, "a point is not aligned");
    for (const auto& [argument, factor] : arguments)
      require(factor % access.wide.elements == 0 || one_of(argument, access.wide.strides_tested),
              access, "a stride that is not tested may not be a multiple");
  }

  const TileProgram& program_;
  const Statement& statement_;
  const Points points_;
};

}  // namespace

void vectorize(TileProgram& program) { Vectorizer(program).run(); }

void verify_vectorize(const TileProgram& program) {
  visit_statements(program.body, [&](const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use) {
      if (access.wide.elements != 1) Checker(program, statement).check(access);
    });
  });
}

}  // namespace krait
