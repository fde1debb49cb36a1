// Trains a language model of Mamba-2 layers on the bytes of a text, then lets it write.
//
//   embedding (plain C++) -> backbone block -> head with softmax cross entropy, a block written
//   here
//
// Both blocks are compiled while the program runs. Gradients are clipped, AdamW does the steps.
#include <krait/krait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace krait;

constexpr std::int64_t kBytes = 256;

struct Options {
  std::string file, kernels;
  std::int64_t steps = 400, batch = 8, seqlen = 256, d_model = 128, layers = 2;
  double lr = 2e-3, temperature = 0.7, seconds = 150;
  int threads = 0;
  std::uint64_t seed = 1;
};

// -------------------------------------------------------------------------------------- the text

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) throw EnvironmentError("cannot read " + path.string());
  return text;
}

/// The file, or every licence that Debian ships, in the order of their names.
std::string read_text(const std::string& file) {
  if (!file.empty()) return read_file(file);
  const std::filesystem::path folder = "/usr/share/common-licenses";
  std::vector<std::filesystem::path> paths;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing))
    if (!entry.is_symlink() && entry.is_regular_file()) paths.push_back(entry.path());
  if (paths.empty()) throw EnvironmentError("no text in " + folder.string() + "; name a file");
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (const auto& path : paths) text += read_file(path);
  return text;
}

/// Rows of bytes (b t) and, for each byte, the one that follows.
struct Windows {
  Windows(std::int64_t rows, std::int64_t bytes)
      : b(rows), t(bytes), input(rows * bytes), target(rows * bytes) {}
  void set_row(std::int64_t row, std::string_view text) {  // t + 1 bytes
    for (std::int64_t i = 0; i < t; ++i) {
      input[row * t + i] = static_cast<unsigned char>(text[i]);
      target[row * t + i] = static_cast<unsigned char>(text[i + 1]);
    }
  }
  std::int64_t b, t;
  std::vector<std::int32_t> input, target;
};

// ------------------------------------------------------------------------------------- the model

BackboneSpec backbone_spec(const Options& options) {
  BackboneSpec spec{.d_model = options.d_model, .n_layer = options.layers};
  spec.ssm_cfg = Mamba2Spec{.d_state = 64, .headdim = 64};
  spec.initial_state = true;  // so that `step` can carry the states on
  return spec;
}

/// logits = y W^T, loss = log sum exp logits - logits[target].
BlockFunction head_block(std::int64_t d_model) {
  return [d_model](Scope& s) {
    const Axis b("b"), t("t"), d("d", d_model), v("v", kBytes);
    const Expr y = s.input("y", {b, t, d});
    const Expr target = s.input("target", {b, t}, DType::i32);
    const double inputs = static_cast<double>(d_model);
    const Expr logits = sum(y * s.param("weight", {v, d}, {Init::Kind::fan_in, inputs}), d);
    const Expr top = maximum(logits, {v});
    const Expr own = sum(select(s.index(v) == target, logits, s.constant(0)), v);
    s.output("logits", logits, {b, t, v});
    s.output("loss", log(sum(exp(logits - top), v)) + top - own, {b, t});
  };
}

class LanguageModel {
 public:
  LanguageModel(const Options& options, const std::shared_ptr<HostDevice>& host)
      : d_(options.d_model),
        backbone_(block_function(backbone_spec(options)), layer_options(options, host)),
        head_(head_block(d_), head_options(options, host)),
        embedding_(DType::f32, {kBytes, d_}),
        d_embedding_(DType::f32, {kBytes, d_}) {
    std::mt19937_64 random(options.seed);
    std::normal_distribution<float> draw(0, 1);
    std::generate_n(embedding_.data_as<float>(), embedding_.count(), [&] { return draw(random); });
    make_gradients(backbone_, d_backbone_);
    make_gradients(head_, d_head_);
  }

  const Graph& backbone() const { return backbone_.graph(); }
  const Graph& head() const { return head_.graph(); }

  /// A parameter and its gradient.
  struct Slot {
    TensorRef value, gradient;
  };
  std::vector<Slot> slots() const {
    std::vector<Slot> slots{{embedding_.ref(), d_embedding_.ref()}};
    for (const auto& name : backbone_.parameters())
      slots.push_back({backbone_.parameter(name), d_backbone_.at(name).ref()});
    slots.push_back({head_.parameter("weight"), d_head_.at("weight").ref()});
    return slots;
  }

