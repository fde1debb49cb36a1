#pragma once

// Work in streams: one thread runs it, a piece at a time, in an order that the streams and events
// allow; among several streams that could go on it draws one.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/cuda_emulator/driver/cuda_api.h"

namespace emulator::driver {

struct Context;
struct Stream;

struct Work {
  // Runs without the driver's lock and gives the error that the context has from then on. It gets
  // the error that the context has; without `after_error` it is not called where there is one.
  // Empty: nothing but a place in the stream.
  std::function<CUresult(CUresult)> run;
  bool after_error = false;
  std::vector<std::shared_ptr<Work>> after;  // emptied once this is done
  std::shared_ptr<Context> context;
  bool done = false;
  std::chrono::steady_clock::time_point time;  // when it was done
};

class Worker {
 public:
  // The mutex is the driver's; it is held by who calls any of the functions.
  explicit Worker(std::mutex& mutex) : mutex_(mutex) {}

  // Appends to the stream, after its last work and whatever `work->after` holds.
  void submit(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Work>& work);
  void wait(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Work>& work);
  // Waits until nothing is left of the context, or of all where it is null.
  void drain(std::unique_lock<std::mutex>& lock, const Context* context);
  void seed(uint64_t value) { random_.seed(static_cast<std::minstd_rand::result_type>(value)); }
  // Ends the thread after what it runs now; without waiting where that is a function of the host.
  void stop(std::unique_lock<std::mutex>& lock);
  // Whether this thread is in a function of the host that work called.
  static bool in_host_function();
  // Calls a function of the host from `run`.
  void call_host(const std::function<void()>& function);

 private:
  void loop();
  std::shared_ptr<Work> pick();
  bool ready(const Work& work) const;
  bool busy(const Context* context) const;

  std::mutex& mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Stream>> streams_;  // those that have work
  std::shared_ptr<Work> running_;
  std::minstd_rand random_{1};
  bool started_ = false, stopping_ = false, stopped_ = false;
  bool calling_host_ = false;
};

}  // namespace emulator::driver
