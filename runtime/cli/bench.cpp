// krait bench: how long a block takes, beside what the machine could do at best.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dsl/error.h"
#include "runtime/cli/bench_work.h"
#include "runtime/cli/kernel_stats.h"
#include "runtime/cli/limits.h"
#include "runtime/layer.h"

namespace krait {
namespace {

using nlohmann::json;

struct Flags {
  ShapeFlags shape;
  std::string device = "host", schedule, passes = "forward,backward";
  std::int64_t threads = 0, repeat = 5;
  bool json = false;
};

struct Passes {
  bool forward = false, backward = false, step = false;
};

Passes passes_of(const std::string& text) {
  Passes passes;
  std::istringstream names(text);
  std::string name;
  const std::string allowed = "forward, backward, step, each once, with commas between";
  while (std::getline(names, name, ',')) {
    bool* const pass = name == "forward"    ? &passes.forward
                       : name == "backward" ? &passes.backward
                       : name == "step"     ? &passes.step
                                            : nullptr;
    if (pass == nullptr || *pass) throw UsageError("--passes", text, allowed);
    *pass = true;
  }
  if (!passes.forward && !passes.backward && !passes.step)
    throw UsageError("--passes", text, allowed);
  return passes;
}

/// Milliseconds of every try.
struct Times {
  std::string pass;  // as the table names it
  std::vector<double> ms;
  std::int64_t flops = 0;  // of its kernels, see kernel_stats.h

  double quantile(double q) const {
    std::vector<double> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
  }
  double median() const { return quantile(0.5); }
  double gflop_s() const { return 1e-6 * static_cast<double>(flops) / median(); }
};

Times timed(const std::string& pass, std::int64_t repeat, Device& device,
            const std::function<void(Stream)>& body) {
  Times times{pass, {}, 0};
  for (std::int64_t i = 0; i <= repeat; ++i) {
    const double ms = device.milliseconds(body);
    // The first one makes the memory that later ones find.
    if (i > 0) times.ms.push_back(ms);
  }
  return times;
}

/// Bytes of one forward and backward.
struct Memory {
  std::int64_t inputs = 0, outputs = 0, gradients = 0;  // parameters are inputs
  std::int64_t forward = 0, backward = 0, saved = 0;    // temporaries, and the tape

  std::int64_t temporaries() const { return forward + backward + saved; }
  std::int64_t interface() const { return inputs + outputs + gradients; }
};

std::int64_t bytes_of(const Tensors& tensors) {
  std::int64_t sum = 0;
  for (const auto& [name, tensor] : tensors) sum += tensor.count() * size_in_bytes(tensor.dtype());
  return sum;
}

struct Report {
  std::vector<Times> times;
  std::optional<Memory> memory;      // where backward was timed
  std::optional<HostLimits> limits;  // of the host
  double copy_gb_s = 0;              // of a GPU: bytes that a copy reads and writes in a second
  std::int64_t compiled = 0, from_cache = 0;
  int threads = 0;

  void count(const Layer& layer) {
    compiled += layer.counters().compiled;
    from_cache += layer.counters().from_cache;
  }
};

class Bench {
 public:
  Bench(const Flags& flags, const std::vector<CliBlock>& blocks)
      : flags_(flags), blocks_(blocks), problem_(bench_problem(flags.shape, blocks, false)) {
    require_host_dtype(problem_.dtype);
    options_.schedule = parse_schedule(flags.schedule);
    if (options_.schedule.plan.value_or(PlanKind::chunks) != PlanKind::chunks)
      throw UsageError("--schedule", flags.schedule, "plan=chunks; --passes names the passes");
    if (!options_.schedule.chunk && problem_.chunk_wish > 0)
      options_.schedule.chunk = problem_.chunk_wish;
    options_.name = problem_.block;
    options_.sizes = problem_.sizes;
    options_.step = false;
    device_ = make_device(flags.device, static_cast<int>(flags.threads));
    options_.on = device_;
    report_.threads = device_->pool().threads();
  }

