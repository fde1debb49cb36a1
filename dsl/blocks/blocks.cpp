#include "dsl/blocks/blocks.h"

namespace krait {

namespace {

using Count = std::optional<std::int64_t>;

template <typename Spec>
constexpr bool is_block = requires(const Spec& spec) {
  spec.d_model;
};  // else a scan

[[noreturn]] void not_a_size(const std::string& field, const Count& value,
                             const std::string& allowed) {
  throw UsageError(field, text(*value), allowed);
}

/// Sets what a scan has, where it has it.
template <typename Spec>
void set_scan(Spec& spec, const BlockSizes& sizes) {
  if constexpr (std::is_same_v<Spec, SelectiveScanSpec>) {
    // Channels are heads of width headdim that share nothing but their count.
    if (sizes.heads || sizes.headdim) {
      spec.channels = sizes.heads.value_or(1) * sizes.headdim.value_or(1);
    }
    if (sizes.d_model) spec.channels = *sizes.d_model * sizes.expand.value_or(1);
    const std::int64_t asked = sizes.heads.value_or(1) * sizes.headdim.value_or(1);
    if (sizes.d_model && (sizes.heads || sizes.headdim) && asked != spec.channels) {
      not_a_size("d-model", sizes.d_model, "heads * headdim, or no d-model");
    }
  } else {
    if (sizes.heads) spec.nheads = *sizes.heads;
    if (sizes.headdim) spec.headdim = *sizes.headdim;
    if (sizes.d_model && sizes.heads &&
        *sizes.d_model * sizes.expand.value_or(1) != spec.nheads * spec.headdim) {
      not_a_size("d-model", sizes.d_model,
                 text("heads * headdim / expand, heads * headdim is ", spec.nheads * spec.headdim));
    }
    if (sizes.d_model && !sizes.heads) {
      const std::int64_t channels = *sizes.d_model * sizes.expand.value_or(1);
      require_divisor("headdim", spec.headdim, "expand * d-model", channels);
      spec.nheads = channels / spec.headdim;
    }
  }
  if (sizes.d_conv) not_a_size("d-conv", sizes.d_conv, "nothing: a scan has no convolution");
  if (sizes.expand && !sizes.d_model) {
    not_a_size("expand", sizes.expand, "nothing: a scan takes heads");
  }
  if (sizes.d_state) spec.d_state = *sizes.d_state;
  if (sizes.ngroups) spec.ngroups = *sizes.ngroups;
}

/// Sets what a mixer has beside d_model.
template <typename Spec>
void set_mixer(Spec& spec, const BlockSizes& sizes) {
  if (sizes.d_state) spec.d_state = *sizes.d_state;
  if (sizes.expand) spec.expand = *sizes.expand;
  if constexpr (requires { spec.d_conv; }) {
    if (sizes.d_conv) spec.d_conv = *sizes.d_conv;
  } else if (sizes.d_conv) {
    not_a_size("d-conv", sizes.d_conv, "nothing: this block has no convolution");
  }
  if constexpr (requires { spec.headdim; }) {
    if (sizes.headdim) spec.headdim = *sizes.headdim;
    if (sizes.ngroups) spec.ngroups = *sizes.ngroups;
    check(spec);
    if (sizes.heads && *sizes.heads != spec.nheads()) {
      not_a_size("heads", sizes.heads,
                 text("expand * d-model / headdim, which is ", spec.nheads()));
    }
  } else {
    const std::string none = "nothing: this block has no heads";
    if (sizes.heads) not_a_size("heads", sizes.heads, none);
    if (sizes.headdim) not_a_size("headdim", sizes.headdim, none);
    if (sizes.ngroups) not_a_size("ngroups", sizes.ngroups, "nothing: this block has one group");
  }
}

}  // namespace

const std::vector<std::string>& block_names() {
  static const std::vector<std::string> names{"ssd",    "mamba2",      "selective_scan",
                                              "mamba1", "mamba3_scan", "mamba3_mimo_scan",
                                              "mamba3", "backbone"};
  return names;
}

const std::string& block_name(const BlockSpec& spec) { return block_names()[spec.index()]; }

BlockSpec default_spec(const std::string& block) {
  const BlockSpec all[] = {SsdSpec{},    Mamba2Spec{},     SelectiveScanSpec{},
                           Mamba1Spec{}, Mamba3ScanSpec{}, Mamba3MimoScanSpec{},
                           Mamba3Spec{}, BackboneSpec{}};
  std::string allowed;
  for (const BlockSpec& spec : all) {
    if (block_name(spec) == block) return spec;
    allowed += (allowed.empty() ? "" : ", ") + block_name(spec);
  }
  throw UsageError("block", block, allowed);
}

BlockSpec with_sizes(const BlockSpec& spec, const BlockSizes& sizes) {
  const std::pair<const char*, Count> given[] = {
      {"d-model", sizes.d_model}, {"heads", sizes.heads},     {"headdim", sizes.headdim},
      {"d-state", sizes.d_state}, {"ngroups", sizes.ngroups}, {"d-conv", sizes.d_conv},
      {"expand", sizes.expand}};
  for (const auto& [field, value] : given) {
    if (value) require_size(field, *value);
  }
  BlockSpec result = spec;
  std::visit(
      [&](auto& own) {
        using Spec = std::decay_t<decltype(own)>;
        if constexpr (!is_block<Spec>) {
          set_scan(own, sizes);
        } else {
          if (sizes.d_model) own.d_model = *sizes.d_model;
          if constexpr (std::is_same_v<Spec, BackboneSpec>) {
            own.ssm_cfg = own.mixer();
            std::visit([&](auto& mixer) { set_mixer(mixer, sizes); }, own.ssm_cfg);
          } else {
            set_mixer(own, sizes);
          }
        }
      },
      result);
  check(result);
  return result;
}

BlockSpec with_states(const BlockSpec& spec, bool initial_state) {
  BlockSpec result = spec;
  std::visit([&](auto& own) { own.initial_state = initial_state; }, result);
  return result;
}

BlockSpec with_documents(const BlockSpec& spec, bool seq_idx) {
  BlockSpec result = spec;
  std::visit([&](auto& own) { own.seq_idx = seq_idx; }, result);
  return result;
}

std::int64_t chunk_size(const BlockSpec& spec) {
  const auto of = [](const auto& own) -> std::int64_t {
    if constexpr (requires { own.chunk_size; }) return own.chunk_size;
    return 0;
  };
  if (const auto* outer = std::get_if<BackboneSpec>(&spec)) return std::visit(of, outer->ssm_cfg);
  return std::visit(of, spec);
}

void check(const BlockSpec& spec) {
  std::visit([](const auto& own) { check(own); }, spec);
}

namespace {

void write(Scope& s, const SsdSpec& spec) { ssd(s, spec); }
void write(Scope& s, const Mamba2Spec& spec) { mamba2(s, spec); }
void write(Scope& s, const SelectiveScanSpec& spec) { selective_scan(s, spec); }
void write(Scope& s, const Mamba1Spec& spec) { mamba1(s, spec); }
void write(Scope& s, const Mamba3ScanSpec& spec) { mamba3_scan(s, spec); }
void write(Scope& s, const Mamba3MimoScanSpec& spec) { mamba3_mimo_scan(s, spec); }
void write(Scope& s, const Mamba3Spec& spec) { mamba3(s, spec); }
void write(Scope& s, const BackboneSpec& spec) { backbone(s, spec); }

}  // namespace

BlockFunction block_function(const BlockSpec& spec) {
  check(spec);
  return [spec](Scope& s) { std::visit([&](const auto& own) { write(s, own); }, spec); };
}

std::vector<CheckpointName> checkpoint_names(const BlockSpec& spec) {
  return std::visit(
      [](const auto& own) -> std::vector<CheckpointName> {
        if constexpr (is_block<std::decay_t<decltype(own)>>) {
          return checkpoint_names(own);
        } else {
          return {};
        }
      },
      spec);
}

}  // namespace krait
