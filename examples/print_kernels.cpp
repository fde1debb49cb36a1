// The CUDA C++ that krait makes of a block, and what NVRTC and ptxas say about each kernel. No GPU
// is needed, and without NVRTC the sources alone are printed.
//
//   print_kernels [COMPUTE CAPABILITY, such as 8.0]
#include <krait/krait.h>

#include <exception>
#include <iostream>

namespace {

using namespace krait;

/// A leaky sum of x a channel: S[t] = exp(-exp(rate)) S[t-1] + x[t], y = S.
void leaky_sum(Scope& s) {
  const Axis b("b"), t("t"), d("d", 32);
  const Expr x = s.input("x", {b, t, d}), rate = s.param("rate", {d});
  const ScanResult state = scan(t, -exp(rate), x, {.initial = s.state("start", "end", {b, d})});
  s.output("y", state.leaving, {b, t, d});
  s.leave("end", state.last);
}

void print(const KernelSource& source, bool compiles) {
  std::cout << "// ---- " << source.file << ".cu\n" << source.text << '\n';
  if (!compiles) return;
  const CodeReport report = code_report(nvrtc_code(source));
  std::cout << "// " << source.file << ": " << report.registers << " registers, "
            << report.spill_stores + report.spill_loads << " bytes spilled, " << report.code_bytes
            << " bytes of code\n\n";
}

}  // namespace

int main(int argc, char** argv) try {
  const CudaTarget target = cuda_target(argc > 1 ? argv[1] : "8.0", "compute capability");
  const Graph graph = build_graph(leaky_sum, DType::f32);
  LayerOptions options;
  options.name = "leaky_sum";
  options.schedule = parse_schedule("plan=step");
  options.sizes = {{"b", 8}, {"t", 2048}};
  bool compiles = true;
  try {
    std::cout << "// NVRTC " << nvrtc_facts().version << ", for " << target.architecture << '\n';
  } catch (const EnvironmentError& error) {
    std::cout << "// not compiled: " << error.what() << '\n';
    compiles = false;
  }
  for (const KernelSource& source : gpu_sources(graph, options, target)) print(source, compiles);
} catch (const UsageError& error) {
  std::cerr << error.what() << '\n';
  return 2;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
