// Events.

#include "tests/cuda_emulator/driver/capture.h"
#include "tests/cuda_emulator/driver/per_thread.h"

using namespace emulator::driver;

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  return entry("cuEventCreate", [&](Call& call) {
    const std::shared_ptr<Context> context = call.sound_context();
    constexpr unsigned kKnown =
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    require(phEvent && !(Flags & ~kKnown));
    require(!(Flags & CU_EVENT_INTERPROCESS) || (Flags & CU_EVENT_DISABLE_TIMING));
    auto event = std::make_shared<Event>();
    event->context = context;
    event->flags = Flags;
    *phEvent = call.driver.events.add(std::move(event));
  });
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
  return entry("cuEventDestroy", [&](Call& call) {
    const std::shared_ptr<Event> event = call.driver.events.at(hEvent);
    call.driver.events.remove(hEvent);
    require(event->context->error == CUDA_SUCCESS, event->context->error);
  });
}

namespace {

CUresult record(const char* name, CUevent event_handle, CUstream stream_handle, unsigned flags) {
  return entry(name, [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.stream(stream_handle);
    const std::shared_ptr<Event> event = call.driver.events.at(event_handle);
    require(event->context == stream->context, CUDA_ERROR_INVALID_HANDLE);
    require(flags == CU_EVENT_RECORD_DEFAULT || flags == CU_EVENT_RECORD_EXTERNAL);
    if (flags == CU_EVENT_RECORD_EXTERNAL) {
      require(stream->capture != nullptr);
      call.submit(stream, RecordAction{event});
      return;
    }
    if (stream->capture) {
      require_valid(*stream->capture);
      event->captured = true;
      event->capture = stream->capture;
      event->nodes = stream->tail;
      return;
    }
    if (stream->legacy) call.implicit_in_capture(*stream->context);
    event->captured = false;
    event->nodes.clear();
    event->work = call.marker(stream);
    call.driver.worker.submit(stream, event->work);
  });
}

// An event by its handle, for calls that look at the work behind it.
std::shared_ptr<Event> recorded(Call& call, CUevent handle) {
  const std::shared_ptr<Event> event = call.driver.events.at(handle);
  if (event->captured) {
    if (const std::shared_ptr<Capture> capture = event->capture.lock())
      capture->invalid = CUDA_ERROR_CAPTURED_EVENT;
    fail(CUDA_ERROR_CAPTURED_EVENT);
  }
  call.unsafe_in_capture();
  require(event->context->error == CUDA_SUCCESS, event->context->error);
  return event;
}

}  // namespace

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  return record("cuEventRecord", hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  return record("cuEventRecordWithFlags", hEvent, hStream, flags);
}

CUresult cuEventQuery(CUevent hEvent) {
  return entry("cuEventQuery", [&](Call& call) {
    const std::shared_ptr<Event> event = recorded(call, hEvent);
    require(!event->work || event->work->done, CUDA_ERROR_NOT_READY);
  });
}

CUresult cuEventSynchronize(CUevent hEvent) {
  return entry("cuEventSynchronize", [&](Call& call) {
    const std::shared_ptr<Event> event = recorded(call, hEvent);
    const std::shared_ptr<Work> work = event->work;
    call.finish(event->context, work);
  });
}

CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return entry("cuEventElapsedTime", [&](Call& call) {
    require(pMilliseconds);
    const std::shared_ptr<Event> start = call.driver.events.at(hStart);
    const std::shared_ptr<Event> end = call.driver.events.at(hEnd);
    for (const Event* event : {start.get(), end.get()}) {
      require(!event->captured, CUDA_ERROR_CAPTURED_EVENT);
      require(event->work && !(event->flags & CU_EVENT_DISABLE_TIMING), CUDA_ERROR_INVALID_HANDLE);
    }
    require(start->context == end->context, CUDA_ERROR_INVALID_HANDLE);
    require(start->context->error == CUDA_SUCCESS, start->context->error);
    require(start->work->done && end->work->done, CUDA_ERROR_NOT_READY);
    const std::chrono::duration<float, std::milli> elapsed = end->work->time - start->work->time;
    *pMilliseconds = elapsed.count();
  });
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}