  Report run() {
    const Passes passes = passes_of(flags_.passes);
    if (HostDevice* const host = dynamic_cast<HostDevice*>(device_.get()))
      report_.limits = measure_limits(*host, problem_.dtype);
    else
      report_.copy_gb_s = measure_copy(*device_);
    if (passes.forward) time_forward();
    if (passes.backward) time_backward();
    if (passes.step) time_step();
    return std::move(report_);
  }

  const Problem& problem() const { return problem_; }
  /// What was given and what was picked for the shape.
  const Schedule& schedule() const { return schedule_; }

 private:
  static void require_host_dtype(DType dtype) {
    if (dtype != DType::f32 && dtype != DType::f64)
      throw UsageError("--dtype", std::string(name(dtype)), "f32, f64");
  }

  Layer layer(Graph graph, const LayerOptions& options) {
    Layer made(std::move(graph), options);
    if (made.plan(Pass::forward)) schedule_ = made.schedule();
    report_.count(made);
    if (problem_.block == "ssd") {  // the rates that the baseline draws
      const TensorRef rates = made.parameter("A");
      Tensor64 drawn(rates.shape);
      const std::int64_t count = drawn.count();
      for (std::int64_t i = 0; i < count; ++i)
        drawn.data[i] = -8.0 * (static_cast<double>(i) + 0.5) / static_cast<double>(count);
      made.set_parameter("A", {drawn.data.data(), drawn.shape});
    }
    return made;
  }

  void keep(Times times, const Layer& layer, const std::vector<Pass>& passes, const Sizes& sizes) {
    const HostTarget host = host_target(read_environment().host_cpu);
    const VectorTarget vectors{host.vector_bits, host.vector_registers};
    for (const Pass pass : passes)
      for (const KernelStats& kernel : plan_stats(*layer.plan(pass), sizes, vectors))
        times.flops += kernel.flops;
    report_.times.push_back(std::move(times));
  }

  Tensors on_device(Tensors tensors) {
    if (device_->name() == "host") return tensors;
    for (auto& [name, tensor] : tensors) tensor = to_device(tensor.ref(), *device_);
    return tensors;
  }

  void time_forward() {
    LayerOptions options = options_;
    options.wanted = std::vector<std::string>();
    const Layer layer = this->layer(problem_.graph(), options);
    const Tensors inputs = on_device(bench_inputs(layer.graph(), problem_.sizes));
    const TensorMap given = refs(inputs);
    const Tensors outputs = layer.forward(given).outputs;
    const TensorMap places = refs(outputs);
    keep(timed("forward", flags_.repeat, *device_,
               [&](Stream stream) { layer.forward(given, places, stream); }),
         layer, {Pass::forward}, problem_.sizes);
  }

  void time_backward() {
    const Graph graph = problem_.graph();
    LayerOptions options = options_;
    options.cotangents = bench_cotangents(graph);
    const Layer layer = this->layer(graph, options);
    const Tensors inputs = on_device(bench_inputs(graph, problem_.sizes));
    const TensorMap given = refs(inputs);
    const Layer::Forward first = layer.forward(given);
    Tensors ones;
    for (const std::string& name : *options.cotangents) {
      const Tensor& output = first.outputs.at(name);
      Tensor& one = ones[name] = Tensor(accumulator(output.dtype()), output.shape());
      const Tensor64 all(one.shape(), 1);
      copy({all.data.data(), all.shape}, one.ref());
    }
    ones = on_device(std::move(ones));
    const TensorMap cotangents = refs(ones), places = refs(first.outputs);
    const Tensors gradients = layer.backward(first.tape, cotangents);
    const TensorMap gradient_places = refs(gradients);
    Times times = timed("forward+backward", flags_.repeat, *device_, [&](Stream stream) {
      const Layer::Forward forward = layer.forward(given, places, stream);
      layer.backward(forward.tape, cotangents, gradient_places, false, stream);
    });
    keep(std::move(times), layer, {Pass::forward, Pass::backward}, problem_.sizes);
    Memory memory;
    memory.inputs = bytes_of(inputs);
    for (const std::string& name : layer.parameters()) {
      const TensorRef parameter = layer.parameter(name);
      memory.inputs += parameter.count() * size_in_bytes(parameter.dtype);
    }
    memory.outputs = bytes_of(first.outputs);
    memory.gradients = bytes_of(gradients);
    memory.forward = layer.temporary_bytes(Pass::forward, problem_.sizes);
    memory.backward = layer.temporary_bytes(Pass::backward, problem_.sizes);
    memory.saved = first.tape.bytes();
    report_.memory = memory;
  }

