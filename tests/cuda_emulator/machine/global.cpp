// Global memory.

#include "tests/cuda_emulator/machine/global_marks.h"
#include "tests/cuda_emulator/machine/transactions.h"

namespace emulator {
namespace {

uint64_t requested(const Access& access) {
  return uint64_t{access.bytes} * static_cast<unsigned>(std::popcount(access.lanes));
}

[[noreturn]] void fail_outside(const Warp& warp, const Op& op, int lane, const Access& access) {
  const uint64_t address = access.address[lane];
  bool freed = false;
  const std::string what = warp.block->grid.memory.impl->describe(address, access.bytes, &freed);
  fail_at(warp, op, lane, freed ? Fault::freed : Fault::out_of_bounds, ptx::Space::global, address,
          access.bytes, what);
}

// The instruction's view of global memory, and its counts.
struct View {
  View(Warp& warp, const Op& op, const Access& access)
      : warp(warp),
        op(op),
        access(access),
        bytes(access.bytes),
        actor(warp, op, access),
        grid(warp.block->grid),
        memory(*grid.memory.impl),
        launch(static_cast<uint32_t>(grid.id)) {}

  ~View() { release(); }
  View(const View&) = delete;

  // Goes to the place of a lane and holds the lock of its chunk. data and defined: of the place;
  // defined is null where everything is.
  void enter(int lane) {
    const uint64_t address = access.address[lane], offset = address - base;
    if (offset > last || address >> kChunkShift != chunk_number || !chunk) [[unlikely]]
      return move_to(lane);
    data = all_data + offset;
    defined = all_defined ? all_defined + offset : nullptr;
  }

  void move_to(int lane) {
    const uint64_t address = access.address[lane];
    if (!allocation || !allocation->holds(address, bytes)) {
      allocation = memory.find(address);
      if (!allocation || !allocation->holds(address, bytes) || !allocation->live) {
        release();
        fail_outside(warp, op, lane, access);
      }
      base = allocation->base;
      last = allocation->bytes - bytes;
      all_data = allocation->data;
      all_defined = allocation->defined.get();
    }
    Chunk* next = &allocation->chunk(address);
    if (next != chunk) {
      release();
      next->lock.lock();
      chunk = next;
      chunk_number = address >> kChunkShift;
      if (chunk->launch != launch) begin_chunk(*chunk, launch);
    }
    data = all_data + (address - base);
    defined = all_defined ? all_defined + (address - base) : nullptr;
  }

  void release() {
    if (chunk) chunk->lock.unlock();
    chunk = nullptr;
  }

  // Calls f(bytes of the word, address of the word) for every word, of any number of bytes.
  template <class F>
  void each_word(int lane, F&& f) const {
    const uint64_t at = access.address[lane];
    f(bytes_of_word(at, bytes), at & ~uint64_t{3});
    for (unsigned done = 4; done < bytes; done += 4)
      f(bytes_of_word(at + done, bytes - done), at + done);
  }

  // Checks and marks a read, or a write; `fresh` as below.
  template <unsigned kBytes>
  void read(int lane) {
    if (!chunk->reads) chunk->reads = allocation->make_marks();
    const uint64_t at = access.address[lane];
    const size_t first = word_of(at);
    const uint32_t* least = actor.known[lane]->own.least.data();
    const unsigned of_word = bytes_of_word(at, kBytes);
    const Mark fresh = actor.mark(lane, of_word);
    for (unsigned w = 0; w < std::max(kBytes / 4, 1u); ++w) {
      const Mark* write = chunk->writes ? &chunk->writes[first + w] : nullptr;
      if (read_quickly(write, chunk->reads[first + w], least, fresh)) [[likely]]
        continue;
      const uint64_t word = (at & ~uint64_t{3}) + 4 * w;
      check_global_read(*chunk, actor, lane, of_word, word);
      mark_global_read(*allocation, *chunk, actor, lane, of_word, word);
    }
  }

