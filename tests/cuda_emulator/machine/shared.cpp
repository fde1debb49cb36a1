// Shared memory.

#include "tests/cuda_emulator/isa/mbarrier.h"
#include "tests/cuda_emulator/machine/locate.h"
#include "tests/cuda_emulator/machine/shared_marks.h"
#include "tests/cuda_emulator/machine/transactions.h"

namespace emulator {
namespace {

[[noreturn]] void fail_outside(const Warp& warp, const Op& op, int lane, const Access& access) {
  const uint64_t address = access.address[lane];
  std::string what = locate(warp, ptx::Space::shared, address, access.bytes);
  if (what.empty()) what = "the kernel has no shared memory";
  fail_at(warp, op, lane, Fault::out_of_bounds, access.space, address, access.bytes, what);
}

// Whether that many bytes are all 1.
template <unsigned kBytes>
inline bool all_valid(const uint8_t* valid) {
  uint64_t wrong = 0;
  if constexpr (kBytes < 8) {
    using T = std::conditional_t<kBytes == 1, uint8_t,
                                 std::conditional_t<kBytes == 2, uint16_t, uint32_t>>;
    T part;
    std::memcpy(&part, valid, sizeof part);
    wrong = static_cast<T>(part ^ static_cast<T>(0x01010101));
  } else {
    for (unsigned i = 0; i < kBytes; i += 8) {
      uint64_t part;
      std::memcpy(&part, valid + i, sizeof part);
      wrong |= part ^ 0x0101010101010101;
    }
  }
  return wrong == 0;
}

// The instruction's view of shared memory.
template <unsigned kBytes>
struct View {
  static constexpr unsigned kWords = kBytes < 4 ? 1 : kBytes / 4;

  View(Warp& warp, const Op& op, const Access& access)
      : warp(warp),
        op(op),
        access(access),
        actor(warp, op, access),
        block(*warp.block),
        marks(shared_marks(block)),
        words(marks.words.data()) {
    if (block.mbarriers) check_mbarriers(warp, op, access);
  }

  uint64_t address(int lane) const { return access.address[lane]; }

  void check_bounds(int lane) const {
    const uint64_t at = address(lane), size = block.shared.size();
    if (size < kBytes || at > size - kBytes || !all_valid<kBytes>(&block.shared_valid[at]))
        [[unlikely]]
      fail_outside(warp, op, lane, access);
  }

  // Calls f(word, bytes, address) for the words that the lane touches.
  template <class F>
  void each_word(int lane, F&& f) const {
    const uint64_t at = address(lane);
    const unsigned bytes = bytes_of_word(at, kBytes);
    for (unsigned w = 0; w < kWords; ++w) f(words[at / 4 + w], bytes, (at & ~uint64_t{3}) + 4 * w);
  }

  // Checks and marks a read, or a write of those bytes, null where it counts whatever is there.
  void read(int lane) {
    touch(lane);
    const uint32_t* least = actor.known[lane]->own.least.data();
    each_word(lane, [&](SharedWord& word, unsigned bytes, uint64_t at) {
      if (read_quickly(word, least, actor.mark(lane, bytes))) [[likely]]
        return;
      check_read(word, actor, lane, bytes, at);
      mark_read(marks, word, actor, lane, bytes);
    });
  }

  void write(int lane, const std::byte* fresh, const uint8_t* fresh_defined) {
    touch(lane);
    const uint32_t* least = actor.known[lane]->own.least.data();
    each_word(lane, [&](SharedWord& word, unsigned bytes, uint64_t at) {
      if (write_quickly(word, least, actor.mark(lane, bytes))) [[likely]]
        return;
      check_write(marks, word, actor, lane, bytes, at, stays(lane, at, fresh, fresh_defined));
      mark_write(word, actor, lane, bytes);
    });
  }

  void touch(int lane) { marks.touched[address(lane) >> 10] = 1; }

  // Whether the write leaves what it touches of a word as it is.
  bool stays(int lane, uint64_t word, const std::byte* fresh, const uint8_t* fresh_defined) const {
    const uint64_t at = address(lane), skip = word > at ? word - at : 0;
    constexpr unsigned kCount = std::min(kBytes, 4u);
    return fresh && std::memcmp(&block.shared[at + skip], fresh + skip, kCount) == 0 &&
           std::memcmp(&block.shared_defined[at + skip], fresh_defined + skip, kCount) == 0;
  }

