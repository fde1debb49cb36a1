// Wrong use of the stand-in for cuBLASLt, and its descriptors.

#if __has_include(<cublasLt.h>)

#include "tests/emulator/cublaslt.h"

namespace emulator_test::cublaslt {

TEST_CASE("cublasLt: wrong calls have the documentation's errors", "[cublaslt]") {
  Device device;
  const Handle handle;
  // What a change of descriptors makes of a product that is right, in both calls.
  const auto changed = [&](auto&& change) {
    Call call{Product{}};
    change(call);
    int count = 7;
    const cublasStatus_t status = call.heuristic(handle, &count);
    CHECK((status == kSuccess) == (count == 1));
    CHECK(call.multiply(handle, nullptr, nullptr, 0) == status);
    return status;
  };
  CHECK(changed([](Call&) {}) == kSuccess);
  const auto layout = [](Operand Call::*operand, cublasLtMatrixLayoutAttribute_t attribute,
                         auto value) {
    return [=](Call& call) { (call.*operand).set(attribute, value); };
  };
  using L = cublasLtMatrixLayoutAttribute_t;
  const L rows = CUBLASLT_MATRIX_LAYOUT_ROWS, columns = CUBLASLT_MATRIX_LAYOUT_COLS,
          leading = CUBLASLT_MATRIX_LAYOUT_LD, type = CUBLASLT_MATRIX_LAYOUT_TYPE,
          batch = CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, order = CUBLASLT_MATRIX_LAYOUT_ORDER;
  CHECK(changed(layout(&Call::a, columns, uint64_t{6})) == kInvalid);
  CHECK(changed(layout(&Call::b, columns, uint64_t{4})) == kInvalid);
  CHECK(changed(layout(&Call::c, rows, uint64_t{2})) == kInvalid);
  CHECK(changed(layout(&Call::d, rows, uint64_t{2})) == kInvalid);
  CHECK(changed(layout(&Call::a, rows, uint64_t{0})) == kInvalid);
  CHECK(changed(layout(&Call::a, leading, int64_t{2})) == kInvalid);
  CHECK(changed(layout(&Call::d, leading, int64_t{-3})) == kInvalid);
  CHECK(changed(layout(&Call::b, batch, int32_t{2})) == kInvalid);
  CHECK(changed(layout(&Call::b, batch, int32_t{0})) == kInvalid);
  CHECK(changed(layout(&Call::a, type, uint32_t{CUDA_R_16F})) == kUnsupported);
  CHECK(changed(layout(&Call::a, type, uint32_t{CUDA_R_8F_E4M3})) == kUnsupported);
  CHECK(changed(layout(&Call::d, type, uint32_t{CUDA_R_64F})) == kUnsupported);
  CHECK(changed(layout(&Call::a, order, int32_t{CUBLASLT_ORDER_COL32})) == kUnsupported);
  CHECK(changed([&](Call& call) {  // matrices of D overlap
          for (Operand* operand : {&call.a, &call.b, &call.c, &call.d})
            operand->set(batch, int32_t{2});
        }) == kInvalid);
  CHECK(changed([](Call& call) { call.set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{CUBLAS_OP_T}); }) ==
        kInvalid);
  CHECK(changed([](Call& call) { call.set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{9}); }) == kInvalid);
  CHECK(changed([](Call& call) {
          call.set(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, int32_t{CUBLAS_COMPUTE_16F});
        }) == kUnsupported);
  CHECK(changed([](Call& call) {
          call.set(CUBLASLT_MATMUL_DESC_SCALE_TYPE, int32_t{CUDA_R_64F});
        }) == kUnsupported);
  CHECK(changed([](Call& call) {
          call.set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_DGELU_BGRAD});
        }) == kUnsupported);
  CHECK(changed([](Call& call) {
          call.set(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t{CUBLASLT_POINTER_MODE_DEVICE_VECTOR});
        }) == kUnsupported);

  // Pointers, which the heuristic does not see.
  Call call{Product{}};
  const float one = 1;
  const auto multiply = [&](const void* alpha, const void* a, const void* b, void* d) {
    return BLAS(cublasLtMatmul)(handle, call.operation, alpha, a, call.a.layout, b, call.b.layout,
                                &one, call.c.address(), call.c.layout, d, call.d.layout, nullptr,
                                nullptr, 0, nullptr);
  };
  const auto moved = [](const Operand& operand, int bytes) -> void* {
    return static_cast<std::byte*>(operand.address()) + bytes;
  };
  CHECK(multiply(nullptr, call.a.address(), call.b.address(), call.d.address()) == kInvalid);
  CHECK(multiply(&one, nullptr, call.b.address(), call.d.address()) == kInvalid);
  CHECK(multiply(&one, call.a.address(), nullptr, call.d.address()) == kInvalid);
  CHECK(multiply(&one, call.a.address(), call.b.address(), nullptr) == kInvalid);
  CHECK(multiply(&one, moved(call.a, 2), call.b.address(), call.d.address()) == kInvalid);
  CHECK(multiply(&one, moved(call.a, 4), call.b.address(), call.d.address()) ==
        CUBLAS_STATUS_EXECUTION_FAILED);  // ends behind the allocation
  CHECK(multiply(&one, call.a.address(), call.b.address(), call.d.address()) == kSuccess);
  call.set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_BIAS});
  CHECK(multiply(&one, call.a.address(), call.b.address(), call.d.address()) == kInvalid);
}

