#include "runtime/cli/limits.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "dsl/error.h"
#include "runtime/tensor.h"

namespace krait {
namespace {

/// Seconds of the fastest of several calls, after one that is not counted.
template <typename Body>
double best_seconds(int tries, const Body& body) {
  body();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

struct Text {
  std::string element, vector, suffix;  // "float", "<8 x float>", "v8f32"
  int lanes;
};

Text text_of(const VectorTarget& target, DType dtype) {
  const int lanes = target.lanes(size_in_bytes(dtype));
  const std::string element = dtype == DType::f64 ? "double" : "float";
  return {element, text('<', lanes, " x ", element, '>'), text('v', lanes, name(dtype)), lanes};
}

std::string function(const std::string& entry, const std::string& body, const VectorTarget& target,
                     const std::string& declarations) {
  return text("define void @", entry,
              "(ptr %buffers, ptr %arguments, ptr %scratch, i64 %begin, i64 %end) #0 {\nentry:\n",
              body, "}\n", declarations, "attributes #0 = { nounwind \"prefer-vector-width\"=\"",
              target.vector_bits, "\" \"min-legal-vector-width\"=\"", target.vector_bits, "\" }\n");
}

/// An item is one vector: a = b + c / 2.
KernelSource triad_source(const VectorTarget& target, DType dtype) {
  const Text t = text_of(target, dtype);
  std::ostringstream out;
  out << "  %pb = getelementptr ptr, ptr %buffers, i64 1\n"
         "  %pc = getelementptr ptr, ptr %buffers, i64 2\n"
         "  %a = load ptr, ptr %buffers\n  %b = load ptr, ptr %pb\n  %c = load ptr, ptr %pc\n"
         "  %h0 = insertelement "
      << t.vector << " poison, " << t.element << " 0.5, i32 0\n"
      << "  %h = shufflevector " << t.vector << " %h0, " << t.vector << " poison, <" << t.lanes
      << " x i32> zeroinitializer\n"
         "  %some = icmp slt i64 %begin, %end\n  br i1 %some, label %loop, label %done\nloop:\n"
         "  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]\n";
  for (const char* array : {"a", "b", "c"})
    out << "  %q" << array << " = getelementptr " << t.vector << ", ptr %" << array << ", i64 %i\n";
  out << "  %vb = load " << t.vector << ", ptr %qb, align 64\n"
      << "  %vc = load " << t.vector << ", ptr %qc, align 64\n"
      << "  %va = call " << t.vector << " @llvm.fma." << t.suffix << '(' << t.vector << " %vc, "
      << t.vector << " %h, " << t.vector << " %vb)\n"
      << "  store " << t.vector << " %va, ptr %qa, align 64\n"
      << "  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, %end\n"
         "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n";
  KernelSource source;
  source.name = source.entry = "limit_triad";
  source.text = function(source.entry, out.str(), target,
                         text("declare ", t.vector, " @llvm.fma.", t.suffix, '(', t.vector, ", ",
                              t.vector, ", ", t.vector, ")\n"));
  return source;
}

constexpr std::int64_t kRounds = 100000;  // of one item of the arithmetic kernel

/// Chains enough to hide the latency of an operation, few enough to stay in registers.
int chains(const VectorTarget& target) { return target.vector_registers - 4; }

/// An item is kRounds multiply-adds of each chain; their sum is stored, so that none goes away.
KernelSource arithmetic_source(const VectorTarget& target, DType dtype) {
  const Text t = text_of(target, dtype);
  const int count = chains(target);
  std::ostringstream out;
  out << "  %p = load ptr, ptr %buffers\n"
      << "  %m = load " << t.vector << ", ptr %p, align 64\n"
      << "  %some = icmp slt i64 %begin, %end\n  br i1 %some, label %outer, label %done\n"
         "outer:\n  %i = phi i64 [ %begin, %entry ], [ %after, %last ]\n  br label %loop\nloop:\n"
         "  %r = phi i64 [ 0, %outer ], [ %next, %loop ]\n";
  for (int k = 0; k < count; ++k)
    out << "  %x" << k << " = phi " << t.vector << " [ %m, %outer ], [ %y" << k << ", %loop ]\n";
  for (int k = 0; k < count; ++k)
    out << "  %y" << k << " = call " << t.vector << " @llvm.fma." << t.suffix << '(' << t.vector
        << " %x" << k << ", " << t.vector << " %m, " << t.vector << " %m)\n";
  out << "  %next = add i64 %r, 1\n  %more = icmp slt i64 %next, " << kRounds
      << "\n  br i1 %more, label %loop, label %last\nlast:\n";
  for (int k = 1; k < count; ++k)
    out << "  %s" << k << " = fadd " << t.vector << ' ' << (k == 1 ? "%y0" : text("%s", k - 1))
        << ", %y" << k << '\n';
  out << "  %place = add i64 %i, 1\n  %q = getelementptr " << t.vector
      << ", ptr %p, i64 %place\n  store " << t.vector << " %s" << count - 1
      << ", ptr %q, align 64\n  %after = add i64 %i, 1\n"
         "  %again = icmp slt i64 %after, %end\n"
         "  br i1 %again, label %outer, label %done\ndone:\n  ret void\n";
  KernelSource source;
  source.name = source.entry = "limit_arithmetic";
  source.text = function(source.entry, out.str(), target,
                         text("declare ", t.vector, " @llvm.fma.", t.suffix, '(', t.vector, ", ",
                              t.vector, ", ", t.vector, ")\n"));
  return source;
}

void run(HostDevice& device, const Executable& kernel, void* const* buffers, std::int64_t items) {
  device.pool().parallel_for(items, 0, [&](std::int64_t begin, std::int64_t end, void*) {
    host_kernel(kernel)(buffers, nullptr, nullptr, begin, end);
  });
}

double bandwidth(HostDevice& device, DType dtype) {
  const VectorTarget target = device.vector_target();
  const auto kernel = device.compiler().compile(triad_source(target, dtype));
  const int size = size_in_bytes(dtype), lanes = target.lanes(size);
  constexpr std::int64_t bytes = std::int64_t{64} << 20;  // of an array
  Tensor a(dtype, {bytes / size}), b(dtype, {bytes / size}), c(dtype, {bytes / size});
  // Pages that were never written may all be one.
  std::fill_n(static_cast<char*>(b.data()), bytes, 0);
  std::fill_n(static_cast<char*>(c.data()), bytes, 0);
  void* const buffers[] = {a.data(), b.data(), c.data()};
  const double seconds =
      best_seconds(5, [&] { run(device, *kernel, buffers, bytes / size / lanes); });
  return 3e-9 * static_cast<double>(bytes) / seconds;
}

double arithmetic(HostDevice& device, DType dtype) {
  const VectorTarget target = device.vector_target();
  const auto kernel = device.compiler().compile(arithmetic_source(target, dtype));
  const int lanes = target.lanes(size_in_bytes(dtype));
  const std::int64_t items = std::int64_t{16} * device.pool().threads();
  Tensor numbers(dtype, {(items + 1) * lanes});
  for (int lane = 0; lane < lanes; ++lane) {
    if (dtype == DType::f64) numbers.data_as<double>()[lane] = 0.5;
    if (dtype == DType::f32) numbers.data_as<float>()[lane] = 0.5F;
  }
  void* const buffers[] = {numbers.data()};
  const double seconds = best_seconds(5, [&] { run(device, *kernel, buffers, items); });
  return 2e-9 * static_cast<double>(items * kRounds * chains(target) * lanes) / seconds;
}

template <typename T>
double blas(HostDevice& device) {
  constexpr std::int64_t n = 1024;
  Tensor a(dtype_of<T>(), {n, n}), b(dtype_of<T>(), {n, n}), c(dtype_of<T>(), {n, n});
  std::fill_n(a.template data_as<T>(), n * n, T(0.5));
  std::fill_n(b.template data_as<T>(), n * n, T(0.5));
  GemmShape shape;
  shape.m = shape.n = shape.k = shape.lda = shape.ldb = shape.ldc = n;
  const double seconds = best_seconds(5, [&] {
    device.blas().gemm(device.pool(), shape, a.template data_as<T>(), b.template data_as<T>(),
                       c.template data_as<T>());
  });
  return 2e-9 * static_cast<double>(n * n * n) / seconds;
}

}  // namespace

HostLimits measure_limits(HostDevice& device, DType dtype) {
  HostLimits limits;
  limits.bandwidth_gb_s = bandwidth(device, dtype);
  limits.arithmetic_gflop_s = arithmetic(device, dtype);
  if (device.blas().available())
    limits.blas_gflop_s = dtype == DType::f64 ? blas<double>(device) : blas<float>(device);
  return limits;
}

double measure_copy(Device& device) {
  constexpr std::int64_t kBytes = 128 << 20;
  const Tensor from(DType::f32, {kBytes / 4}, device), to(DType::f32, {kBytes / 4}, device);
  const double seconds = best_seconds(5, [&] {
    device.copy(from.ref(), to.ref());
    device.finish();
  });
  return 2e-9 * static_cast<double>(kBytes) / seconds;
}

}  // namespace krait