  template <unsigned kBytes>
  void write(int lane, const std::byte* bytes_written) {
    if (!chunk->writes) chunk->writes = allocation->make_marks();
    const uint64_t at = access.address[lane];
    const size_t first = word_of(at);
    const uint32_t* least = actor.known[lane]->own.least.data();
    const unsigned of_word = bytes_of_word(at, kBytes);
    const Mark fresh = actor.mark(lane, of_word);
    for (unsigned w = 0; w < std::max(kBytes / 4, 1u); ++w) {
      Mark* read = chunk->reads ? &chunk->reads[first + w] : nullptr;
      if (write_quickly(chunk->writes[first + w], read, least, fresh)) [[likely]]
        continue;
      const uint64_t word = (at & ~uint64_t{3}) + 4 * w;
      check_global_write(*chunk, actor, lane, of_word, word, stays(bytes_written, 4 * w));
      mark_global_write(*allocation, *chunk, actor, lane, of_word, word);
    }
  }

  // Whether new bytes leave a word of the access as it is; null: they count as new.
  bool stays(const std::byte* fresh, unsigned at) const {
    const unsigned count = std::min(bytes, 4u);
    return fresh && std::memcmp(fresh + at, data + at, count) == 0 &&
           (!defined || emulator::all_defined(defined + at, count));
  }

  void check_read(int lane) const {
    each_word(lane, [&](unsigned of_word, uint64_t address) {
      check_global_read(*chunk, actor, lane, of_word, address);
    });
  }

  void mark_read(int lane) const {
    each_word(lane, [&](unsigned of_word, uint64_t address) {
      mark_global_read(*allocation, *chunk, actor, lane, of_word, address);
    });
  }

  // What strong reads see and strong writes leave to be seen.
  void read_releases(int lane) const {
    if (actor.strong && chunk->releases) chunk->releases->read(actor, lane);
  }
  void write_releases(int lane, bool update) {
    if (!actor.strong) {
      if (chunk->releases) chunk->releases->erase(access.address[lane], bytes);
      return;
    }
    if (!chunk->releases) {
      const bool may =
          access.order.semantics >= Semantics::release || warp.block->clocks.impl->any_fence;
      if (!may) return;
      chunk->releases = allocation->make_releases();
    }
    chunk->releases->write(actor, lane, update);
  }

  // Counts the sector of a lane.
  void count(int lane, bool reads, bool writes) {
    const uint64_t sector = access.address[lane] >> 5;
    sectors.add(sector);
    const uint32_t bit = 1u << (sector & 31);
    const bool any = (chunk->read | chunk->written) & bit;
    if (reads && !(chunk->read & bit)) ++fresh_read;
    if (writes && !(chunk->written & bit)) ++fresh_written;
    if (!any) ++fresh_any;
    if (reads) chunk->read |= bit;
    if (writes) chunk->written |= bit;
  }

  void add_counts(uint64_t Counters::*bytes, uint64_t Counters::*touched, uint64_t requested) {
    Counters& counters = warp.block->counters;
    counters.*bytes += requested;
    counters.*touched += sectors.count();
    constexpr auto relaxed = std::memory_order_relaxed;
    if (fresh_read) grid.sectors_read.fetch_add(fresh_read, relaxed);
    if (fresh_written) grid.sectors_written.fetch_add(fresh_written, relaxed);
    if (fresh_any) grid.sectors_any.fetch_add(fresh_any, relaxed);
  }

