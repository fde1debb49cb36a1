// What holds behind place: every point has one thread, and whoever touches a fragment deals its
// points out as the fragment lies.
#include <algorithm>
#include <bit>

#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/fragments.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

class PlaceVerifier {
 public:
  explicit PlaceVerifier(const TileProgram& program) : program_(program) {}

  void run() {
    check(program_.warps >= 1 && std::has_single_bit(static_cast<unsigned>(program_.warps)),
          program_.warps, " warps");
    for (const Buffer& buffer : program_.buffers)
      if (buffer.space == Space::fragment)
        check(buffer.layout.has_value() && buffer.alias_of < 0, buffer.name,
              " is a fragment without a layout, or a view");
    visit_statements(program_.body, [&](const Statement& statement) {
      current_ = &statement;
      const std::optional<Layout>* layout = layout_of(statement);
      if (layout == nullptr) return;
      check(layout->has_value(), "points without a thread");
      check_layout(statement, **layout);
      for_each_access(statement, [&](const Access& access, Use use) {
        const Buffer& buffer = program_.buffers[static_cast<std::size_t>(access.buffer)];
        if (buffer.space == Space::fragment) check_fragment(statement, **layout, access, use);
      });
    });
  }

 private:
  template <typename... Parts>
  void check(bool holds, const Parts&... parts) const {
    if (holds) return;
    std::string where = "tile program " + program_.name + ": " + text(parts...);
    if (current_ != nullptr) where += "\n" + to_text(program_, *current_);
    throw InternalError(where);
  }

  std::int64_t extent(int var) const {
    return program_.vars[static_cast<std::size_t>(var)].extent.offset;
  }

  void check_layout(const Statement& statement, const Layout& layout) const {
    const std::vector<int> vars = layout_variables(statement);
    check(layout.lanes.size() == 5 && 1 << layout.warps.size() == program_.warps,
          "a layout of other threads than the block has");
    const int rank = static_cast<int>(vars.size());
    check(static_cast<int>(layout.extents.size()) == rank, "a layout of other dimensions");
    for (std::size_t d = 0; d < vars.size(); ++d)
      check(layout.extents[d] == extent(vars[d]), "a layout of other extents");
    for (const auto* bits : {&layout.lanes, &layout.warps})
      for (const Layout::Bit& bit : *bits) check(bit.dim < rank, "a bit along nothing");
    for (const Layout::Loop& loop : layout.registers)
      check(loop.dim >= 0 && loop.dim < rank, "a loop along nothing");
    check(layout.covers_once(), "points without a thread, or with two");
    if (const ReduceTile* sum = std::get_if<ReduceTile>(&statement))
      for (const Layout::Bit& bit : layout.warps)
        check(bit.dim < static_cast<int>(sum->domain.size()), "a sum that warps share");
  }

  /// The fragment's own layout, seen along the statement's variables.
  void check_fragment(const Statement& statement, const Layout& layout, const Access& access,
                      Use use) const {
    const Buffer& buffer = program_.buffers[static_cast<std::size_t>(access.buffer)];
    const bool elementwise = std::holds_alternative<MapTile>(statement) ||
                             std::holds_alternative<Fill>(statement) ||
                             std::holds_alternative<Copy>(statement) ||
                             (std::holds_alternative<Mma>(statement) && use != Use::read) ||
                             std::holds_alternative<ReduceTile>(statement);
    check(elementwise, buffer.name, " is a fragment, which other threads cannot read");
    const std::optional<Walked> how = walked(program_, access, layout_variables(statement));
    check(how.has_value(), buffer.name, " is a fragment that is not walked from end to end");
    const std::optional<Layout> by_statement = seen_by(layout, *how, buffer.dims.size());
    const std::optional<Layout> own = seen_of(*buffer.layout, *how);
    const bool agree = by_statement && own && same_threads(*by_statement, *own);
    check(agree, buffer.name, " is dealt out otherwise than it lies");
  }

  const TileProgram& program_;
  const Statement* current_ = nullptr;
};

}  // namespace

void verify_place(const TileProgram& program) { PlaceVerifier(program).run(); }

}  // namespace krait
