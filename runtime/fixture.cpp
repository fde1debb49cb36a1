#include "runtime/fixture.h"

#include <nlohmann/json.hpp>
#include <set>

namespace krait {

namespace {

using Json = nlohmann::json;
using Shape = std::vector<std::int64_t>;
using Shapes = std::map<std::string, Shape>;

std::string shape_text(const Shape& shape) {
  std::string result = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    result += text(i == 0 ? "" : ", ", shape[i]);
  }
  return result + ")";
}

/// The shapes of a fixture's inputs, names under a prefix.
class Inputs {
 public:
  Inputs(const Shapes& shapes, std::string prefix = "")
      : shapes_(shapes), prefix_(std::move(prefix)) {}
  bool has(const std::string& name) const { return shapes_.count(prefix_ + name) != 0; }
  const Shape& shape(const std::string& name, std::size_t rank) const {
    const auto found = shapes_.find(prefix_ + name);
    if (found == shapes_.end()) throw UsageError("input " + prefix_ + name, "missing", "a tensor");
    if (found->second.size() != rank) {
      throw UsageError("input " + prefix_ + name, shape_text(found->second),
                       text("tensors of ", rank, " dimensions"));
    }
    return found->second;
  }
  std::size_t rank(const std::string& name) const {
    const auto found = shapes_.find(prefix_ + name);
    return found == shapes_.end() ? 0 : found->second.size();
  }
  std::int64_t size(const std::string& name, std::size_t rank, std::size_t dimension) const {
    return shape(name, rank)[dimension];
  }

 private:
  const Shapes& shapes_;
  std::string prefix_;
};

/// The keyword arguments; `finish` rejects those that nobody asked for.
class Options {
 public:
  explicit Options(Json json, std::string path = "") : json_(std::move(json)), path_(path) {
    if (!json_.is_object()) throw UsageError("options", json_.dump(), "JSON objects");
  }
  template <typename T>
  T get(const std::string& name, T otherwise) {
    known_.insert(name);
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return otherwise;
    try {
      if constexpr (std::is_same_v<T, std::int64_t>) {
        if (!found->is_number_integer()) throw UsageError(path_ + name, found->dump(), "integers");
      }
      return found->template get<T>();
    } catch (const Json::exception&) {
      throw UsageError(path_ + name, found->dump(), "a value of another type");
    }
  }
  std::int64_t required(const std::string& name) {
    if (!json_.contains(name)) throw UsageError("option " + path_ + name, "missing", "integers");
    return get<std::int64_t>(name, 0);
  }
  Json object(const std::string& name) { return get<Json>(name, Json::object()); }
  void finish() const {
    for (const auto& [name, value] : json_.items()) {
      if (known_.count(name) == 0) {
        std::string allowed;
        for (const std::string& field : known_) allowed += (allowed.empty() ? "" : ", ") + field;
        throw UsageError("the option " + path_ + name, "unknown", allowed);
      }
    }
  }

