// Which build of NVRTC compiles, without opening it where an earlier process has found out.
#pragma once

#include <string>

namespace krait {

class DiskCache;

/// What NVRTC says of itself at the head of the PTX that it makes of an empty kernel: two builds of
/// one version differ there. In `memory` that stands beside the library's path, size and time of
/// change, by where libraries are looked for, so that a process in which nothing of this changed
/// neither opens NVRTC nor compiles; anything else asks again. The assembler is part of the
/// library.
///
/// Where no NVRTC can be opened any more, the build that was last asked in this memory: kernels
/// that it compiled are as right as they were. "" where there is none, and for no memory: nothing
/// outlives the process then.
std::string nvrtc_build(DiskCache* memory);

}  // namespace krait
