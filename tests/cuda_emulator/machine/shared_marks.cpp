#include "tests/cuda_emulator/machine/shared_marks.h"

#include <algorithm>

#include "tests/cuda_emulator/machine/report_place.h"

namespace emulator {
namespace {

constexpr size_t kWordsTouched = 256;  // for each of SharedShadow::Impl::touched

// Words of finished blocks, for the next block on this host thread: zeroed memory costs more than
// clearing what was used.
std::vector<SharedWord>& spare_words() {
  thread_local std::vector<SharedWord> spare;
  return spare;
}

}  // namespace

SharedShadow::Impl::Impl(size_t bytes) : touched(bytes / 1024 + 1) {
  words.swap(spare_words());
  if (words.size() < touched.size() * kWordsTouched) words.resize(touched.size() * kWordsTouched);
}

SharedShadow::Impl::~Impl() {
  for (size_t i = 0; i < touched.size(); ++i)
    if (touched[i]) std::fill_n(&words[i * kWordsTouched], kWordsTouched, SharedWord{});
  words.swap(spare_words());
}

SharedShadow::SharedShadow(size_t bytes) : impl(std::make_unique<Impl>(bytes)) {}
SharedShadow::~SharedShadow() = default;

SharedShadow::Impl& shared_marks(Block& block) {
  if (!block.shared_shadow)
    block.shared_shadow = std::make_shared<SharedShadow>(block.shared.size());
  return *block.shared_shadow->impl;
}

void check_write_mark(const SharedWord& word, const Actor& actor, int lane, unsigned bytes,
                      uint64_t address, bool writes, bool same) {
  if (word.write.who) {
    const unsigned thread = word.write.who >> 1 & 0x3ff;
    const Place other = place_of(actor.warp, static_cast<int>(word.write.who >> 11), actor.block,
                                 thread / kLanes, thread % kLanes);
    fail_at(actor.warp, actor.op, lane, Fault::race, actor.access.space,
            std::max(address, actor.access.address[lane]), std::min(bytes, 4u),
            std::string(writes ? "a write to" : "a read of") +
                " bytes that an asynchronous copy has under way",
            &other);
  }
  if (same) return;
  const Mask lanes = conflicting(word.write, actor.block, true, actor, lane, bytes, writes);
  if (lanes) fail_race(actor, lane, writes, address, word.write, actor.block, true, lanes);
}

void check_write(const SharedShadow::Impl& marks, const SharedWord& word, const Actor& actor,
                 int lane, unsigned bytes, uint64_t address, bool same) {
  if (word.write.who || !settled(word.write, actor, lane)) [[unlikely]]
    check_write_mark(word, actor, lane, bytes, address, true, same);
  const auto check = [&](const Mark& read) {
    if (read_settled(read, actor, lane)) [[likely]]
      return;
    const Mask lanes = conflicting(read, actor.block, false, actor, lane, bytes, true);
    if (lanes) fail_race(actor, lane, true, address, read, actor.block, false, lanes);
  };
  if (!(word.read.info & Mark::kMore)) return check(word.read);
  const size_t warps = actor.warp.block->warps.size();
  const Mark* further = &marks.further[(word.read.who - 1) * warps];
  for (size_t w = 0; w < warps; ++w) check(further[w]);
}

namespace {

// A mark of the lane's warp.
void mark_read_of_warp(Mark& mark, const Actor& actor, int lane, const Mark& fresh) {
  add_read(mark, fresh, [&](const Mark& old) { return settled(old, actor, lane); });
}

}  // namespace

void mark_read(SharedShadow::Impl& marks, SharedWord& word, const Actor& actor, int lane,
               unsigned bytes) {
  Mark& read = word.read;
  const Mark fresh = actor.mark(lane, bytes);
  const size_t warps = actor.warp.block->warps.size();
  if (read.info & Mark::kMore)
    return mark_read_of_warp(marks.further[(read.who - 1) * warps + actor.warp.index], actor, lane,
                             fresh);
  if (read.lanes == 0 || read.warp() == actor.warp.index)
    return mark_read_of_warp(read, actor, lane, fresh);
  if (settled(read, actor, lane)) return replace(read, fresh);
  if (read.who == 0) {
    marks.further.resize(marks.further.size() + warps);
    read.who = static_cast<uint32_t>(marks.further.size() / warps);
  }
  Mark* further = &marks.further[(read.who - 1) * warps];
  std::fill_n(further, warps, Mark{});
  further[read.warp()] = read;
  further[actor.warp.index] = fresh;
  read.clock = 0;
  read.lanes = 0;
  read.info = Mark::kMore;
}

void mark_write(SharedWord& word, const Actor& actor, int lane, unsigned bytes) {
  put_write(word.write, actor.mark(lane, bytes));
  // A reader of other bytes stays.
  Mark& read = word.read;
  if (bytes != Mark::kBytes && ((read.info & Mark::kMore) || (read.bytes() & ~bytes))) return;
  read.clock = 0;
  read.lanes = 0;
  read.info = 0;
}

}  // namespace emulator
