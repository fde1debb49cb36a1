// The blocks by name, and their specs as one type.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dsl/blocks/backbone.h"
#include "dsl/blocks/mamba3_scan.h"
#include "dsl/blocks/selective_scan.h"
#include "dsl/blocks/ssd.h"

namespace krait {

using BlockSpec = std::variant<SsdSpec, Mamba2Spec, SelectiveScanSpec, Mamba1Spec, Mamba3ScanSpec,
                               Mamba3MimoScanSpec, Mamba3Spec, BackboneSpec>;

/// "ssd", "mamba2", "selective_scan", "mamba1", "mamba3_scan", "mamba3_mimo_scan", "mamba3",
/// "backbone", in the order of BlockSpec.
const std::vector<std::string>& block_names();
const std::string& block_name(const BlockSpec& spec);
/// The spec of this block with its default fields. Throws UsageError for an unknown name.
BlockSpec default_spec(const std::string& block);

/// Sizes as the command line gives them; what is absent keeps the block's default.
struct BlockSizes {
  std::optional<std::int64_t> d_model{}, heads{}, headdim{}, d_state{}, ngroups{}, d_conv{},
      expand{};
};
/// `spec` with these sizes. Throws UsageError for a size that the block does not have (a scan has
/// no d_conv, a block's heads follow from d_model, expand and headdim: giving heads too is an error
/// unless they agree, and so is d_model for a scan), and for an impossible spec.
BlockSpec with_sizes(const BlockSpec& spec, const BlockSizes& sizes);

/// `spec` with the states as inputs, or starting from zero; with or without seq_idx.
BlockSpec with_states(const BlockSpec& spec, bool initial_state);
BlockSpec with_documents(const BlockSpec& spec, bool seq_idx);
/// The chunk that the spec wishes for, 0 where it names none.
std::int64_t chunk_size(const BlockSpec& spec);

void check(const BlockSpec& spec);
/// The function that writes the block into a Scope. Throws UsageError for an impossible spec.
BlockFunction block_function(const BlockSpec& spec);
/// Parameters and their public names; empty for scans, which have none.
std::vector<CheckpointName> checkpoint_names(const BlockSpec& spec);

}  // namespace krait
