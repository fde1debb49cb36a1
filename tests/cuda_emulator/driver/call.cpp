// What entry points ask of a Call.

#include <algorithm>

#include "tests/cuda_emulator/driver/capture.h"
#include "tests/cuda_emulator/driver/driver.h"

namespace emulator::driver {

std::shared_ptr<Context> Call::context() const {
  const auto& stack = context_stack();
  require(!stack.empty() && stack.back(), CUDA_ERROR_INVALID_CONTEXT);
  require(stack.back()->alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return stack.back();
}

std::shared_ptr<Context> Call::sound_context() const {
  std::shared_ptr<Context> current = context();
  require(current->error == CUDA_SUCCESS, current->error);
  return current;
}

void Call::check_device(CUdevice device) const { require(device == 0, CUDA_ERROR_INVALID_DEVICE); }

std::shared_ptr<Stream> Call::any_stream(CUstream handle) const {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return context()->legacy;
  if (handle != CU_STREAM_PER_THREAD) return driver.streams.at(handle);
  const std::shared_ptr<Context> current = context();
  std::shared_ptr<Stream>& own = current->per_thread[std::this_thread::get_id()];
  if (!own) {
    own = std::make_shared<Stream>();
    own->context = current;
    own->id = driver.next_id++;
  }
  return own;
}

std::shared_ptr<Stream> Call::stream(CUstream handle) const {
  std::shared_ptr<Stream> found = any_stream(handle);
  require(found->context->error == CUDA_SUCCESS, found->context->error);
  return found;
}

void Call::unsafe_in_capture() const {
  if (Capture* capture = forbidding_capture(driver)) {
    capture->invalid = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
}

Capture* Call::blocking_capture(const Context& context) const {
  for (const std::shared_ptr<Capture>& capture : driver.captures) {
    for (const std::shared_ptr<Stream>& stream : capture->streams) {
      if (stream->context.get() == &context && stream->blocking()) return capture.get();
    }
  }
  return nullptr;
}

void Call::implicit_in_capture(const Context& context) const {
  if (Capture* capture = blocking_capture(context)) {
    capture->invalid = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
}

std::shared_ptr<Work> Call::marker(const std::shared_ptr<Stream>& stream) {
  auto work = std::make_shared<Work>();
  const Context& context = *stream->context;
  const auto add_last = [&](const std::shared_ptr<Stream>& other) {
    if (other != stream && other->last && !other->last->done) work->after.push_back(other->last);
  };
  if (stream->legacy) {
    for (const auto& [handle, other] : driver.streams) {
      if (other->context.get() == &context && other->blocking()) add_last(other);
    }
    for (const auto& [thread, other] : context.per_thread) add_last(other);
    for (const std::shared_ptr<Work>& orphan : context.orphans) work->after.push_back(orphan);
  } else if (stream->blocking()) {
    add_last(context.legacy);
  }
  return work;
}

std::shared_ptr<Work> Call::submit(const std::shared_ptr<Stream>& stream, Action action) {
  if (stream->capture) {
    add_captured(driver, *stream, std::move(action));
    return nullptr;
  }
  if (stream->legacy) implicit_in_capture(*stream->context);
  std::shared_ptr<Work> work = marker(stream);
  const auto* host = std::get_if<HostAction>(&action);
  work->after_error = (host && host->callback) || std::holds_alternative<FreeAction>(action);
  work->run = [action = std::move(action)](CUresult error) { return perform(action, error); };
  driver.worker.submit(stream, work);
  return work;
}

void Call::finish(const std::shared_ptr<Context>& context, const std::shared_ptr<Work>& work) {
  driver.worker.wait(lock, work);
  require(!driver.deinitialized, CUDA_ERROR_DEINITIALIZED);
  require(context->error == CUDA_SUCCESS, context->error);
}

void Call::synchronize(const std::shared_ptr<Context>& context) {
  driver.worker.drain(lock, context.get());
  require(!driver.deinitialized, CUDA_ERROR_DEINITIALIZED);
  require(context->error == CUDA_SUCCESS, context->error);
}

}  // namespace emulator::driver