  /// Nats per byte over the windows; leaves the gradients where they are wanted.
  double loss(const Windows& windows, bool gradients) {
    const Shape shape{windows.b, windows.t, d_}, places{windows.b, windows.t};
    const Tensor x = embed(windows.input, shape);
    const auto forward = backbone_.forward({{"x", x.ref()}});
    const TensorRef y = forward.outputs.at("y").ref();
    const auto head = head_.forward({{"y", y}, {"target", {windows.target.data(), places}}});
    const Tensor& losses = head.outputs.at("loss");
    const std::span<const float> each(losses.data_as<float>(), losses.count());
    double sum = 0;
    for (float loss : each) sum += loss;
    if (gradients) {
      const std::vector<float> share(each.size(), 1.0f / static_cast<float>(each.size()));
      TensorMap into = refs(d_head_);
      const Tensor d_y(DType::f32, shape), d_x(DType::f32, shape);
      into["y"] = d_y.ref();
      head_.backward(head.tape, {{"loss", {share.data(), places}}}, into);
      into = refs(d_backbone_);
      into["x"] = d_x.ref();
      backbone_.backward(forward.tape, {{"y", d_y.ref()}}, into);
      scatter(windows.input, d_x);
    }
    return sum / static_cast<double>(each.size());
  }

  /// `count` bytes that follow the prompt: that one in a single window, each new byte by a step.
  std::string write(std::string_view prompt, std::int64_t count, double temperature,
                    std::uint64_t seed) const {
    const std::vector<std::int32_t> bytes = [&] {
      std::vector<std::int32_t> values;
      for (char c : prompt) values.push_back(static_cast<unsigned char>(c));
      return values;
    }();
    const auto length = static_cast<std::int64_t>(bytes.size());
    const Tensor x = embed(bytes, {1, length, d_});
    auto window = backbone_.forward({{"x", x.ref()}});
    const Tensors states = backbone_.take_states(window.outputs);
    Tensor y(DType::f32, {1, 1, d_});
    std::copy_n(window.outputs.at("y").data_as<float>() + (length - 1) * d_, d_,
                y.data_as<float>());
    std::mt19937_64 random(seed);
    std::string text;
    while (static_cast<std::int64_t>(text.size()) < count) {
      const std::int32_t next = draw(logits(y), temperature, random);
      text += static_cast<char>(next);
      const Tensor u = embed({next}, {1, 1, d_});
      backbone_.step({{"x", u.ref()}}, refs(states), {{"y", y.ref()}});
    }
    return text;
  }

 private:
  static LayerOptions layer_options(const Options& options, std::shared_ptr<HostDevice> host) {
    return {.name = "backbone", .on = std::move(host), .cotangents = {{"y"}}, .seed = options.seed};
  }
  static LayerOptions head_options(const Options& options, std::shared_ptr<HostDevice> host) {
    return {.name = "head", .on = std::move(host), .cotangents = {{"loss"}}, .seed = options.seed};
  }

  static void make_gradients(const Layer& layer, Tensors& gradients) {
    for (const auto& name : layer.parameters())
      gradients[name] = Tensor(DType::f32, layer.parameter(name).shape);
  }

  Tensor embed(const std::vector<std::int32_t>& bytes, const Shape& shape) const {
    Tensor x(DType::f32, shape);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      std::copy_n(embedding_.data_as<float>() + bytes[i] * d_, d_,
                  x.data_as<float>() + static_cast<std::int64_t>(i) * d_);
    return x;
  }
  void scatter(const std::vector<std::int32_t>& bytes, const Tensor& d_x) {
    std::fill_n(d_embedding_.data_as<float>(), d_embedding_.count(), 0.0f);
    const float* from = d_x.data_as<float>();
    for (const std::int32_t byte : bytes) {
      float* row = d_embedding_.data_as<float>() + byte * d_;
      for (std::int64_t i = 0; i < d_; ++i) row[i] += *from++;
    }
  }

  Tensor logits(const Tensor& y) const {
    const std::int32_t unused = 0;
    auto head = head_.forward({{"y", y.ref()}, {"target", {&unused, {1, 1}}}});
    return std::move(head.outputs.at("logits"));
  }
  static std::int32_t draw(const Tensor& logits, double temperature, std::mt19937_64& random) {
    const std::span<const float> each(logits.data_as<float>(), kBytes);
    const double top = *std::max_element(each.begin(), each.end());
    std::vector<double> weights;
    for (float logit : each) weights.push_back(std::exp((logit - top) / temperature));
    return std::discrete_distribution<std::int32_t>(weights.begin(), weights.end())(random);
  }

  std::int64_t d_;
  Layer backbone_, head_;
  Tensor embedding_, d_embedding_;
  Tensors d_backbone_, d_head_;
};

// ---------------------------------------------------------------------------------- the optimiser

/// AdamW, arXiv 1711.05101, after the gradients are scaled to a norm of at most 1. Only matrices
/// decay.
class AdamW {
 public:
  explicit AdamW(std::vector<LanguageModel::Slot> slots) : slots_(std::move(slots)) {
    for (const auto& slot : slots_) {
      first_.emplace_back(slot.value.count());
      second_.emplace_back(slot.value.count());
    }
  }

