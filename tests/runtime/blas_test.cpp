#include "runtime/host/blas.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "dsl/error.h"
#include "runtime/file.h"
#include "runtime/host/pool.h"
#include "tests/run_program.h"

using namespace krait;

namespace {

template <typename T>
std::vector<T> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<T> range(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = range(generator);
  return values;
}

template <typename T>
struct Operands {
  GemmShape s;
  std::vector<T> a, b, c;

  Operands(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb, bool accumulate) {
    s = {m, n, k, ta, tb, (ta ? m : k) + 3, (tb ? k : n) + 5, n + 2, accumulate};
    a = random_values<T>((ta ? k : m) * s.lda, 1);
    b = random_values<T>((tb ? n : k) * s.ldb, 2);
    c = random_values<T>(m * s.ldc, 3);
  }

  std::vector<T> expected() const {
    std::vector<T> out = c;
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        double sum = s.accumulate ? c[i * s.ldc + j] : 0;
        for (std::int64_t l = 0; l < s.k; ++l) {
          sum += double{a[s.transpose_a ? l * s.lda + i : i * s.lda + l]} *
                 b[s.transpose_b ? j * s.ldb + l : l * s.ldb + j];
        }
        out[i * s.ldc + j] = static_cast<T>(sum);
      }
    }
    return out;
  }
};

template <typename T>
double difference(const std::vector<T>& a, const std::vector<T>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - b[i]));
  return most;
}

}  // namespace

TEMPLATE_TEST_CASE("a library product is the product", "", float, double) {
  const Blas blas;
  REQUIRE(blas.available());
  CHECK(blas.path().find("blas") != std::string::npos);
  Pool pool(2);
  const double bound = sizeof(TestType) == 4 ? 2e-5 : 1e-13;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const bool accumulate : {false, true}) {
        // Blocks are cut, with a remainder, along both extents.
        Operands<TestType> o(300, 520, 37, ta, tb, accumulate);
        const std::vector<TestType> expected = o.expected();  // the padding included
        blas.gemm(pool, o.s, o.a.data(), o.b.data(), o.c.data());
        CHECK(difference(o.c, expected) < bound);
      }
    }
  }
  for (const auto& [m, n, k] :
       {std::array{1, 1, 1}, {1, 700, 3}, {0, 4, 4}, {4, 0, 4}, {4, 4, 0}}) {
    Operands<TestType> o(m, n, k, false, false, false);
    const std::vector<TestType> expected = o.expected();
    blas.gemm(pool, o.s, o.a.data(), o.b.data(), o.c.data());
    CHECK(difference(o.c, expected) < bound);
  }
}

TEST_CASE("a library product has the same bits with any number of threads") {
  const Blas blas;
  REQUIRE(blas.available());
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 2, 3}) {
    Pool pool(threads);
    Operands<float> o(600, 1100, 257, false, true, true);
    blas.gemm(pool, o.s, o.a.data(), o.b.data(), o.c.data());
    results.push_back(o.c);
  }
  for (const std::vector<float>& result : results) CHECK(result == results[0]);
}

TEST_CASE("OpenBLAS does not thread inside the pool's threads") {
  const Blas blas;
  REQUIRE(blas.available());
  void* handle = ::dlopen(blas.path().c_str(), RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(handle);
  if (auto* threads = reinterpret_cast<int (*)()>(::dlsym(handle, "openblas_get_num_threads"))) {
    CHECK(threads() == 1);
  }
}

TEST_CASE("a BLAS that does not load or lacks a function counts as absent") {
  Pool pool(1);
  for (const char* library : {"/nowhere/libblas.so", "libm.so.6"}) {
    const Blas blas(library);
    CHECK_FALSE(blas.available());
    CHECK(blas.path() == "");
    Operands<float> o(2, 2, 2, false, false, false);
    CHECK_THROWS_AS(blas.gemm(pool, o.s, o.a.data(), o.b.data(), o.c.data()), EnvironmentError);
  }
}

TEST_CASE("extents and row lengths of a product are checked") {
  const Blas blas;
  Pool pool(1);
  float x = 0;
  const auto refused = [&](GemmShape shape, const char* field) {
    CHECK_THROWS_WITH(blas.gemm(pool, shape, &x, &x, &x),
                      Catch::Contains(std::string("gemm ") + field));
  };
  const GemmShape good{1, 1, 1, false, false, 1, 1, 1, false};
  GemmShape bad = good;
  bad.m = -1, refused(bad, "m");
  bad = good, bad.n = std::int64_t{1} << 31, refused(bad, "n");
  bad = good, bad.lda = 0, refused(bad, "lda");
  bad = good, bad.transpose_b = true, bad.k = 4, bad.lda = 4, refused(bad, "ldb");
  bad = good, bad.ldc = std::int64_t{1} << 40, refused(bad, "ldc");
}

TEST_CASE("a BLAS library that was cut short counts as none") {
  const Blas whole("");
  if (!whole.available()) return;
  const TestFolder folder;
  const std::string bytes = read_text(whole.path());
  write_file_atomically(folder.file("cut.so"), bytes.substr(0, bytes.size() / 3));
  CHECK_FALSE(Blas(folder.file("cut.so")).available());
}
