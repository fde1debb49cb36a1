// Capture of streams into graphs.

#include "tests/cuda_emulator/driver/capture.h"

#include <algorithm>

#include "tests/cuda_emulator/driver/per_thread.h"

using namespace emulator::driver;

namespace emulator::driver {
namespace {

// What cuThreadExchangeStreamCaptureMode set for this thread.
thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void add_unique(std::vector<CUgraphNode>& to, const std::vector<CUgraphNode>& nodes) {
  for (CUgraphNode node : nodes) {
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }
}

}  // namespace

Capture* forbidding_capture(Driver& driver) {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return nullptr;
  for (const std::shared_ptr<Capture>& capture : driver.captures) {
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool own = capture->thread == std::this_thread::get_id();
    if (own || (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL))
      return capture.get();
  }
  return nullptr;
}

void require_valid(const Capture& capture) {
  require(capture.invalid == CUDA_SUCCESS, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

CUgraphNode add_captured(Driver& driver, Stream& stream, Action action) {
  require_valid(*stream.capture);
  const std::shared_ptr<Node> node =
      add_node(driver, *stream.capture->graph, std::move(action), stream.tail);
  stream.tail = {node->handle};
  return node->handle;
}

void join_capture(const std::shared_ptr<Stream>& stream, const Event& event) {
  const std::shared_ptr<Capture> of_event = event.captured ? event.capture.lock() : nullptr;
  if (stream->capture) {
    require_valid(*stream->capture);
    // Work that no capture knows cannot come before a node.
    if (!event.captured) {
      if (!event.work) return;
      stream->capture->invalid = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
      fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    if (of_event != stream->capture) {
      stream->capture->invalid = CUDA_ERROR_STREAM_CAPTURE_MERGE;
      if (of_event) of_event->invalid = CUDA_ERROR_STREAM_CAPTURE_MERGE;
      fail(CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    add_unique(stream->tail, event.nodes);
    return;
  }
  require(of_event != nullptr, CUDA_ERROR_CAPTURED_EVENT);  // of a capture that has ended
  require_valid(*of_event);
  if (stream->legacy) {
    of_event->invalid = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  stream->capture = of_event;
  stream->tail = event.nodes;
  of_event->streams.push_back(stream);
}

}  // namespace emulator::driver

namespace {

// `start` gives the graph to capture into, and the nodes that the first one comes after.
template <class Start>
CUresult begin(const char* name, CUstream handle, CUstreamCaptureMode mode, Start&& start) {
  return entry(name, [&](Call& call) {
    Driver& driver = call.driver;
    const std::shared_ptr<Stream> stream = call.stream(handle);
    require(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    require(!stream->legacy, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    require(!stream->capture, CUDA_ERROR_ILLEGAL_STATE);
    auto capture = std::make_shared<Capture>();
    std::vector<CUgraphNode> tail = start(call, *capture);
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->id = driver.next_id++;
    capture->streams = {stream};
    stream->capture = capture;
    stream->tail = std::move(tail);
    driver.captures.push_back(std::move(capture));
  });
}

// Whether everything that other streams captured comes before what the origin ends with.
bool joined(const Driver& driver, const Capture& capture, const Stream& origin) {
  std::vector<CUgraphNode> open = origin.tail, seen = origin.tail;
  while (!open.empty()) {
    const std::shared_ptr<Node> node = driver.nodes.find(open.back());
    open.pop_back();
    if (!node) continue;
    for (CUgraphNode before : node->dependencies) {
      if (std::find(seen.begin(), seen.end(), before) != seen.end()) continue;
      seen.push_back(before);
      open.push_back(before);
    }
  }
  for (const std::shared_ptr<Stream>& stream : capture.streams) {
    for (CUgraphNode node : stream->tail) {
      if (std::find(seen.begin(), seen.end(), node) == seen.end()) return false;
    }
  }
  return true;
}

void end(Call& call, const std::shared_ptr<Stream>& stream, CUgraph* graph) {
  Driver& driver = call.driver;
  const std::shared_ptr<Capture> capture = stream->capture;
  require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  if (capture->origin.lock() != stream) {
    capture->invalid = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  }
  require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
              capture->thread == std::this_thread::get_id(),
          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  CUresult result = CUDA_SUCCESS;
  if (capture->invalid != CUDA_SUCCESS) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!joined(driver, *capture, *stream)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  *graph = nullptr;
  if (result == CUDA_SUCCESS) {
    *graph = capture->graph->handle;
    capture->given = true;  // to the program
  }
  driver.abandon(capture);
  require(result == CUDA_SUCCESS, result);
}

struct Info {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** dependencies = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  size_t* count = nullptr;
};

CUresult info(const char* name, CUstream handle, const Info& to) {
  return entry(name, [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.any_stream(handle);
    require(to.status);
    // Asking is no use of the stream: the capture goes on.
    if (stream->legacy)
      require(!call.blocking_capture(*stream->context), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    *to.status = CU_STREAM_CAPTURE_STATUS_NONE;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return;
    *to.status = capture->invalid == CUDA_SUCCESS ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                  : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    if (to.id) *to.id = capture->id;
    if (to.graph) *to.graph = capture->graph->handle;
    if (to.edges) *to.edges = nullptr;
    if (to.dependencies) *to.dependencies = stream->tail.data();
    if (to.count) *to.count = stream->tail.size();
  });
}

}  // namespace

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return begin("cuStreamBeginCapture", hStream, mode, [](Call& call, Capture& capture) {
    capture.graph = std::make_shared<Graph>();
    call.driver.graphs.add(capture.graph);
    return std::vector<CUgraphNode>();
  });
}

CUresult cuStreamBeginCapture(CUstream hStream) {
  return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                     const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return begin("cuStreamBeginCaptureToGraph", hStream, mode, [&](Call& call, Capture& capture) {
    require(!dependencyData, CUDA_ERROR_NOT_SUPPORTED);
    capture.graph = graph_at(call, hGraph);
    capture.given = true;
    return checked_dependencies(call, *capture.graph, dependencies, numDependencies);
  });
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  return entry("cuStreamEndCapture", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.any_stream(hStream);
    require(phGraph);
    end(call, stream, phGraph);
  });
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return info("cuStreamIsCapturing", hStream, {captureStatus});
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                cuuint64_t* id_out) {
  return info("cuStreamGetCaptureInfo", hStream, {captureStatus_out, id_out});
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   size_t* numDependencies_out) {
  return info(
      "cuStreamGetCaptureInfo", hStream,
      {captureStatus_out, id_out, graph_out, dependencies_out, nullptr, numDependencies_out});
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edgeData_out,
                                   size_t* numDependencies_out) {
  return info(
      "cuStreamGetCaptureInfo", hStream,
      {captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out});
}

namespace {

CUresult update_dependencies(CUstream handle, const CUgraphNode* dependencies,
                             const CUgraphEdgeData* data, size_t count, unsigned flags) {
  return entry("cuStreamUpdateCaptureDependencies", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.any_stream(handle);
    require(flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES ||
            flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    require(!data, CUDA_ERROR_NOT_SUPPORTED);
    require(stream->capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require_valid(*stream->capture);
    const std::vector<CUgraphNode> nodes =
        checked_dependencies(call, *stream->capture->graph, dependencies, count);
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->tail.clear();
    add_unique(stream->tail, nodes);
  });
}

}  // namespace

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies,
                                           size_t numDependencies, unsigned int flags) {
  return update_dependencies(hStream, dependencies, nullptr, numDependencies, flags);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData* dependencyData,
                                              size_t numDependencies, unsigned int flags) {
  return update_dependencies(hStream, dependencies, dependencyData, numDependencies, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return entry("cuThreadExchangeStreamCaptureMode", [&](Call&) {
    require(mode && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL &&
            *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    std::swap(*mode, thread_mode);
  });
}
