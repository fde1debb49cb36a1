// Reduction, scan, transpose, histogram and atomics: threads of a block, and blocks, that share
// memory.

#include <algorithm>
#include <numeric>

#include "tests/emulator/experiment.h"

namespace emulator_test {
namespace {

struct Partial {
  long long sum;
  int smallest, largest;
  bool operator==(const Partial&) const = default;
};

double reduction(Run& run) {
  const std::vector<int> values = run.integers(run.size, -2'000'000'000, 2'000'000'000);
  Partial wanted{0, values[0], values[0]};
  for (int value : values) {
    wanted.sum += value;
    wanted.smallest = std::min(wanted.smallest, value);
    wanted.largest = std::max(wanted.largest, value);
  }
  const unsigned threads = run.size % 2 ? 96 : 256;
  const unsigned blocks = std::min(7u, (run.size + threads - 1) / threads);
  const CUfunction function = run.function("reduce");
  const Buffer in = Buffer::of(values), partials(blocks * sizeof(Partial)),
               ticket = Buffer::of(std::vector<unsigned>{0});
  double errors = 0;
  for (int time = 0; time < 2; ++time) {  // the second finds the ticket as the first leaves it
    const Buffer result(sizeof(Partial));
    run.launch(function, {blocks}, {threads}, 0, in.address(), run.size, partials.address(),
               ticket.address(), result.address());
    errors += differing(result.read<Partial>(), {wanted});
  }
  return errors;
}

double warp_reduction(Run& run) {
  std::vector<unsigned> values(32);
  for (unsigned& value : values) value = run.random();
  const unsigned sum = std::accumulate(values.begin(), values.end(), 0u);
  const unsigned least = *std::min_element(values.begin(), values.end());
  const unsigned most = *std::max_element(values.begin(), values.end(),
                                          [](unsigned a, unsigned b) { return int(a) < int(b); });
  const unsigned bits = std::accumulate(values.begin(), values.end(), 0u,
                                        [](unsigned a, unsigned b) { return a ^ b; });
  const Buffer in = Buffer::of(values), out(16);
  run.launch(run.function("reduce_warp"), {1}, {32}, 0, in.address(), out.address());
  return differing(out.read<unsigned>(), {sum, least, most, bits});
}

double scan(Run& run) {
  constexpr int kTile = 512;
  struct Tiles {
    CUdeviceptr flag, aggregate, prefix;
  };
  std::vector<unsigned> values(run.size), wanted(run.size);
  for (unsigned& value : values) value = run.random();
  std::partial_sum(values.begin(), values.end(), wanted.begin());
  const unsigned tiles = (run.size + kTile - 1) / kTile;
  const Buffer in = Buffer::of(values), out(values.size() * 4),
               ticket = Buffer::of(std::vector<unsigned>{0}),
               flags = Buffer::of(std::vector<unsigned>(tiles)), aggregates(tiles * 4),
               prefixes(tiles * 4);
  run.launch(run.function("scan"), {tiles}, {128}, 0, in.address(), out.address(), run.size,
             ticket.address(), Tiles{flags.address(), aggregates.address(), prefixes.address()});
  return differing(out.read<unsigned>(), wanted);
}

double transpose(Run& run) {
  const int rows = run.size, columns = run.size * 3 / 2 + 1;
  const std::vector<float> values = run.integers<float>(rows * columns, -1000, 1000);
  std::vector<float> wanted(values.size());
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) wanted[j * rows + i] = values[i * columns + j];
  }
  const Buffer in = Buffer::of(values), out(values.size() * 4);
  run.launch(run.function("transpose"), {unsigned(columns + 31) / 32, unsigned(rows + 31) / 32},
             {32, 8}, 0, in.address(), out.address(), rows, columns);
  return differing(out.read<float>(), wanted);
}

double histogram(Run& run) {
  std::vector<uint8_t> values(run.size);
  std::vector<unsigned> wanted(256);
  for (uint8_t& value : values) {
    value = uint8_t(run.random() & run.random());  // some bins are hit more than others
    ++wanted[value];
  }
  const Buffer in = Buffer::of(values), bins = Buffer::of(std::vector<unsigned>(256));
  const unsigned threads = run.size % 2 ? 160 : 128;
  run.launch(run.function("histogram"), {std::min(3u, (run.size + threads - 1) / threads)},
             {threads}, 0, in.address(), run.size, bins.address());
  return differing(bins.read<unsigned>(), wanted);
}

struct Cells {
  std::vector<int> i32{5, 6, 7, -8};
  std::vector<unsigned> u32{0xffffffff, 0, 0x1234, 0, 3};
  std::vector<unsigned long long> u64{1ull << 40, 3, 0};
  std::vector<float> f32{0.5f};
  std::vector<double> f64{0.25};
};

Cells updated(Cells cells, const std::vector<int>& values) {
  for (int value : values) {
    cells.i32[0] += value;
    cells.i32[1] -= value;
    cells.i32[2] = std::min(cells.i32[2], value);
    cells.i32[3] = std::max(cells.i32[3], value);
    cells.u32[0] &= unsigned(value);
    cells.u32[1] |= unsigned(value);
    cells.u32[2] ^= unsigned(value);
    cells.u32[3] += 1;
    cells.u32[4] -= 1;
    cells.u64[0] += uint64_t(int64_t(value));
    cells.u64[1] = std::max<uint64_t>(cells.u64[1], unsigned(value));
    cells.u64[2] += uint64_t(int64_t(value) * value);
    cells.f32[0] += float(value);
    cells.f64[0] += value;
  }
  return cells;
}

double atomics(Run& run) {
  struct Addresses {
    CUdeviceptr i32, u32, u64, f32, f64;
  };
  const std::vector<int> values = run.integers(run.size, -3000, 3000);
  const Cells start, wanted = updated(start, values);
  const Buffer in = Buffer::of(values), places(values.size() * 4), i32 = Buffer::of(start.i32),
               u32 = Buffer::of(start.u32), u64 = Buffer::of(start.u64),
               f32 = Buffer::of(start.f32), f64 = Buffer::of(start.f64);
  run.launch(run.function("atomics"), {(run.size + 63u) / 64}, {64}, 0, in.address(), run.size,
             Addresses{i32.address(), u32.address(), u64.address(), f32.address(), f64.address()},
             places.address());
  std::vector<int> order = places.read<int>(), once(values.size());
  std::sort(order.begin(), order.end());
  std::iota(once.begin(), once.end(), 0);
  return differing(order, once) + differing(i32.read<int>(), wanted.i32) +
         differing(u32.read<unsigned>(), wanted.u32) +
         differing(u64.read<unsigned long long>(), wanted.u64) +
         differing(f32.read<float>(), wanted.f32) + differing(f64.read<double>(), wanted.f64);
}

}  // namespace

std::vector<Experiment> block_experiments() {
  const auto file = kernel_file;
  return {
      {"reduction", 75, file("reduction.cu"), {}, {1, 31, 33, 255, 1024, 3001}, 1001, 0, reduction},
      {"warp reduction", 80, file("reduction.cu"), {}, {32}, 32, 0, warp_reduction},
      {"scan", 75, file("scan.cu"), {}, {1, 127, 512, 513, 4097}, 2049, 0, scan},
      {"transpose", 75, file("transpose.cu"), {}, {1, 7, 32, 33, 71}, 45, 0, transpose},
      {"histogram", 75, file("histogram.cu"), {}, {1, 33, 500, 3001}, 901, 0, histogram},
      {"atomics", 75, file("histogram.cu"), {}, {1, 33, 257}, 101, 0, atomics},
  };
}

}  // namespace emulator_test
