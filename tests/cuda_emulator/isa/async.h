#pragma once

// What cp.async and mbarrier know of one another.

#include <cstdint>

#include "tests/cuda_emulator/machine/lanes.h"

namespace emulator {

class Block;
class Warp;
struct Op;

// async.cpp: lands the copies that cp.async.mbarrier.arrive on this object (an offset in shared
// memory) tracks, and arrives for them. A wait for the object calls it first: copies land as late
// as a program may count on.
void finish_async_arrivals(Block& block, uint64_t object);

// mbarrier.cpp: cp.async.mbarrier.arrive when it is executed, for objects at these offsets; without
// .noinc their phases wait for one arrival more.
void expect_async_arrivals(Warp& warp, const Op& op, Mask lanes, const uint64_t* objects,
                           bool increments);
// The arrivals themselves, once the copies of these lanes have landed.
void arrive_asynchronously(Warp& warp, const Op& op, Mask lanes, const uint64_t* objects);

}  // namespace emulator