 private:
  Json json_;
  std::string path_;
  std::set<std::string> known_;
};

/// value / divisor, which must leave nothing.
std::int64_t quotient(const std::string& what, std::int64_t value, std::int64_t divisor) {
  if (divisor < 1 || value < divisor || value % divisor != 0) {
    throw UsageError(what, text(value), text("positive multiples of ", divisor));
  }
  return value / divisor;
}

double rope_fraction(std::int64_t angles, std::int64_t d_state) {
  for (const double fraction : {0.5, 1.0}) {
    if (rope_angles(fraction, d_state) == angles) return fraction;
  }
  throw UsageError("the number of angles", text(angles),
                   text(rope_angles(0.5, d_state), ", ", rope_angles(1, d_state)));
}

SsdSpec ssd_spec(const Inputs& in, Options& options) {
  SsdSpec spec;
  spec.nheads = in.size("x", 4, 2);
  spec.headdim = in.size("x", 4, 3);
  spec.ngroups = in.size("B", 4, 2);
  spec.d_state = in.size("B", 4, 3);
  spec.D = !in.has("D") ? "none" : in.rank("D") == 1 ? "head" : "channel";
  spec.z = in.has("z");
  spec.dt_bias = in.has("dt_bias");
  spec.dt_softplus = options.get("dt_softplus", false);
  spec.dt_limit = options.get("dt_limit", spec.dt_limit);
  spec.initial_state = in.has("h0");
  return spec;
}

SelectiveScanSpec selective_spec(const Inputs& in, Options& options) {
  SelectiveScanSpec spec;
  spec.channels = in.size("A", 2, 0);
  spec.d_state = in.size("A", 2, 1);
  spec.is_variable_B = in.rank("B") != 2;
  spec.is_variable_C = in.rank("C") != 2;
  if (spec.is_variable_B) spec.ngroups = in.size("B", 4, 2);
  if (spec.is_variable_C) spec.ngroups = in.size("C", 4, 2);
  spec.D = in.has("D");
  spec.z = in.has("z");
  spec.delta_bias = in.has("delta_bias");
  spec.delta_softplus = options.get("delta_softplus", false);
  spec.initial_state = in.has("h0");
  return spec;
}

Mamba3ScanSpec siso_spec(const Inputs& in) {
  Mamba3ScanSpec spec;
  spec.nheads = in.size("v", 4, 2);
  spec.headdim = in.size("v", 4, 3);
  spec.ngroups = in.size("q", 4, 2);
  spec.d_state = in.size("q", 4, 3);
  spec.rope_fraction = rope_fraction(in.size("angles", 4, 3), spec.d_state);
  spec.D = in.has("D");
  spec.z = in.has("z");
  spec.initial_state = in.has("state.ssm");
  return spec;
}

Mamba3MimoScanSpec mimo_spec(const Inputs& in, Options& options) {
  Mamba3MimoScanSpec spec;
  spec.nheads = in.size("v", 4, 2);
  spec.headdim = in.size("v", 4, 3);
  spec.mimo_rank = in.size("q", 5, 2);
  spec.ngroups = in.size("q", 5, 3);
  spec.d_state = in.size("q", 5, 4);
  spec.rope_fraction = rope_fraction(in.size("angles", 4, 3), spec.d_state);
  spec.D = in.has("D");
  spec.z = in.has("z");
  spec.norm = in.has("norm_weight");
  spec.eps = options.get("eps", spec.eps);
  spec.initial_state = in.has("state.ssm");
  return spec;
}

/// `w`: the parameters of a mixer.
Mamba1Spec mamba1_spec(const Inputs& w) {
  Mamba1Spec spec;
  spec.d_model = w.size("out_proj", 2, 0);
  spec.expand = quotient("the columns of out_proj", w.size("out_proj", 2, 1), spec.d_model);
  spec.d_state = w.size("A_log", 2, 1);
  spec.d_conv = w.size("conv_weight", 2, 1);
  spec.dt_rank = w.size("dt_proj", 2, 1);
  spec.conv_bias = w.has("conv_bias");
  spec.bias = w.has("in_proj_bias");
  return spec;
}

Mamba2Spec mamba2_spec(const Inputs& w, Options& options) {
  Mamba2Spec spec;
  spec.headdim = options.required("headdim");
  spec.ngroups = options.required("ngroups");
  spec.norm_before_gate = options.get("norm_before_gate", false);
  spec.norm_group_size = options.get<std::int64_t>("norm_group_size", 0);
  spec.eps = options.get("eps", spec.eps);
  spec.dt_limit = options.get("dt_limit", spec.dt_limit);
  spec.d_model = w.size("out_proj", 2, 0);
  const std::int64_t inner = w.size("out_proj", 2, 1), conv = w.size("conv_weight", 2, 0);
  spec.expand = quotient("the columns of out_proj", inner, spec.d_model);
  spec.d_state = quotient("the rows of conv_weight beyond x", conv - inner, 2 * spec.ngroups);
  spec.d_conv = w.size("conv_weight", 2, 1);
  spec.D_has_hdim = w.rank("D") == 2;
  spec.rmsnorm = w.has("norm_weight");
  spec.conv_bias = w.has("conv_bias");
  spec.bias = w.has("in_proj_bias");
  spec.learnable_init_states = w.has("init_states");
  return spec;
}

Mamba3Spec mamba3_spec(const Inputs& w, Options& options) {
  Mamba3Spec spec;
  spec.headdim = options.required("headdim");
  spec.ngroups = options.required("ngroups");
  spec.is_outproj_norm = options.get("outproj_norm", false);
  spec.a_activation = options.get("a_activation", spec.a_activation);
  spec.A_floor = options.get("a_floor", spec.A_floor);
  spec.eps = options.get("eps", spec.eps);
  const std::int64_t rank = options.get<std::int64_t>("mimo_rank", 0);
  spec.is_mimo = rank != 0;
  if (spec.is_mimo) spec.mimo_rank = rank;
  spec.d_model = w.size("out_proj", 2, 0);
  spec.expand = quotient("the columns of out_proj", w.size("out_proj", 2, 1), spec.d_model);
  spec.d_state = w.size("B_norm", 1, 0);
  spec.rope_fraction = 1;
  check(spec);
  // The rows of in_proj that nothing else takes are angles.
  const std::int64_t others = spec.projection_rows() - spec.angles();
  spec.rope_fraction = rope_fraction(w.size("in_proj", 2, 0) - others, spec.d_state);
  return spec;
}

BackboneSpec backbone_spec(const Inputs& in, const Shapes& shapes, Options& options) {
  BackboneSpec spec;
  spec.n_layer = options.required("layers");
  const std::string mixer = options.get<std::string>("mixer", "");
  Options inner(options.object("mixer_options"), "mixer_options.");
  const Inputs w(shapes, "layers.0.mixer.");
  if (mixer == "mamba1_block") {
    spec.ssm_cfg = mamba1_spec(w);
  } else if (mixer == "mamba2_block") {
    spec.ssm_cfg = mamba2_spec(w, inner);
  } else if (mixer == "mamba3_block") {
    spec.ssm_cfg = mamba3_spec(w, inner);
  } else {
    throw UsageError("option mixer", mixer, "mamba1_block, mamba2_block, mamba3_block");
  }
  inner.finish();
  spec.d_model = in.size("norm_f", 1, 0);
  spec.d_input = in.size("input_proj.weight", 2, 1);
  return spec;
}

/// The graph's inputs are the fixture's, and constant sizes agree.
void compare_inputs(const Graph& graph, const Shapes& shapes) {
  std::set<std::string> names;
  for (const Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    names.insert(input.name);
    const Shape& shape = Inputs(shapes).shape(input.name, input.order.size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const Axis& axis = graph.axis(input.order[i]);
      if (axis.extent.is_constant() && axis.extent.offset != shape[i]) {
        throw UsageError(text("input ", input.name, ", dimension ", i), text(shape[i]),
                         text(axis.extent.offset, ", as the other inputs say"));
      }
    }
  }
  for (const auto& [name, shape] : shapes) {
    if (names.count(name) == 0) {
      throw UsageError("input " + name, shape_text(shape), "no such input");
    }
  }
}

}  // namespace

