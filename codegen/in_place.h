// Whether a kernel may write a tensor over one that it reads.
#pragma once

#include "codegen/tile/tile.h"

namespace krait {

/// Whether pointers `read` and `written` of the launch may be one, with the same strides: each
/// element that is written is read before that, and only by the grid point and the turn of the
/// loops that write it. Errs on the side of no.
bool may_share(const TileProgram& program, int read, int written);

}  // namespace krait