  void time_step() {
    const Problem problem = bench_problem(flags_.shape, blocks_, true);
    LayerOptions options = options_;
    options.schedule = Schedule();
    options.schedule.plan = PlanKind::step;
    const Layer layer = this->layer(problem.graph(), options);
    Sizes sizes = problem.sizes;
    sizes["t"] = 1;
    Tensors inputs = on_device(bench_inputs(layer.graph(), sizes));
    Tensors states;
    std::vector<std::string> left;  // outputs that are states
    for (const StatePair& pair : layer.graph().states()) {
      states.insert(inputs.extract(pair.in));
      left.push_back(pair.out);
    }
    Tensors outputs;
    for (const Output& output : layer.graph().outputs()) {
      if (std::find(left.begin(), left.end(), output.name) != left.end()) continue;
      Shape shape;
      for (const std::string& axis : output.order)
        shape.push_back(layer.graph().axis(axis).extent.value(sizes));
      outputs[output.name] = Tensor(layer.graph().type(output.value).dtype, shape, *device_);
    }
    const TensorMap given = refs(inputs), carried = refs(states), places = refs(outputs);
    // A step is short: each try is several, and its time that of one.
    constexpr int kSteps = 20;
    Times times = timed("step", flags_.repeat, *device_, [&](Stream stream) {
      for (int i = 0; i < kSteps; ++i) layer.step(given, carried, places, stream);
    });
    for (double& ms : times.ms) ms /= kSteps;
    keep(std::move(times), layer, {Pass::step}, sizes);
  }

