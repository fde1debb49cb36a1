// Streams.

#include <algorithm>

#include "tests/cuda_emulator/driver/capture.h"
#include "tests/cuda_emulator/driver/per_thread.h"

using namespace emulator::driver;

namespace {

CUresult create(const char* name, CUstream* stream, unsigned flags, int priority) {
  return entry(name, [&](Call& call) {
    const std::shared_ptr<Context> context = call.sound_context();
    require(stream && (flags == CU_STREAM_DEFAULT || flags == CU_STREAM_NON_BLOCKING));
    auto made = std::make_shared<Stream>();
    made->context = context;
    made->id = call.driver.next_id++;
    made->flags = flags;
    made->priority = std::clamp(priority, kGreatestPriority, 0);
    *stream = call.driver.streams.add(std::move(made));
  });
}

// Whatever the stream has been given is done.
bool idle(Call& call, const std::shared_ptr<Stream>& stream) {
  const std::shared_ptr<Work> work = call.marker(stream);
  return (!stream->last || stream->last->done) &&
         std::all_of(work->after.begin(), work->after.end(),
                     [](const std::shared_ptr<Work>& other) { return other->done; });
}

// Calls that look at what a stream does while it captures.
void refuse_capturing(Call& call, Stream& stream) {
  if (stream.capture) {
    stream.capture->invalid = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  if (stream.legacy) call.implicit_in_capture(*stream.context);
}

}  // namespace

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  return create("cuStreamCreate", phStream, Flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return create("cuStreamCreateWithPriority", phStream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  return entry("cuStreamDestroy", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.driver.streams.at(hStream);
    if (const std::shared_ptr<Capture> capture = stream->capture) {
      // Without the stream it began in a capture cannot be ended.
      capture->invalid = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      if (capture->origin.lock() == stream) call.driver.abandon(capture);
    }
    Context& context = *stream->context;
    std::erase_if(context.orphans, [](const std::shared_ptr<Work>& work) { return work->done; });
    if (stream->blocking() && stream->last && !stream->last->done)
      context.orphans.push_back(stream->last);
    call.driver.streams.remove(hStream);
    require(context.error == CUDA_SUCCESS, context.error);
  });
}

CUresult cuStreamQuery(CUstream hStream) {
  return entry("cuStreamQuery", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.stream(hStream);
    refuse_capturing(call, *stream);
    call.unsafe_in_capture();
    require(idle(call, stream), CUDA_ERROR_NOT_READY);
  });
}

CUresult cuStreamSynchronize(CUstream hStream) {
  return entry("cuStreamSynchronize", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.stream(hStream);
    refuse_capturing(call, *stream);
    call.unsafe_in_capture();
    const std::shared_ptr<Work> work = call.marker(stream);
    call.driver.worker.submit(stream, work);
    call.finish(stream->context, work);
  });
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  return entry("cuStreamWaitEvent", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.stream(hStream);
    const std::shared_ptr<Event> event = call.driver.events.at(hEvent);
    require(Flags == CU_EVENT_WAIT_DEFAULT || Flags == CU_EVENT_WAIT_EXTERNAL);
    if (Flags == CU_EVENT_WAIT_EXTERNAL) {
      require(stream->capture != nullptr);
      call.submit(stream, WaitAction{event});
      return;
    }
    if (stream->capture || event->captured) {
      join_capture(stream, *event);
      return;
    }
    if (!event->work || event->work->done) return;
    if (stream->legacy) call.implicit_in_capture(*stream->context);
    const std::shared_ptr<Work> work = call.marker(stream);
    work->after.push_back(event->work);
    call.driver.worker.submit(stream, work);
  });
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
  return entry("cuStreamAddCallback", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.any_stream(hStream);
    require(callback && flags == 0);
    refuse_capturing(call, *stream);
    call.submit(stream, HostAction{nullptr, userData, callback, hStream});
  });
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  return entry("cuStreamGetCtx", [&](Call& call) {
    require(pctx);
    *pctx = call.any_stream(hStream)->context->handle;
  });
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  return entry("cuStreamGetCtx", [&](Call& call) {
    require(pCtx);
    *pCtx = call.any_stream(hStream)->context->handle;
    if (pGreenCtx) *pGreenCtx = nullptr;
  });
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  return entry("cuStreamGetDevice", [&](Call& call) {
    require(device);
    call.any_stream(hStream);
    *device = 0;
  });
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  return entry("cuStreamGetFlags", [&](Call& call) {
    require(flags);
    *flags = call.any_stream(hStream)->flags;
  });
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  return entry("cuStreamGetPriority", [&](Call& call) {
    require(priority);
    *priority = call.any_stream(hStream)->priority;
  });
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  return entry("cuStreamGetId", [&](Call& call) {
    require(streamId);
    *streamId = call.any_stream(hStream)->id;
  });
}

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value) {
  return entry("cuStreamGetAttribute", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.any_stream(hStream);
    require(value);
    switch (attr) {
      case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value->accessPolicyWindow = stream->access_window;
        return;
      case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = stream->synchronization;
        return;
      case CU_STREAM_ATTRIBUTE_PRIORITY: value->priority = stream->priority; return;
      default: fail();
    }
  });
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                              const CUstreamAttrValue* value) {
  return entry("cuStreamSetAttribute", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.any_stream(hStream);
    require(value);
    switch (attr) {
      case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        require(value->accessPolicyWindow.hitRatio >= 0 && value->accessPolicyWindow.hitRatio <= 1);
        stream->access_window = value->accessPolicyWindow;
        return;
      case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        require(value->syncPolicy >= CU_SYNC_POLICY_AUTO &&
                value->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC);
        stream->synchronization = value->syncPolicy;
        return;
      case CU_STREAM_ATTRIBUTE_PRIORITY:
        stream->priority = std::clamp(value->priority, kGreatestPriority, 0);
        return;
      default: fail();
    }
  });
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src) {
  return entry("cuStreamCopyAttributes", [&](Call& call) {
    const std::shared_ptr<Stream> to = call.any_stream(dst), from = call.any_stream(src);
    to->access_window = from->access_window;
    to->synchronization = from->synchronization;
  });
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                unsigned int flags) {
  return entry("cuStreamAttachMemAsync", [&](Call& call) {
    call.stream(hStream);
    require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
            flags == CU_MEM_ATTACH_SINGLE);
    const auto it = call.driver.allocations.find(dptr);
    require(it != call.driver.allocations.end() && it->second.origin == Origin::managed);
    require(length == 0 || length == it->second.bytes);
  });
}
