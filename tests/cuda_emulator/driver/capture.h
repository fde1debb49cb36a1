#pragma once

// Captures of streams, as other entry points meet them.

#include "tests/cuda_emulator/driver/driver.h"

namespace emulator::driver {

// The capture that forbids this thread what may synchronise, or null.
Capture* forbidding_capture(Driver& driver);
// Fails with STREAM_CAPTURE_INVALIDATED where the stream's capture is.
void require_valid(const Capture& capture);
// Adds a node after the stream's tail, which it becomes.
CUgraphNode add_captured(Driver& driver, Stream& stream, Action action);
// cuStreamWaitEvent where the stream or the event captures: the stream joins the capture.
void join_capture(const std::shared_ptr<Stream>& stream, const Event& event);

}  // namespace emulator::driver
