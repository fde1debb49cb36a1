// Specs as JSON, specs from sizes, and every way in which they are impossible.
#include "runtime/spec_json.h"

#include <catch2/catch.hpp>

#include "runtime/fixture.h"

using namespace krait;
using Catch::Matchers::Contains;

TEST_CASE("A spec survives its JSON", "[spec]") {
  std::vector<BlockSpec> specs;
  for (const std::string& name : block_names()) specs.push_back(default_spec(name));
  Mamba2Spec mamba2{.d_model = 96, .headdim = 32, .ngroups = 3, .d_ssm = 96};
  mamba2.A_init_range = {2, 3.5};
  mamba2.dt_limit = {0.25, 4};
  mamba2.learnable_init_states = mamba2.bias = mamba2.seq_idx = true;
  mamba2.chunk_size = 64;
  specs.push_back(mamba2);
  Mamba1Spec mamba1{.dt_rank = 5};
  mamba1.dt_init = "constant";
  BackboneSpec outer{.vocab_size = 100, .ssm_cfg = mamba1};
  outer.initial_state = true;
  specs.push_back(outer);
  Mamba3Spec mamba3{.rope_fraction = 1};
  mamba3.is_mimo = true;
  specs.push_back(mamba3);
  for (const BlockSpec& spec : specs) {
    const std::string json = spec_to_json(spec);
    INFO(json);
    CHECK(spec_from_json(json) == spec);
    CHECK(spec_from_json(json, block_name(spec)) == spec);
    CHECK(spec_to_json(spec_from_json(json)) == json);
  }
}

TEST_CASE("A public config.json is a backbone", "[spec]") {
  const BlockSpec spec = spec_from_json(R"({"d_model": 2560, "d_intermediate": 0, "n_layer": 64,
    "vocab_size": 50277, "ssm_cfg": {"layer": "Mamba2", "d_state": 64}, "attn_layer_idx": [],
    "attn_cfg": {}, "rms_norm": true, "residual_in_fp32": true, "fused_add_norm": true,
    "pad_vocab_size_multiple": 16, "tie_embeddings": true})");
  const auto& outer = std::get<BackboneSpec>(spec);
  CHECK(outer.n_layer == 64);
  CHECK(outer.padded_vocab() == 50288);
  const auto inner = std::get<Mamba2Spec>(outer.mixer());
  CHECK(inner.d_state == 64);
  CHECK(inner.nheads() == 80);
  CHECK(std::holds_alternative<Mamba1Spec>(
      std::get<BackboneSpec>(spec_from_json(R"({"n_layer": 1, "ssm_cfg": {}})")).ssm_cfg));
}

