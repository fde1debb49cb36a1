// The stand-in for cuBLASLt against double loops.

#if __has_include(<cublasLt.h>)

#include "tests/emulator/cublaslt.h"

#include <atomic>
#include <thread>

namespace emulator_test::cublaslt {
namespace {

void check(cublasLtHandle_t handle, const Product& p) {
  INFO(p.m << " x " << p.n << " x " << p.k << ", types " << p.inputs << " " << p.outputs
           << ", transposed " << p.transpose_a << p.transpose_b << ", by rows " << p.rows_a
           << p.rows_b << p.rows_c << p.rows_d << ", padding " << p.padding << ", batch " << p.batch
           << ", epilogue " << p.epilogue);
  Call call(p);
  REQUIRE(call.run(handle) == kSuccess);
  CHECK(call.wrong() == 0);
}

CUstream new_stream() {
  CUstream stream = nullptr;
  REQUIRE(emulator_test::call<decltype(&cuStreamCreate)>("cuStreamCreate")(
              &stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  return stream;
}

}  // namespace

TEST_CASE("cublasLt: odd sizes in every combination of types", "[cublaslt]") {
  Device device;
  const Handle handle;
  for (const auto& [m, n, k] : std::vector<std::array<int, 3>>{
           {1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {64, 1, 40}, {1, 50, 3}, {300, 20, 257}}) {
    Product p;
    p.m = m, p.n = n, p.k = k;
    for (const auto& [inputs, outputs] :
         std::vector<std::pair<cudaDataType, cudaDataType>>{{CUDA_R_32F, CUDA_R_32F},
                                                            {CUDA_R_16F, CUDA_R_16F},
                                                            {CUDA_R_16F, CUDA_R_32F},
                                                            {CUDA_R_16BF, CUDA_R_16BF},
                                                            {CUDA_R_16BF, CUDA_R_32F}}) {
      p.inputs = inputs, p.outputs = outputs;
      check(handle, p);
    }
    p.inputs = p.outputs = CUDA_R_64F;
    p.compute = CUBLAS_COMPUTE_64F;
    check(handle, p);
    p.inputs = p.outputs = CUDA_R_32F;
    p.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    check(handle, p);
  }
}

TEST_CASE("cublasLt: transposes, orders, leading dimensions and batches", "[cublaslt]") {
  Device device;
  const Handle handle;
  for (int bits = 0; bits < 64; ++bits) {
    Product p;
    p.m = 6, p.n = 11, p.k = 5;
    p.inputs = bits % 3 == 0 ? CUDA_R_16BF : CUDA_R_32F;
    p.transpose_a = bits & 1, p.transpose_b = bits & 2;
    p.rows_a = bits & 4, p.rows_b = bits & 8, p.rows_c = bits & 16, p.rows_d = bits & 32;
    p.padding = bits % 4;
    p.alpha = -1.5, p.beta = bits % 5 ? 0.5 : 0;
    check(handle, p);
    p.batch = 3;
    p.broadcast_a = bits % 5 == 1, p.broadcast_b = bits % 7 == 1, p.broadcast_c = bits % 3 == 1;
    check(handle, p);
  }
}

TEST_CASE("cublasLt: epilogues", "[cublaslt]") {
  Device device;
  const Handle handle;
  for (const cublasLtEpilogue_t epilogue :
       {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS,
        CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS})
    for (const cudaDataType outputs : {CUDA_R_32F, CUDA_R_16BF, CUDA_R_16F}) {
      Product p;
      p.m = 13, p.n = 9, p.k = 21;
      p.inputs = p.outputs = outputs;
      p.alpha = 0.25, p.beta = 1;
      p.epilogue = epilogue;
      check(handle, p);
      p.batch = 2;
      p.rows_d = true;
      p.bias_stride = 16;
      check(handle, p);
    }
}

TEST_CASE("cublasLt: scalars on the device, a workspace, C in place", "[cublaslt]") {
  Device device;
  const Handle handle;
  for (int bits = 0; bits < 8; ++bits) {
    Product p;
    p.device_scalars = bits & 1, p.workspace = bits & 2, p.in_place = bits & 4;
    p.m = 20, p.n = 30, p.padding = bits;
    p.alpha = 2, p.beta = -1;
    check(handle, p);
    p.inputs = p.outputs = CUDA_R_64F;
    p.compute = CUBLAS_COMPUTE_64F;
    check(handle, p);
  }
}

TEST_CASE("cublasLt: C is not looked at where beta is zero", "[cublaslt]") {
  Device device;
  const Handle handle;
  Call call{Product{}};
  const std::vector<float> nan(15, NAN);
  call.c.buffer.write(nan.data(), 60);
  CHECK(call.run(handle) == kSuccess);
  CHECK(call.wrong() == 0);
  const auto multiply = BLAS(cublasLtMatmul);
  const auto with_c = [&](const void* c, float beta) {
    const float alpha = 1;
    return multiply(handle, call.operation, &alpha, call.a.address(), call.a.layout,
                    call.b.address(), call.b.layout, &beta, c, call.c.layout, call.d.address(),
                    call.d.layout, nullptr, nullptr, 0, nullptr);
  };
  CHECK(with_c(nullptr, 0) == kSuccess);
  CHECK(with_c(nullptr, 1) == kInvalid);
}

TEST_CASE("cublasLt: a product is work of its stream", "[cublaslt]") {
  Device device;
  const Handle handle;
  const CUstream stream = new_stream();
  {
    // Ones come into A and B before it, D is copied after it, all without waiting.
    Product p;
    p.m = p.n = 40, p.k = 100;
    Call call(p);
    const auto fill = emulator_test::call<CUresult (*)(CUdeviceptr, unsigned, size_t, CUstream)>(
        "cuMemsetD32Async");
    const Buffer copy(call.d.buffer.bytes());
    for (int round = 0; round < 20; ++round) {
      const float value = float(round);
      unsigned bits;
      std::memcpy(&bits, &value, 4);
      fill(call.a.buffer.address(), bits, 4000, stream);
      fill(call.b.buffer.address(), 0x3f800000, 4000, stream);
      REQUIRE(call.run(handle, stream) == kSuccess);
      emulator_test::call<CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUstream)>(
          "cuMemcpyDtoDAsync_v2")(copy.address(), call.d.buffer.address(), copy.bytes(), stream);
      fill(call.d.buffer.address(), 0, 1600, stream);
      REQUIRE(emulator_test::call<decltype(&cuStreamSynchronize)>("cuStreamSynchronize")(stream) ==
              CUDA_SUCCESS);
      CHECK(copy.read<float>() == std::vector<float>(1600, 100 * value));
    }
  }
  emulator_test::call<CUresult (*)(CUstream)>("cuStreamDestroy_v2")(stream);
}

TEST_CASE("cublasLt: products that wait in a stream keep what they were called with",
          "[cublaslt]") {
  Device device;
  const Handle handle;
  const CUstream stream = new_stream();
  {
    Product p;
    Call first(p);
    p.alpha = 2;
    p.transpose_a = true;
    Call second(p);
    std::atomic<bool> open{false};
    const auto wait = [](void* gate) {
      while (!*static_cast<std::atomic<bool>*>(gate)) std::this_thread::yield();
    };
    REQUIRE(emulator_test::call<decltype(&cuLaunchHostFunc)>("cuLaunchHostFunc")(
                stream, wait, &open) == CUDA_SUCCESS);
    CHECK(first.run(handle, stream) == kSuccess);
    encode(CUDA_R_32F, 9, first.scalars.data());
    CHECK(second.run(handle, stream) == kSuccess);
    open = true;
    REQUIRE(emulator_test::call<decltype(&cuStreamSynchronize)>("cuStreamSynchronize")(stream) ==
            CUDA_SUCCESS);
    CHECK(first.wrong() == 0);
    CHECK(second.wrong() == 0);
  }
  emulator_test::call<CUresult (*)(CUstream)>("cuStreamDestroy_v2")(stream);
}

TEST_CASE("cublasLt: a captured product runs with every launch of its graph", "[cublaslt]") {
  Device device;
  const Handle handle;
  const CUstream stream = new_stream();
  {
    Product p;
    p.workspace = true;
    p.beta = 1;
    p.padding = 2;
    Call call(p);
    const auto begin =
        emulator_test::call<CUresult (*)(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2");
    // The workspace is there before: allocating while capturing is not allowed.
    int count = 0;
    REQUIRE(call.heuristic(handle, &count) == kSuccess);
    call.workspace = Buffer(call.found.workspaceSize);
    REQUIRE(begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    CHECK(call.multiply(handle, stream, &call.found.algo, call.found.workspaceSize) == kSuccess);
    CUgraph graph = nullptr;
    REQUIRE(emulator_test::call<decltype(&cuStreamEndCapture)>("cuStreamEndCapture")(
                stream, &graph) == CUDA_SUCCESS);
    CUgraphExec executable = nullptr;
    REQUIRE(emulator_test::call<CUresult (*)(CUgraphExec*, CUgraph, unsigned long long)>(
                "cuGraphInstantiateWithFlags")(&executable, graph, 0) == CUDA_SUCCESS);
    CHECK(call.d.buffer.read<std::byte>() == call.d.bytes);  // nothing ran yet
    for (int round = 0; round < 3; ++round) {
      encode(CUDA_R_32F, round, &call.a.bytes[0]);
      call.a.buffer.write(call.a.bytes.data(), call.a.bytes.size());
      REQUIRE(emulator_test::call<decltype(&cuGraphLaunch)>("cuGraphLaunch")(executable, stream) ==
              CUDA_SUCCESS);
      REQUIRE(emulator_test::call<decltype(&cuStreamSynchronize)>("cuStreamSynchronize")(stream) ==
              CUDA_SUCCESS);
      CHECK(call.wrong() == 0);
    }
    emulator_test::call<CUresult (*)(CUgraphExec)>("cuGraphExecDestroy")(executable);
    emulator_test::call<CUresult (*)(CUgraph)>("cuGraphDestroy")(graph);
  }
  emulator_test::call<CUresult (*)(CUstream)>("cuStreamDestroy_v2")(stream);
}

}  // namespace emulator_test::cublaslt

#endif