  Warp& warp;
  const Op& op;
  const Access& access;
  unsigned bytes;  // of the lane
  Actor actor;
  Grid& grid;
  const DeviceMemory::Impl& memory;
  uint32_t launch;
  Allocation* allocation = nullptr;
  uint64_t base = 0, last = 0;  // of the allocation: where it begins, the last place that fits
  std::byte* all_data = nullptr;
  uint8_t* all_defined = nullptr;
  Chunk* chunk = nullptr;
  uint64_t chunk_number = 0;
  std::byte* data = nullptr;
  uint8_t* defined = nullptr;
  SectorSet sectors;
  unsigned fresh_read = 0, fresh_written = 0, fresh_any = 0;
};

void finish_store(Warp& warp, const Access& access) {
  if (access.order.semantics >= Semantics::release) warp.block->clocks.impl->advance(warp.index);
}

}  // namespace

void load_global(Warp& warp, const Op& op, const Access& access, std::byte* data,
                 uint8_t* defined) {
  View view(warp, op, access);
  for_bytes(access, [&](auto bytes) {
    in_order(access.lanes, [&](int lane) {
      view.enter(lane);
      view.read<bytes>(lane);
      std::memcpy(data + lane * bytes, view.data, bytes);
      if (view.defined)
        std::memcpy(defined + lane * bytes, view.defined, bytes);
      else
        std::memset(defined + lane * bytes, 0xff, bytes);
      view.read_releases(lane);
      if (access.counted) view.count(lane, true, false);
    });
  });
  view.release();
  if (access.counted)
    view.add_counts(&Counters::global_load_bytes, &Counters::global_load_sectors,
                    requested(access));
}

void load_for_copy(Warp& warp, const Op& op, const Access& access, const uint8_t* sizes,
                   std::byte* data, uint8_t* defined) {
  View view(warp, op, access);
  uint64_t requested = 0;
  in_order(access.lanes, [&](int lane) {
    view.bytes = sizes[lane];
    requested += view.bytes;
    view.move_to(lane);
    view.check_read(lane);
    std::memcpy(data + lane * access.bytes, view.data, view.bytes);
    if (view.defined)
      std::memcpy(defined + lane * access.bytes, view.defined, view.bytes);
    else
      std::memset(defined + lane * access.bytes, 0xff, view.bytes);
    view.mark_read(lane);
    if (access.counted) view.count(lane, true, false);
  });
  view.release();
  if (access.counted)
    view.add_counts(&Counters::global_load_bytes, &Counters::global_load_sectors, requested);
}

void store_global(Warp& warp, const Op& op, const Access& access, const std::byte* data,
                  const uint8_t* defined) {
  View view(warp, op, access);
  for_bytes(access, [&](auto bytes) {
    in_order(access.lanes, [&](int lane) {
      const std::byte* from = data + lane * bytes;
      const uint8_t* from_defined = defined + lane * bytes;
      if (!access.keeps_undefined && !all_defined<bytes>(from_defined)) [[unlikely]] {
        view.release();
        fail_undefined_store(warp, op, lane, access);
      }
      view.enter(lane);
      view.write<bytes>(lane, access.keeps_undefined ? nullptr : from);
      std::memcpy(view.data, from, bytes);
      if (view.defined) std::memcpy(view.defined, from_defined, bytes);
      view.write_releases(lane, false);
      if (access.counted) view.count(lane, false, true);
    });
  });
  view.release();
  finish_store(warp, access);
  if (access.counted)
    view.add_counts(&Counters::global_store_bytes, &Counters::global_store_sectors,
                    requested(access));
  view.grid.progress.fetch_add(1, std::memory_order_relaxed);
}

void atomic_global(Warp& warp, const Op& op, const Access& access, bool ignores_old,
                   const void* context, Update update, std::byte* old_data) {
  View view(warp, op, access);
  bool changed = false;
  for_bytes(access, [&](auto bytes) {
    in_order(access.lanes, [&](int lane) {
      view.enter(lane);
      view.check_read(lane);
      if (!ignores_old && view.defined && !all_defined<bytes>(view.defined))
        fail_undefined_old(warp, op, lane, access);
      std::byte *old = old_data + lane * bytes, fresh[32];
      std::memcpy(old, view.data, bytes);
      const bool stores = update(context, lane, old, fresh);
      view.read_releases(lane);
      if (stores) {
        view.write<bytes>(lane, nullptr);
        changed = changed || std::memcmp(fresh, old, bytes) != 0;
        std::memcpy(view.data, fresh, bytes);
        if (view.defined) std::memset(view.defined, 0xff, bytes);
        view.write_releases(lane, true);
      } else {
        view.read<bytes>(lane);
      }
      if (access.counted) view.count(lane, true, true);
    });
  });
  view.release();
  finish_store(warp, access);
  if (access.counted)
    view.add_counts(&Counters::global_atomic_bytes, &Counters::global_atomic_sectors,
                    requested(access));
  if (changed) view.grid.progress.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace emulator
