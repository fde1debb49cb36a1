// Frames: kernels start, functions are called and return, lanes exit.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/cuda_emulator/machine/builtins.h"
#include "tests/cuda_emulator/machine/decoding.h"
#include "tests/cuda_emulator/machine/state.h"

namespace emulator {
namespace {

constexpr uint32_t kDeepest = 256;
constexpr uint64_t kStackGuard = 64;

uint64_t rounded(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

std::unique_ptr<Frame> make_frame(const Warp& warp, const Code& code) {
  auto frame = std::make_unique<Frame>();
  frame->code = &code;
  const size_t values = size_t{code.units} * 128, defined = size_t{code.units} * 32;
  const size_t bytes = rounded(values + defined + code.predicates * sizeof(Predicate) + 64, 64);
  frame->storage.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
  if (!frame->storage) throw std::bad_alloc();
  std::memset(frame->storage.get(), 0, bytes);
  Registers& r = frame->registers;
  r.values = frame->storage.get();
  r.defined = reinterpret_cast<uint8_t*>(r.values + values);
  r.predicates = reinterpret_cast<Predicate*>(r.values + values + defined);
  const Program& program = warp.block->grid.program;
  r.constants = program.constants.values();
  r.constants_defined = program.constants.defined();
  return frame;
}

// What may be read before it is written is undefined, in these lanes.
void undefine(const Frame& frame, Mask lanes) {
  const Registers& r = frame.registers;
  for (const Code::Undefined& reg : frame.code->undefined) {
    std::byte* values = r.values + size_t{reg.unit} * 128;
    each_lane(lanes, [&](int lane) {
      const auto bytes = size_t{reg.units} * 4;
      std::memset(values + static_cast<size_t>(lane) * bytes, 0, bytes);
      r.defined[size_t{reg.unit} * 32 + static_cast<size_t>(lane)] = reg.defined;
      if (reg.units == 4) r.defined[(size_t{reg.unit} + 2) * 32 + static_cast<size_t>(lane)] = 0;
    });
  }
  for (uint32_t i = 0; i < frame.code->predicates; ++i) {
    r.predicates[i].value &= ~lanes;
    r.predicates[i].defined &= ~lanes;
  }
}

// Local memory of the warp is at least that long; what lanes of the frame have there is undefined.
void prepare_local(Warp& warp, const Frame& frame, Mask lanes) {
  Warp::State& state = *warp.state;
  const uint64_t end = frame.local_base + frame.code->local_bytes;
  if (end > state.local_bytes) {
    const uint64_t bytes = std::max(rounded(end, 64), 2 * state.local_bytes);
    std::vector<std::byte> local(bytes * kLanes);
    std::vector<uint8_t> defined(bytes * kLanes);
    for (uint64_t lane = 0; lane < kLanes && state.local_bytes; ++lane) {
      std::memcpy(&local[lane * bytes], &state.local[lane * state.local_bytes], state.local_bytes);
      std::memcpy(&defined[lane * bytes], &state.local_defined[lane * state.local_bytes],
                  state.local_bytes);
    }
    state.local = std::move(local);
    state.local_defined = std::move(defined);
    state.local_bytes = bytes;
  }
  if (!frame.code->local_bytes) return;
  each_lane(lanes, [&](int lane) {
    const uint64_t at = static_cast<uint64_t>(lane) * state.local_bytes + frame.local_base;
    std::memset(&state.local[at], 0, frame.code->local_bytes);
    std::memset(&state.local_defined[at], 0, frame.code->local_bytes);
  });
}

// Local offset of a .param offset of a frame.
uint64_t param_place(const Frame& frame, uint64_t offset) {
  return frame.local_base + frame.code->param_base + offset - frame.code->param_first;
}

void copy_param(Warp& warp, int lane, const Frame& to, uint64_t to_offset, const Frame& from,
                uint64_t from_offset, unsigned bytes) {
  Warp::State& state = *warp.state;
  const uint64_t base = static_cast<uint64_t>(lane) * state.local_bytes;
  const uint64_t a = base + param_place(to, to_offset), b = base + param_place(from, from_offset);
  std::memcpy(&state.local[a], &state.local[b], bytes);
  std::memcpy(&state.local_defined[a], &state.local_defined[b], bytes);
}

void enter(Warp& warp, size_t index, const Op& op, const Code& code, const Call& how, Mask lanes) {
  Warp::State& state = *warp.state;
  Group group = state.groups[index];
  Frame& caller = *group.frame;
  Frame* frame = nullptr;
  for (const auto& other : state.frames) {
    if (other->caller == &caller && other->site == group.at && other->code == &code) {
      frame = other.get();
    }
  }
  if (!frame) {
    if (caller.depth + 1 >= kDeepest) {
      fail(warp, op, std::countr_zero(lanes), Fault::stack,
           "calls are nested deeper than " + std::to_string(kDeepest));
    }
    state.frames.push_back(make_frame(warp, code));
    frame = state.frames.back().get();
    frame->caller = &caller;
    frame->site = group.at;
    frame->depth = caller.depth + 1;
    frame->local_base =
        rounded(caller.local_base + caller.code->local_bytes + kStackGuard, kStackGuard);
  }
  frame->lanes |= lanes;
  undefine(*frame, lanes);
  prepare_local(warp, *frame, lanes);
  for (const Transfer& transfer : how.arguments) {
    each_lane(lanes, [&](int lane) {
      copy_param(warp, lane, *frame, transfer.to, caller, transfer.from, transfer.bytes);
    });
  }
  split(warp, index, lanes, group.at + 1);
  Group& mine = state.groups[index];
  mine.frame = frame;
  mine.at = 0;
}

void release(Warp& warp, Frame* frame) {
  std::erase_if(warp.state->frames, [&](const auto& f) { return f.get() == frame; });
}

bool in_ranges(const std::vector<Range>& ranges, uint64_t offset, unsigned bytes) {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), offset,
                                [](uint64_t o, const Range& range) { return o < range.offset; });
  if (after == ranges.begin()) return false;
  const Range& range = *--after;
  return offset - range.offset <= range.bytes && bytes <= range.bytes - (offset - range.offset);
}

const Frame* running_frame(const Warp& warp, int lane) {
  for (const Group& group : warp.state->groups) {
    if (group.lanes >> lane & 1) return group.frame;
  }
  return nullptr;
}

}  // namespace

