#include "tests/cuda_emulator/driver/work.h"

#include <algorithm>

#include "tests/cuda_emulator/driver/objects.h"

namespace emulator::driver {
namespace {

thread_local bool calls_host = false;

}  // namespace

bool Worker::in_host_function() { return calls_host; }

void Worker::submit(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Work>& work) {
  if (stopping_) return;
  if (!started_) {
    started_ = true;
    std::thread([this] { loop(); }).detach();
  }
  std::erase_if(work->after, [](const std::shared_ptr<Work>& other) { return other->done; });
  work->context = stream->context;
  if (stream->queue.empty()) streams_.push_back(stream);
  stream->queue.push_back(work);
  stream->last = work;
  changed_.notify_all();
}

void Worker::wait(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Work>& work) {
  if (work) changed_.wait(lock, [&] { return work->done || stopping_; });
}

bool Worker::busy(const Context* context) const {
  const auto counts = [&](const std::shared_ptr<Work>& work) {
    return work && (!context || work->context.get() == context);
  };
  if (counts(running_)) return true;
  return std::any_of(streams_.begin(), streams_.end(), [&](const std::shared_ptr<Stream>& stream) {
    return std::any_of(stream->queue.begin(), stream->queue.end(), counts);
  });
}

void Worker::drain(std::unique_lock<std::mutex>& lock, const Context* context) {
  changed_.wait(lock, [&] { return stopping_ || !busy(context); });
}

void Worker::stop(std::unique_lock<std::mutex>& lock) {
  stopping_ = true;
  changed_.notify_all();
  if (started_) changed_.wait(lock, [&] { return stopped_ || calling_host_; });
}

void Worker::call_host(const std::function<void()>& function) {
  {
    std::lock_guard lock(mutex_);
    calling_host_ = true;
  }
  calls_host = true;
  function();
  calls_host = false;
  std::lock_guard lock(mutex_);
  calling_host_ = false;
}

bool Worker::ready(const Work& work) const {
  return std::all_of(work.after.begin(), work.after.end(),
                     [](const std::shared_ptr<Work>& other) { return other->done; });
}

std::shared_ptr<Work> Worker::pick() {
  if (streams_.empty()) return nullptr;
  const size_t first = random_() % streams_.size();
  for (size_t i = 0; i < streams_.size(); ++i) {
    const size_t at = (first + i) % streams_.size();
    Stream& stream = *streams_[at];
    if (!ready(*stream.queue.front())) continue;
    std::shared_ptr<Work> work = stream.queue.front();
    stream.queue.pop_front();
    if (stream.queue.empty()) streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(at));
    return work;
  }
  return nullptr;
}

void Worker::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || (running_ = pick()); });
    if (stopping_) break;
    const std::shared_ptr<Work> work = running_;
    const CUresult before = work->context->error;
    CUresult error = before;
    if (work->run && (before == CUDA_SUCCESS || work->after_error)) {
      lock.unlock();
      error = work->run(before);
      work->run = nullptr;  // what it holds may be large
      lock.lock();
    }
    if (work->context->error == CUDA_SUCCESS) work->context->error = error;
    work->time = std::chrono::steady_clock::now();
    work->after.clear();
    work->done = true;
    running_ = nullptr;
    changed_.notify_all();
  }
  running_ = nullptr;
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace emulator::driver
