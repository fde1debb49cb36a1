#include <algorithm>
#include <cstring>
#include <new>

#include "tests/cuda_emulator/machine/allocations.h"
#include "tests/cuda_emulator/machine/releases.h"

namespace emulator {
namespace {

uint64_t chunks_of(uint64_t base, uint64_t bytes) {
  return ((base + bytes - 1) >> kChunkShift) - (base >> kChunkShift) + 1;
}

// What an allocation takes of the capacity.
uint64_t cost(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

constexpr uint64_t kNear = uint64_t{1} << 32;  // farther ones are not named

std::string in_words(const Allocation& a) {
  std::string text = std::to_string(a.bytes) + "-byte ";
  if (!a.name.empty()) return text + "variable " + a.name;
  return text + (a.adopted ? "host allocation" : "allocation");
}

}  // namespace

std::atomic<int> living_blocks{0};

Mark* Allocation::make_marks() {
  auto made = zeros<std::byte>(kChunk / 4 * sizeof(Mark));
  std::lock_guard lock(marks_mutex);
  marks.push_back(std::move(made));
  return reinterpret_cast<Mark*>(marks.back().get());
}

Releases* Allocation::make_releases() {
  auto made = std::make_shared<Releases>();
  std::lock_guard lock(marks_mutex);
  releases.push_back(made);
  return made.get();
}

void Allocation::forget() {
  marks.clear();
  releases.clear();
  own_data.reset();
  defined.reset();
  chunks.reset();
  data = nullptr;
}

DeviceMemory::Impl::Impl(uint64_t capacity)
    : capacity(capacity),
      regions(static_cast<std::atomic<Allocation*>*>(
          std::calloc(kRegions, sizeof(std::atomic<Allocation*>)))) {
  if (!regions) throw std::bad_alloc();
}

Allocation* DeviceMemory::Impl::find_adopted(uint64_t address) const {
  std::shared_lock lock(mutex);
  Allocation* found = nullptr;
  for (const auto& a : adopted)
    if (address >= a->base && address - a->base < a->bytes && (!found || a->live)) found = a.get();
  return found;
}

Allocation* DeviceMemory::Impl::holding(uint64_t address, uint64_t bytes) const {
  Allocation* a = find(address);
  return a && a->live && a->holds(address, bytes) ? a : nullptr;
}

std::string DeviceMemory::Impl::describe(uint64_t address, unsigned bytes, bool* freed) const {
  *freed = false;
  std::shared_lock lock(mutex);
  const Allocation *before = nullptr, *after = nullptr;
  for (const auto* list : {&all, &adopted}) {
    for (const auto& a : *list) {
      if (a->base <= address && (!before || a->base >= before->base)) before = a.get();
      if (a->base > address && (!after || a->base < after->base)) after = a.get();
    }
  }
  if (before && address < before->end()) {
    const std::string where =
        std::to_string(address - before->base) + " bytes into a " + in_words(*before);
    if ((*freed = !before->live)) return where + " that was freed";
    if (before->holds(address, bytes)) return where;
    return where + ", " + std::to_string(address + bytes - before->end()) + " bytes past its end";
  }
  const uint64_t past = before ? address - before->end() : ~uint64_t{0};
  const uint64_t ahead = after ? after->base - address : ~uint64_t{0};
  if (std::min(past, ahead) > kNear) return "no allocation is near";
  const Allocation& near = past <= ahead ? *before : *after;
  std::string text = std::to_string(std::min(past, ahead)) + " bytes ";
  if (past <= ahead && past == 0) text = "right ";
  text += past <= ahead ? "past the end of a " : "before the start of a ";
  return text + in_words(near) + (near.live ? "" : " that was freed");
}

DeviceMemory::DeviceMemory(uint64_t capacity) : impl(std::make_unique<Impl>(capacity)) {}
DeviceMemory::~DeviceMemory() = default;

uint64_t DeviceMemory::allocate(uint64_t bytes, uint64_t alignment, const std::string& name) {
  Impl& m = *impl;
  std::unique_lock lock(m.mutex);
  if (bytes == 0 || alignment > kRegion || bytes > m.capacity ||
      cost(bytes) > m.capacity - std::min(m.capacity, m.used.load()))
    return 0;
  // As much again, and a region more, stays empty behind it.
  const uint64_t held = (bytes - 1) / kRegion + 1, taken = 2 * held + 1;
  if (taken > kRegions - m.next_region) return 0;
  auto a = std::make_unique<Allocation>();
  a->base = kFirstAddress + m.next_region * kRegion;
  a->bytes = bytes;
  a->name = name;
  try {
    a->own_data = zeros<std::byte>(bytes);
    a->defined = zeros<uint8_t>(bytes);
    a->chunks = zeros<Chunk>(chunks_of(a->base, bytes));
  } catch (const std::bad_alloc&) {
    return 0;
  }
  a->data = a->own_data.get();
  for (uint64_t r = 0; r < taken; ++r)
    m.regions[m.next_region + r].store(a.get(), std::memory_order_release);
  m.next_region += taken;
  m.used += cost(bytes);
  if (name.empty()) ++m.count;
  m.all.push_back(std::move(a));
  return m.all.back()->base;
}

bool DeviceMemory::release(uint64_t address) {
  Impl& m = *impl;
  Allocation* a = m.find(address);
  std::unique_lock lock(m.mutex);
  if (!a || a->base != address || !a->live) return false;
  a->live = false;
  if (!a->adopted) m.used -= cost(a->bytes);
  if (a->name.empty()) --m.count;
  m.unburied.push_back(a);
  if (living_blocks == 0) {
    for (Allocation* dead : m.unburied) dead->forget();
    m.unburied.clear();
  }
  return true;
}

uint64_t DeviceMemory::adopt(void* host, uint64_t bytes) {
  Impl& m = *impl;
  std::unique_lock lock(m.mutex);
  auto a = std::make_unique<Allocation>();
  a->base = reinterpret_cast<uint64_t>(host);
  a->bytes = bytes;
  a->adopted = true;
  a->data = static_cast<std::byte*>(host);
  a->chunks = zeros<Chunk>(chunks_of(a->base, bytes));
  // The host may have given the same memory before.
  std::erase_if(m.adopted, [&](const auto& old) {
    return !old->live && living_blocks == 0 && old->base < a->end() && a->base < old->end();
  });
  std::erase_if(m.unburied, [&](Allocation* dead) {
    return dead->adopted && std::none_of(m.adopted.begin(), m.adopted.end(),
                                         [&](const auto& kept) { return kept.get() == dead; });
  });
  m.adopted.push_back(std::move(a));
  m.has_adopted = true;
  ++m.count;
  return reinterpret_cast<uint64_t>(host);
}

bool DeviceMemory::contains(uint64_t address, uint64_t bytes) const {
  return impl->holding(address, bytes) != nullptr;
}

bool DeviceMemory::write(uint64_t address, const void* from, uint64_t bytes) {
  Allocation* a = impl->holding(address, bytes);
  if (!a) return false;
  std::memcpy(a->data + (address - a->base), from, bytes);
  if (a->defined) std::memset(a->defined.get() + (address - a->base), 0xff, bytes);
  return true;
}

bool DeviceMemory::read(void* to, uint64_t address, uint64_t bytes) const {
  const Allocation* a = impl->holding(address, bytes);
  if (!a) return false;
  std::memcpy(to, a->data + (address - a->base), bytes);
  return true;
}

bool DeviceMemory::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  Allocation *a = impl->holding(to, bytes), *b = impl->holding(from, bytes);
  if (!a || !b) return false;
  std::memmove(a->data + (to - a->base), b->data + (from - b->base), bytes);
  if (!a->defined) return true;
  uint8_t* defined = a->defined.get() + (to - a->base);
  if (b->defined)
    std::memmove(defined, b->defined.get() + (from - b->base), bytes);
  else
    std::memset(defined, 0xff, bytes);
  return true;
}

bool DeviceMemory::fill(uint64_t address, const void* pattern, unsigned width, uint64_t count) {
  if (width != 0 && count > ~uint64_t{0} / width) return false;
  const uint64_t bytes = count * width;
  Allocation* a = impl->holding(address, bytes);
  if (!a) return false;
  std::byte* to = a->data + (address - a->base);
  for (uint64_t i = 0; i < count; ++i) std::memcpy(to + i * width, pattern, width);
  if (a->defined) std::memset(a->defined.get() + (address - a->base), 0xff, bytes);
  return true;
}

bool DeviceMemory::range(uint64_t address, uint64_t* start, uint64_t* bytes) const {
  const Allocation* a = impl->holding(address, 1);
  if (!a) return false;
  *start = a->base;
  *bytes = a->bytes;
  return true;
}

uint64_t DeviceMemory::capacity() const { return impl->capacity; }
uint64_t DeviceMemory::used() const { return impl->used; }
size_t DeviceMemory::allocations() const {
  std::shared_lock lock(impl->mutex);
  return impl->count;
}

}  // namespace emulator
