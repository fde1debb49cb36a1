// The library speaks of matrices by columns: a product by rows is that of the transposed matrices,
// operands in the other order. c (m, n) by rows is the n by m matrix by columns.
#include "runtime/cuda/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "dsl/error.h"
#include "runtime/library.h"

namespace krait {
namespace {

struct Api {
#define KRAIT_CUBLASLT_FUNCTION(name) decltype(&::name) name = nullptr
  KRAIT_CUBLASLT_FUNCTION(cublasLtCreate);
  KRAIT_CUBLASLT_FUNCTION(cublasLtDestroy);
  KRAIT_CUBLASLT_FUNCTION(cublasLtGetVersion);
  KRAIT_CUBLASLT_FUNCTION(cublasLtGetStatusName);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatmul);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatmulDescCreate);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatmulDescDestroy);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatmulDescSetAttribute);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatrixLayoutCreate);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatrixLayoutDestroy);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatrixLayoutSetAttribute);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatmulPreferenceCreate);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatmulPreferenceDestroy);
  KRAIT_CUBLASLT_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
#undef KRAIT_CUBLASLT_FUNCTION

  void check(cublasStatus_t status, const std::string& what) const {
    if (status != CUBLAS_STATUS_SUCCESS)
      throw EnvironmentError(text("cuBLASLt: ", what, ": ", cublasLtGetStatusName(status)));
  }
};

Api find_functions(const Library& library) {
  Api api;
#define KRAIT_FIND(name) library.find(#name, api.name)
  KRAIT_FIND(cublasLtCreate);
  KRAIT_FIND(cublasLtDestroy);
  KRAIT_FIND(cublasLtGetVersion);
  KRAIT_FIND(cublasLtGetStatusName);
  KRAIT_FIND(cublasLtMatmul);
  KRAIT_FIND(cublasLtMatmulAlgoGetHeuristic);
  KRAIT_FIND(cublasLtMatmulDescCreate);
  KRAIT_FIND(cublasLtMatmulDescDestroy);
  KRAIT_FIND(cublasLtMatmulDescSetAttribute);
  KRAIT_FIND(cublasLtMatrixLayoutCreate);
  KRAIT_FIND(cublasLtMatrixLayoutDestroy);
  KRAIT_FIND(cublasLtMatrixLayoutSetAttribute);
  KRAIT_FIND(cublasLtMatmulPreferenceCreate);
  KRAIT_FIND(cublasLtMatmulPreferenceDestroy);
  KRAIT_FIND(cublasLtMatmulPreferenceSetAttribute);
#undef KRAIT_FIND
  return api;
}

/// Owns a descriptor of the library.
template <typename Handle>
class Descriptor {
 public:
  using Destroy = cublasStatus_t (*)(Handle);
  Descriptor(Handle handle, Destroy destroy) : handle_(handle), destroy_(destroy) {}
  Descriptor(Descriptor&& other) noexcept : handle_(other.handle_), destroy_(other.destroy_) {
    other.handle_ = nullptr;
  }
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (handle_ != nullptr) destroy_(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_;
  Destroy destroy_;
};
using Layout = Descriptor<cublasLtMatrixLayout_t>;
using Operation = Descriptor<cublasLtMatmulDesc_t>;
using Preference = Descriptor<cublasLtMatmulPreference_t>;

struct Types {
  cudaDataType_t element, scale;
  cublasComputeType_t compute;
};

/// f32 is neither rounded to TF32 on its way into a product nor added up in another order within
/// one algorithm: what "pedantic" says. Half precision adds up in f32.
Types types_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::f32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC};
    case DType::bf16: return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::f16: return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    default: throw InternalError("a library's product of " + std::string(name(dtype)));
  }
}

/// Algorithms for pointers with at least this alignment, in bytes, best first.
struct Choice {
  int alignment = 0;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms;
};
using Choices = std::vector<Choice>;

/// Bytes for which pointers of widest accesses are aligned.
constexpr int wide_alignment = 16;

/// One loop of the calls as a batch of the library, the others outside.
struct Batch {
  GemmCalls::Loop batch;  // count 1: none
  std::vector<GemmCalls::Loop> outside;
};

