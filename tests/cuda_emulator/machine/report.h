#pragma once

// What a check found. A report ends its launch.

#include <cstdint>
#include <exception>
#include <string>

#include "tests/cuda_emulator/machine/op.h"

namespace emulator {

enum class Fault : uint8_t {
  out_of_bounds,  // no allocation, variable or window there; guard zones
  misaligned,
  freed,      // memory that was freed
  read_only,  // a write to constant memory or kernel parameters
  undefined,  // an undefined value used as address, predicate, stored value, mma operand
  race,
  divergence,  // .aligned instruction or bar.sync not executed by all lanes together
  members,     // a member mask without the executing lane, or of lanes that will not come
  deadlock,    // a wait that can never end
  barrier,     // wrong id or count, mbarrier used before init, counts overrun
  illegal,     // an instruction this part does not have, division of an address space ...
  assertion,   // __assertfail
  trap,
  stack,  // calls too deep
};
const char* name_of(Fault fault);

struct Dim {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

// One side of a race, or the place of a fault.
struct Place {
  int line = 0;             // of the PTX; 0: unknown
  ptx::Source source;       // by .loc
  std::string file;         // of the source, where known
  Dim block, thread;        // indices
  std::string instruction;  // its text, as parsed
};

struct Report {
  Fault fault = Fault::trap;
  std::string kernel;
  Place place;
  ptx::Space space = ptx::Space::generic;
  uint64_t address = 0;
  unsigned bytes = 0;
  std::string what;   // one sentence
  std::string where;  // the variable or allocation at the address; "" where `what` says it
  bool has_other = false;
  Place other;
  uint64_t seed = 0;

  // Several lines, as printed to stderr: the fault and what is wrong, the kernel, then the place of
  // the access with its PTX and source line, the address, the other access and the seed.
  std::string text() const;
};

class LaunchFailure : public std::exception {
 public:
  explicit LaunchFailure(Report report) : report(std::move(report)), text_(this->report.text()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  Report report;

 private:
  std::string text_;
};

// Throws LaunchFailure for that lane of the warp executing op.
[[noreturn]] void fail(const Warp& warp, const Op& op, int lane, Fault fault,
                       const std::string& what);
// The same with an address.
[[noreturn]] void fail_at(const Warp& warp, const Op& op, int lane, Fault fault, ptx::Space space,
                          uint64_t address, unsigned bytes, const std::string& what,
                          const Place* other = nullptr);

}  // namespace emulator
