// Memory of an emulated GPU: copies and sums between tensors with any strides.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "runtime/krait.h"

namespace krait {
namespace {

/// The transposed of a dense (rows, columns) tensor in the same memory.
TensorRef transposed(const TensorRef& dense) {
  return {dense.data, dense.dtype, {dense.shape[1], dense.shape[0]}, {1, dense.shape[1]}};
}

TEST_CASE("tensors on a GPU are copied and added up whatever their strides") {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  const std::shared_ptr<Device> gpu = make_device("cuda:0");
  CHECK(gpu->name() == "cuda:0");
  constexpr std::int64_t rows = 7, columns = 45;
  Tensor host(DType::f32, {rows, columns});
  for (std::int64_t i = 0; i < host.count(); ++i) host.data_as<float>()[i] = static_cast<float>(i);
  const Tensor x = to_device(host.ref(), *gpu);
  const Tensor turned(DType::f32, {columns, rows}, *gpu);
  gpu->copy(transposed(x.ref()), turned.ref());
  gpu->add(transposed(x.ref()), turned.ref());
  const Tensor got = to_host(turned.ref(), *gpu), view = to_host(transposed(x.ref()), *gpu);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      REQUIRE(got.data_as<float>()[c * rows + r] == 2 * host.data_as<float>()[r * columns + c]);
      REQUIRE(view.data_as<float>()[c * rows + r] == host.data_as<float>()[r * columns + c]);
    }
  const Tensor zeros(DType::f32, {5}, *gpu);
  CHECK(to_host(zeros.ref(), *gpu).data_as<float>()[4] == 0);
  CHECK_THROWS_AS(gpu->add(x.ref(), zeros.ref()), UsageError);
  CHECK_THROWS_AS(Tensor(DType::f32, {std::int64_t{1} << 45}, *gpu), EnvironmentError);
}

}  // namespace
}  // namespace krait