/// The longest loop over matrices of c that do not overlap.
Batch batch_of(const GemmCalls& calls) {
  constexpr std::int64_t most = 65535;  // what all of the library's algorithms take
  const std::int64_t extent = (calls.shape.m - 1) * calls.shape.ldc + calls.shape.n;
  Batch made;
  std::size_t best = calls.loops.size();
  for (std::size_t i = 0; i < calls.loops.size(); ++i) {
    const GemmCalls::Loop& loop = calls.loops[i];
    if (loop.sum || loop.a < 0 || loop.b < 0 || loop.c < extent || loop.count > most) continue;
    if (loop.count > made.batch.count) {
      made.batch = loop;
      best = i;
    }
  }
  for (std::size_t i = 0; i < calls.loops.size(); ++i)
    if (i != best) made.outside.push_back(calls.loops[i]);
  return made;
}

/// A product with or without its bias.
struct Form {
  Operation operation;
  Choices choices{};
};

struct LtProduct : PreparedProduct {
  explicit LtProduct(std::array<Layout, 3> layouts) : matrices(std::move(layouts)) {}
  std::array<Layout, 3> matrices;  // of the library's A, B, and C and D
  Batch loops;
  std::optional<Form> plain, biased;  // the second where c is written first
};

class Opened : public CublasLt {
 public:
  Opened(Api api, cublasLtHandle_t handle, CublasLtStatus status)
      : api_(api), handle_(handle), status_(std::move(status)) {}
  ~Opened() override { api_.cublasLtDestroy(handle_); }

  const CublasLtStatus& status() const override { return status_; }

  std::shared_ptr<PreparedProduct> prepare(const GemmCalls& calls,
                                           std::int64_t most_workspace) override {
    const Types types = types_of(calls.dtype);
    const GemmShape& s = calls.shape;
    const Batch loops = batch_of(calls);
    auto made = std::make_shared<LtProduct>(
        std::array<Layout, 3>{matrix(types, s.transpose_b ? s.k : s.n, s.transpose_b ? s.n : s.k,
                                     s.ldb, loops.batch.count, loops.batch.b),
                              matrix(types, s.transpose_a ? s.m : s.k, s.transpose_a ? s.k : s.m,
                                     s.lda, loops.batch.count, loops.batch.a),
                              matrix(types, s.n, s.m, s.ldc, loops.batch.count, loops.batch.c)});
    made->calls = calls;
    made->loops = loops;
    if (calls.bias >= 0) made->biased.emplace(Form{operation(types, s, true)});
    const bool adds = std::any_of(loops.outside.begin(), loops.outside.end(),
                                  [](const GemmCalls::Loop& loop) { return loop.sum; });
    if (calls.bias < 0 || adds) made->plain.emplace(Form{operation(types, s, false)});
    for (std::optional<Form>* form : {&made->plain, &made->biased}) {
      if (!*form) continue;
      (*form)->choices = choices(*made, (*form)->operation, form == &made->biased, most_workspace);
      for (const Choice& choice : (*form)->choices)
        for (const auto& algorithm : choice.algorithms)
          made->workspace_bytes =
              std::max(made->workspace_bytes, static_cast<std::int64_t>(algorithm.workspaceSize));
    }
    return made;
  }

  void run(PreparedProduct& prepared, void* const* pointers, void* workspace,
           CUstream stream) override {
    auto& product = dynamic_cast<LtProduct&>(prepared);
    const GemmCalls& calls = product.calls;
    const std::int64_t bytes = size_in_bytes(calls.dtype);
    const auto start = [&](int object, std::int64_t offset) {
      return static_cast<char*>(pointers[object]) + offset * bytes;
    };
    char* const a = start(calls.a, calls.a_offset);
    char* const b = start(calls.b, calls.b_offset);
    char* const c = start(calls.c, calls.c_offset);
    if (product.biased) set_bias(product.biased->operation, start(calls.bias, calls.bias_offset));
    std::int64_t total = 1;
    for (const GemmCalls::Loop& loop : product.loops.outside) total *= loop.count;
    for (std::int64_t i = 0; i < total; ++i) {
      std::int64_t rest = i, at_a = 0, at_b = 0, at_c = 0;
      bool accumulate = false;
      for (const GemmCalls::Loop& loop : product.loops.outside) {
        const std::int64_t position = rest % loop.count;
        rest /= loop.count;
        at_a += position * loop.a;
        at_b += position * loop.b;
        at_c += position * loop.c;
        accumulate |= loop.sum && position > 0;
      }
      Form& form = product.biased && !accumulate ? *product.biased : *product.plain;
      multiply(product, form, {a + at_a * bytes, b + at_b * bytes, c + at_c * bytes}, accumulate,
               workspace, stream);
    }
  }

