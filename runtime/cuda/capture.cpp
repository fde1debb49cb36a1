#include "runtime/cuda/capture.h"

#include <algorithm>

#include "dsl/error.h"
#include "runtime/cuda/memory.h"

namespace krait {

// --------------------------------------------------------------------------------------- memory
CaptureMemory::CaptureMemory(std::shared_ptr<const CudaContext> context)
    : context_(std::move(context)), driver_(context_->driver()) {
  const CurrentContext current(*context_);
  driver_.check(driver_.cuEventCreate(&last_, CU_EVENT_DISABLE_TIMING), "an event");
}

CaptureMemory::~CaptureMemory() {
  try {
    const CurrentContext current(*context_);
    driver_.cuEventSynchronize(last_);
    for (const Block& block : idle_) driver_.cuMemFree(reinterpret_cast<CUdeviceptr>(block.data));
    driver_.cuEventDestroy(last_);
  } catch (const std::exception&) {
    // A context that cannot be entered is gone with its memory.
  }
}

Memory CaptureMemory::take(std::int64_t bytes, Stream stream) {
  const std::int64_t size = size_of_block(bytes);
  {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(idle_.begin(), idle_.end(),
                                    [&](const Block& block) { return block.bytes == size; });
    if (found != idle_.end()) {
      const Block block = *found;
      idle_.erase(found);
      return {shared_from_this(), block};
    }
  }
  const CurrentContext current(*context_);
  // Not of a pool: what a stream allocates while it is captured is allocated by every replay.
  CUdeviceptr memory = 0;
  const CUresult result = driver_.cuMemAlloc(&memory, static_cast<std::size_t>(size));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw_out_of_memory(driver_, bytes);
  driver_.check(result, text("memory of ", bytes, " bytes").c_str());
  return {shared_from_this(), {reinterpret_cast<void*>(memory), size, stream, nullptr}};
}

void CaptureMemory::give_back(const Block& block) noexcept {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(block);
}

void CaptureMemory::replayed(CUstream stream) const {
  driver_.check(driver_.cuEventRecord(last_, stream), "marking a replay");
}

void Captures::begin(Stream stream, std::shared_ptr<CaptureMemory> memory) {
  const std::scoped_lock lock(mutex_);
  now_.emplace_back(stream, std::move(memory));
}

void Captures::end(Stream stream) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(now_, [&](const auto& each) { return each.first == stream; });
}

std::shared_ptr<CaptureMemory> Captures::find(Stream stream) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [captured, memory] : now_)
    if (captured == stream) return memory;
  return nullptr;
}

// ---------------------------------------------------------------------------------------- calls
namespace {

class CudaGraphCall : public CapturedCall {
 public:
  CudaGraphCall(std::shared_ptr<const CudaContext> context, std::shared_ptr<Captures> captures)
      : context_(std::move(context)),
        driver_(context_->driver()),
        captures_(std::move(captures)),
        memory_(std::make_shared<CaptureMemory>(context_)) {
    const CurrentContext current(*context_);
    driver_.check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "a stream");
  }
  ~CudaGraphCall() override {
    try {
      const CurrentContext current(*context_);
      if (executable_ != nullptr) driver_.cuGraphExecDestroy(executable_);
      driver_.cuStreamDestroy(stream_);
    } catch (const std::exception&) {
      // A context that cannot be entered is gone with its graphs.
    }
  }

  /// Once, before all else.
  void capture(const Call& call) {
    const Graph graph = recorded(call);
    const CurrentContext current(*context_);
    driver_.check(driver_.cuGraphInstantiate(&executable_, graph.handle, 0),
                  "making a graph that runs");
  }

  void bind(const Call& call) override {
    const Graph graph = recorded(call);
    const CurrentContext current(*context_);
    CUgraphExecUpdateResultInfo info{};
    const CUresult result = driver_.cuGraphExecUpdate(executable_, graph.handle, &info);
    if (result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
      throw UsageError("call that is bound",
                       text("one of other work (CUgraphExecUpdateResult ", info.result, ")"),
                       "what was captured, in its order, with other tensors");
    driver_.check(result, "binding a graph");
  }

  void replay(Stream stream) override {
    const CurrentContext current(*context_);
    driver_.check(driver_.cuGraphLaunch(executable_, context_->stream(stream)),
                  "launching a graph");
    memory_->replayed(context_->stream(stream));
  }

 private:
  struct Graph {
    Graph(const CudaDriver& d, CUgraph g) : driver(d), handle(g) {}
    Graph(const Graph&) = delete;
    ~Graph() {
      if (handle != nullptr) driver.cuGraphDestroy(handle);
    }
    const CudaDriver& driver;
    CUgraph handle;
  };

  Graph recorded(const Call& call) {
    const Stream stream = Stream::of(stream_);
    {
      const CurrentContext current(*context_);
      // Relaxed: other threads, and calls that are none of the stream's (loading a kernel,
      // allocating), go on as ever.
      driver_.check(driver_.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED),
                    "beginning a capture");
    }
    captures_->begin(stream, memory_);
    std::exception_ptr error;
    try {
      call(stream);
    } catch (...) {
      error = std::current_exception();
    }
    captures_->end(stream);
    const CurrentContext current(*context_);
    CUgraph made = nullptr;
    const CUresult result = driver_.cuStreamEndCapture(stream_, &made);
    Graph graph(driver_, made);
    if (error) std::rethrow_exception(error);
    refuse(result);
    std::size_t nodes = 0;
    driver_.check(driver_.cuGraphGetNodes(made, nullptr, &nodes), "the nodes of a graph");
    if (nodes == 0)
      throw UsageError("captured call", "one that gave no work to the stream it was handed",
                       "calls that take that stream, as layers do");
    return Graph(driver_, std::exchange(graph.handle, nullptr));
  }

  /// Why a capture came to nothing.
  void refuse(CUresult result) const {
    const char* why = nullptr;
    switch (result) {
      case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
        why = "one that waited for the device, or did something else that cannot be written down";
        break;
      case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
        why = "one with work in another stream that its own does not wait for in the end";
        break;
      default: driver_.check(result, "ending a capture"); return;
    }
    const char* name = nullptr;
    driver_.cuGetErrorName(result, &name);
    throw UsageError("captured call", text(why, " (", name != nullptr ? name : "", ")"),
                     "work that stays on the device");
  }

  std::shared_ptr<const CudaContext> context_;
  const CudaDriver& driver_;
  std::shared_ptr<Captures> captures_;
  std::shared_ptr<CaptureMemory> memory_;
  CUstream stream_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

}  // namespace

std::unique_ptr<CapturedCall> capture_cuda(std::shared_ptr<const CudaContext> context,
                                           std::shared_ptr<Captures> captures,
                                           const CapturedCall::Call& call) {
  auto made = std::make_unique<CudaGraphCall>(std::move(context), std::move(captures));
  made->capture(call);
  return made;
}

}  // namespace krait
