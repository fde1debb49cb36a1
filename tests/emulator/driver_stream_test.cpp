// Streams, events, host functions: what runs after what.

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "tests/emulator/driver_test.h"

using namespace emulator_test;

namespace {

class Streams {
 public:
  explicit Streams(size_t count, unsigned flags = CU_STREAM_NON_BLOCKING) : streams_(count) {
    for (CUstream& stream : streams_) OK(cuStreamCreate, &stream, flags);
  }
  ~Streams() {
    for (CUstream stream : streams_) API(cuStreamDestroy)(stream);
  }
  CUstream operator[](size_t i) const { return streams_[i]; }

 private:
  std::vector<CUstream> streams_;
};

class Event {
 public:
  explicit Event(unsigned flags = CU_EVENT_DEFAULT) { OK(cuEventCreate, &event_, flags); }
  ~Event() { API(cuEventDestroy)(event_); }
  Event(const Event&) = delete;
  operator CUevent() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

}  // namespace

TEST_CASE("Driver: streams and what they are", "[driver]") {
  Started started;
  CUstream stream = nullptr, urgent = nullptr;
  CHECK(API(cuStreamCreate)(&stream, 7) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuStreamCreate)(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
  OK(cuStreamCreateWithPriority, &urgent, CU_STREAM_NON_BLOCKING, -100);
  unsigned flags = 9;
  int priority = 9;
  CUcontext context = nullptr;
  OK(cuStreamGetFlags, urgent, &flags);
  OK(cuStreamGetPriority, urgent, &priority);
  OK(cuStreamGetCtx, urgent, &context);
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  CHECK(priority == -5);
  CHECK(context == started.context);
  OK(cuStreamGetPriority, stream, &priority);
  CHECK(priority == 0);
  for (CUstream special : {CUstream(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    OK(cuStreamGetCtx, special, &context);
    CHECK(context == started.context);
    OK(cuStreamSynchronize, special);
    OK(cuStreamQuery, special);
  }
  unsigned long long a = 0, b = 0, c = 0;
  OK(cuStreamGetId, stream, &a);
  OK(cuStreamGetId, nullptr, &b);
  OK(cuStreamGetId, CU_STREAM_LEGACY, &c);
  CHECK(a != b);
  CHECK(b == c);
  CUstreamAttrValue value{};
  value.priority = -2;
  OK(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
  OK(cuStreamGetPriority, stream, &priority);
  CHECK(priority == -2);
  CHECK(API(cuStreamSetAttribute)(stream, CUstreamAttrID(70), &value) == CUDA_ERROR_INVALID_VALUE);
  CHECK(alive()[2] == 2);
  OK(cuStreamDestroy, stream);
  const CUresult gone = CUDA_ERROR_INVALID_HANDLE;
  CHECK(API(cuStreamDestroy)(stream) == gone);
  CHECK(API(cuStreamDestroy)(nullptr) == gone);
  CHECK(API(cuStreamSynchronize)(stream) == gone);
  CHECK(API(cuStreamGetFlags)(stream, &flags) == gone);
  OK(cuStreamDestroy, urgent);
}

TEST_CASE("Driver: a stream runs in its order", "[driver]") {
  Started started;
  Kernels kernels;
  Streams streams(2);
  Numbers numbers(2);
  OK(cuCtxSynchronize);
  for (unsigned digit = 1; digit <= 9; ++digit) {
    for (int i = 0; i < 2; ++i) {
      CHECK(launch(kernels["append"], 1, 1, streams[i], numbers.address() + 4 * i, digit) ==
            CUDA_SUCCESS);
    }
  }
  OK(cuStreamSynchronize, streams[0]);
  OK(cuStreamSynchronize, streams[1]);
  CHECK(numbers.read() == std::vector<unsigned>{123456789, 123456789});
}

TEST_CASE("Driver: calls return before the work is done", "[driver]") {
  Started started;
  Kernels kernels;
  Streams streams(1);
  Numbers numbers(1);
  Event event;
  OK(cuCtxSynchronize);
  CHECK(API(cuEventQuery)(event) == CUDA_SUCCESS);  // never recorded
  Gate gate(streams[0]);
  CHECK(launch(kernels["append"], 1, 1, streams[0], numbers.address(), 1u) == CUDA_SUCCESS);
  OK(cuEventRecord, event, streams[0]);
  CHECK(API(cuStreamQuery)(streams[0]) == CUDA_ERROR_NOT_READY);
  CHECK(API(cuEventQuery)(event) == CUDA_ERROR_NOT_READY);
  float ms = 0;
  CHECK(API(cuEventElapsedTime)(&ms, event, event) == CUDA_ERROR_NOT_READY);
  gate.open();
  OK(cuEventSynchronize, event);
  CHECK(API(cuEventQuery)(event) == CUDA_SUCCESS);
  CHECK(API(cuStreamQuery)(streams[0]) == CUDA_SUCCESS);
  CHECK(numbers.read()[0] == 1);
}

TEST_CASE("Driver: events order streams", "[driver]") {
  Started started;
  Kernels kernels;
  // Among streams that could go on one is drawn: without the events digits would come in any order.
  for (unsigned seed = 1; seed <= 10; ++seed) {
    API(cuda_emulator_seed)(seed);
    Streams streams(3);
    Numbers numbers(1);
    OK(cuCtxSynchronize);
    Event events[9];
    Gate gate(streams[0]);
    for (unsigned digit = 1; digit <= 9; ++digit) {
      const CUstream stream = streams[digit % 3];
      if (digit > 1) OK(cuStreamWaitEvent, stream, events[digit - 2], 0);
      CHECK(launch(kernels["append"], 1, 1, stream, numbers.address(), digit) == CUDA_SUCCESS);
      OK(cuEventRecord, events[digit - 1], stream);
    }
    gate.open();
    OK(cuEventSynchronize, events[8]);
    CHECK(numbers.read()[0] == 123456789);
  }
}

TEST_CASE("Driver: without events streams run in any order", "[driver]") {
  Started started;
  Kernels kernels;
  std::set<unsigned> seen;
  for (unsigned seed = 1; seed <= 20 && seen.size() < 3; ++seed) {
    API(cuda_emulator_seed)(seed);
    Streams streams(4);
    Numbers numbers(1);
    OK(cuCtxSynchronize);
    {
      Gate gate(streams[0]);
      for (unsigned i = 1; i <= 3; ++i) {
        CHECK(launch(kernels["append"], 1, 1, streams[i], numbers.address(), i) == CUDA_SUCCESS);
      }
    }
    OK(cuCtxSynchronize);
    seen.insert(numbers.read()[0]);
  }
  CHECK(seen.size() >= 3);
}

TEST_CASE("Driver: an event stands for its last record at the time of the wait", "[driver]") {
  Started started;
  Kernels kernels;
  Streams streams(2);
  Numbers numbers(1);
  Event event;
  OK(cuCtxSynchronize);
  Gate gate(streams[0]);
  CHECK(launch(kernels["append"], 1, 1, streams[0], numbers.address(), 1u) == CUDA_SUCCESS);
  OK(cuEventRecord, event, streams[0]);
  OK(cuStreamWaitEvent, streams[1], event, 0);
  CHECK(launch(kernels["append"], 1, 1, streams[1], numbers.address(), 2u) == CUDA_SUCCESS);
  // Recorded again, behind the second kernel: the wait above is not concerned.
  OK(cuEventRecord, event, streams[1]);
  OK(cuStreamWaitEvent, streams[0], event, 0);
  CHECK(launch(kernels["append"], 1, 1, streams[0], numbers.address(), 3u) == CUDA_SUCCESS);
  gate.open();
  OK(cuCtxSynchronize);
  CHECK(numbers.read()[0] == 123);
}

TEST_CASE("Driver: the legacy stream waits for blocking streams, and they for it", "[driver]") {
  Started started;
  Kernels kernels;
  Streams blocking(2, CU_STREAM_DEFAULT), free(1);
  Numbers numbers(2);
  OK(cuCtxSynchronize);
  for (unsigned seed = 1; seed <= 5; ++seed) {
    API(cuda_emulator_seed)(seed);
    OK(cuMemsetD32, numbers.address(), 0, 2);
    OK(cuCtxSynchronize);
    Gate gate(blocking[0]);
    const auto append = [&](CUstream stream, unsigned digit) {
      CHECK(launch(kernels["append"], 1, 1, stream, numbers.address(), digit) == CUDA_SUCCESS);
    };
    append(blocking[0], 1);
    append(nullptr, 2);
    append(blocking[1], 3);
    append(CU_STREAM_LEGACY, 4);
    append(CU_STREAM_PER_THREAD, 5);
    append(nullptr, 6);
    gate.open();
    OK(cuCtxSynchronize);
    CHECK(numbers.read()[0] == 123456);
  }
  // A stream that does not block is not held up by the legacy one.
  OK(cuCtxSynchronize);
  static std::atomic<bool> ran;
  ran = false;
  Gate gate(free[0]);
  CHECK(launch(kernels["append"], 1, 1, nullptr, numbers.address(), 7u) == CUDA_SUCCESS);
  Event legacy;
  OK(cuEventRecord, legacy, nullptr);
  gate.open();
  OK(cuEventSynchronize, legacy);
  OK(cuStreamSynchronize, free[0]);
}

TEST_CASE("Driver: each thread has its own default stream", "[driver]") {
  Started started;
  unsigned long long mine = 0, others = 0;
  OK(cuStreamGetId, CU_STREAM_PER_THREAD, &mine);
  std::thread([&] {
    OK(cuCtxSetCurrent, started.context);
    OK(cuStreamGetId, CU_STREAM_PER_THREAD, &others);
  }).join();
  CHECK(mine != others);
  // The _ptsz and _ptds forms use it.
  const auto id = call<CUresult (*)(CUstream, unsigned long long*)>("cuStreamGetId_ptsz");
  unsigned long long found = 0;
  CHECK(id(nullptr, &found) == CUDA_SUCCESS);
  CHECK(found == mine);
  CHECK(id(CU_STREAM_LEGACY, &found) == CUDA_SUCCESS);
  CHECK(found != mine);
  Numbers numbers(2);
  const unsigned values[] = {5, 6};
  CHECK(call<CUresult (*)(CUdeviceptr, const void*, size_t)>("cuMemcpyHtoD_v2_ptds")(
            numbers.address(), values, 8) == CUDA_SUCCESS);
  CHECK(numbers.read() == std::vector<unsigned>{5, 6});
}

TEST_CASE("Driver: host functions and callbacks", "[driver]") {
  Started started;
  static std::vector<int> order;
  static CUresult inside;
  static CUstream told;
  order.clear();
  Streams streams(1);
  for (int i = 0; i < 3; ++i) {
    OK(
        cuLaunchHostFunc, streams[0],
        [](void* data) { order.push_back(int(reinterpret_cast<intptr_t>(data))); },
        reinterpret_cast<void*>(intptr_t(i)));
  }
  OK(
      cuStreamAddCallback, streams[0],
      [](CUstream stream, CUresult status, void*) {
        told = stream;
        order.push_back(status == CUDA_SUCCESS ? 3 : -1);
        CUdeviceptr address = 0;
        inside = API(cuMemAlloc)(&address, 4);  // not permitted there
      },
      nullptr, 0);
  OK(cuStreamSynchronize, streams[0]);
  CHECK(order == std::vector<int>{0, 1, 2, 3});
  CHECK(inside == CUDA_ERROR_NOT_PERMITTED);
  CHECK(told == streams[0]);
  CHECK(API(cuLaunchHostFunc)(streams[0], nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuStreamAddCallback)(streams[0], nullptr, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(alive()[0] == 0);
}

TEST_CASE("Driver: events and their times", "[driver]") {
  Started started;
  Event start, end, untimed(CU_EVENT_DISABLE_TIMING);
  CUevent wrong = nullptr;
  CHECK(API(cuEventCreate)(&wrong, 0x100) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuEventCreate)(&wrong, CU_EVENT_INTERPROCESS) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuEventCreate)(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  float ms = -1;
  CHECK(API(cuEventElapsedTime)(&ms, start, end) == CUDA_ERROR_INVALID_HANDLE);
  OK(cuEventRecord, start, nullptr);
  OK(
      cuLaunchHostFunc, nullptr,
      [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr);
  OK(cuEventRecord, end, nullptr);
  OK(cuEventRecord, untimed, nullptr);
  OK(cuEventSynchronize, untimed);
  OK(cuEventElapsedTime, &ms, start, end);
  CHECK(ms >= 20);
  CHECK(ms < 20000);
  OK(cuEventElapsedTime, &ms, end, start);
  CHECK(ms <= -20);
  CHECK(API(cuEventElapsedTime)(&ms, start, untimed) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(API(cuEventElapsedTime)(nullptr, start, end) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuEventRecordWithFlags)(start, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  const CUresult gone = CUDA_ERROR_INVALID_HANDLE;
  CHECK(API(cuEventRecord)(nullptr, nullptr) == gone);
  CHECK(API(cuEventSynchronize)(reinterpret_cast<CUevent>(64)) == gone);
  CHECK(API(cuStreamWaitEvent)(nullptr, nullptr, 0) == gone);
  // Event and stream must be of one context; a wait may cross.
  CUcontext other = nullptr;
  OK(cuCtxCreate, &other, nullptr, 0, 0);
  CHECK(API(cuEventRecord)(start, nullptr) == gone);
  OK(cuStreamWaitEvent, nullptr, start, 0);
  OK(cuCtxDestroy, other);
}

TEST_CASE("Driver: a stream may be destroyed before its work is done", "[driver]") {
  Started started;
  Kernels kernels;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    API(cuda_emulator_seed)(seed);
    Numbers numbers(1);
    CUstream stream = nullptr;
    OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
    {
      Gate gate(stream);
      CHECK(launch(kernels["append"], 1, 1, stream, numbers.address(), 4u) == CUDA_SUCCESS);
      OK(cuStreamDestroy, stream);
      // The legacy stream still comes after it.
      CHECK(launch(kernels["append"], 1, 1, nullptr, numbers.address(), 2u) == CUDA_SUCCESS);
    }
    OK(cuCtxSynchronize);
    CHECK(numbers.read()[0] == 42);
  }
}

TEST_CASE("Driver: many threads call at once", "[driver]") {
  Started started;
  Kernels kernels;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const auto check = [&](CUresult code) { wrong += code != CUDA_SUCCESS; };
      check(API(cuCtxSetCurrent)(started.context));
      for (unsigned round = 0; round < 20; ++round) {
        CUdeviceptr address = 0;
        CUstream stream = nullptr;
        CUevent event = nullptr;
        check(API(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        check(API(cuEventCreate)(&event, CU_EVENT_DEFAULT));
        check(API(cuMemAlloc)(&address, 256));
        CUfunction fill = nullptr;
        check(API(cuModuleGetFunction)(&fill, kernels.module, "fill"));
        check(launch(fill, 2, 32, stream, address, t * 1000 + round, 64u));
        check(API(cuEventRecord)(event, stream));
        check(API(cuEventSynchronize)(event));
        std::vector<unsigned> back(64);
        check(API(cuMemcpyDtoHAsync)(back.data(), address, 256, stream));
        for (unsigned i = 0; i < 64; ++i) wrong += back[i] != t * 1000 + round + i;
        check(API(cuMemFree)(address));
        check(API(cuEventDestroy)(event));
        check(API(cuStreamDestroy)(stream));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(alive() == std::array<uint64_t, 7>{0, 1, 0, 0, 0, 0, 1});
}
