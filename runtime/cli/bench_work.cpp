#include "runtime/cli/bench_work.h"

#include <algorithm>
#include <random>

#include "dsl/blocks/mamba3_core.h"

namespace krait {
namespace {

/// The scan of Mamba-3 as its block feeds it: angles (b, t, a) are shared by the heads.
void shared_angle_scan(Scope& s, const Mamba3ScanSpec& spec) {
  const Mamba3Axes x(spec.nheads, spec.headdim, spec.d_state, spec.ngroups,
                     rope_angles(spec.rope_fraction, spec.d_state), 0);
  const HeadAxes& heads = x.heads;
  const auto keys = [&](const std::string& name) {
    return x.pairs(s.input(name, {x.b, x.t, heads.g, x.n}));
  };
  const auto per_head = [&](const std::string& name) {
    return heads.split(s.input(name, {x.b, x.t, heads.h}));
  };
  const auto bias = [&](const std::string& name) {
    return x.pairs(heads.split(s.param(name, {heads.h, x.n}, init_one())));
  };
  Mamba3Core in;
  in.q = keys("q");
  in.k = keys("k");
  in.v = heads.split(s.input("v", {x.b, x.t, heads.h, x.p}));
  in.log_decay = nonpositive(per_head("adt")).named("log_decay");
  in.dt = per_head("dt");
  in.trap = per_head("trap");
  in.q_bias = bias("q_bias");
  in.k_bias = bias("k_bias");
  in.angles = s.input("angles", {x.b, x.t, x.a});
  if (spec.D) in.D = heads.split(s.param("D", {heads.h}, init_one()));
  in.starts = document_starts(document_input(s, spec.seq_idx));
  Mamba3Finish finish;
  if (spec.z) finish.z = heads.split(s.input("z", {x.b, x.t, heads.h, x.p}));
  const Expr y = mamba3_finish(mamba3_core(s, in, x, spec.initial_state), finish, x);
  s.output("y", heads.merge(y), {"b", "t", "h", "p"});
}

/// Whether a Map that does nothing else declares the input, or a view of it, to be <= 0.
bool declared_nonpositive(const Graph& graph, Value input) {
  const std::vector<std::vector<int>> users = graph.users();
  std::vector<int> reached{input.node};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const int user : users[static_cast<std::size_t>(reached[i])]) {
      const Op& op = graph.node(user).op;
      if (const Map* const map = std::get_if<Map>(&op)) {
        const std::vector<ScalarNode>& nodes = map->expression.nodes();
        if (nodes.size() == 2 && nodes[1].op == ScalarOp::nonpositive) return true;
      } else if (std::holds_alternative<Split>(op) || std::holds_alternative<Merge>(op) ||
                 std::holds_alternative<Rename>(op)) {
        reached.push_back(user);
      }
    }
  }
  return false;
}

Shape shape_of(const Graph& graph, const AxisNames& order, const Sizes& sizes) {
  Shape shape;
  for (const std::string& axis : order) shape.push_back(graph.axis(axis).extent.value(sizes));
  return shape;
}

/// Four documents a row, numbered from 0.
void number_documents(Tensor& tensor) {
  const std::int64_t length = tensor.shape().back();
  std::int32_t* const data = tensor.data_as<std::int32_t>();
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    data[i] = static_cast<std::int32_t>(i % length * 4 / length);
}

}  // namespace

Problem bench_problem(ShapeFlags flags, const std::vector<CliBlock>& blocks, bool states) {
  const bool own = std::any_of(blocks.begin(), blocks.end(),
                               [&](const CliBlock& block) { return block.name == flags.block; });
  flags.states = flags.states || (states && !own);
  Problem problem = problem_of(flags, blocks);
  if (!problem.spec || !flags.spec_file.empty()) return problem;
  if (SsdSpec* const ssd = std::get_if<SsdSpec>(&*problem.spec)) {
    ssd->dt_bias = ssd->dt_softplus = false;
    problem.function = block_function(*problem.spec);
  } else if (const auto* const scan = std::get_if<Mamba3ScanSpec>(&*problem.spec)) {
    problem.function = [spec = *scan](Scope& s) { shared_angle_scan(s, spec); };
  }
  return problem;
}

Tensors bench_inputs(const Graph& graph, const Sizes& sizes) {
  std::mt19937_64 bits(0);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  Tensors tensors;
  for (const Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    if (input.role == Role::parameter) continue;
    Tensor& tensor = tensors[input.name] = Tensor(input.dtype, shape_of(graph, input.order, sizes));
    if (input.role == Role::state) continue;
    if (input.dtype == DType::i32) {
      if (input.name == "seq_idx") number_documents(tensor);
      continue;
    }
    const bool step = input.name == "dt" || input.name == "delta";
    const bool decay = declared_nonpositive(graph, value);
    Tensor64 drawn(tensor.shape());
    for (double& element : drawn.data)
      element = decay ? -uniform(bits) : step ? 0.1 * uniform(bits) : normal(bits);
    copy({drawn.data.data(), drawn.shape}, tensor.ref(), input.name);
  }
  return tensors;
}

std::vector<std::string> bench_cotangents(const Graph& graph) {
  std::vector<std::string> floating, along_time;
  for (const Output& output : graph.outputs()) {
    if (!is_float(graph.type(output.value).dtype)) continue;
    floating.push_back(output.name);
    if (std::find(output.order.begin(), output.order.end(), "t") != output.order.end())
      along_time.push_back(output.name);
  }
  return along_time.empty() ? floating : along_time;
}

}  // namespace krait