TEST_CASE("Fields of a spec that are unknown or impossible are named", "[spec]") {
  struct Case {
    const char* json;
    std::vector<const char*> says;
  };
  const Case cases[] = {
      {R"([1])", {"the spec", "objects"}},
      {R"({"block": )", {"the spec"}},
      {R"({"d_model": 64})", {"block", "missing"}},
      {R"({"block": "mamba9"})", {"block", "mamba9", "mamba2", "backbone"}},
      {R"({"block": 3})", {"block", "3"}},
      {R"({"block": "mamba2", "d_modle": 64})", {"d_modle", "unknown", "d_model"}},
      {R"({"block": "mamba2", "d_model": "64"})", {"d_model", "\"64\"", "whole numbers"}},
      {R"({"block": "mamba2", "d_model": 64.5})", {"d_model", "64.5"}},
      {R"({"block": "mamba2", "d_model": -64})", {"d_model", "-64"}},
      {R"({"block": "mamba2", "d_model": 0})", {"d_model is 0"}},
      {R"({"block": "mamba2", "d_model": 18446744073709551615})", {"d_model", "18446744073709"}},
      {R"({"block": "mamba2", "d_model": 16777216, "expand": 16777216})", {"expand"}},
      {R"({"block": "mamba2", "headdim": 48})", {"headdim is 48", "512"}},
      {R"({"block": "mamba2", "ngroups": 3})", {"ngroups is 3", "heads", "8"}},
      {R"({"block": "mamba2", "d_state": 0})", {"d_state is 0"}},
      {R"({"block": "mamba2", "d_conv": 0})", {"d_conv is 0"}},
      {R"({"block": "mamba2", "d_ssm": 1024})", {"d_ssm is 1024", "512"}},
      {R"({"block": "mamba2", "norm_group_size": 7})", {"norm_group_size is 7", "512"}},
      {R"({"block": "mamba2", "dt_limit": [0.5, 0.1]})", {"dt_limit", "0.5"}},
      {R"({"block": "mamba2", "dt_limit": [-1, 1]})", {"dt_limit"}},
      {R"({"block": "mamba2", "dt_limit": [0]})", {"dt_limit"}},
      {R"({"block": "mamba2", "dt_limit": ["low", 1]})", {"dt_limit"}},
      {R"({"block": "mamba2", "A_init_range": [0, 16]})", {"A_init_range[0] is 0"}},
      {R"({"block": "mamba2", "A_init_range": [16, 1]})", {"A_init_range[1] is 1"}},
      {R"({"block": "mamba2", "rmsnorm": 1})", {"rmsnorm is 1", "true, false"}},
      {R"({"block": "mamba2", "eps": 0})", {"eps is 0"}},
      {R"({"block": "mamba2", "dt_min": 0.2})", {"dt_max is 0.1"}},
      {R"({"block": "mamba2", "dt_init_floor": -1})", {"dt_init_floor is -1"}},
      {R"({"block": "mamba1", "dt_rank": "all"})", {"dt_rank", "all", "auto"}},
      {R"({"block": "mamba1", "dt_init": "zero"})", {"dt_init is zero", "random, constant"}},
      {R"({"block": "mamba1", "headdim": 64})", {"headdim", "unknown"}},
      {R"({"block": "mamba3", "d_state": 63})", {"d_state is 63", "even"}},
      {R"({"block": "mamba3", "d_state": 2})", {"d_state is 2"}},
      {R"({"block": "mamba3", "rope_fraction": 0.25})", {"rope_fraction is 0.25", "0.5 and 1"}},
      {R"({"block": "mamba3", "a_activation": "relu"})", {"a_activation is relu", "heavy_tail"}},
      {R"({"block": "mamba3", "A_floor": 0})", {"A_floor is 0"}},
      {R"({"block": "mamba3", "mimo_rank": 0})", {"mimo_rank is 0"}},
      {R"({"block": "mamba3", "d_conv": 4})", {"d_conv", "unknown"}},
      {R"({"block": "ssd", "D": "row"})", {"D is row", "none, head, channel"}},
      {R"({"block": "ssd", "nheads": 4, "ngroups": 3})", {"ngroups is 3", "nheads"}},
      {R"({"block": "selective_scan", "ngroups": 0})", {"ngroups is 0"}},
      {R"({"block": "mamba3_mimo_scan", "eps": -1e-5})", {"eps"}},
      {R"({"n_layer": 0})", {"n_layer is 0"}},
      {R"({"n_layer": 2, "ssm_cfg": {"layer": "Mamba4"}})", {"ssm_cfg.layer is Mamba4", "Mamba3"}},
      {R"({"n_layer": 2, "ssm_cfg": {"layer": "Mamba2", "x": 1}})", {"ssm_cfg.x", "d_state"}},
      {R"({"n_layer": 2, "ssm_cfg": {"layer": "Mamba2", "headdim": 100}})", {"headdim is 100"}},
      {R"({"n_layer": 2, "ssm_cfg": 5})", {"ssm_cfg is 5", "objects"}},
      {R"({"n_layer": 2, "rms_norm": false})", {"rms_norm is false", "true"}},
      {R"({"n_layer": 2, "residual_in_fp32": false})", {"residual_in_fp32 is false"}},
      {R"({"n_layer": 2, "attn_layer_idx": [1]})", {"attn_layer_idx is [1]"}},
      {R"({"n_layer": 2, "vocab_size": 9, "d_input": 4})", {"d_input is 4", "vocab_size"}},
      {R"({"n_layer": 2, "pad_vocab_size_multiple": 0})", {"pad_vocab_size_multiple is 0"}},
  };
  for (const Case& bad : cases) {
    INFO(bad.json);
    std::string message;
    try {
      spec_from_json(bad.json);
    } catch (const UsageError& error) {
      message = error.what();
    }
    REQUIRE(!message.empty());
    for (const char* part : bad.says) CHECK_THAT(message, Contains(part));
  }
  CHECK_THROWS_AS(spec_from_json(R"({"block": "ssd"})", "mamba2"), UsageError);
}

