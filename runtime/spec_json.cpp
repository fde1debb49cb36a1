#include "runtime/spec_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace krait {

namespace {

using Json = nlohmann::ordered_json;

// ------------------------------------------------------------------------------ fields of structs
// One list a struct, for reading and for writing: visit(NAME, member). `optional` marks whole
// numbers for which null, or a word, stands for 0.

template <typename Visit>
void fields(SsdSpec& s, Visit&& visit) {
  visit("nheads", s.nheads);
  visit("headdim", s.headdim);
  visit("d_state", s.d_state);
  visit("ngroups", s.ngroups);
  visit("D", s.D);
  visit("z", s.z);
  visit("dt_bias", s.dt_bias);
  visit("dt_softplus", s.dt_softplus);
  visit("dt_limit", s.dt_limit);
}

template <typename Visit>
void fields(SelectiveScanSpec& s, Visit&& visit) {
  visit("channels", s.channels);
  visit("d_state", s.d_state);
  visit("ngroups", s.ngroups);
  visit("is_variable_B", s.is_variable_B);
  visit("is_variable_C", s.is_variable_C);
  visit("D", s.D);
  visit("z", s.z);
  visit("delta_bias", s.delta_bias);
  visit("delta_softplus", s.delta_softplus);
}

template <typename Visit>
void fields(Mamba3ScanSpec& s, Visit&& visit) {
  visit("nheads", s.nheads);
  visit("headdim", s.headdim);
  visit("d_state", s.d_state);
  visit("ngroups", s.ngroups);
  visit("rope_fraction", s.rope_fraction);
  visit("D", s.D);
  visit("z", s.z);
}

template <typename Visit>
void fields(Mamba3MimoScanSpec& s, Visit&& visit) {
  visit("nheads", s.nheads);
  visit("headdim", s.headdim);
  visit("d_state", s.d_state);
  visit("ngroups", s.ngroups);
  visit("mimo_rank", s.mimo_rank);
  visit("rope_fraction", s.rope_fraction);
  visit("D", s.D);
  visit("z", s.z);
  visit("norm", s.norm);
  visit("eps", s.eps);
}

template <typename Visit>
void fields(Mamba1Spec& s, Visit&& visit) {
  visit("d_state", s.d_state);
  visit("d_conv", s.d_conv);
  visit("expand", s.expand);
  visit.optional("dt_rank", s.dt_rank, "auto");
  visit("dt_min", s.dt_min);
  visit("dt_max", s.dt_max);
  visit("dt_scale", s.dt_scale);
  visit("dt_init_floor", s.dt_init_floor);
  visit("dt_init", s.dt_init);
  visit("conv_bias", s.conv_bias);
  visit("bias", s.bias);
  visit("bcdt_rms", s.bcdt_rms);
  visit("mixer_rms_eps", s.mixer_rms_eps);
  visit.optional("chunk_size", s.chunk_size);
}

template <typename Visit>
void fields(Mamba2Spec& s, Visit&& visit) {
  visit("d_state", s.d_state);
  visit("d_conv", s.d_conv);
  visit("expand", s.expand);
  visit("headdim", s.headdim);
  visit("ngroups", s.ngroups);
  visit.optional("d_ssm", s.d_ssm);
  visit("A_init_range", s.A_init_range);
  visit("D_has_hdim", s.D_has_hdim);
  visit("rmsnorm", s.rmsnorm);
  visit("norm_before_gate", s.norm_before_gate);
  visit.optional("norm_group_size", s.norm_group_size);
  visit("dt_min", s.dt_min);
  visit("dt_max", s.dt_max);
  visit("dt_init_floor", s.dt_init_floor);
  visit("dt_limit", s.dt_limit);
  visit("learnable_init_states", s.learnable_init_states);
  visit("bias", s.bias);
  visit("conv_bias", s.conv_bias);
  visit("eps", s.eps);
  visit.optional("chunk_size", s.chunk_size);
}

template <typename Visit>
void fields(Mamba3Spec& s, Visit&& visit) {
  visit("d_state", s.d_state);
  visit("expand", s.expand);
  visit("headdim", s.headdim);
  visit("ngroups", s.ngroups);
  visit("rope_fraction", s.rope_fraction);
  visit("dt_min", s.dt_min);
  visit("dt_max", s.dt_max);
  visit("dt_init_floor", s.dt_init_floor);
  visit("a_activation", s.a_activation);
  visit("A_floor", s.A_floor);
  visit("is_outproj_norm", s.is_outproj_norm);
  visit("is_mimo", s.is_mimo);
  visit("mimo_rank", s.mimo_rank);
  visit("eps", s.eps);
  visit.optional("chunk_size", s.chunk_size);
}

template <typename Visit>
void fields(BackboneSpec& s, Visit&& visit) {
  visit("n_layer", s.n_layer);
  visit("d_input", s.d_input);
  visit("vocab_size", s.vocab_size);
  visit("pad_vocab_size_multiple", s.pad_vocab_size_multiple);
  visit("tie_embeddings", s.tie_embeddings);
  visit("norm_epsilon", s.norm_epsilon);
  visit("ssm_cfg", s.ssm_cfg);
}

/// Every field of a spec that stands by itself; a mixer inside a backbone has only `fields`.
template <typename Spec, typename Visit>
void all_fields(Spec& s, Visit&& visit) {
  if constexpr (requires { s.d_model; }) visit("d_model", s.d_model);
  fields(s, visit);
  visit("initial_state", s.initial_state);
  visit("seq_idx", s.seq_idx);
}

// ---------------------------------------------------------------------------------------- reading

const char* const kLayers[] = {"Mamba1", "Mamba2", "Mamba3"};  // in the order of MixerSpec

const Json& as_object(const std::string& field, const Json& json) {
  if (!json.is_object()) throw UsageError(field, json.dump(), "objects");
  return json;
}

class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  void operator()(const char* name, std::int64_t& value) { read(name, value, nullptr); }
  void optional(const char* name, std::int64_t& value, const char* word = "null") {
    read(name, value, word);
  }
  void operator()(const char* name, double& value) {
    const Json* json = find(name);
    if (json == nullptr) return;
    if (!json->is_number()) throw UsageError(path_ + name, json->dump(), "numbers");
    value = json->get<double>();
  }
  void operator()(const char* name, bool& value) {
    const Json* json = find(name);
    if (json == nullptr) return;
    if (!json->is_boolean()) throw UsageError(path_ + name, json->dump(), "true, false");
    value = json->get<bool>();
  }
  void operator()(const char* name, std::string& value) {
    const Json* json = find(name);
    if (json == nullptr) return;
    if (!json->is_string()) throw UsageError(path_ + name, json->dump(), "strings");
    value = json->get<std::string>();
  }
  void operator()(const char* name, std::pair<double, double>& value) {
    const Json* json = find(name);
    if (json == nullptr) return;
    const auto bound = [&](const Json& end) {
      if (end.is_string() && end.get<std::string>() == "inf") return kInfinity;
      if (end.is_number()) return end.get<double>();
      throw UsageError(path_ + name, json->dump(), "[low, high], numbers or \"inf\"");
    };
    if (!json->is_array() || json->size() != 2) {
      throw UsageError(path_ + name, json->dump(), "[low, high], numbers or \"inf\"");
    }
    value = {bound((*json)[0]), bound((*json)[1])};
  }
  void operator()(const char* name, MixerSpec& value) {
    const Json* json = find(name);
    if (json == nullptr) return;
    as_object(path_ + name, *json);
    std::string layer = kLayers[0];  // as the public model does
    Reader inner(*json, path_ + name + ".");
    inner("layer", layer);
    if (layer == kLayers[0]) {
      value = Mamba1Spec{};
    } else if (layer == kLayers[1]) {
      value = Mamba2Spec{};
    } else if (layer == kLayers[2]) {
      value = Mamba3Spec{};
    } else {
      throw UsageError(path_ + name + ".layer", layer, "Mamba1, Mamba2, Mamba3");
    }
    std::visit([&](auto& mixer) { fields(mixer, inner); }, value);
    inner.finish();
  }
  /// A field that may only say what is so: anything but `allowed` is an error.
  void fixed(const char* name, const Json& allowed) {
    const Json* json = find(name);
    if (json != nullptr && *json != allowed) {
      throw UsageError(path_ + name, json->dump(), allowed.dump());
    }
  }
  /// A field that changes nothing here.
  void ignored(const char* name) {
    bool value = false;
    (*this)(name, value);
  }
  /// Throws for fields that nobody asked for.
  void finish() const {
    for (const auto& [name, value] : json_.items()) {
      if (known_.count(name) != 0) continue;
      std::string allowed;
      for (const std::string& field : known_) allowed += (allowed.empty() ? "" : ", ") + field;
      throw UsageError("the field " + path_ + name, "unknown", allowed);
    }
  }

