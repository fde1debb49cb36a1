// Capture of streams.

#include <algorithm>
#include <thread>

#include "tests/emulator/driver_test.h"

using namespace emulator_test;

namespace {

// Streams that do not block, a kernel that leaves a trace, and a word for it.
struct Scene : Started {
  Scene() : numbers(4) {
    for (CUstream& stream : streams) OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (CUevent& event : events) OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    append_ = kernels["append"];
    OK(cuCtxSynchronize);
  }
  CUresult append(CUstream stream, unsigned digit, unsigned word = 0) {
    return launch(append_, 1, 1, stream, numbers.address() + 4 * word, digit);
  }
  // Makes an executable of the graph, which it destroys.
  CUgraphExec executable(CUgraph graph) {
    CUgraphExec exec = nullptr;
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    OK(cuGraphDestroy, graph);
    return exec;
  }
  void run(CUgraphExec exec) {
    OK(cuGraphLaunch, exec, streams[0]);
    OK(cuStreamSynchronize, streams[0]);
  }
  void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    OK(cuStreamBeginCapture, streams[0], mode);
  }
  CUgraph end() {
    CUgraph graph = nullptr;
    OK(cuStreamEndCapture, streams[0], &graph);
    return graph;
  }
  // Ends a capture that was invalidated.
  void end_invalid() {
    CUgraph graph = reinterpret_cast<CUgraph>(1);
    CHECK(API(cuStreamEndCapture)(streams[0], &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == nullptr);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    OK(cuStreamIsCapturing, streams[0], &status);
    CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(alive()[4] == 0);
  }

  Kernels kernels;
  Numbers numbers;
  CUstream streams[3];
  CUevent events[4];

 private:
  CUfunction append_;
};

}  // namespace

TEST_CASE("Driver: a captured stream runs when the graph is launched", "[driver]") {
  Scene scene;
  const CUdeviceptr at = scene.numbers.address();
  static int calls;
  calls = 0;
  void* raw = nullptr;
  OK(cuMemAllocHost, &raw, 16);
  auto* host = static_cast<unsigned*>(raw);
  host[0] = 7;
  scene.begin();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  OK(cuStreamIsCapturing, scene.streams[0], &status);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuMemsetD32Async, at + 4, 5, 1, scene.streams[0]);
  OK(cuMemcpyHtoDAsync, at + 8, host, 4, scene.streams[0]);
  CHECK(scene.append(scene.streams[0], 1) == CUDA_SUCCESS);
  OK(
      cuLaunchHostFunc, scene.streams[0], [](void*) { ++calls; }, nullptr);
  OK(cuMemcpyDtoHAsync, host + 1, at, 4, scene.streams[0]);
  const CUgraph graph = scene.end();
  size_t count = 0;
  OK(cuGraphGetNodes, graph, nullptr, &count);
  CHECK(count == 5);
  OK(cuGraphGetEdges, graph, nullptr, nullptr, nullptr, &count);
  CHECK(count == 4);
  OK(cuStreamSynchronize, scene.streams[0]);
  CHECK(calls == 0);
  CHECK(scene.numbers.read() == std::vector<unsigned>(4, 0));
  const CUgraphExec exec = scene.executable(graph);
  host[0] = 8;  // read when the graph runs
  scene.run(exec);
  CHECK(scene.numbers.read() == std::vector<unsigned>{1, 5, 8, 0});
  CHECK(calls == 1);
  CHECK(host[1] == 1);
  scene.run(exec);
  CHECK(scene.numbers.read() == std::vector<unsigned>{11, 5, 8, 0});
  CHECK(host[1] == 11);
  OK(cuGraphExecDestroy, exec);
  OK(cuMemFreeHost, raw);
}

