// Special registers.

#include <map>

#include "tests/cuda_emulator/machine/decoding.h"
#include "tests/cuda_emulator/machine/state.h"

namespace emulator {
namespace {

using ptx::Type;

template <class T, class F>
void write(Warp& warp, const Op& op, Mask lanes, F&& value) {
  auto* to = warp.registers.out<T>(op.args[0]);
  uint8_t* defined = warp.registers.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) {
    to[lane] = value(lane);
    defined[lane] = 0xff;
  });
}

uint32_t part(const Dim& dim, int64_t which) {
  return which == 0 ? dim.x : which == 1 ? dim.y : which == 2 ? dim.z : 0;
}

void tid(Warp& warp, const Op& op, Mask lanes) {
  const uint32_t* from = warp.state->thread[op.imm[0]];
  write<uint32_t>(warp, op, lanes, [&](int lane) { return from[lane]; });
}

void ntid(Warp& warp, const Op& op, Mask lanes) {
  const uint32_t value = part(warp.block->grid.launch.block, op.imm[0]);
  write<uint32_t>(warp, op, lanes, [&](int) { return value; });
}

void ctaid(Warp& warp, const Op& op, Mask lanes) {
  const uint32_t value = part(warp.block->index, op.imm[0]);
  write<uint32_t>(warp, op, lanes, [&](int) { return value; });
}

void nctaid(Warp& warp, const Op& op, Mask lanes) {
  const uint32_t value = part(warp.block->grid.launch.grid, op.imm[0]);
  write<uint32_t>(warp, op, lanes, [&](int) { return value; });
}

void constant(Warp& warp, const Op& op, Mask lanes) {
  const auto value = static_cast<uint32_t>(op.imm[0]);
  write<uint32_t>(warp, op, lanes, [&](int) { return value; });
}

enum { eq, le, lt, ge, gt };

void lane_mask(Warp& warp, const Op& op, Mask lanes) {
  write<uint32_t>(warp, op, lanes, [&](int lane) {
    const Mask own = Mask{1} << lane, below = own - 1;
    switch (op.imm[0]) {
      case eq: return own;
      case le: return own | below;
      case lt: return below;
      case ge: return ~below;
      default: return ~(own | below);
    }
  });
}

void lane_id(Warp& warp, const Op& op, Mask lanes) {
  write<uint32_t>(warp, op, lanes, [](int lane) { return static_cast<uint32_t>(lane); });
}

enum { warpid, nwarpid, smid, nsmid, dynamic_smem, total_smem };

void place(Warp& warp, const Op& op, Mask lanes) {
  const Block& block = *warp.block;
  const Grid& grid = block.grid;
  uint32_t value = 0;
  switch (op.imm[0]) {
    case warpid: value = warp.index; break;
    case nwarpid: value = static_cast<uint32_t>(block.warps.size()); break;
    case smid: value = static_cast<uint32_t>(block.linear % grid.limits.multiprocessors); break;
    case nsmid: value = grid.limits.multiprocessors; break;
    case dynamic_smem: value = grid.launch.dynamic_shared; break;
    default: value = grid.launch.dynamic_shared + grid.launch.entry->static_shared; break;
  }
  write<uint32_t>(warp, op, lanes, [&](int) { return value; });
}

template <class T>
void grid_id(Warp& warp, const Op& op, Mask lanes) {
  const auto value = static_cast<T>(warp.block->grid.id);
  write<T>(warp, op, lanes, [&](int) { return value; });
}

void no_predicate(Warp& warp, const Op& op, Mask lanes) {
  warp.registers.set_predicate(op.args[0], lanes, 0);
}

// Clocks count the instructions of the block, so that a seed gives the same times again.
template <class T, int shift>
void clock(Warp& warp, const Op& op, Mask lanes) {
  const uint64_t now = ++warp.block->state->clock;
  const auto value = static_cast<T>((now + warp.block->state->executed) >> shift);
  write<T>(warp, op, lanes, [&](int) { return value; });
}

std::map<std::string, Special, std::less<>> make_all() {
  std::map<std::string, Special, std::less<>> all;
  const auto add = [&](const std::string& name, void (*run)(Warp&, const Op&, Mask),
                       int64_t which = 0, Type type = Type::u32) {
    all[name] = {type, run, which};
  };
  const char* axes[] = {".x", ".y", ".z", ".w"};
  for (int64_t axis = 0; axis < 3; ++axis) {
    add(std::string("%tid") + axes[axis], tid, axis);
    add(std::string("%ntid") + axes[axis], ntid, axis);
    add(std::string("%ctaid") + axes[axis], ctaid, axis);
    add(std::string("%nctaid") + axes[axis], nctaid, axis);
    // Clusters are of one block.
    add(std::string("%clusterid") + axes[axis], ctaid, axis);
    add(std::string("%nclusterid") + axes[axis], nctaid, axis);
    add(std::string("%cluster_ctaid") + axes[axis], constant, 0);
    add(std::string("%cluster_nctaid") + axes[axis], constant, 1);
  }
  for (const char* name : {"%tid.w", "%ctaid.w", "%cluster_ctaid.w", "%clusterid.w"}) {
    add(name, constant, 0);
  }
  for (const char* name : {"%ntid.w", "%nctaid.w", "%cluster_nctaid.w", "%nclusterid.w"}) {
    add(name, constant, 1);
  }
  add("%cluster_ctarank", constant, 0);
  add("%cluster_nctarank", constant, 1);
  add("%laneid", lane_id);
  add("%lanemask_eq", lane_mask, eq);
  add("%lanemask_le", lane_mask, le);
  add("%lanemask_lt", lane_mask, lt);
  add("%lanemask_ge", lane_mask, ge);
  add("%lanemask_gt", lane_mask, gt);
  add("%warpid", place, warpid);
  add("%nwarpid", place, nwarpid);
  add("%smid", place, smid);
  add("%nsmid", place, nsmid);
  add("%dynamic_smem_size", place, dynamic_smem);
  add("%total_smem_size", place, total_smem);
  add("%gridid", grid_id<uint64_t>, 0, Type::u64);
  add("%gridid (32 bits)", grid_id<uint32_t>);
  add("%is_explicit_cluster", no_predicate, 0, Type::pred);
  add("%clock", clock<uint32_t, 0>);
  add("%clock_hi", clock<uint32_t, 32>);
  add("%clock64", clock<uint64_t, 0>, 0, Type::u64);
  add("%globaltimer", clock<uint64_t, 0>, 0, Type::u64);
  add("%globaltimer_lo", clock<uint32_t, 0>);
  add("%globaltimer_hi", clock<uint32_t, 32>);
  for (int i = 0; i < 32; ++i) add("%envreg" + std::to_string(i), constant, 0);
  return all;
}

}  // namespace

const Special* special_register(std::string_view name) {
  static const auto all = make_all();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace emulator
