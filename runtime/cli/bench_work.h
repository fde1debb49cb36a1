// What krait bench times: a block, and inputs as its users have them.
#pragma once

#include "runtime/cli/shape_flags.h"
#include "runtime/tensor.h"

namespace krait {

/// The block of the flags. Scans that are named, not read from a spec file, are what
/// tests/reference/torch_baseline.py times, so that the times stand for the same work:
/// ssd has D per head and takes its steps as they are (no bias, no softplus), mamba3_scan takes
/// angles (b, t, a) that all heads share. With `states`, a block of krait's takes its states as
/// inputs. Throws as problem_of.
Problem bench_problem(ShapeFlags flags, const std::vector<CliBlock>& blocks, bool states);

/// Data for every input of the graph that is no parameter, the same in every run: time steps
/// ("dt", "delta") in [0, 0.1), inputs that the graph declares to be <= 0 in (-1, 0], states zero,
/// "seq_idx" four documents, other integers zero, the rest normal.
Tensors bench_inputs(const Graph& graph, const Sizes& sizes);

/// Outputs that bear a cotangent: the floating ones that have the axis t; where there are none, all
/// floating ones.
std::vector<std::string> bench_cotangents(const Graph& graph);

}  // namespace krait
