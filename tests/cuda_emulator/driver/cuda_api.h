#pragma once

// The toolkit's cuda.h with every name it declares by itself: the versioned names of an entry point
// and its forms for the per-thread default stream, none mapped to another. What it declares is
// exported.

#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_PUSH_VISIBILITY_DEFAULT
#include <cuda.h>
