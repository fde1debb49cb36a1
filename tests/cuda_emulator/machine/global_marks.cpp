#include "tests/cuda_emulator/machine/global_marks.h"

#include <algorithm>

namespace emulator {
namespace {

void check(const Mark& mark, bool mark_writes, const Actor& actor, int lane, unsigned bytes,
           bool writes, uint64_t address) {
  const Mask lanes = conflicting(mark, mark.who, mark_writes, actor, lane, bytes, writes);
  if (lanes) fail_race(actor, lane, writes, address, mark, mark.who, mark_writes, lanes);
}

bool by_same_warp(const Mark& a, const Mark& b) { return a.who == b.who && a.warp() == b.warp(); }

// Whether all of it happened before the lane's access, or it is its own: nothing is lost without
// it.
bool forgettable(const Mark& mark, const Actor& actor, int lane) {
  if (settled_global(mark, actor, lane)) return true;
  return mark.who != actor.block &&
         !actor.known[lane]->unknown(mark.who, mark.warp(), mark.clock, mark.lanes);
}

void add_read(Mark& mark, const Actor& actor, int lane, const Mark& fresh) {
  emulator::add_read(mark, fresh,
                     [&](const Mark& old) { return settled_global(old, actor, lane); });
}

}  // namespace

void begin_chunk(Chunk& chunk, uint32_t launch) {
  chunk.launch = launch;
  chunk.read = chunk.written = 0;
  for (Mark* marks : {chunk.writes, chunk.reads, chunk.second_reads})
    if (marks) std::fill_n(marks, kChunk / 4, Mark{});
  if (chunk.releases) *chunk.releases = Releases();
}

void check_global_read(const Chunk& chunk, const Actor& actor, int lane, unsigned bytes,
                       uint64_t address) {
  if (!chunk.writes) return;
  const Mark& write = chunk.writes[word_of(address)];
  if (settled_global(write, actor, lane)) [[likely]]
    return;
  check(write, true, actor, lane, bytes, false, address);
}

void check_global_write(const Chunk& chunk, const Actor& actor, int lane, unsigned bytes,
                        uint64_t address, bool same) {
  const size_t word = word_of(address);
  if (chunk.writes && !settled_global(chunk.writes[word], actor, lane) && !same) [[unlikely]]
    check(chunk.writes[word], true, actor, lane, bytes, true, address);
  if (!chunk.reads) return;
  const Mark& read = chunk.reads[word];
  if (!read_settled_global(read, actor, lane)) [[unlikely]]
    check(read, false, actor, lane, bytes, true, address);
  if (!(read.info & Mark::kMore)) return;
  const Mark& second = chunk.second_reads[word];
  if (!read_settled_global(second, actor, lane))
    check(second, false, actor, lane, bytes, true, address);
}

void mark_global_read(Allocation& allocation, Chunk& chunk, const Actor& actor, int lane,
                      unsigned bytes, uint64_t address) {
  if (!chunk.reads) chunk.reads = allocation.make_marks();
  const size_t word = word_of(address);
  Mark& read = chunk.reads[word];
  Mark fresh = actor.mark(lane, bytes);
  const uint32_t more = read.info & Mark::kMore;
  const auto put = [&](Mark& mark, bool first) {
    if (by_same_warp(mark, fresh) && mark.clock)
      add_read(mark, actor, lane, fresh);
    else
      mark = fresh;
    if (first) mark.info |= more;
  };
  if (read.clock == 0 || by_same_warp(read, fresh) || forgettable(read, actor, lane))
    return put(read, true);
  if (!chunk.second_reads) chunk.second_reads = allocation.make_marks();
  Mark& second = chunk.second_reads[word];
  if (!more) {
    read.info |= Mark::kMore;
    second = fresh;
    return;
  }
  if (by_same_warp(second, fresh) || forgettable(second, actor, lane)) return put(second, false);
  // Both stay where they are of two blocks: any writer races with one of them.
  if (read.who == second.who || second.who == fresh.who)
    second = fresh;
  else if (read.who == fresh.who)
    put(read, true);
}

void mark_global_write(Allocation& allocation, Chunk& chunk, const Actor& actor, int lane,
                       unsigned bytes, uint64_t address) {
  if (!chunk.writes) chunk.writes = allocation.make_marks();
  const size_t word = word_of(address);
  Mark& write = chunk.writes[word];
  const Mark fresh = actor.mark(lane, bytes);
  if (write.who == fresh.who)
    put_write(write, fresh);
  else
    write = fresh;
  if (!chunk.reads) return;
  // A reader of other bytes stays.
  Mark& read = chunk.reads[word];
  if (bytes != Mark::kBytes && ((read.info & Mark::kMore) || (read.bytes() & ~bytes))) return;
  read = {};
}

}  // namespace emulator
