// The graph of a golden fixture, from what its file says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dsl/blocks/blocks.h"

namespace krait {

/// The spec of a fixture: `op` is the name of a block or scan, with "_block" behind it for the
/// block mamba1, mamba2 or mamba3; `options_json` is the object of its keyword arguments; `shapes`
/// are those of its input tensors by name, without "in.". Sizes come from the shapes, D, z, norms
/// and states from what is there. Throws UsageError for an unknown op or option, for inputs that
/// are missing or of the wrong rank, and for impossible sizes.
BlockSpec fixture_spec(const std::string& op, const std::string& options_json,
                       const std::map<std::string, std::vector<std::int64_t>>& shapes);

/// The graph of that spec. Its inputs are exactly the tensors named in `shapes`; throws UsageError
/// where they are not, or where a size does not fit.
Graph fixture_graph(const std::string& op, const std::string& options_json,
                    const std::map<std::string, std::vector<std::int64_t>>& shapes,
                    DType activation);

}  // namespace krait