 private:
  const Json* find(const char* name) {
    known_.insert(name);
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }
  void read(const char* name, std::int64_t& value, const char* word) {
    const Json* json = find(name);
    if (json == nullptr) return;
    if (word != nullptr && (json->is_null() || (json->is_string() && *json == word))) {
      value = 0;
      return;
    }
    if (!json->is_number_integer() ||
        (json->is_number_unsigned() &&
         json->get<std::uint64_t>() > static_cast<std::uint64_t>(kLargestSize))) {
      throw UsageError(
          path_ + name, json->dump(),
          text("whole numbers up to ", kLargestSize, word ? ", " : "", word ? word : ""));
    }
    value = json->get<std::int64_t>();
  }

  const Json& json_;
  std::string path_;
  std::set<std::string> known_;
};

/// What a public config.json says beside the spec.
void read_config(Reader& reader) {
  reader.fixed("rms_norm", true);
  reader.fixed("residual_in_fp32", true);
  reader.ignored("fused_add_norm");
  reader.fixed("d_intermediate", 0);
  reader.fixed("attn_layer_idx", Json::array());
  reader.fixed("attn_cfg", Json::object());
}

// ---------------------------------------------------------------------------------------- writing

class Writer {
 public:
  explicit Writer(Json& json) : json_(json) {}
  void operator()(const char* name, const std::pair<double, double>& value) {
    const auto bound = [](double end) { return std::isinf(end) ? Json("inf") : Json(end); };
    json_[name] = Json::array({bound(value.first), bound(value.second)});
  }
  void operator()(const char* name, MixerSpec& value) {
    Json inner = Json::object();
    inner["layer"] = kLayers[value.index()];
    std::visit([&](auto& mixer) { fields(mixer, Writer(inner)); }, value);
    json_[name] = inner;
  }
  template <typename T>
  void operator()(const char* name, const T& value) {
    json_[name] = value;
  }
  void optional(const char* name, std::int64_t value, const char* word = "null") {
    if (value != 0) {
      json_[name] = value;
    } else {
      json_[name] = std::string(word) == "null" ? Json() : Json(word);
    }
  }

 private:
  Json& json_;
};

}  // namespace

BlockSpec spec_from_json(const std::string& text, const std::string& block) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw UsageError("the spec", error.what(), "a JSON object");
  }
  as_object("the spec", json);
  Reader reader(json, "");
  std::string name = block;
  reader("block", name);
  if (!block.empty() && name != block) throw UsageError("block", name, block);
  if (name.empty() && json.contains("n_layer")) name = "backbone";
  if (name.empty()) throw UsageError("block", "missing", "the name of a block");
  BlockSpec spec = default_spec(name);
  std::visit([&](auto& own) { all_fields(own, reader); }, spec);
  if (std::holds_alternative<BackboneSpec>(spec)) read_config(reader);
  reader.finish();
  check(spec);
  return spec;
}

std::string spec_to_json(const BlockSpec& spec) {
  Json json = Json::object();
  json["block"] = block_name(spec);
  BlockSpec copy = spec;
  std::visit([&](auto& own) { all_fields(own, Writer(json)); }, copy);
  return json.dump(2);
}

}  // namespace krait