TEST_CASE("Sizes of the command line", "[spec]") {
  const auto sized = [](const std::string& block, const BlockSizes& sizes) {
    return with_sizes(default_spec(block), sizes);
  };
  const auto mamba2 = std::get<Mamba2Spec>(
      sized("mamba2", {.d_model = 64, .heads = 4, .headdim = 32, .d_conv = 3, .expand = 2}));
  CHECK(mamba2.nheads() == 4);
  CHECK(mamba2.d_conv == 3);
  const auto ssd = std::get<SsdSpec>(sized("ssd", {.heads = 6, .headdim = 16, .ngroups = 3}));
  CHECK(ssd.nheads == 6);
  CHECK(ssd.ngroups == 3);
  CHECK(std::get<SsdSpec>(sized("ssd", {.d_model = 64, .headdim = 16, .expand = 2})).nheads == 8);
  CHECK(std::get<SelectiveScanSpec>(sized("selective_scan", {.d_model = 48})).channels == 48);
  const auto outer = std::get<BackboneSpec>(sized("backbone", {.d_model = 128, .d_state = 16}));
  CHECK(std::get<Mamba2Spec>(outer.mixer()).d_state == 16);
  CHECK(std::get<Mamba2Spec>(outer.mixer()).d_model == 128);
  CHECK_NOTHROW(sized("ssd", {.d_model = 64, .heads = 4, .headdim = 32, .expand = 2}));

  CHECK_THROWS_WITH(sized("ssd", {.d_model = 64, .heads = 6, .headdim = 32}), Contains("d-model"));
  CHECK_THROWS_WITH(sized("ssd", {.d_conv = 4}), Contains("d-conv is 4"));
  CHECK_THROWS_WITH(sized("ssd", {.expand = 2}), Contains("expand is 2"));
  CHECK_THROWS_WITH(sized("ssd", {.heads = 0}), Contains("heads is 0"));
  CHECK_THROWS_WITH(sized("ssd", {.heads = -1}), Contains("heads is -1"));
  CHECK_THROWS_WITH(sized("mamba2", {.heads = 3}), Contains("heads is 3; allowed: expand"));
  CHECK_THROWS_WITH(sized("mamba2", {.d_model = 40}), Contains("headdim is 64"));
  CHECK_THROWS_WITH(sized("mamba1", {.ngroups = 2}), Contains("ngroups is 2"));
  CHECK_THROWS_WITH(sized("mamba1", {.heads = 2}), Contains("heads is 2"));
  CHECK_THROWS_WITH(sized("mamba3", {.d_conv = 4}), Contains("d-conv is 4"));
  CHECK_THROWS_WITH(sized("backbone", {.heads = 3}), Contains("heads is 3"));
  CHECK_THROWS_WITH(default_spec("mamba"), Contains("mamba1") && Contains("selective_scan"));
}

TEST_CASE("Flags and wishes of specs", "[spec]") {
  for (const std::string& name : block_names()) {
    INFO(name);
    const BlockSpec spec = default_spec(name);
    CHECK(build_graph(block_function(spec)).states().empty());
    const Graph graph = build_graph(block_function(with_documents(with_states(spec, true), true)));
    CHECK(!graph.states().empty());
    CHECK(graph.find_input("seq_idx").has_value());
    CHECK(chunk_size(spec) == 0);
  }
  CHECK(chunk_size(Mamba2Spec{.chunk_size = 128}) == 128);
  CHECK(chunk_size(BackboneSpec{.ssm_cfg = Mamba3Spec{.chunk_size = 32}}) == 32);
}

TEST_CASE("What a fixture says wrong is named", "[spec]") {
  using Shapes = std::map<std::string, std::vector<std::int64_t>>;
  const Shapes good{
      {"x", {2, 5, 4, 3}}, {"dt", {2, 5, 4}}, {"A", {4}}, {"B", {2, 5, 2, 6}}, {"C", {2, 5, 2, 6}}};
  CHECK_NOTHROW(fixture_graph("ssd", "{}", good, DType::f64));
  const auto message = [&](const std::string& op, const std::string& options,
                           const Shapes& changes) -> std::string {
    Shapes shapes = good;
    for (const auto& [name, shape] : changes) {
      if (shape.empty()) {
        shapes.erase(name);
      } else {
        shapes[name] = shape;
      }
    }
    try {
      fixture_graph(op, options, shapes, DType::f64);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(message("sdd", "{}", {}), Contains("op is sdd") && Contains("mamba3_block"));
  CHECK_THAT(message("ssd", "{", {}), Contains("options"));
  CHECK_THAT(message("ssd", "[]", {}), Contains("options"));
  CHECK_THAT(message("ssd", R"({"dt_sofplus": true})", {}), Contains("dt_sofplus"));
  CHECK_THAT(message("ssd", R"({"dt_softplus": 3})", {}), Contains("dt_softplus is 3"));
  CHECK_THAT(message("ssd", "{}", {{"B", {}}}), Contains("input B") && Contains("missing"));
  CHECK_THAT(message("ssd", "{}", {{"C", {}}}), Contains("input C") && Contains("missing"));
  CHECK_THAT(message("ssd", "{}", {{"x", {2, 5, 4}}}), Contains("input x is (2, 5, 4)"));
  CHECK_THAT(message("ssd", "{}", {{"C", {2, 5, 2, 7}}}), Contains("input C, dimension 3 is 7"));
  CHECK_THAT(message("ssd", "{}", {{"B", {2, 5, 3, 6}}, {"C", {2, 5, 3, 6}}}),
             Contains("ngroups is 3"));
  CHECK_THAT(message("ssd", "{}", {{"w", {3}}}), Contains("input w is (3); allowed: no such"));
  CHECK_THAT(message("mamba2_block", "{}", {}), Contains("headdim") && Contains("missing"));
}
