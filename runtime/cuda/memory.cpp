#include "runtime/cuda/memory.h"

#include <algorithm>
#include <bit>

#include "dsl/error.h"

namespace krait {
namespace {

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }
CUevent event(const Block& block) { return static_cast<CUevent>(block.mark); }

}  // namespace

std::int64_t size_of_block(std::int64_t bytes) {
  const auto wanted = static_cast<std::uint64_t>(bytes);
  const std::uint64_t step = std::max<std::uint64_t>(512, std::bit_floor(wanted) / 8);
  return static_cast<std::int64_t>((wanted + step - 1) / step * step);
}

void throw_out_of_memory(const CudaDriver& driver, std::int64_t bytes) {
  std::size_t free = 0, total = 0;
  std::string rest;
  if (driver.cuMemGetInfo(&free, &total) == CUDA_SUCCESS)
    rest = text(": ", free, " of ", total, " bytes are free");
  throw EnvironmentError(text("CUDA: no memory for ", bytes, " bytes (CUDA_ERROR_OUT_OF_MEMORY)",
                              rest, "; smaller sizes, or fewer tensors at once, may fit"));
}

CudaMemory::CudaMemory(std::shared_ptr<const CudaContext> context)
    : context_(std::move(context)), driver_(context_->driver()) {
  int pools = 0;
  driver_.check(driver_.cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                             context_->device()),
                "an attribute of the device");
  pools_ = pools != 0;
}

CudaMemory::~CudaMemory() { trim(); }

Memory CudaMemory::take(std::int64_t bytes, Stream stream) {
  const CurrentContext current(*context_);
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream.handle() != nullptr &&
      driver_.cuStreamIsCapturing(context_->stream(stream), &capturing) == CUDA_SUCCESS &&
      capturing != CU_STREAM_CAPTURE_STATUS_NONE)
    throw UsageError("stream", "one that is being captured",
                     "streams of Device::capture, which keeps the memory that its call needs");
  const std::int64_t size = size_of_block(bytes);
  Block block;
  if (!find_idle(size, stream, block)) block = allocate(size, bytes, stream);
  return {shared_from_this(), block};
}

bool CudaMemory::find_idle(std::int64_t size, Stream stream, Block& block) {
  const std::scoped_lock lock(mutex_);
  std::vector<Block>& idle = idle_[size];
  auto found = std::find_if(idle.rbegin(), idle.rend(),
                            [&](const Block& other) { return other.stream == stream; });
  if (found == idle.rend())
    found = std::find_if(idle.rbegin(), idle.rend(), [&](const Block& other) {
      return driver_.cuEventQuery(event(other)) == CUDA_SUCCESS;
    });
  if (found == idle.rend()) return false;
  block = *found;
  // In the same stream this costs nothing; but each thread has a default stream of its own under
  // one handle, and a handle may be another stream's by now.
  driver_.check(driver_.cuStreamWaitEvent(context_->stream(stream), event(block), 0),
                "waiting for memory in a stream");
  block.stream = stream;
  idle.erase(std::next(found).base());
  return true;
}

Block CudaMemory::allocate(std::int64_t size, std::int64_t asked, Stream stream) {
  Block block{nullptr, size, stream, nullptr};
  CUevent mark = nullptr;
  driver_.check(driver_.cuEventCreate(&mark, CU_EVENT_DISABLE_TIMING), "an event");
  block.mark = mark;
  CUdeviceptr memory = 0;
  const auto try_it = [&] {
    const auto count = static_cast<std::size_t>(size);
    return pools_ ? driver_.cuMemAllocAsync(&memory, count, context_->stream(stream))
                  : driver_.cuMemAlloc(&memory, count);
  };
  CUresult result = try_it();
  if (result == CUDA_ERROR_OUT_OF_MEMORY && trim()) result = try_it();
  if (result != CUDA_SUCCESS) {
    driver_.cuEventDestroy(mark);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) throw_out_of_memory(driver_, asked);
    driver_.check(result, text("memory of ", asked, " bytes").c_str());
  }
  block.data = reinterpret_cast<void*>(memory);
  return block;
}

void CudaMemory::give_back(const Block& block) noexcept {
  try {
    const CurrentContext current(*context_);
    if (driver_.cuEventRecord(event(block), context_->stream(block.stream)) != CUDA_SUCCESS) {
      driver_.cuCtxSynchronize();  // a stream that is gone, or a context that is lost
      free(block);
      return;
    }
    const std::scoped_lock lock(mutex_);
    idle_[block.bytes].push_back(block);
  } catch (const std::exception&) {
    // The context cannot be entered any more: its memory is gone with it.
  }
}

void CudaMemory::free(const Block& block) const noexcept {
  // Memory of a pool is freed without waiting for those who use it.
  driver_.cuEventSynchronize(event(block));
  driver_.cuMemFree(address(block.data));
  driver_.cuEventDestroy(event(block));
}

bool CudaMemory::trim() noexcept {
  bool any = false;
  try {
    const CurrentContext current(*context_);
    const std::scoped_lock lock(mutex_);
    for (auto& [size, blocks] : idle_) {
      any |= !blocks.empty();
      for (const Block& block : blocks) free(block);
      blocks.clear();
    }
  } catch (const std::exception&) {
    // As when memory is given back.
  }
  return any;
}

}  // namespace krait