void Frame::Free::operator()(void* memory) const { std::free(memory); }

void start(Warp& warp, const Code& code) {
  Warp::State& state = *warp.state;
  state.groups.reserve(2 * kLanes);
  state.frames.push_back(make_frame(warp, code));
  Frame& frame = *state.frames.back();
  frame.lanes = warp.existing;
  undefine(frame, warp.existing);
  prepare_local(warp, frame, warp.existing);
  warp.registers = frame.registers;
  Group group;
  group.frame = &frame;
  group.lanes = warp.existing;
  state.groups.push_back(group);
}

void call(Warp& warp, size_t index, const Op& op, Mask lanes) {
  count(warp, op, lanes);
  const auto& how = *static_cast<const Call*>(op.extra);
  if (how.builtin != Builtin::none) {
    run_builtin(warp, op, how, lanes);
    ++warp.state->groups[index].at;
    return;
  }
  enter(warp, index, op, *how.callee, how, lanes);
}

void call_indirect(Warp& warp, size_t index, const Op& op, Mask lanes) {
  const auto& how = *static_cast<const Call*>(op.extra);
  const auto* address = warp.registers.in<uint64_t>(how.address);
  const uint8_t* defined = warp.registers.defined_in(how.address);
  const int first = std::countr_zero(lanes);
  Mask same = 0;
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (defined[lane] != 0xff) {
      fail(warp, op, lane, Fault::undefined, "the address of the called function is undefined");
    }
    if (address[lane] == address[first]) same |= Mask{1} << lane;
  }
  const Code* code = warp.block->grid.program.at(address[first]);
  if (!code) {
    fail(warp, op, first, Fault::illegal,
         "there is no function at " + std::to_string(address[first]));
  }
  const auto differ = [](const std::vector<ptx::Variable>& has,
                         const std::vector<uint32_t>& needs) {
    return !std::equal(has.begin(), has.end(), needs.begin(), needs.end(),
                       [](const ptx::Variable& v, uint32_t bytes) { return v.bytes == bytes; });
  };
  if (code->function->entry || differ(code->function->parameters, how.arguments_bytes) ||
      differ(code->function->results, how.results_bytes)) {
    fail(warp, op, first, Fault::illegal,
         "the function " + code->function->name + " is not of the prototype that is called");
  }
  count(warp, op, same);
  if (const Mask others = warp.state->groups[index].lanes & ~same; others & lanes) {
    // The rest of the lanes calls later.
    Group later = warp.state->groups[index];
    later.lanes = others;
    warp.state->groups[index].lanes = same;
    warp.state->groups.push_back(later);
  }
  enter(warp, index, op, *code, how, same);
}

