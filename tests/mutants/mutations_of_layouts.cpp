// Which thread holds what: lanes, warps, registers, replicas.
#include <algorithm>

#include "codegen/passes/meeting.h"
#include "codegen/tile/access.h"
#include "tests/mutants/mutation.h"

namespace krait::mutants {
namespace {

using Places = std::vector<Place>;

bool touches_fragment(const TileProgram& program, const Statement& statement) {
  bool any = false;
  for_each_access(statement, [&](const Access& access, Use) {
    any = any || program.buffers[static_cast<std::size_t>(access.buffer)].space == Space::fragment;
  });
  return any;
}

/// Whether an access to a fragment runs along both of these of the statement's variables: the order
/// of others in a thread's registers is nobody's business.
bool orders_fragment(const TileProgram& program, const Statement& statement, int a, int b) {
  const std::vector<int> vars = layout_variables(statement);
  const auto runs = [&](const Access& access, int dim) {
    return std::any_of(access.index.begin(), access.index.end(), [&](const Index& index) {
      return index.factor_of(vars[static_cast<std::size_t>(dim)]) != 0;
    });
  };
  bool any = false;
  for_each_access(statement, [&](const Access& access, Use) {
    const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
    any = any || (buffer.space == Space::fragment && runs(access, a) && runs(access, b));
  });
  return any;
}

/// A place for every statement with a layout that `wanted` holds of, where f changes that.
Places at_layouts(const TileProgram& program,
                  const std::function<bool(const Statement&, const Layout&)>& wanted,
                  const std::function<void(Layout&)>& f) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    const std::optional<Layout>* layout = layout_of(statement);
    if (layout == nullptr || !wanted(statement, **layout)) return;
    places.push_back({described(program, number, statement),
                      [=](TileProgram& mutant) { f(**layout_of(statement_of(mutant, number))); }});
  });
  return places;
}

Places swapped_lanes(const TileProgram& program) {
  return at_layouts(
      program,
      [&](const Statement& statement, const Layout& layout) {
        return touches_fragment(program, statement) && !(layout.lanes[0] == layout.lanes[1]);
      },
      [](Layout& layout) { std::swap(layout.lanes[0], layout.lanes[1]); });
}

Places swapped_lane_and_warp(const TileProgram& program) {
  return at_layouts(
      program,
      [&](const Statement& statement, const Layout& layout) {
        return touches_fragment(program, statement) && !layout.warps.empty() &&
               !(layout.lanes[4] == layout.warps[0]);
      },
      [](Layout& layout) { std::swap(layout.lanes[4], layout.warps[0]); });
}

Places swapped_registers(const TileProgram& program) {
  return at_layouts(
      program,
      [&](const Statement& statement, const Layout& layout) {
        return layout.registers.size() > 1 && layout.registers[0].dim != layout.registers[1].dim &&
               orders_fragment(program, statement, layout.registers[0].dim,
                               layout.registers[1].dim);
      },
      [](Layout& layout) { std::swap(layout.registers[0], layout.registers[1]); });
}

Places lost_lanes(const TileProgram& program) {
  return at_layouts(
      program, [](const Statement&, const Layout& layout) { return layout.lanes[2].dim >= 0; },
      [](Layout& layout) { layout.lanes[2] = {}; });
}

/// The number of the summed dimension, -1 where nothing is summed.
int summed_dim(const Statement& statement) {
  const ReduceTile* sum = std::get_if<ReduceTile>(&statement);
  return sum == nullptr ? -1 : static_cast<int>(sum->domain.size());
}

/// Replicas hold the same points; here they are added up as if they held others.
Places counted_replicas(const TileProgram& program) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    const int summed = summed_dim(statement);
    if (summed < 0 || std::get<ReduceTile>(statement).reduced.empty() ||
        (*layout_of(statement))->replica_lanes() == 0)
      return;
    places.push_back({described(program, number, statement), [=](TileProgram& mutant) {
                        for (Layout::Bit& bit : (*layout_of(statement_of(mutant, number)))->lanes)
                          if (bit.dim < 0) {
                            bit = {summed, 0};
                            break;
                          }
                      }});
  });
  return places;
}