TEST_CASE("Driver: forks and joins of captured streams", "[driver]") {
  Scene scene;
  scene.begin();
  CHECK(scene.append(scene.streams[0], 1) == CUDA_SUCCESS);
  OK(cuEventRecord, scene.events[0], scene.streams[0]);
  OK(cuStreamWaitEvent, scene.streams[1], scene.events[0], 0);
  OK(cuStreamWaitEvent, scene.streams[2], scene.events[0], 0);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0, other = 0;
  CUgraph seen = nullptr;
  const CUgraphNode* dependencies = nullptr;
  size_t count = 0;
  OK(cuStreamGetCaptureInfo, scene.streams[0], &status, &id, &seen, &dependencies, nullptr, &count);
  CHECK(count == 1);
  OK(cuStreamGetCaptureInfo, scene.streams[1], &status, &other, nullptr, nullptr, nullptr, nullptr);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(id == other);
  CHECK(scene.append(scene.streams[1], 2, 1) == CUDA_SUCCESS);
  CHECK(scene.append(scene.streams[2], 3, 2) == CUDA_SUCCESS);
  OK(cuEventRecord, scene.events[1], scene.streams[1]);
  OK(cuEventRecord, scene.events[2], scene.streams[2]);
  OK(cuStreamWaitEvent, scene.streams[0], scene.events[1], 0);
  OK(cuStreamWaitEvent, scene.streams[0], scene.events[2], 0);
  CHECK(scene.append(scene.streams[0], 4) == CUDA_SUCCESS);
  const CUgraph graph = scene.end();
  CHECK(graph == seen);
  OK(cuGraphGetNodes, graph, nullptr, &count);
  CHECK(count == 4);
  // 1 comes before 2 and 3, which come before 4; waits add to what a stream comes after, so that
  // 1 comes before 4 too.
  OK(cuGraphGetEdges, graph, nullptr, nullptr, nullptr, &count);
  CHECK(count == 5);
  OK(cuGraphGetRootNodes, graph, nullptr, &count);
  CHECK(count == 1);
  OK(cuStreamIsCapturing, scene.streams[1], &status);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  const CUgraphExec exec = scene.executable(graph);
  scene.run(exec);
  CHECK(scene.numbers.read() == std::vector<unsigned>{14, 2, 3, 0});
  OK(cuGraphExecDestroy, exec);
}