void ret(Warp& warp, size_t index, const Op& op, Mask lanes) {
  Warp::State& state = *warp.state;
  Frame* frame = state.groups[index].frame;
  if (!frame->caller) return leave(warp, index, op, lanes);
  if (op.counted) count(warp, op, lanes);
  Frame& caller = *frame->caller;
  const auto& how = *static_cast<const Call*>(caller.code->ops[frame->site].extra);
  if (how.no_return) {
    fail(warp, op, std::countr_zero(lanes), Fault::illegal,
         "a function that was called as .noreturn returns");
  }
  for (const Transfer& transfer : how.results) {
    each_lane(lanes, [&](int lane) {
      copy_param(warp, lane, caller, transfer.to, *frame, transfer.from, transfer.bytes);
    });
  }
  split(warp, index, lanes, state.groups[index].at + 1);
  Group& mine = state.groups[index];
  mine.frame = &caller;
  mine.at = frame->site + 1;
  frame->lanes &= ~lanes;
  if (!frame->lanes) release(warp, frame);
}

void leave(Warp& warp, size_t index, const Op& op, Mask lanes) {
  Warp::State& state = *warp.state;
  if (op.counted) count(warp, op, lanes);
  split(warp, index, lanes, state.groups[index].at + 1);
  for (Frame* frame = state.groups[index].frame; frame;) {
    Frame* const caller = frame->caller;
    frame->lanes &= ~lanes;
    if (!frame->lanes && caller) release(warp, frame);
    frame = caller;
  }
  state.groups[index] = state.groups.back();
  state.groups.pop_back();
  warp.exited |= lanes;
  look_again(warp);
  barriers_after_exit(warp);
}

std::byte* Warp::local(int lane, uint64_t offset, unsigned bytes, uint8_t** defined) {
  for (const Frame* frame = running_frame(*this, lane); frame; frame = frame->caller) {
    if (offset < frame->local_base) continue;
    if (!in_ranges(frame->code->local_ranges, offset - frame->local_base, bytes)) return nullptr;
    const uint64_t at = static_cast<uint64_t>(lane) * state->local_bytes + offset;
    *defined = &state->local_defined[at];
    return &state->local[at];
  }
  return nullptr;
}

std::byte* Warp::param(int lane, uint64_t offset, unsigned bytes, uint8_t** defined, bool write) {
  static std::vector<uint8_t> all_defined(32, 0xff);
  const Frame* frame = running_frame(*this, lane);
  if (!frame) return nullptr;
  const uint64_t kernel_bytes = frame->code->parameter_bytes;
  if (offset < kernel_bytes) {
    if (write || bytes > kernel_bytes - offset || bytes > all_defined.size()) return nullptr;
    *defined = all_defined.data();
    const auto& parameters = block->grid.launch.parameters;
    if (offset + bytes > parameters.size()) return nullptr;
    return const_cast<std::byte*>(parameters.data()) + offset;
  }
  return local(lane, param_place(*frame, offset), bytes, defined);
}

}  // namespace emulator