 private:
  struct Operands {
    void *a, *b, *c;
  };

  void set_bias(const Operation& operation, const void* bias) const {
    api_.check(api_.cublasLtMatmulDescSetAttribute(
                   operation.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
               "describing a product");
  }

  Operation operation(const Types& types, const GemmShape& shape, bool bias) const {
    cublasLtMatmulDesc_t handle = nullptr;
    api_.check(api_.cublasLtMatmulDescCreate(&handle, types.compute, types.scale),
               "describing a product");
    Operation made(handle, api_.cublasLtMatmulDescDestroy);
    const auto transpose = [&](cublasLtMatmulDescAttributes_t attribute, bool transposed) {
      const std::int32_t value = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
      api_.check(api_.cublasLtMatmulDescSetAttribute(handle, attribute, &value, sizeof value),
                 "describing a product");
    };
    transpose(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b);
    transpose(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a);
    if (!bias) return made;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    api_.check(api_.cublasLtMatmulDescSetAttribute(handle, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                                   sizeof epilogue),
               "describing a product");
    return made;
  }

  Layout matrix(const Types& types, std::int64_t rows, std::int64_t columns, std::int64_t leading,
                std::int64_t count, std::int64_t stride) const {
    cublasLtMatrixLayout_t handle = nullptr;
    api_.check(
        api_.cublasLtMatrixLayoutCreate(&handle, types.element, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), leading),
        "describing a matrix");
    Layout made(handle, api_.cublasLtMatrixLayoutDestroy);
    if (count == 1) return made;
    const auto batches = static_cast<std::int32_t>(count);
    api_.check(api_.cublasLtMatrixLayoutSetAttribute(handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                     &batches, sizeof batches),
               "describing a batch");
    api_.check(api_.cublasLtMatrixLayoutSetAttribute(
                   handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
               "describing a batch");
    return made;
  }

  /// Remembered by everything that the library's answer depends on.
  Choices choices(const LtProduct& product, const Operation& operation, bool bias,
                  std::int64_t most_workspace) {
    const GemmShape& s = product.calls.shape;
    const GemmCalls::Loop& batch = product.loops.batch;
    const std::vector<std::int64_t> key = {static_cast<std::int64_t>(product.calls.dtype),
                                           s.m,
                                           s.n,
                                           s.k,
                                           s.transpose_a,
                                           s.transpose_b,
                                           s.lda,
                                           s.ldb,
                                           s.ldc,
                                           batch.count,
                                           batch.a,
                                           batch.b,
                                           batch.c,
                                           most_workspace,
                                           bias};
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    Choices made;
    for (const int alignment :
         {wide_alignment, static_cast<int>(size_in_bytes(product.calls.dtype))})
      made.push_back({alignment, algorithms(product, operation, alignment, most_workspace)});
    // Lengths that change with every call must not fill the memory.
    constexpr std::size_t most_known = 4096;
    if (known_.size() >= most_known) known_.clear();
    return known_[key] = made;
  }

  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(const LtProduct& product,
                                                          const Operation& operation, int alignment,
                                                          std::int64_t most_workspace) const {
    cublasLtMatmulPreference_t handle = nullptr;
    api_.check(api_.cublasLtMatmulPreferenceCreate(&handle), "preferences");
    const Preference preference(handle, api_.cublasLtMatmulPreferenceDestroy);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      api_.check(api_.cublasLtMatmulPreferenceSetAttribute(handle, attribute, &value, sizeof value),
                 "preferences");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(most_workspace));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(attribute, static_cast<std::uint32_t>(alignment));
    constexpr int most = 8;
    std::array<cublasLtMatmulHeuristicResult_t, most> results{};
    int count = 0;
    const auto& [a, b, c] = product.matrices;
    const std::string what = "algorithms for a product of " + size_text(product.calls.shape);
    api_.check(
        api_.cublasLtMatmulAlgoGetHeuristic(handle_, operation.get(), a.get(), b.get(), c.get(),
                                            c.get(), handle, most, results.data(), &count),
        what);
    std::vector<cublasLtMatmulHeuristicResult_t> good;
    for (int i = 0; i < count; ++i)
      if (results[static_cast<std::size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
        good.push_back(results[static_cast<std::size_t>(i)]);
    if (good.empty()) api_.check(CUBLAS_STATUS_NOT_SUPPORTED, what);
    return good;
  }

  /// By the first algorithm that takes it; one that does not is not asked again by this call.
  void multiply(const LtProduct& product, Form& form, const Operands& operands, bool accumulate,
                void* workspace, CUstream stream) const {
    const auto address = [](const void* pointer) {
      return reinterpret_cast<std::uintptr_t>(pointer);
    };
    const bool wide =
        (address(operands.a) | address(operands.b) | address(operands.c)) % wide_alignment == 0;
    Choice& choice = wide ? form.choices.front() : form.choices.back();
    // Scalars of the type that the product computes in.
    const double twofold[] = {1, accumulate ? 1.0 : 0.0};
    const float single[] = {1, accumulate ? 1.0f : 0.0f};
    const bool f64 = product.calls.dtype == DType::f64;
    const void* const alpha = f64 ? static_cast<const void*>(&twofold[0]) : &single[0];
    const void* const beta = f64 ? static_cast<const void*>(&twofold[1]) : &single[1];
    const auto& [a, b, c] = product.matrices;
    for (;;) {
      const cublasLtMatmulHeuristicResult_t& best = choice.algorithms.front();
      const cublasStatus_t status =
          api_.cublasLtMatmul(handle_, form.operation.get(), alpha, operands.b, a.get(), operands.a,
                              b.get(), beta, operands.c, c.get(), operands.c, c.get(), &best.algo,
                              best.workspaceSize > 0 ? workspace : nullptr, best.workspaceSize,
                              reinterpret_cast<cudaStream_t>(stream));
      const bool other = status == CUBLAS_STATUS_NOT_SUPPORTED ||
                         status == CUBLAS_STATUS_ARCH_MISMATCH ||
                         status == CUBLAS_STATUS_INVALID_VALUE;
      if (other && choice.algorithms.size() > 1) {
        choice.algorithms.erase(choice.algorithms.begin());
        continue;
      }
      if (status != CUBLAS_STATUS_SUCCESS)
        api_.check(status, "a product of " + size_text(product.calls.shape));
      return;
    }
  }

  static std::string size_text(const GemmShape& s) { return text(s.m, " by ", s.n, " by ", s.k); }

  const Api api_;
  const cublasLtHandle_t handle_;
  const CublasLtStatus status_;
  std::mutex mutex_;
  std::map<std::vector<std::int64_t>, Choices> known_;
};

/// Whether the library would find krait's driver when it opens its own.
bool opens_same_driver(const std::string& driver_path) {
  void* const usual = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const own = ::dlopen(driver_path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  for (void* const handle : {usual, own})
    if (handle != nullptr) ::dlclose(handle);
  return usual != nullptr && usual == own;
}

}  // namespace

std::unique_ptr<CublasLt> open_cublaslt(const std::string& driver_path, CublasLtStatus& status) {
  const char* const named = std::getenv("KRAIT_LIBCUBLASLT");
  if ((named == nullptr || *named == '\0') && !opens_same_driver(driver_path)) {
    status.problem = text("it would work with libcuda.so.1, and the driver here is ", driver_path,
                          "; KRAIT_LIBCUBLASLT can name one that goes with it");
    return nullptr;
  }
  try {
    const Library library =
        open_library("cuBLASLt", "KRAIT_LIBCUBLASLT",
                     {"libcublasLt.so.13", "libcublasLt.so", "/usr/local/cuda/lib64/libcublasLt.so",
                      KRAIT_BUILD_CUBLASLT, "libcublasLt.so.12"},
                     "install a CUDA toolkit or the package nvidia-cublas, or name the library in "
                     "KRAIT_LIBCUBLASLT");
    const Api api = find_functions(library);
    cublasLtHandle_t handle = nullptr;
    api.check(api.cublasLtCreate(&handle), "initialising " + library.path);
    const std::size_t version = api.cublasLtGetVersion();
    constexpr std::size_t major = 10000, minor = 100;
    status = {library.path,
              text(version / major, ".", version % major / minor, ".", version % minor), ""};
    return std::make_unique<Opened>(api, handle, status);
  } catch (const EnvironmentError& error) {
    status.problem = error.what();
    return nullptr;
  }
}

}  // namespace krait