  void step(double rate) {
    constexpr double kFirst = 0.9, kSecond = 0.99, kEpsilon = 1e-8, kDecay = 0.05;
    double squares = 0;
    for (const auto& slot : slots_)
      for (float g : values(slot.gradient)) squares += static_cast<double>(g) * g;
    const double scale = 1 / std::max(1.0, std::sqrt(squares));
    ++steps_;
    const double first_size = 1 - std::pow(kFirst, steps_);
    const double second_size = 1 - std::pow(kSecond, steps_);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const std::span<float> value = values(slots_[i].value), gradient = values(slots_[i].gradient);
      const double decay = slots_[i].value.shape.size() > 1 ? kDecay : 0;
      for (std::size_t j = 0; j < value.size(); ++j) {
        const double g = gradient[j] * scale;
        float &m = first_[i][j], &v = second_[i][j];
        m = static_cast<float>(m + (1 - kFirst) * (g - m));
        v = static_cast<float>(v + (1 - kSecond) * (g * g - v));
        const double direction = m / first_size / (std::sqrt(v / second_size) + kEpsilon);
        value[j] -= static_cast<float>(rate * (direction + decay * value[j]));
      }
    }
  }

 private:
  static std::span<float> values(const TensorRef& tensor) {
    return {static_cast<float*>(tensor.data), static_cast<std::size_t>(tensor.count())};
  }

  std::vector<LanguageModel::Slot> slots_;
  std::vector<std::vector<float>> first_, second_;
  int steps_ = 0;
};

// ------------------------------------------------------------------------------------- the program

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double held_out_loss(LanguageModel& model, std::string_view text, const Options& options) {
  const std::int64_t length = options.seqlen;
  const auto rows = static_cast<std::int64_t>(text.size() - 1) / length;
  double sum = 0;
  for (std::int64_t row = 0; row < rows; row += options.batch) {
    Windows windows(std::min(options.batch, rows - row), length);
    for (std::int64_t i = 0; i < windows.b; ++i)
      windows.set_row(i, text.substr((row + i) * length, length + 1));
    sum += model.loss(windows, false) * static_cast<double>(windows.b);
  }
  return sum / static_cast<double>(rows);
}

/// Gives the loss, smoothed over some twenty steps.
double train(LanguageModel& model, std::string_view text, const Options& options) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  AdamW optimiser(model.slots());
  std::mt19937_64 random(options.seed);
  std::uniform_int_distribution<std::size_t> place(0, text.size() - options.seqlen - 1);
  Windows windows(options.batch, options.seqlen);
  const Clock clock;
  double smooth = 0, weight = 0;
  for (std::int64_t step = 1; step <= options.steps && clock.seconds() < options.seconds; ++step) {
    for (std::int64_t row = 0; row < options.batch; ++row)
      windows.set_row(row, text.substr(place(random), options.seqlen + 1));
    smooth = 0.95 * smooth + 0.05 * model.loss(windows, true);
    weight = 0.95 * weight + 0.05;
    // Warm-up, then half a cosine down to a twentieth, over the steps or the seconds.
    const auto at = static_cast<double>(step);
    const double done =
        std::max(at / static_cast<double>(options.steps), clock.seconds() / options.seconds);
    const double cosine = 0.525 + 0.475 * std::cos(std::numbers::pi * std::min(1.0, done));
    optimiser.step(options.lr * std::min(at / 20, 1.0) * cosine);
    const bool report = step % std::max<std::int64_t>(1, options.steps / 10) == 0;
    if (!terminal && !report) continue;
    const double bytes = at * static_cast<double>(options.batch * options.seqlen);
    std::printf("%sstep %lld of %lld   loss %.3f nats/byte   %.0f bytes/s%s", terminal ? "\r" : "",
                static_cast<long long>(step), static_cast<long long>(options.steps),
                smooth / weight, bytes / clock.seconds(), terminal ? "   " : "\n");
    std::fflush(stdout);
  }
  if (terminal) std::printf("\n");
  return smooth / weight;
}

std::string printable(std::string text) {
  for (char& c : text)
    if (c != '\n' && (c < ' ' || c > '~')) c = '?';
  return text;
}