TEST_CASE("cublasLt: workspaces, algorithms and handles are checked", "[cublaslt]") {
  Device device;
  {
    const Handle handle;
    Product p;
    p.workspace = true;
    Call call(p);
    REQUIRE(call.run(handle) == kSuccess);
    const auto* algo = &call.found.algo;
    const size_t bytes = call.found.workspaceSize;
    CHECK(call.multiply(handle, nullptr, algo, bytes - 1) == kInvalid);
    CHECK(call.multiply(handle, nullptr, algo, bytes + 1) == kSuccess);
    const auto with_workspace = [&](CUdeviceptr workspace) {
      const float one = 1;
      return BLAS(cublasLtMatmul)(handle, call.operation, &one, call.a.address(), call.a.layout,
                                  call.b.address(), call.b.layout, &one, call.c.address(),
                                  call.c.layout, call.d.address(), call.d.layout, algo,
                                  reinterpret_cast<void*>(workspace), bytes, nullptr);
    };
    CHECK(with_workspace(call.workspace.address()) == kSuccess);
    CHECK(with_workspace(call.workspace.address() + 8) == kInvalid);
    CHECK(with_workspace(call.workspace.address() + 16) == CUBLAS_STATUS_EXECUTION_FAILED);
    const Buffer kept = std::move(call.workspace);
    CHECK(call.multiply(handle, nullptr, algo, bytes) == kInvalid);
    cublasLtMatmulAlgo_t other{};
    CHECK(call.multiply(handle, nullptr, &other, bytes) == kInvalid);
    CHECK(call.multiply(handle, nullptr, nullptr, 0) == kSuccess);
    CHECK(call.multiply(nullptr, nullptr, nullptr, 0) == CUBLAS_STATUS_NOT_INITIALIZED);
    int count = 0;
    CHECK(BLAS(cublasLtMatmulAlgoGetHeuristic)(handle, call.operation, call.a.layout, call.b.layout,
                                               call.c.layout, call.d.layout, call.preference, 0,
                                               &call.found, &count) == kInvalid);
  }
  cublasLtHandle_t handle = nullptr;
  CHECK(BLAS(cublasLtCreate)(nullptr) == kInvalid);
  CHECK(BLAS(cublasLtDestroy)(nullptr) == CUBLAS_STATUS_NOT_INITIALIZED);
  REQUIRE(BLAS(cublasLtCreate)(&handle) == kSuccess);
  CHECK(BLAS(cublasLtDestroy)(handle) == kSuccess);
  CHECK(BLAS(cublasLtDestroy)(handle) == CUBLAS_STATUS_NOT_INITIALIZED);
  CUcontext context = nullptr;
  emulator_test::call<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent")(&context);
  const auto set_current = emulator_test::call<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent");
  set_current(nullptr);
  CHECK(BLAS(cublasLtCreate)(&handle) == CUBLAS_STATUS_NOT_INITIALIZED);
  set_current(context);
}

TEST_CASE("cublasLt: descriptors keep their attributes", "[cublaslt]") {
  cublasLtMatrixLayoutOpaque_t layout;
  REQUIRE(BLAS(cublasLtMatrixLayoutInit_internal)(&layout, sizeof layout, CUDA_R_16F, 3, 4, 5) ==
          kSuccess);
  CHECK(BLAS(cublasLtMatrixLayoutInit_internal)(&layout, 8, CUDA_R_16F, 3, 4, 5) ==
        CUBLAS_STATUS_ALLOC_FAILED);
  const auto set = BLAS(cublasLtMatrixLayoutSetAttribute);
  const auto get = BLAS(cublasLtMatrixLayoutGetAttribute);
  uint64_t wide = 0;
  int32_t narrow = 0;
  size_t written = 0;
  CHECK(get(&layout, CUBLASLT_MATRIX_LAYOUT_COLS, &wide, 8, &written) == kSuccess);
  CHECK(wide == 4);
  CHECK(written == 8);
  CHECK(get(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, nullptr, 0, &written) == kSuccess);
  CHECK(written == 4);
  CHECK(get(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, nullptr, 0, nullptr) == kInvalid);
  CHECK(get(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &narrow, 4, nullptr) == kSuccess);
  CHECK(narrow == 1);
  narrow = 6;
  CHECK(set(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &narrow, 4) == kSuccess);
  CHECK(set(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &narrow, 8) == kInvalid);
  CHECK(set(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, nullptr, 4) == kInvalid);
  CHECK(set(nullptr, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &narrow, 4) == kInvalid);
  CHECK(set(&layout, static_cast<cublasLtMatrixLayoutAttribute_t>(77), &narrow, 4) == kInvalid);
  narrow = 0;
  CHECK(get(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &narrow, 4, nullptr) == kSuccess);
  CHECK(narrow == 6);

  cublasLtMatmulDescOpaque_t operation;
  REQUIRE(BLAS(cublasLtMatmulDescInit_internal)(&operation, sizeof operation, CUBLAS_COMPUTE_32F,
                                                CUDA_R_32F) == kSuccess);
  uint32_t epilogue = 0;
  CHECK(BLAS(cublasLtMatmulDescGetAttribute)(&operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                             4, nullptr) == kSuccess);
  CHECK(epilogue == CUBLASLT_EPILOGUE_DEFAULT);
  cublasLtMatmulPreferenceOpaque_t preference;
  REQUIRE(BLAS(cublasLtMatmulPreferenceInit_internal)(&preference, sizeof preference) == kSuccess);
  CHECK(BLAS(cublasLtMatmulPreferenceGetAttribute)(&preference,
                                                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                                                   &epilogue, 4, nullptr) == kSuccess);
  CHECK(epilogue == 256);
  CHECK(BLAS(cublasLtGetVersion)() == CUBLAS_VERSION);
  CHECK(std::string(BLAS(cublasLtGetStatusName)(kUnsupported)) == "CUBLAS_STATUS_NOT_SUPPORTED");
  CHECK(std::string(BLAS(cublasLtGetStatusString)(kSuccess)) == "success");
}

}  // namespace emulator_test::cublaslt

#endif
