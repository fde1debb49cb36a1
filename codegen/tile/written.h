// What stands in memory on chip while the statements of a program are walked in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/tile/tile.h"

namespace krait {

/// Follows which elements were written, as boxes of positions along the dimensions of the memory's
/// own buffer. Loop and tile variables take all their values at once, and a view that does not run
/// along those dimensions counts as if it wrote all, and is not held to what it reads: too little
/// is said rather than too much. Once shared memory has places, a write takes the bytes that it
/// lies in away from every other buffer there.
class Written {
 public:
  explicit Written(const TileProgram& program);

  /// Whether some buffers share bytes.
  bool gives_way() const { return gives_way_; }
  void write(const Access& access);
  /// What is wrong with reading, "" where all that is read was written and stands there still.
  std::string fault(const Access& access) const;

 private:
  struct Box {
    std::vector<std::int64_t> low, high;  // inclusive
    bool holds(const Box& other) const;
    bool meets(const Box& other) const;
  };
  struct Memory {
    std::vector<Box> boxes;
    bool some = false;  // written at all
    int taken_by = -1;  // the buffer that was last written to its bytes
  };
  std::optional<Box> box_of(const Access& access) const;
  Box whole(int memory) const;
  static bool covered(const Box& box, const std::vector<Box>& by, std::size_t from);

  const TileProgram& program_;
  std::vector<Memory> memories_;
  std::vector<std::vector<int>> neighbours_;  // memories that share bytes
  bool gives_way_ = false;
};

}  // namespace krait
