#pragma once

// Source lines by .file and .loc.

#include <map>
#include <tuple>

#include "tests/cuda_emulator/ptx/module.h"
#include "tests/cuda_emulator/ptx/reader.h"

namespace emulator::ptx {

class Locations {
 public:
  // .loc, its name taken already.
  void read_location(Reader& reader);
  // .file, likewise.
  void read_file(Reader& reader, Module& module);
  // Error for a .loc of a file that no .file declares, wherever in the module that stands.
  void check(const Module& module) const;

  // What holds for the next instruction.
  const Source& current() const { return current_; }
  void clear() { current_ = {}; }

 private:
  using Position = std::tuple<uint32_t, uint32_t, uint32_t>;
  Position position(Reader& reader);

  Source current_;
  std::map<uint32_t, int> used_;        // files, with the line of their first use
  std::map<Position, Source> inlined_;  // of places inlined themselves, by place
};

}  // namespace emulator::ptx