BlockSpec fixture_spec(const std::string& op, const std::string& options_json,
                       const Shapes& shapes) {
  Json json;
  try {
    json = Json::parse(options_json.empty() ? "{}" : options_json);
  } catch (const Json::exception& error) {
    throw UsageError("options", error.what(), "a JSON object");
  }
  Options options(json);
  const Inputs in(shapes), w(shapes, "w.");
  BlockSpec spec;
  if (op == "ssd") {
    spec = ssd_spec(in, options);
  } else if (op == "selective_scan") {
    spec = selective_spec(in, options);
  } else if (op == "mamba3_scan") {
    spec = siso_spec(in);
  } else if (op == "mamba3_mimo_scan") {
    spec = mimo_spec(in, options);
  } else if (op == "mamba1_block") {
    spec = mamba1_spec(w);
    spec = with_states(spec, in.has("h0"));
  } else if (op == "mamba2_block") {
    spec = mamba2_spec(w, options);
    spec = with_states(spec, in.has("h0"));
  } else if (op == "mamba3_block") {
    spec = mamba3_spec(w, options);
    spec = with_states(spec, in.has("state.ssm"));
  } else if (op == "backbone") {
    spec = backbone_spec(in, shapes, options);
  } else {
    throw UsageError("op", op,
                     "ssd, selective_scan, mamba3_scan, mamba3_mimo_scan, mamba1_block, "
                     "mamba2_block, mamba3_block, backbone");
  }
  options.finish();
  spec = with_documents(spec, in.has("seq_idx"));
  check(spec);
  return spec;
}

Graph fixture_graph(const std::string& op, const std::string& options_json, const Shapes& shapes,
                    DType activation) {
  const Graph graph =
      build_graph(block_function(fixture_spec(op, options_json, shapes)), activation);
  compare_inputs(graph, shapes);
  return graph;
}

}  // namespace krait
