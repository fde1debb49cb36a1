#pragma once

// Objects by their handles. A handle is a number that is never used twice, so that a handle that
// was destroyed, or never was one, is told from a live one without being followed.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "tests/cuda_emulator/driver/failure.h"

namespace emulator::driver {

inline uintptr_t fresh_handle() {
  static std::atomic<uintptr_t> next{0x4b00'0000'0000};
  return next += 0x40;
}

template <class Handle, class T>
class Table {
 public:
  Handle add(std::shared_ptr<T> object) {
    const Handle handle = reinterpret_cast<Handle>(fresh_handle());
    object->handle = handle;
    objects_[handle] = std::move(object);
    return handle;
  }
  // Adds it again under the handle that it had.
  void restore(std::shared_ptr<T> object) { objects_[object->handle] = std::move(object); }
  // Null where there is none.
  std::shared_ptr<T> find(Handle handle) const {
    const auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second;
  }
  std::shared_ptr<T> at(Handle handle, CUresult otherwise = CUDA_ERROR_INVALID_HANDLE) const {
    std::shared_ptr<T> object = find(handle);
    require(object != nullptr, otherwise);
    return object;
  }
  void remove(Handle handle) { objects_.erase(handle); }
  template <class Predicate>
  void remove_if(Predicate&& predicate) {
    std::erase_if(objects_, [&](const auto& entry) { return predicate(*entry.second); });
  }
  size_t size() const { return objects_.size(); }
  void clear() { objects_.clear(); }
  auto begin() const { return objects_.begin(); }
  auto end() const { return objects_.end(); }

 private:
  std::map<Handle, std::shared_ptr<T>> objects_;
};

}  // namespace emulator::driver
