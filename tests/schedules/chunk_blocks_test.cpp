// The blocks of dsl/blocks over chunks, against the same blocks before.
#include "dsl/blocks/blocks.h"
#include "tests/schedules/chunk_testing.h"

namespace krait {
namespace {

Graph built(const BlockSpec& spec) { return build_graph(block_function(spec), DType::f64); }

/// With and without documents and states.
void check_block(BlockSpec spec, const AxisNames& outer) {
  for (bool documents : {false, true})
    for (bool states : {false, true}) {
      CAPTURE(block_name(spec), documents, states);
      check_chunk(built(with_documents(with_states(spec, states), documents)),
                  {outer, {"A", "adt"}, {"dt"}, documents == states, 1e-9});
    }
}

TEST_CASE("chunk: the scan with a decay per head") {
  SsdSpec spec;
  spec.nheads = 4, spec.headdim = 3, spec.d_state = 5, spec.ngroups = 2;
  spec.D = "channel", spec.z = true;
  check_block(spec, {"p", "n"});
}

TEST_CASE("chunk: the scans with a trapezoid and a rotation") {
  Mamba3ScanSpec spec;
  spec.nheads = 4, spec.headdim = 3, spec.d_state = 8, spec.ngroups = 2;
  check_block(spec, {"p", "i"});
  Mamba3MimoScanSpec several;
  several.nheads = 2, several.headdim = 3, several.d_state = 8, several.mimo_rank = 2;
  check_block(several, {"p", "i"});
}

TEST_CASE("chunk: whole blocks") {
  Mamba2Spec second;
  second.d_model = 6, second.headdim = 3, second.d_state = 4, second.ngroups = 2;
  check_block(second, {"p", "n"});
  Mamba3Spec third;
  third.d_model = 6, third.headdim = 3, third.d_state = 8;
  check_block(third, {"p", "i"});
}

TEST_CASE("chunk: a backbone of two layers") {
  Mamba2Spec mixer;
  mixer.headdim = 4, mixer.d_state = 4;
  BackboneSpec spec;
  spec.d_model = 8, spec.n_layer = 2, spec.vocab_size = 8, spec.ssm_cfg = mixer;
  check_block(spec, {"p", "n"});
}

TEST_CASE("chunk: dtypes stay what they are") {
  for (const std::string& name : block_names())
    for (DType dtype : {DType::bf16, DType::f32}) {
      CAPTURE(name);
      const BlockSpec spec = with_documents(with_states(default_spec(name), true), true);
      const Graph graph = build_graph(block_function(spec), dtype);
      if (why_not_chunkable(graph)) continue;
      require_chunked(graph, chunk(graph, 64), {"p", "n"});
    }
}

TEST_CASE("chunk: a decay of both state axes is not chunkable") {
  SelectiveScanSpec spec;
  REQUIRE(why_not_chunkable(built(spec)).has_value());
  REQUIRE(why_not_chunkable(built(Mamba1Spec{})).has_value());
}

}  // namespace
}  // namespace krait
