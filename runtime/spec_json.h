// Specs as JSON: the field names of the public configurations.
#pragma once

#include <string>

#include "dsl/blocks/blocks.h"

namespace krait {

/// Reads a spec from JSON text: an object whose fields are those of the block's spec struct; what
/// is absent keeps its default. The block is `block`, or where that is empty the field "block", or
/// "backbone" where the object has the field "n_layer" (a public config.json, with ssm_cfg {layer:
/// Mamba1 | Mamba2 | Mamba3, and the constructor's arguments}).
/// Throws UsageError that names field, value and what is allowed: text that is no JSON object,
/// unknown fields, wrong types, impossible values.
BlockSpec spec_from_json(const std::string& json, const std::string& block = "");

/// The whole spec, "block" first; spec_from_json gives the same spec back.
std::string spec_to_json(const BlockSpec& spec);

}  // namespace krait
