#include "codegen/passes/conflicts.h"

#include <algorithm>

#include "codegen/tile/access.h"

namespace krait {
namespace {

/// Bytes from one value of the variable to the next.
std::int64_t step_of(const TileProgram& program, const Access& access, int var) {
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
  std::int64_t stride = 0;
  for (std::size_t d = 0; d < access.index.size(); ++d)
    stride += access.index[d].factor_of(var) * buffer.dims[d].stride.constant;
  return stride * size_in_bytes(buffer.dtype);
}

/// Of one instruction of a warp: the bytes that each lane starts at, below 0 where it is idle.
SharedTraffic of_lanes(const std::vector<std::int64_t>& addresses, int bytes) {
  const std::size_t together = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  SharedTraffic one{wavefronts(addresses, bytes), 0};
  for (auto first = addresses.begin(); first < addresses.end();
       first += static_cast<std::ptrdiff_t>(together))
    one.ideal += std::any_of(first, first + static_cast<std::ptrdiff_t>(together),
                             [](std::int64_t address) { return address >= 0; });
  return one;
}

SharedTraffic of_access(const TileProgram& program, const Statement& statement,
                        const Layout& layout, const Access& access, bool each_register) {
  const bool product = std::holds_alternative<Mma>(statement);
  const auto [vars, summed] = points_of(statement);
  std::vector<std::int64_t> steps;
  for (int var : vars) steps.push_back(step_of(program, access, var));
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
  const int bytes = size_in_bytes(buffer.dtype) * access.wide.elements;
  bool padded = false;
  for (std::size_t d = 0; d < vars.size(); ++d)
    padded = padded || layout.padded(static_cast<int>(d));
  constexpr std::int64_t start = std::int64_t{1} << 32;  // strides may be negative
  std::vector<std::int64_t> addresses(32, start);
  const auto instruction = [&](std::int64_t reg, int warp) {
    for (int lane = 0; lane < 32; ++lane) {
      const std::vector<std::int64_t> at = layout.point(reg, lane, warp);
      std::int64_t& address = addresses[static_cast<std::size_t>(lane)] = start;
      for (std::size_t d = 0; d < at.size(); ++d) {
        // Products read the last of the tile in place of padding; the others leave it out.
        if (at[d] >= layout.extents[d] && !product) address = -1;
        if (address >= 0) address += std::min(at[d], layout.extents[d] - 1) * steps[d];
      }
    }
    return of_lanes(addresses, bytes);
  };
  // Without padding each bit of the lane adds the same to all that have it.
  const auto first_instruction = [&] {
    if (padded) return instruction(0, 0);
    for (std::size_t bit = 0, count = 1; bit < layout.lanes.size(); ++bit, count *= 2) {
      const auto [dim, stride] = layout.lanes[bit];
      const std::int64_t moved = dim < 0 ? 0 : stride * steps[static_cast<std::size_t>(dim)];
      for (std::size_t lane = 0; lane < count; ++lane)
        addresses[count + lane] = addresses[lane] + moved;
    }
    return of_lanes(addresses, bytes);
  };

  std::int64_t times = 1;  // that all of it is done
  for (int var : summed)
    if (step_of(program, access, var) != 0 || each_register)
      times *= program.vars[static_cast<std::size_t>(var)].extent.offset;
  const bool along_sum = one_of(access.wide.var, summed);
  if (along_sum) times /= access.wide.elements;
  const std::int64_t together = along_sum ? 1 : access.wide.elements;
  const int warps = 1 << layout.warps.size();
  SharedTraffic sum;
  if (padded && each_register) {
    // Some registers and warps have fewer points than others.
    for (int warp = 0; warp < warps; ++warp)
      for (std::int64_t reg = 0; reg < layout.registers_per_thread(); reg += together)
        sum += instruction(reg, warp);
  } else {
    std::int64_t alike = warps;
    for (const Layout::Loop& loop : layout.registers)
      if (each_register || steps[static_cast<std::size_t>(loop.dim)] != 0) alike *= loop.count;
    sum = first_instruction();
    times *= alike / together;
  }
  return {times * sum.wavefronts, times * sum.ideal};
}

SharedTraffic of_body(const TileProgram& program, const std::vector<Statement>& body) {
  SharedTraffic sum;
  for (const Statement& statement : body) {
    sum += shared_traffic(program, statement);
    const auto* inside = body_of(statement);
    if (inside == nullptr) continue;
    const For* loop = std::get_if<For>(&statement);
    const Extent turns = loop == nullptr ? Extent::constant(1)
                                         : program.vars[static_cast<std::size_t>(loop->var)].extent;
    const std::int64_t times = turns.is_constant() ? turns.offset : 1;
    const SharedTraffic once = of_body(program, *inside);
    sum += {once.wavefronts * times, once.ideal * times};
  }
  return sum;
}

}  // namespace

SharedTraffic shared_traffic(const TileProgram& program, const Statement& statement,
                             const std::set<int>& memories) {
  SharedTraffic sum;
  const std::optional<Layout>* layout = layout_of(statement);
  if (layout == nullptr || !*layout) return sum;
  const bool product = std::holds_alternative<Mma>(statement);
  for_each_access(statement, [&](const Access& access, Use use) {
    if (program.buffers[static_cast<std::size_t>(access.buffer)].space != Space::shared) return;
    if (!memories.empty() && memories.count(memory_of(program, access.buffer)) == 0) return;
    // Sums are stored, and operands of products read, once for all registers that share them.
    const bool once =
        product || (std::holds_alternative<ReduceTile>(statement) && use != Use::read);
    const SharedTraffic one = of_access(program, statement, **layout, access, !once);
    sum += one;
    if (use == Use::update) sum += one;
  });
  return sum;
}

SharedTraffic shared_traffic(const TileProgram& program) { return of_body(program, program.body); }

}  // namespace krait
