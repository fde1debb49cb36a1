// Tensors in the caller's memory: parts of larger tensors, and rows that lie far apart.
#include <sys/mman.h>

#include "tests/runtime/layer_testing.h"

namespace krait::testing {
namespace {

SsdSpec spec_of() {
  SsdSpec spec{.nheads = 2, .headdim = 8, .d_state = 16, .ngroups = 1};
  spec.initial_state = true;
  return spec;
}

LayerOptions options_of() {
  LayerOptions options = layer_options(DType::f32, "chunk=8");
  options.step = false;
  return options;
}

/// The layer over views that `place` gives for every tensor with a time axis, outputs and gradients
/// too, against the same over dense tensors. To the bit, or within `bound` where a library's
/// products are cut by the strides.
template <typename Place>
void check_placed(const Layer& layer, std::int64_t b, std::int64_t t, double bound,
                  const Place& place) {
  const auto same = [&](const TensorRef& got, const Tensor64& expected) {
    if (bound == 0) return to_float64(got).data == expected.data;
    return tensor_error(to_float64(got), expected) <= bound;
  };
  const Graph& graph = layer.graph();
  std::mt19937 random(3);
  const Tensors64 inputs = rounded(block_inputs(graph, {{"b", b}, {"t", t}}, random));
  const Tensors64 cotangents = random_cotangents(graph, evaluate(graph, inputs));
  const LayerRun dense = run_layer(layer, inputs, cotangents);

  const Tensors given = tensors_for(graph, inputs);
  TensorMap in = refs(given), out, cots, gradients;
  for (auto& [name, ref] : in) {
    if (!contains(graph.input_of(*graph.find_input(name)).order, "t")) continue;
    const TensorRef placed = place("in." + name, ref.shape);
    copy(ref, placed);
    ref = placed;
    if (is_float(ref.dtype)) gradients[name] = place("grad." + name, ref.shape);
  }
  Tensors cot_tensors;
  for (const auto& [name, tensor] : cotangents) {
    cot_tensors[name] = from_float64(tensor, DType::f32);
    cots[name] = cot_tensors.at(name).ref();
    if (name != "y") continue;
    cots[name] = place("cot." + name, tensor.shape);
    copy(cot_tensors.at(name).ref(), cots[name]);
    out[name] = place("out." + name, tensor.shape);
  }
  const Layer::Forward forward = layer.forward(in, out);
  const Tensors rest = layer.backward(forward.tape, cots, gradients);
  CHECK(same(out.at("y"), dense.outputs.at("y")));
  for (const auto& [name, tensor] : forward.outputs)
    CHECK(same(tensor.ref(), dense.outputs.at(name)));
  REQUIRE(!gradients.empty());
  for (const auto& [name, expected] : dense.gradients) {
    INFO("gradient " << name);
    CHECK(same(gradients.count(name) ? gradients.at(name) : rest.at(name).ref(), expected));
  }
}

TEST_CASE("parts of one large tensor are read and written where they are") {
  const Layer layer(block_function(spec_of()), options_of());
  // All in one row of 200 for each position, as a projection leaves them.
  const std::int64_t b = 2, t = 19, row = 400;
  std::vector<float> memory(static_cast<std::size_t>(b * t * row), 77);
  std::int64_t column = 3, used = 0;
  check_placed(layer, b, t, 0, [&](const std::string&, const Shape& shape) {
    std::int64_t width = 1;
    Shape strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 2;) strides[d] = width, width *= shape[d];
    strides[0] = t * row, strides[1] = row;
    const TensorRef ref(memory.data() + column, shape, strides);
    column += width + 1;
    used += width;
    REQUIRE(column <= row);
    return ref;
  });
  std::int64_t untouched = 0;
  for (float x : memory) untouched += x == 77;
  CHECK(untouched == b * t * (row - used));
}

TEST_CASE("positions before rows: the time axis outermost in memory") {
  const Layer layer(block_function(spec_of()), options_of());
  std::map<std::string, std::vector<float>> memory;
  check_placed(layer, 3, 13, 0, [&](const std::string& name, const Shape& shape) {
    std::int64_t width = 1;
    Shape strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 2;) strides[d] = width, width *= shape[d];
    strides[0] = width, strides[1] = 3 * width;
    memory[name].resize(static_cast<std::size_t>(3 * 13 * width));
    return TensorRef(memory[name].data(), shape, strides);
  });
}

/// Address space without memory behind it until it is touched.
class Reserve {
 public:
  explicit Reserve(std::size_t bytes) : bytes_(bytes) {
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = at == MAP_FAILED ? nullptr : static_cast<float*>(at);
  }
  ~Reserve() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;
  float* data() const { return data_; }

 private:
  std::size_t bytes_;
  float* data_;
};

TEST_CASE("offsets beyond 32 bits: rows, and positions, more than 2^31 elements apart") {
  const Layer layer(block_function(spec_of()), options_of());
  const Mamba2Spec projected{.d_model = 16, .d_state = 8, .expand = 2, .headdim = 8};
  constexpr std::int64_t far = (std::int64_t{1} << 31) + 64;
  constexpr std::int64_t b = 2, t = 11;
  // Room for the largest of both: position 10 at 10 * far, row 1 at far.
  const Reserve reserve((t + 1) * static_cast<std::size_t>(far) * sizeof(float));
  REQUIRE(reserve.data() != nullptr);
  const Layer products(block_function(projected), options_of());
  for (const auto& [each, rows] :
       {std::pair{&layer, true}, {&layer, false}, {&products, true}, {&products, false}}) {
    INFO((each == &layer ? "scan" : "projections") << ", " << (rows ? "rows" : "positions"));
    std::int64_t place = 0;  // within the first 2^31 elements; tensors do not meet
    check_placed(*each, b, t, each == &layer ? 0 : 2e-6,
                 [&, rows = rows](const std::string&, const Shape& shape) {
                   std::int64_t width = 1;
                   Shape strides(shape.size(), 1);
                   for (std::size_t d = shape.size(); d-- > 2;)
                     strides[d] = width, width *= shape[d];
                   strides[0] = rows ? far : width;
                   strides[1] = rows ? width : far;
                   const TensorRef ref(reserve.data() + place, shape, strides);
                   place += width * (rows ? t : b) + 16;
                   return ref;
                 });
  }
}

}  // namespace
}  // namespace krait::testing