/// Writes the CUDA C++ that the layers would have on a GPU into a folder, with what NVRTC and ptxas
/// say about each kernel. No GPU is needed.
void write_kernels(const LanguageModel& model, const Options& options) {
  try {
    std::printf("\nNVRTC %s compiles the same layers for a GPU of compute capability 8.0:\n",
                nvrtc_facts().version.c_str());
  } catch (const EnvironmentError& error) {
    std::printf("no CUDA source is written: %s\n", error.what());
    return;
  }
  LayerOptions layer;
  layer.sizes = {{"b", options.batch}, {"t", options.seqlen}};
  const CudaTarget target = cuda_target(80);
  layer.name = "backbone";
  layer.cotangents = {"y"};
  std::vector<KernelSource> sources = gpu_sources(model.backbone(), layer, target);
  layer.name = "head";
  layer.cotangents = {"loss"};
  for (KernelSource& source : gpu_sources(model.head(), layer, target))
    sources.push_back(std::move(source));
  const std::filesystem::path folder = options.kernels;
  std::filesystem::create_directories(folder);
  std::vector<CodeReport> reports(sources.size());
  Pool(options.threads)
      .parallel_for(static_cast<std::int64_t>(sources.size()), 0,
                    [&](std::int64_t begin, std::int64_t end, void*) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        const CompiledCode code = nvrtc_code(sources[i]);
                        std::ofstream(folder / (sources[i].file + ".cu")) << sources[i].text;
                        std::ofstream(folder / (sources[i].file + ".log")) << code.log;
                        reports[i] = code_report(code);
                      }
                    });
  int most = 0, spilling = 0;
  for (const CodeReport& report : reports) {
    most = std::max(most, report.registers);
    spilling += report.spills() ? 1 : 0;
  }
  std::printf(
      "%zu kernels, at most %d registers, %d of them spill; sources and what the compilers "
      "said are in %s\n",
      sources.size(), most, spilling, folder.c_str());
}

int run(const Options& options) {
  const std::string all = read_text(options.file);
  const std::string_view text = all;
  const std::size_t held = text.size() / 10;
  const auto least = static_cast<std::size_t>(options.seqlen) + 1;
  KRAIT_REQUIRE(held >= least, "the text has ", text.size(), " bytes; allowed: at least ",
                10 * least, ", ten windows of seqlen and one byte");
  const std::string_view training = text.substr(0, text.size() - held);
  const std::string_view unseen = text.substr(text.size() - held);

  const Clock clock;
  HostDeviceOptions device = HostDeviceOptions::from();
  device.threads = options.threads;
  const auto host = std::make_shared<HostDevice>(std::move(device));
  LanguageModel model(options, host);
  std::int64_t parameters = 0;
  for (const auto& slot : model.slots()) parameters += slot.value.count();
  std::printf("%zu bytes to train on, %zu held out; %lld parameters; kernels ready after %.1f s\n",
              training.size(), unseen.size(), static_cast<long long>(parameters), clock.seconds());
  const double before = held_out_loss(model, unseen, options);
  const double trained = train(model, training, options);
  const double after = held_out_loss(model, unseen, options);
  std::printf("training loss %.3f; held-out loss %.3f before, %.3f after, in nats per byte\n",
              trained, before, after);

  const std::string_view prompt = unseen.substr(0, std::min<std::size_t>(64, least));
  const std::string written = model.write(prompt, 200, options.temperature, options.seed);
  std::printf("\n--- after \"%s\" it writes:\n%s\n---\n\n", printable(std::string(prompt)).c_str(),
              printable(written).c_str());
  const Compiler::Counters kernels = host->compiler().counters();
  std::printf("kernels: %lld compiled, %lld from the cache; %.1f s in all\n",
              static_cast<long long>(kernels.compiled), static_cast<long long>(kernels.from_cache),
              clock.seconds());
  if (!options.kernels.empty()) write_kernels(model, options);
  return after < before ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a byte-level language model of Mamba-2 layers on a text");
  app.option_defaults()->always_capture_default();
  app.add_option("file", options.file, "the text; without: the licences that Debian ships");
  const auto at_least_one = CLI::Range(std::int64_t{1}, std::int64_t{1} << 30);
  app.add_option("--steps", options.steps, "steps of the optimiser")->check(at_least_one);
  app.add_option("--seconds", options.seconds,
                 "ends the training, and its learning rate, earlier than the steps")
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "windows a step")->check(at_least_one);
  app.add_option("--seqlen", options.seqlen, "bytes a window")->check(at_least_one);
  app.add_option("--d-model", options.d_model, "width, a multiple of 32")->check(at_least_one);
  app.add_option("--layers", options.layers, "Mamba-2 layers")->check(at_least_one);
  app.add_option("--lr", options.lr, "learning rate at its highest")->check(CLI::PositiveNumber);
  app.add_option("--temperature", options.temperature, "of what is written")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "0: all")->check(CLI::NonNegativeNumber);
  app.add_option("--kernels", options.kernels,
                 "a folder for the CUDA source of the layers; none is written without");
  app.add_option("--seed", options.seed, "of parameters, windows and what is written");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return run(options);
  } catch (const UsageError& error) {
    std::cerr << "train_text: " << error.what() << '\n';
    return 2;
  } catch (const EnvironmentError& error) {
    std::cerr << "train_text: " << error.what() << '\n';
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "train_text: " << error.what() << '\n';
    return 1;
  }
}
