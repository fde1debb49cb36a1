#include <stdexcept>

#include "tests/cuda_emulator/machine/device.h"

namespace emulator {
namespace {

constexpr unsigned kKiB = 1024;

struct Part {
  int major, minor;
  const char* name;
  unsigned multiprocessors, threads, blocks;  // threads and blocks of a multiprocessor
  unsigned shared, shared_opt_in;             // of a multiprocessor, of a block
  uint64_t memory_gib;
};

// A part of each kind; multiprocessors and memory are those of a common product.
constexpr Part kParts[] = {
    {7, 5, "Emulated sm_75", 40, 1024, 16, 64, 64, 16},
    {8, 0, "Emulated sm_80", 108, 2048, 32, 164, 163, 40},
    {8, 6, "Emulated sm_86", 84, 1536, 16, 100, 99, 24},
    {8, 7, "Emulated sm_87", 16, 1536, 16, 164, 163, 32},
    {8, 9, "Emulated sm_89", 128, 1536, 24, 100, 99, 24},
    {9, 0, "Emulated sm_90", 132, 2048, 32, 228, 227, 80},
    {10, 0, "Emulated sm_100", 148, 2048, 32, 228, 227, 180},
    {10, 3, "Emulated sm_103", 148, 2048, 32, 228, 227, 270},
    {12, 0, "Emulated sm_120", 170, 1536, 24, 100, 99, 32},
    {12, 1, "Emulated sm_121", 48, 1536, 24, 100, 99, 120},
};

}  // namespace

Limits limits_of(int major, int minor) {
  std::string known;
  for (const Part& part : kParts) {
    if (part.major != major || part.minor != minor) {
      known += (known.empty() ? "" : ", ") + std::to_string(part.major) + "." +
               std::to_string(part.minor);
      continue;
    }
    Limits limits;
    limits.major = major;
    limits.minor = minor;
    limits.name = part.name;
    limits.multiprocessors = part.multiprocessors;
    limits.threads_per_multiprocessor = part.threads;
    limits.blocks_per_multiprocessor = part.blocks;
    limits.shared_per_block_opt_in = part.shared_opt_in * kKiB;
    limits.shared_per_multiprocessor = part.shared * kKiB;
    limits.shared_reserved = major >= 8 ? kKiB : 0;
    limits.memory = part.memory_gib << 30;
    return limits;
  }
  throw std::invalid_argument("no part of compute capability " + std::to_string(major) + "." +
                              std::to_string(minor) + " is known, only " + known);
}

}  // namespace emulator
