#include "runtime/compile.h"

#include <catch2/catch.hpp>
#include <thread>

#include "dsl/error.h"
#include "runtime/host/compiler.h"
#include "runtime/host/pool.h"
#include "tests/runtime/axpy.h"
#include "tests/runtime/scratch_directory.h"

using namespace krait;
using test::axpy_is_right;
using test::axpy_source;
using test::ScratchDirectory;

namespace {

std::shared_ptr<HostBackend> host_backend(const std::string& cpu = "") {
  return std::make_shared<HostBackend>(host_target(cpu));
}

CompilerOptions options_at(const std::filesystem::path& directory) {
  CompilerOptions options;
  options.disk.directory = directory;
  options.disk.warn = [](const std::string& message) { FAIL(message); };
  return options;
}

CompilerOptions in_memory() {
  CompilerOptions options;
  options.use_disk = false;
  return options;
}

/// A kernel whose body sees %x, the first buffer.
KernelSource kernel(const std::string& body, const std::string& declarations = "") {
  return {"test",
          "test",
          "define void @test(ptr %buffers, ptr %a, ptr %s, i64 %begin, i64 %end) {\n"
          "  %x = load ptr, ptr %buffers\n" +
              body + "  ret void\n}\n" + declarations,
          KernelSource::Backend::llvm,
          {}};
}

std::string error_of(const KernelSource& source) {
  Compiler compiler(in_memory(), host_backend());
  for (int attempt = 0; attempt < 2; ++attempt) {  // a failure is not remembered as a success
    try {
      compiler.compile(source);
    } catch (const InternalError& error) {
      if (attempt == 1) return error.what();
    }
  }
  return "compiled";
}

}  // namespace

TEST_CASE("text becomes a function that the pool runs") {
  Compiler compiler(in_memory(), host_backend());
  const std::shared_ptr<Executable> kernel = compiler.compile(axpy_source());
  CHECK(kernel->name() == "axpy");
  CHECK(kernel->key().size() == 64);
  for (const int threads : {1, 2, 3}) {
    Pool pool(threads);
    CHECK(axpy_is_right(*kernel, 1, pool));
  }
}

TEST_CASE("an executable outlives its compiler") {
  std::shared_ptr<Executable> kernel;
  {
    Compiler compiler(in_memory(), host_backend());
    kernel = compiler.compile(axpy_source(5));
  }
  Pool pool(2);
  CHECK(axpy_is_right(*kernel, 5, pool));
}

TEST_CASE("a second compiler on the same directory compiles nothing") {
  ScratchDirectory scratch;
  const std::vector<KernelSource> sources = {axpy_source(1), axpy_source(2), axpy_source(1)};
  Pool pool(2);
  for (const bool warm : {false, true}) {
    Compiler compiler(options_at(scratch.path()), host_backend());
    const auto kernels = compiler.compile_all(sources, pool);
    REQUIRE(kernels.size() == 3);
    CHECK(kernels[0] == kernels[2]);
    CHECK(axpy_is_right(*kernels[0], 1, pool));
    CHECK(axpy_is_right(*kernels[1], 2, pool));
    CHECK(compiler.counters().compiled == (warm ? 0 : 2));
    CHECK(compiler.counters().from_cache == (warm ? 2 : 0));
    CHECK(compiler.counters().shared == 1);
    CHECK(compiler.disk()->list().size() == 2);
  }
}

TEST_CASE("a source is verified before it is compiled, and not where it is in the cache") {
  ScratchDirectory scratch;
  KernelSource source = axpy_source();
  int verified = 0;
  source.verify = [&] { ++verified; };
  Compiler(options_at(scratch.path()), host_backend()).compile(source);
  CHECK(verified == 1);
  Compiler(options_at(scratch.path()), host_backend()).compile(source);
  CHECK(verified == 1);
  source = axpy_source(2);
  source.verify = [] { throw InternalError("broken on its way"); };
  Compiler compiler(options_at(scratch.path()), host_backend());
  CHECK_THROWS_AS(compiler.compile(source), InternalError);
  CHECK(compiler.counters().compiled == 0);
  CHECK(compiler.disk()->list().size() == 1);
}