TEST_CASE("Driver: work that is not joined", "[driver]") {
  Scene scene;
  scene.begin();
  OK(cuEventRecord, scene.events[0], scene.streams[0]);
  OK(cuStreamWaitEvent, scene.streams[1], scene.events[0], 0);
  CHECK(scene.append(scene.streams[1], 2) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(API(cuStreamEndCapture)(scene.streams[0], &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(graph == nullptr);
  CHECK(alive()[4] == 0);
  // Ended elsewhere than it began.
  scene.begin();
  OK(cuEventRecord, scene.events[0], scene.streams[0]);
  OK(cuStreamWaitEvent, scene.streams[1], scene.events[0], 0);
  CHECK(API(cuStreamEndCapture)(scene.streams[1], &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  scene.end_invalid();
  // What no capture knows, and what another one does.
  OK(cuEventRecord, scene.events[1], scene.streams[2]);
  scene.begin();
  CHECK(API(cuStreamWaitEvent)(scene.streams[0], scene.events[1], 0) ==
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  scene.end_invalid();
  scene.begin();
  OK(cuStreamBeginCapture, scene.streams[1], CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuEventRecord, scene.events[1], scene.streams[1]);
  CHECK(API(cuStreamWaitEvent)(scene.streams[0], scene.events[1], 0) ==
        CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CHECK(API(cuStreamEndCapture)(scene.streams[1], &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  scene.end_invalid();
}

TEST_CASE("Driver: calls that a capture does not allow", "[driver]") {
  Scene scene;
  const CUstream stream = scene.streams[0];
  unsigned value = 0;
  CUdeviceptr address = 0;
  void* host = nullptr;
  CUmodule module = nullptr;
  struct Row {
    const char* what;
    std::function<CUresult()> call;
  };
  const Row rows[] = {
      {"cuMemAlloc", [&] { return API(cuMemAlloc)(&address, 4); }},
      {"cuMemAllocHost", [&] { return API(cuMemAllocHost)(&host, 4); }},
      {"cuMemFree", [&] { return API(cuMemFree)(scene.numbers.address()); }},
      {"cuCtxSynchronize", [&] { return API(cuCtxSynchronize)(); }},
      {"cuStreamSynchronize", [&] { return API(cuStreamSynchronize)(stream); }},
      {"cuStreamQuery", [&] { return API(cuStreamQuery)(stream); }},
      {"of another stream", [&] { return API(cuStreamSynchronize)(scene.streams[1]); }},
      {"cuEventQuery", [&] { return API(cuEventQuery)(scene.events[3]); }},
      {"cuMemcpyHtoD", [&] { return API(cuMemcpyHtoD)(scene.numbers.address(), &value, 4); }},
      {"cuModuleLoadData", [&] { return API(cuModuleLoadData)(&module, kernels().c_str()); }},
      {"cuStreamAddCallback",
       [&] {
         return API(cuStreamAddCallback)(
             stream, [](CUstream, CUresult, void*) {}, nullptr, 0);
       }},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    scene.begin();
    CHECK(row.call() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    OK(cuStreamIsCapturing, stream, &status);
    CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(scene.append(stream, 1) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    scene.end_invalid();
  }
  OK(cuCtxSynchronize);
  CHECK(scene.numbers.read() == std::vector<unsigned>(4, 0));
  // An event of the capture is asked for.
  scene.begin();
  OK(cuEventRecord, scene.events[0], stream);
  CHECK(API(cuEventQuery)(scene.events[0]) == CUDA_ERROR_CAPTURED_EVENT);
  scene.end_invalid();
  CUgraph graph = nullptr;
  CHECK(API(cuStreamEndCapture)(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(API(cuStreamBeginCapture)(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(API(cuStreamBeginCapture)(stream, CUstreamCaptureMode(5)) == CUDA_ERROR_INVALID_VALUE);
  scene.begin();
  CHECK(API(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_ERROR_ILLEGAL_STATE);
  OK(cuGraphDestroy, scene.end());
}

TEST_CASE("Driver: the legacy stream while a blocking stream captures", "[driver]") {
  Scene scene;
  CUstream blocking = nullptr;
  OK(cuStreamCreate, &blocking, CU_STREAM_DEFAULT);
  const CUresult implicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  CUgraph graph = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  OK(cuStreamBeginCapture, blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(API(cuStreamIsCapturing)(nullptr, &status) == implicit);
  OK(cuStreamIsCapturing, blocking, &status);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);  // asking was no use of it
  CHECK(scene.append(nullptr, 1) == implicit);
  OK(cuStreamIsCapturing, blocking, &status);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(API(cuStreamEndCapture)(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  unsigned value = 0;
  OK(cuStreamBeginCapture, blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(API(cuMemcpyHtoD)(scene.numbers.address(), &value, 4) == implicit);
  CHECK(API(cuStreamEndCapture)(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // With a stream that does not block the legacy one is free.
  scene.begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(scene.append(nullptr, 3) == CUDA_SUCCESS);
  OK(cuMemcpyDtoH, &value, scene.numbers.address(), 4);
  CHECK(value == 3);
  OK(cuGraphDestroy, scene.end());
}

TEST_CASE("Driver: modes of captures and threads", "[driver]") {
  Scene scene;
  const auto elsewhere = [&](const std::function<CUresult()>& f) {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      OK(cuCtxSetCurrent, scene.context);
      result = f();
    }).join();
    return result;
  };
  const auto allocate = [] {
    CUdeviceptr address = 0;
    const CUresult code = API(cuMemAlloc)(&address, 4);
    if (code == CUDA_SUCCESS) API(cuMemFree)(address);
    return code;
  };
  // Global: no thread may. Thread-local: others may. Relaxed: all may.
  scene.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(elsewhere(allocate) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  scene.end_invalid();
  scene.begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(elsewhere(allocate) == CUDA_SUCCESS);
  CHECK(allocate() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  scene.end_invalid();
  scene.begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(elsewhere(allocate) == CUDA_SUCCESS);
  CHECK(allocate() == CUDA_SUCCESS);
  CHECK(elsewhere([&] {
          CUgraph graph = nullptr;
          const CUresult code = API(cuStreamEndCapture)(scene.streams[0], &graph);
          API(cuGraphDestroy)(graph);
          return code;
        }) == CUDA_SUCCESS);
  // Ended by another thread.
  scene.begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(elsewhere([&] {
          CUgraph graph = nullptr;
          return API(cuStreamEndCapture)(scene.streams[0], &graph);
        }) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  OK(cuGraphDestroy, scene.end());
  // A thread that has taken the responsibility.
  scene.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode, &mode);
  CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(allocate() == CUDA_SUCCESS);
  OK(cuThreadExchangeStreamCaptureMode, &mode);
  CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(allocate() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  scene.end_invalid();
}

TEST_CASE("Driver: capture into a graph that is there, and of a launch", "[driver]") {
  Scene scene;
  CUgraph graph = nullptr, outer = nullptr;
  CUgraphNode first = nullptr;
  OK(cuGraphCreate, &graph, 0);
  OK(cuGraphAddEmptyNode, &first, graph, nullptr, 0);
  OK(cuStreamBeginCaptureToGraph, scene.streams[0], graph, &first, nullptr, 1,
     CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(scene.append(scene.streams[0], 1) == CUDA_SUCCESS);
  OK(cuStreamEndCapture, scene.streams[0], &outer);
  CHECK(outer == graph);
  size_t count = 0;
  OK(cuGraphNodeGetDependentNodes, first, nullptr, nullptr, &count);
  CHECK(count == 1);
  const CUgraphExec inner = scene.executable(graph);
  scene.begin();
  CHECK(scene.append(scene.streams[0], 2) == CUDA_SUCCESS);
  OK(cuGraphLaunch, inner, scene.streams[0]);
  CHECK(scene.append(scene.streams[0], 3) == CUDA_SUCCESS);
  const CUgraphExec exec = scene.executable(scene.end());
  OK(cuGraphExecDestroy, inner);
  scene.run(exec);
  CHECK(scene.numbers.read()[0] == 213);
  OK(cuGraphExecDestroy, exec);
  CHECK(alive()[4] == 0);
  CHECK(alive()[5] == 0);
}

TEST_CASE("Driver: a capture whose stream goes", "[driver]") {
  Scene scene;
  scene.begin();
  CHECK(scene.append(scene.streams[0], 1) == CUDA_SUCCESS);
  OK(cuStreamDestroy, scene.streams[0]);
  CHECK(alive()[4] == 0);
  OK(cuCtxSynchronize);  // nothing captures any more
  OK(cuStreamBeginCapture, scene.streams[1], CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuEventRecord, scene.events[0], scene.streams[1]);
  OK(cuStreamWaitEvent, scene.streams[2], scene.events[0], 0);
  OK(cuStreamDestroy, scene.streams[2]);
  CUgraph graph = nullptr;
  CHECK(API(cuStreamEndCapture)(scene.streams[1], &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cuStreamBeginCapture, scene.streams[1], CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuCtxDestroy, scene.context);
  CHECK(alive() == std::array<uint64_t, 7>{});
}

TEST_CASE("Driver: what a captured node comes after is set", "[driver]") {
  Scene scene;
  scene.begin();
  CHECK(scene.append(scene.streams[0], 1) == CUDA_SUCCESS);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  CUgraphNode own = nullptr;
  OK(cuStreamGetCaptureInfo, scene.streams[0], &status, nullptr, &graph, nullptr, nullptr, nullptr);
  OK(cuGraphAddEmptyNode, &own, graph, nullptr, 0);
  OK(cuStreamUpdateCaptureDependencies, scene.streams[0], &own, nullptr, 1,
     CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
  CHECK(scene.append(scene.streams[0], 2) == CUDA_SUCCESS);
  size_t edges = 0;
  OK(cuGraphGetEdges, graph, nullptr, nullptr, nullptr, &edges);
  CHECK(edges == 2);
  CHECK(API(cuStreamUpdateCaptureDependencies)(scene.streams[0], &own, nullptr, 1, 7) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuStreamUpdateCaptureDependencies)(scene.streams[1], &own, nullptr, 1, 0) ==
        CUDA_ERROR_ILLEGAL_STATE);
  OK(cuGraphDestroy, scene.end());
}

TEST_CASE("Driver: events within graphs", "[driver]") {
  Scene scene;
  scene.begin();
  CHECK(scene.append(scene.streams[0], 1) == CUDA_SUCCESS);
  OK(cuEventRecordWithFlags, scene.events[0], scene.streams[0], CU_EVENT_RECORD_EXTERNAL);
  OK(cuStreamWaitEvent, scene.streams[0], scene.events[1], CU_EVENT_WAIT_EXTERNAL);
  const CUgraph graph = scene.end();
  size_t count = 3;
  CUgraphNode nodes[3] = {};
  OK(cuGraphGetNodes, graph, nodes, &count);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(cuGraphNodeGetType, nodes[1], &type);
  CHECK(type == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  OK(cuGraphNodeGetType, nodes[2], &type);
  CHECK(type == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  const CUgraphExec exec = scene.executable(graph);
  for (unsigned seed = 1; seed <= 10; ++seed) {
    API(cuda_emulator_seed)(seed);
    OK(cuMemsetD32, scene.numbers.address(), 0, 4);
    OK(cuCtxSynchronize);
    Gate gate(scene.streams[2]);
    CHECK(scene.append(scene.streams[2], 5) == CUDA_SUCCESS);
    OK(cuEventRecord, scene.events[1], scene.streams[2]);
    OK(cuGraphLaunch, exec, scene.streams[0]);
    CHECK(API(cuEventQuery)(scene.events[0]) == CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuEventSynchronize, scene.events[0]);
    CHECK(scene.numbers.read()[0] == 51);
  }
  OK(cuGraphExecDestroy, exec);
}
