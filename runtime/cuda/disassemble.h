// Device code as text, by a disassembler of NVIDIA's, which is a program of its own.
#pragma once

#include <string>

namespace krait {

/// The program that disassemble would run; throws as that does where there is none.
std::string disassembler_path();

/// SASS of a device image. $KRAIT_NVDISASM names the program; else nvdisasm or cuobjdump from the
/// PATH, from /usr/local/cuda, or nvdisasm as `./dev deps` fetches it. Throws EnvironmentError
/// where there is none, with how to get one, and where it fails, with what it said.
std::string disassemble(const std::string& image);

}  // namespace krait