/// Warps cannot add up among each other.
Places sums_across_warps(const TileProgram& program) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    const int summed = summed_dim(statement);
    if (summed < 0) return;
    const Layout& layout = **layout_of(statement);
    const auto lane = std::find_if(layout.lanes.begin(), layout.lanes.end(),
                                   [&](const Layout::Bit& bit) { return bit.dim >= summed; });
    if (lane == layout.lanes.end() || layout.warps.empty()) return;
    const std::size_t at = static_cast<std::size_t>(lane - layout.lanes.begin());
    places.push_back({described(program, number, statement), [=](TileProgram& mutant) {
                        Layout& found = **layout_of(statement_of(mutant, number));
                        std::swap(found.lanes[at], found.warps[0]);
                      }});
  });
  return places;
}

/// A tile that threads exchange is kept by each for itself.
Places wrong_fragments(const TileProgram& program) {
  Places places;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.space != Space::shared || buffer.alias_of >= 0 || buffer.dims.size() < 2) continue;
    const bool aliased =
        std::any_of(program.buffers.begin(), program.buffers.end(),
                    [&](const Buffer& other) { return other.alias_of == static_cast<int>(i); });
    std::optional<Layout> layout;
    bool reads_elsewhere = false, by_product = false;
    visit_statements(program.body, [&](const Statement& statement) {
      for_each_access(statement, [&](const Access& access, Use use) {
        if (access.buffer != static_cast<int>(i)) return;
        by_product = by_product || std::holds_alternative<ReduceTile>(statement) ||
                     std::holds_alternative<ScanTile>(statement) ||
                     (std::holds_alternative<Mma>(statement) && use == Use::read);
        const std::optional<Layout>& has = *layout_of(statement);
        if (use != Use::read && has->extents.size() == buffer.dims.size()) layout = has;
        reads_elsewhere = reads_elsewhere || (layout && !(*has == *layout));
      });
    });
    // Operands of products stand in shared memory for the emitter; it knows no other place.
    if (aliased || by_product || !layout || !reads_elsewhere) continue;
    places.push_back({"buffer " + buffer.name, [=](TileProgram& mutant) {
                        mutant.buffers[i].space = Space::fragment;
                        mutant.buffers[i].layout = layout;
                      }});
  }
  return places;
}

Places more_warps(const TileProgram& program) {
  Places places{{"the block", [](TileProgram& mutant) { mutant.warps *= 2; }}};
  if (program.warps > 1)
    places.push_back({"the block", [](TileProgram& mutant) { mutant.warps /= 2; }});
  return places;
}

/// After barriers are placed: who writes what changes, where that makes threads meet.
Places other_owners(const TileProgram& program) {
  Places places = at_layouts(
      program,
      [&](const Statement& statement, const Layout& layout) {
        return !touches_fragment(program, statement) && layout.lanes[0].dim >= 0 &&
               layout.lanes[1].dim >= 0 && !std::holds_alternative<ReduceTile>(statement);
      },
      [](Layout& layout) { std::swap(layout.lanes[0], layout.lanes[1]); });
  std::erase_if(places, [&](const Place& place) {
    TileProgram mutant = program;
    place.apply(mutant);
    return !Meetings(mutant).first().has_value();
  });
  return places;
}

}  // namespace

std::vector<Mutation> mutations_of_layouts() {
  return {
      {"two lane bits of a fragment are swapped", "place", swapped_lanes},
      {"a lane bit of a fragment is a warp's", "place", swapped_lane_and_warp},
      {"two register loops of a fragment are swapped", "place", swapped_registers},
      {"a lane bit is lost", "place", lost_lanes},
      {"a sum counts a replica twice", "place", counted_replicas},
      {"a sum is shared by warps", "place", sums_across_warps},
      {"a tile that threads exchange is a fragment", "place", wrong_fragments},
      {"warps that no layout knows", "place", more_warps},
      {"other threads write, behind the barriers' backs", "sync", other_owners},
  };
}

}  // namespace krait::mutants