  const Flags& flags_;
  const std::vector<CliBlock>& blocks_;
  Problem problem_;
  std::shared_ptr<Device> device_;
  LayerOptions options_;
  Schedule schedule_;
  Report report_;
};

double rounded(double x) { return std::round(x * 1e4) / 1e4; }

json to_json(const Flags& flags, const Bench& bench, const Report& report) {
  json all{{"block", bench.problem().block},
           {"device", flags.device},
           {"dtype", name(bench.problem().dtype)},
           {"threads", report.threads},
           {"batch", flags.shape.batch},
           {"seqlen", flags.shape.seqlen},
           {"repeat", flags.repeat},
           {"schedule", to_text(bench.schedule())}};
  json passes = json::object();
  for (const Times& times : report.times) {
    std::string key = times.pass == "forward+backward" ? "forward_backward" : times.pass;
    all[key + "_ms"] = rounded(times.median());
    json ms = json::array();
    for (const double each : times.ms) ms.push_back(rounded(each));
    passes[key] = {{"median_ms", rounded(times.median())},
                   {"lower_quartile_ms", rounded(times.quantile(0.25))},
                   {"upper_quartile_ms", rounded(times.quantile(0.75))},
                   {"least_ms", rounded(times.quantile(0))},
                   {"most_ms", rounded(times.quantile(1))},
                   {"all_ms", std::move(ms)},
                   {"flops", times.flops},
                   {"gflop_s", rounded(times.gflop_s())}};
  }
  all["passes"] = std::move(passes);
  if (report.memory) {
    const Memory& m = *report.memory;
    all["memory"] = {{"inputs_bytes", m.inputs},
                     {"outputs_bytes", m.outputs},
                     {"gradients_bytes", m.gradients},
                     {"forward_temporaries_bytes", m.forward},
                     {"backward_temporaries_bytes", m.backward},
                     {"saved_bytes", m.saved},
                     {"temporaries_bytes", m.temporaries()},
                     {"interface_bytes", m.interface()}};
  }
  if (report.limits)
    all["limits"] = {{"bandwidth_gb_s", rounded(report.limits->bandwidth_gb_s)},
                     {"arithmetic_gflop_s", rounded(report.limits->arithmetic_gflop_s)},
                     {"blas_gflop_s", rounded(report.limits->blas_gflop_s)}};
  else
    all["limits"] = {{"copy_gb_s", rounded(report.copy_gb_s)}};
  all["kernels"] = {{"compiled", report.compiled}, {"from_cache", report.from_cache}};
  return all;
}

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void print_text(const Flags& flags, const Bench& bench, const Report& report) {
  std::ostream& out = std::cout;
  out << bench.problem().block << ' ' << name(bench.problem().dtype) << ", batch "
      << flags.shape.batch << ", seqlen " << flags.shape.seqlen << ", " << report.threads
      << (report.threads == 1 ? " thread" : " threads") << ", median of " << flags.repeat << '\n'
      << std::fixed << std::setprecision(3);
  for (const Times& times : report.times) {
    out << "  " << std::left << std::setw(18) << times.pass << std::right << std::setw(11)
        << times.median() << " ms   (" << times.quantile(0) << " to " << times.quantile(1)
        << ", quartiles " << times.quantile(0.25) << " and " << times.quantile(0.75) << "), "
        << std::setprecision(1) << times.gflop_s() << " GFLOP/s\n"
        << std::setprecision(3);
  }
  out << std::setprecision(1);
  if (report.memory) {
    const Memory& m = *report.memory;
    out << "memory of forward+backward: temporaries " << mib(m.temporaries()) << " MiB (forward "
        << mib(m.forward) << ", backward " << mib(m.backward) << ", saved between them "
        << mib(m.saved) << ")\n  inputs, outputs and gradients " << mib(m.interface()) << " MiB ("
        << mib(m.inputs) << ", " << mib(m.outputs) << ", " << mib(m.gradients) << ")\n";
  }
  if (report.limits) {
    out << "limits of this machine: memory " << report.limits->bandwidth_gb_s
        << " GB/s, arithmetic " << report.limits->arithmetic_gflop_s << " GFLOP/s";
    if (report.limits->blas_gflop_s > 0)
      out << ", BLAS " << report.limits->blas_gflop_s << " GFLOP/s";
  } else {
    out << "limits of this device: a copy reads and writes " << report.copy_gb_s << " GB/s";
  }
  out << "\nkernels: " << report.compiled << " compiled, " << report.from_cache
      << " from the cache\n";
}

int run_bench(const Flags& flags, const std::vector<CliBlock>& blocks) {
  if (flags.device != "host" && !is_cuda_device(flags.device))
    throw UsageError("--device", flags.device, "host, cuda:N");
  KRAIT_REQUIRE(flags.repeat >= 1 && flags.repeat <= 100000, "--repeat is ", flags.repeat,
                "; allowed: 1 to 100000");
  KRAIT_REQUIRE(flags.threads >= 0 && flags.threads <= 1024, "--threads is ", flags.threads,
                "; allowed: 0 (all) to 1024");
  passes_of(flags.passes);
  Bench bench(flags, blocks);
  const Report report = bench.run();
  if (flags.json) {
    std::cout << to_json(flags, bench, report).dump() << '\n';
  } else {
    print_text(flags, bench, report);
  }
  return kOk;
}

}  // namespace

void add_bench(CLI::App& program, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const bench = program.add_subcommand(
      "bench",
      "Time a block, beside the limits of this machine (ssd and mamba3_scan by name do "
      "the work of tests/reference/torch_baseline.py)");
  add_shape_flags(*bench, flags->shape);
  bench->add_option("--device", flags->device, "host, cuda:N (timed by its events)")
      ->capture_default_str();
  bench->add_option("--threads", flags->threads, "0: all that the process may use")
      ->capture_default_str();
  bench->add_option("--schedule", flags->schedule, "\"chunk=64 backward.chunk=32\"");
  bench
      ->add_option("--passes", flags->passes,
                   "forward, backward (with its forward), step; commas between")
      ->capture_default_str();
  bench->add_option("--repeat", flags->repeat, "Times that are taken of each pass")
      ->capture_default_str();
  bench->add_flag("--json", flags->json, "One JSON line");
  bench->callback([flags, &command] {
    command.run = [flags, &command] { return run_bench(*flags, command.blocks); };
  });
}

}  // namespace krait