TEST_CASE("another CPU has entries of its own") {
  ScratchDirectory scratch;
  CompilerOptions options = options_at(scratch.path());
  Compiler(options, host_backend()).compile(axpy_source());
  Compiler other(options, host_backend("x86-64"));
  Pool pool(1);
  CHECK(axpy_is_right(*other.compile(axpy_source()), 1, pool));
  CHECK(other.counters().compiled == 1);
  CHECK(other.disk()->list().size() == 2);
}

TEST_CASE("threads that ask for one key at once share one compile") {
  Compiler compiler(in_memory(), host_backend());
  std::vector<std::shared_ptr<Executable>> kernels(8);
  std::vector<std::thread> threads;
  for (auto& kernel : kernels) {
    threads.emplace_back([&] { kernel = compiler.compile(axpy_source()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& kernel : kernels) CHECK(kernel == kernels[0]);
  CHECK(compiler.counters().compiled == 1);
  CHECK(compiler.counters().shared == 7);
}

TEST_CASE("a cache entry that is broken is compiled again and replaced") {
  ScratchDirectory scratch;
  std::string key;
  {
    Compiler compiler(options_at(scratch.path()), host_backend());
    key = compiler.compile(axpy_source())->key();
  }
  const std::filesystem::path file = scratch.path() / (key + ".krait");
  const std::string intact = test::read_file(file);
  Pool pool(1);
  const auto repaired = [&](const std::string& bytes) {
    test::write_file(file, bytes);
    Compiler compiler(options_at(scratch.path()), host_backend());
    CHECK(axpy_is_right(*compiler.compile(axpy_source()), 1, pool));
    CHECK(compiler.counters().compiled == 1);
    CHECK(compiler.counters().from_cache == 0);
    CHECK(compiler.disk()->peek(key));
  };
  for (std::size_t i = 0; i < 12; ++i) {
    const std::size_t at = i * (intact.size() - 1) / 11;
    INFO("byte " << at << " of " << intact.size());
    std::string flipped = intact;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << i % 8);
    repaired(flipped);
    repaired(intact.substr(0, at));
  }
  // Intact as a file, but the object in it does not link or is not the kernel.
  CacheEntry entry = *decode(intact);
  for (const std::string& object : {std::string("no object"), std::string()}) {
    entry.binary = object;
    repaired(encode(entry));
  }
}

TEST_CASE("text that does not compile gives LLVM's words and the numbered source") {
  const std::string syntax = error_of(kernel("  %y = fadd float %x, 1.0\n"));
  CHECK_THAT(syntax, Catch::Contains("please report"));
  CHECK_THAT(syntax, Catch::Contains("line 3, column 19"));
  CHECK_THAT(syntax, Catch::Contains("\n3 |   %y = fadd float %x, 1.0\n"));

  const std::string invalid =
      error_of(kernel("  br label %next\nnext:\n  %y = load i32, ptr %z\n"
                      "  br label %last\nlast:\n  %z = load ptr, ptr %x\n"));
  CHECK_THAT(invalid, Catch::Contains("Instruction does not dominate all uses"));
  CHECK_THAT(invalid, Catch::Contains("1 | define void @test"));

  KernelSource source = kernel("");
  source.entry = "other";
  CHECK_THAT(error_of(source), Catch::Contains("does not define an external function other"));
  source.text = "define void @other(ptr %x) {\n  ret void\n}\n";
  CHECK_THAT(error_of(source), Catch::Contains("void (ptr, ptr, ptr, i64, i64)"));
  source.text = "declare void @other(ptr, ptr, ptr, i64, i64)\n";
  CHECK_THAT(error_of(source), Catch::Contains("does not define an external function other"));
}

TEST_CASE("a call out of the module is refused by name") {
  const std::string message =
      error_of(kernel("  %v = load float, ptr %x\n  %e = call float @expf(float %v)\n"
                      "  store float %e, ptr %x\n",
                      "declare float @expf(float)\n"));
  CHECK_THAT(message, Catch::Contains("cannot link kernel test"));
  CHECK_THAT(message, Catch::Contains("expf"));
}

TEST_CASE("copies and fills of the C library are there") {
  Compiler compiler(in_memory(), host_backend());
  const auto kernel_ = compiler.compile(
      kernel("  %s0 = getelementptr i8, ptr %x, i64 1\n"
             "  call void @llvm.memmove.p0.p0.i64(ptr %s0, ptr %x, i64 %end, i1 false)\n"
             "  %s1 = getelementptr i8, ptr %x, i64 100\n"
             "  call void @llvm.memcpy.p0.p0.i64(ptr %s1, ptr %x, i64 %end, i1 false)\n"
             "  call void @llvm.memset.p0.i64(ptr %x, i8 7, i64 %end, i1 false)\n",
             "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)\n"
             "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
             "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"));
  std::string bytes(200, 'x');
  bytes.replace(0, 5, "abcde");
  void* const buffers[] = {bytes.data()};
  host_kernel (*kernel_)(buffers, nullptr, nullptr, 0, 5);
  CHECK(bytes.substr(0, 7) == "\7\7\7\7\7ex");
  CHECK(bytes.substr(100, 6) == "aabcdx");
}

TEST_CASE("products and sums are fused where the text says so and nowhere else") {
  Compiler compiler(in_memory(), host_backend());
  const auto run = [&](const std::string& operation, const std::string& declarations) {
    const auto executable =
        compiler.compile(kernel("  %p1 = getelementptr float, ptr %x, i64 1\n"
                                "  %v = load float, ptr %x\n  %c = load float, ptr %p1\n" +
                                    operation + "  store float %r, ptr %x\n",
                                declarations));
    const float a = 1 + 0x1p-12f;
    float values[] = {a, -(a * a)};
    void* const buffers[] = {values};
    host_kernel (*executable)(buffers, nullptr, nullptr, 0, 1);
    return values[0];
  };
  CHECK(run("  %m = fmul float %v, %v\n  %r = fadd float %m, %c\n", "") == 0);
  CHECK(run("  %r = call float @llvm.fma.f32(float %v, float %v, float %c)\n",
            "declare float @llvm.fma.f32(float, float, float)\n") == 0x1p-24f);
}

TEST_CASE("compile_all gives the first error in order and compiles the rest") {
  Compiler compiler(in_memory(), host_backend());
  Pool pool(2);
  KernelSource first = kernel("  first fault\n"), second = kernel("  second fault\n");
  const std::vector<KernelSource> sources = {axpy_source(1), first, second, axpy_source(2)};
  CHECK_THROWS_WITH(compiler.compile_all(sources, pool), Catch::Contains("first fault"));
  CHECK(compiler.counters().compiled == 2);
}

TEST_CASE("the host target has the widest vectors of its CPU") {
  const HostTarget own = host_target();
  CHECK(own == host_target());
  CHECK(own.lanes(4) == own.vector_bits / 32);
  CHECK_THROWS_AS(host_target("no-such-cpu"), UsageError);
#ifdef __x86_64__
  const auto width = [](const HostTarget& target) {
    const std::string text = HostJit(target).assembly(
        kernel("  %v = load <16 x float>, ptr %x\n  %w = fadd <16 x float> %v, %v\n"
               "  store <16 x float> %w, ptr %x\n"));
    return text.find("%zmm") != std::string::npos   ? 512
           : text.find("%ymm") != std::string::npos ? 256
                                                    : 128;
  };
  CHECK(width(own) == own.vector_bits);
  CHECK(own.vector_bits == (__builtin_cpu_supports("avx512f") ? 512
                            : __builtin_cpu_supports("avx2")  ? 256
                                                              : 128));
  CHECK(own.vector_registers == (own.vector_bits == 512 ? 32 : 16));
  const HostTarget least = host_target("x86-64");
  CHECK(least.vector_bits == 128);
  CHECK(width(least) == 128);
  if (!__builtin_cpu_supports("fma4")) {
    CHECK_THROWS_WITH(host_target("bdver4"), Catch::Contains("it lacks"));
  }
#endif
}
