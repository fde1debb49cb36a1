#include "runtime/host/blas.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

#include "dsl/error.h"
#include "runtime/host/pool.h"
#include "runtime/library.h"

namespace krait {
namespace {

// The C interface with 32-bit integers; enumerations travel as int.
template <typename T>
using Gemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha,
                      const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);
constexpr int row_major = 101, plain = 111, transposed = 112;

// Large enough that packing the operands again for each block is lost in the work, small enough
// that a projection of one sequence gives every thread some.
constexpr std::int64_t block_rows = 256, block_columns = 512;

template <typename F>
bool find(void* handle, const char* symbol, F& function) {
  function = reinterpret_cast<F>(::dlsym(handle, symbol));
  return function != nullptr;
}

void check_length(const char* field, std::int64_t value, std::int64_t least) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (value < least || value > most) {
    throw UsageError(text("gemm ", field), std::to_string(value), text(least, " to ", most));
  }
}

void check(const GemmShape& s) {
  check_length("m", s.m, 0);
  check_length("n", s.n, 0);
  check_length("k", s.k, 0);
  check_length("lda", s.lda, std::max<std::int64_t>(1, s.transpose_a ? s.m : s.k));
  check_length("ldb", s.ldb, std::max<std::int64_t>(1, s.transpose_b ? s.k : s.n));
  check_length("ldc", s.ldc, std::max<std::int64_t>(1, s.n));
}

template <typename T>
void run(Pool& pool, Gemm<T> gemm, const GemmShape& s, const T* a, const T* b, T* c) {
  const std::int64_t columns = (s.n + block_columns - 1) / block_columns;
  const std::int64_t rows = (s.m + block_rows - 1) / block_rows;
  const auto body = [&](std::int64_t begin, std::int64_t end, void*) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t row = block / columns * block_rows;
      const std::int64_t column = block % columns * block_columns;
      gemm(row_major, s.transpose_a ? transposed : plain, s.transpose_b ? transposed : plain,
           static_cast<int>(std::min(block_rows, s.m - row)),
           static_cast<int>(std::min(block_columns, s.n - column)), static_cast<int>(s.k), T{1},
           a + (s.transpose_a ? row : row * s.lda), static_cast<int>(s.lda),
           b + (s.transpose_b ? column * s.ldb : column), static_cast<int>(s.ldb),
           s.accumulate ? T{1} : T{0}, c + row * s.ldc + column, static_cast<int>(s.ldc));
    }
  };
  pool.parallel_for(rows * columns, 0, std::ref(body));  // a reference needs no memory of its own
}

}  // namespace

struct Blas::Library {
  explicit Library(std::string name) : wanted(std::move(name)) {}

  void open() {
    const std::vector<std::string> names =
        wanted.empty() ? std::vector<std::string>{"libopenblas.so.0", "libblas.so.3"}
                       : std::vector<std::string>{wanted};
    for (const std::string& name : names) {
      if (name.find('/') != std::string::npos && is_cut_short(name)) continue;
      // Never closed: OpenBLAS has threads that run its code.
      void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!handle) continue;
      Gemm<float> single = nullptr;
      Gemm<double> both = nullptr;
      if (!find(handle, "cblas_sgemm", single) || !find(handle, "cblas_dgemm", both)) continue;
      void (*set_threads)(int) = nullptr;
      if (find(handle, "openblas_set_num_threads", set_threads)) set_threads(1);
      const char* (*core)() = nullptr;
      if (find(handle, "openblas_get_corename", core)) vector_bits = bits_of(core());
      link_map* map = nullptr;
      path = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : name;
      sgemm = single;
      dgemm = both;
      return;
    }
  }

  /// By OpenBLAS's names of the processors that its kernels are for; 0 for one that is not known
  /// here.
  static int bits_of(const std::string& core) {
    for (const char* wide : {"SkylakeX", "Cooperlake", "Sapphirerapids"})
      if (core == wide) return 512;
    for (const char* middle : {"Haswell", "Zen"})
      if (core == middle) return 256;
    return 0;
  }

  std::string wanted, path;
  int vector_bits = 0;
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  std::once_flag opened;
};

Blas::Blas(std::string library) : library_(std::make_unique<Library>(std::move(library))) {}

Blas::~Blas() = default;

const Blas::Library& Blas::library() const {
  std::call_once(library_->opened, [this] { library_->open(); });
  return *library_;
}

bool Blas::available() const { return library().sgemm != nullptr; }

int Blas::vector_bits() const { return library().vector_bits; }

std::string Blas::path() const { return library().path; }

void Blas::gemm(Pool& pool, const GemmShape& shape, const float* a, const float* b,
                float* c) const {
  check(shape);
  if (!available()) throw EnvironmentError("no BLAS library was found");
  run(pool, library().sgemm, shape, a, b, c);
}

void Blas::gemm(Pool& pool, const GemmShape& shape, const double* a, const double* b,
                double* c) const {
  check(shape);
  if (!available()) throw EnvironmentError("no BLAS library was found");
  run(pool, library().dgemm, shape, a, b, c);
}

}  // namespace krait