  Warp& warp;
  const Op& op;
  const Access& access;
  Actor actor;
  Block& block;
  SharedShadow::Impl& marks;
  SharedWord* words;
};

void advance_after_release(Warp& warp, const Access& access) {
  if (access.order.semantics >= Semantics::release) warp.block->clocks.impl->advance(warp.index);
}

template <unsigned kBytes>
void load_lanes(Warp& warp, const Op& op, const Access& access, std::byte* data, uint8_t* defined) {
  View<kBytes> view(warp, op, access);
  const std::byte* from = view.block.shared.data();
  const uint8_t* from_defined = view.block.shared_defined.data();
  const bool acquires = view.actor.strong && !view.marks.releases.empty();
  in_order(access.lanes, [&](int lane) {
    view.check_bounds(lane);
    const uint64_t address = view.address(lane);
    view.read(lane);
    std::memcpy(data + lane * kBytes, from + address, kBytes);
    std::memcpy(defined + lane * kBytes, from_defined + address, kBytes);
    if (acquires) view.marks.releases.read(view.actor, lane);
  });
}

template <unsigned kBytes>
void store_lanes(Warp& warp, const Op& op, const Access& access, const std::byte* data,
                 const uint8_t* defined) {
  View<kBytes> view(warp, op, access);
  std::byte* to = view.block.shared.data();
  uint8_t* to_defined = view.block.shared_defined.data();
  Releases& releases = view.marks.releases;
  in_order(access.lanes, [&](int lane) {
    view.check_bounds(lane);
    const uint64_t address = view.address(lane);
    const std::byte* from = data + lane * kBytes;
    const uint8_t* from_defined = defined + lane * kBytes;
    if (!access.keeps_undefined && !all_defined<kBytes>(from_defined)) [[unlikely]]
      fail_undefined_store(warp, op, lane, access);
    view.write(lane, from, from_defined);
    std::memcpy(to + address, from, kBytes);
    std::memcpy(to_defined + address, from_defined, kBytes);
    if (view.actor.strong)
      releases.write(view.actor, lane, false);
    else if (!releases.empty())
      releases.erase(address, kBytes);
  });
  advance_after_release(warp, access);
}

}  // namespace

void load_shared(Warp& warp, const Op& op, const Access& access, std::byte* data,
                 uint8_t* defined) {
  for_bytes(access, [&](auto bytes) { load_lanes<bytes>(warp, op, access, data, defined); });
  count_shared(*warp.block, access, Direction::load);
}

void store_shared(Warp& warp, const Op& op, const Access& access, const std::byte* data,
                  const uint8_t* defined) {
  for_bytes(access, [&](auto bytes) { store_lanes<bytes>(warp, op, access, data, defined); });
  count_shared(*warp.block, access, Direction::store);
  ++warp.block->progress;
}

void atomic_shared(Warp& warp, const Op& op, const Access& access, bool ignores_old,
                   const void* context, Update update, std::byte* old_data) {
  for_bytes(access, [&](auto bytes) {
    View<bytes> view(warp, op, access);
    Block& block = view.block;
    in_order(access.lanes, [&](int lane) {
      view.check_bounds(lane);
      const uint64_t address = view.address(lane);
      std::byte* place = &block.shared[address];
      uint8_t* defined = &block.shared_defined[address];
      view.each_word(lane, [&](const SharedWord& word, unsigned of_word, uint64_t at) {
        check_read(word, view.actor, lane, of_word, at);
      });
      if (!ignores_old && !all_defined(defined, bytes)) fail_undefined_old(warp, op, lane, access);
      std::byte *old = old_data + lane * bytes, fresh[32];
      std::memcpy(old, place, bytes);
      const bool stores = update(context, lane, old, fresh);
      Releases& releases = view.marks.releases;
      if (!releases.empty()) releases.read(view.actor, lane);
      if (!stores) return view.read(lane);
      view.write(lane, nullptr, nullptr);
      if (std::memcmp(fresh, old, bytes) != 0) ++block.progress;
      std::memcpy(place, fresh, bytes);
      std::memset(defined, 0xff, bytes);
      releases.write(view.actor, lane, true);
    });
  });
  advance_after_release(warp, access);
}

void claim_shared(Warp& warp, const Op& op, const Access& access) {
  for_bytes(access, [&](auto bytes) {
    View<bytes> view(warp, op, access);
    in_order(access.lanes, [&](int lane) {
      view.check_bounds(lane);
      view.touch(lane);
      view.each_word(lane, [&](SharedWord& word, unsigned of_word, uint64_t at) {
        check_write(view.marks, word, view.actor, lane, of_word, at, false);
        word.write.who = under_way(view.actor, lane);
      });
    });
  });
  count_shared(*warp.block, access, Direction::async);
}

void land_shared(Warp& warp, const Op& op, const Access& access, const std::byte* data,
                 const uint8_t* defined) {
  for_bytes(access, [&](auto bytes) {
    View<bytes> view(warp, op, access);
    in_order(access.lanes, [&](int lane) {
      std::memcpy(&view.block.shared[view.address(lane)], data + lane * bytes, bytes);
      std::memcpy(&view.block.shared_defined[view.address(lane)], defined + lane * bytes, bytes);
      view.each_word(lane, [&](SharedWord& word, unsigned of_word, uint64_t) {
        word.write.who = 0;
        mark_write(word, view.actor, lane, of_word);
      });
    });
  });
  ++warp.block->progress;
}

}  // namespace emulator
