// Trees, calls, spaces of memory, producers and consumers, blocks that wait for each other.

#include <algorithm>
#include <bit>

#include "tests/emulator/experiment.h"

namespace emulator_test {
namespace {

struct Node {
  int key, left, right;
};

// A search tree of even keys in random order.
std::vector<Node> tree(Run& run) {
  std::vector<int> keys(run.size);
  for (int i = 0; i < run.size; ++i) keys[i] = 2 * i;
  std::shuffle(keys.begin(), keys.end(), run.random);
  std::vector<Node> nodes{{keys[0], -1, -1}};
  for (int i = 1; i < run.size; ++i) {
    int at = 0;
    for (;;) {
      int& child = keys[i] < nodes[at].key ? nodes[at].left : nodes[at].right;
      if (child < 0) {
        child = i;
        break;
      }
      at = child;
    }
    nodes.push_back({keys[i], -1, -1});
  }
  return nodes;
}

int depth_of(const std::vector<Node>& nodes, int query) {
  int at = 0, depth = 0;
  while (at >= 0 && nodes[at].key != query) {
    at = query < nodes[at].key ? nodes[at].left : nodes[at].right;
    ++depth;
  }
  return at >= 0 ? depth : -1 - depth;
}

double found(Run& run) {
  const std::vector<Node> nodes = tree(run);
  const std::vector<int> queries = run.integers(run.size + 30, -1, 2 * run.size);
  std::vector<int> wanted;
  for (int query : queries) wanted.push_back(depth_of(nodes, query));
  const Buffer tree = Buffer::of(nodes), in = Buffer::of(queries), out(wanted.size() * 4);
  const int count = int(queries.size());
  run.launch(run.function("find"), {(count + 63u) / 64}, {64}, 0, tree.address(), 0, in.address(),
             out.address(), count);
  return differing(out.read<int>(), wanted);
}

// Children come after their parents, so that sums go from the end.
struct Below {
  std::vector<long long> sum;
  std::vector<int> height, size, rounds;
};
Below below(const std::vector<Node>& nodes) {
  const size_t count = nodes.size();
  Below all{std::vector<long long>(count), std::vector<int>(count), std::vector<int>(count),
            std::vector<int>((count + 31) / 32)};
  for (size_t i = count; i-- > 0;) {
    all.sum[i] = nodes[i].key;
    all.size[i] = 1;
    int height = 0;
    for (int child : {nodes[i].left, nodes[i].right}) {
      if (child < 0) continue;
      all.sum[i] += all.sum[child];
      all.size[i] += all.size[child];
      height = std::max(height, all.height[child]);
    }
    all.height[i] = height + 1;
    all.rounds[i / 32] = std::max(all.rounds[i / 32], all.size[i]);
  }
  return all;
}

double sums(Run& run) {
  const std::vector<Node> nodes = tree(run);
  const Buffer tree = Buffer::of(nodes), out(nodes.size() * 8);
  run.launch(run.function("sums"), {(run.size + 63u) / 64}, {64}, 0, tree.address(), out.address(),
             run.size);
  return differing(out.read<long long>(), below(nodes).sum);
}

double heights(Run& run) {
  const std::vector<Node> nodes = tree(run);
  const Below wanted = below(nodes);
  const Buffer tree = Buffer::of(nodes), out(nodes.size() * 4), rounds(wanted.rounds.size() * 4);
  run.launch(run.function("heights"), {(run.size + 31u) / 32}, {32}, 0, tree.address(),
             out.address(), rounds.address(), run.size);
  return differing(out.read<int>(), wanted.height) + differing(rounds.read<int>(), wanted.rounds);
}

uint32_t reversed_bits(uint32_t value) {
  uint32_t result = 0;
  for (int bit = 0; bit < 32; ++bit) result |= (value >> bit & 1) << (31 - bit);
  return result;
}

uint32_t stepped(unsigned code, uint32_t a, uint32_t b) {
  switch (code) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a & b;
    case 4: return a | b;
    case 5: return a ^ b;
    case 6: return std::rotl(a, int(b % 32));
    case 7: return b == 0 ? a : a / b;
    case 8: return b == 0 ? a : a % b;
    case 9: return uint32_t(std::popcount(a)) + b;
    case 10: return uint32_t(std::countl_zero(a)) * 3 + b;
    case 11: return reversed_bits(a) ^ b;
    case 12: return (a & 0xff) | (b & 0xff) << 8 | (a >> 8 & 0xff) << 16 | (b >> 8 & 0xff) << 24;
    case 13: return uint32_t(uint64_t{a} * b >> 32);
    case 14: return uint32_t(std::min(int32_t(a), int32_t(b)));
    case 15: return uint32_t(a ? std::countr_zero(a) + 1 : 0) + (b << 3);
    default: return a ^ 0xdeadbeef;
  }
}

double machine(Run& run) {
  const int steps = 40;
  const std::vector<uint8_t> codes = run.integers<uint8_t>(steps, 0, 17);
  std::vector<uint32_t> values(run.size), wanted;
  for (uint32_t& value : values) value = run.random() >> run.random() % 28;
  for (int i = 0; i < run.size; ++i) {
    uint32_t a = values[i], b = values[(i + 1) % run.size];
    for (int step = 0; step < steps; ++step) {
      b = std::exchange(a, stepped(codes[(i + step) % steps], a, b));
    }
    wanted.push_back(a);
  }
  const Buffer program = Buffer::of(codes), in = Buffer::of(values), out(values.size() * 4);
  run.launch(run.function("machine"), {(run.size + 63u) / 64}, {64}, 0, program.address(), steps,
             in.address(), out.address(), run.size);
  return differing(out.read<uint32_t>(), wanted);
}

double pointers(Run& run) {
  std::vector<uint32_t> values(run.size), wanted;
  for (uint32_t& value : values) {
    value = run.random();
    wanted.push_back(value % 3 == 0 ? value * 2 : value % 3 == 1 ? value * value : ~value);
  }
  const Buffer in = Buffer::of(values), out(values.size() * 4);
  run.launch(run.function("pointers"), {(run.size + 63u) / 64}, {64}, 0, in.address(),
             out.address(), run.size);
  return differing(out.read<uint32_t>(), wanted);
}

double structures(Run& run) {
  std::vector<uint32_t> values(run.size), wanted;
  std::vector<double> halves;
  for (int i = 0; i < run.size; ++i) {
    values[i] = run.random();
    uint32_t first = values[i], second = uint32_t(i);
    double third = values[i] + 0.25;
    for (uint32_t extra : {3u, 11u}) {
      if (extra == 11 && i % 3 != 1) continue;
      first = std::exchange(second, std::rotl(first, 7)) + extra;
      third *= 0.5;
    }
    wanted.insert(wanted.end(), {first ^ 0x5a5a5a5a, second});
    halves.push_back(third);
  }
  const Buffer in = Buffer::of(values), out(wanted.size() * 4), thirds(halves.size() * 8);
  run.launch(run.function("structures"), {(run.size + 63u) / 64}, {64}, 0, in.address(),
             out.address(), thirds.address(), run.size);
  return differing(out.read<uint32_t>(), wanted) + differing(thirds.read<double>(), halves);
}

double calls(Run& run) { return machine(run) + pointers(run) + structures(run); }

double sorted(Run& run) {
  std::vector<int> values = run.integers(run.size * 16, -50, 50);
  const Buffer in = Buffer::of(values), out(values.size() * 4);
  run.launch(run.function("sorted"), {(run.size + 63u) / 64}, {64}, 0, in.address(), out.address(),
             run.size);
  for (int i = 0; i < run.size; ++i) std::sort(&values[i * 16], &values[i * 16] + 16);
  return differing(out.read<int>(), values);
}

CUdeviceptr global(Run& run, const char* name) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  require_success(call<CUresult (*)(CUdeviceptr*, size_t*, CUmodule, const char*)>(
                      "cuModuleGetGlobal_v2")(&address, &bytes, run.device.module(), name),
                  "cuModuleGetGlobal");
  return address;
}

double polynomial(Run& run) {
  const std::vector<float> coefficients = run.integers<float>(8, -9, 9);
  std::vector<float> values(run.size), wanted;
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(run.random);
  for (int i = 0; i < run.size; ++i) {
    float sum = 0;
    for (int k = i % 8; k >= 0; --k) sum = std::fma(sum, values[i], coefficients[k]);
    wanted.push_back(sum);
  }
  const CUfunction function = run.function("polynomial");
  require_success(call<CUresult (*)(CUdeviceptr, const void*, size_t)>("cuMemcpyHtoD_v2")(
                      global(run, "coefficients"), coefficients.data(), 32),
                  "cuMemcpyHtoD");
  const Buffer in = Buffer::of(values), out(values.size() * 4);
  for (int time = 0; time < 2; ++time) {
    run.launch(function, {(run.size + 63u) / 64}, {64}, 0, in.address(), out.address(), run.size);
  }
  unsigned launches = 0;
  require_success(call<CUresult (*)(void*, CUdeviceptr, size_t)>("cuMemcpyDtoH_v2")(
                      &launches, global(run, "launches"), 4),
                  "cuMemcpyDtoH");
  return differing(out.read<float>(), wanted) + (launches != 2);
}

double strided(Run& run) {
  struct Strided {
    CUdeviceptr base;
    int strides[3];
    unsigned char extents[3];
    double scale;
  };
  struct alignas(16) Four {
    float values[4];
  };
  const unsigned char rows = uint8_t(1 + run.size % 5);
  const std::vector<int> start = run.integers(rows * 3 * 40, 0, 100);
  std::vector<int> wanted = start;
  const Four table{{1.5f, -2.25f, 3, 40.75f}};
  const Buffer out = Buffer::of(start);
  const Strided p{out.address(), {120, 1, 3}, {rows, 3, 40}, 2.5};
  for (int i = 0; i < rows * 3 * 40; ++i) {
    const int z = i % 40, y = i / 40 % 3, x = i / 120;
    wanted[x * 120 + y + z * 3] += int(2.5 * table.values[(1 + i) & 3]);
  }
  run.launch(run.function("strided"), {1}, {96}, 0, p, 1, table);
  return differing(out.read<int>(), wanted);
}

double spaces(Run& run) { return sorted(run) + polynomial(run) + strided(run); }

double reversed(Run& run) {
  const unsigned blocks = 3, bytes = unsigned(run.size) * 4;
  std::vector<int> values = run.integers(blocks * run.size, -1000, 1000);
  const CUfunction function = run.function("reversed");
  if (bytes > 48 * 1024) run.device.allow_shared(function, bytes);
  const Buffer in = Buffer::of(values), out(values.size() * 4);
  run.launch(function, {blocks}, {256}, bytes, in.address(), out.address(), run.size);
  for (unsigned b = 0; b < blocks; ++b) {
    std::reverse(&values[b * run.size], values.data() + (b + 1) * run.size);
  }
  return differing(out.read<int>(), values);
}

double pipeline(Run& run) {
  constexpr int kTile = 256;
  const std::vector<float> values = run.integers<float>(run.size, -8, 8);
  std::vector<float> wanted((run.size + kTile - 1) / kTile);
  for (int i = 0; i < run.size; ++i) wanted[i / kTile] += values[i] * values[i];
  const Buffer in = Buffer::of(values), out(wanted.size() * 4);
  run.launch(run.function("pipeline"), {2}, {128}, 0, in.address(), run.size, out.address());
  return differing(out.read<float>(), wanted);
}

double smoothed(Run& run) {
  const int rounds = 5;
  std::vector<int> values = run.integers(run.size, -1000, 1000), before;
  const Buffer a = Buffer::of(values), b(values.size() * 4),
               arrived = Buffer::of(std::vector<unsigned>{0}),
               phase = Buffer::of(std::vector<unsigned>{0});
  run.launch(run.function("smoothed"), {4}, {64}, 0, a.address(), b.address(), run.size, rounds,
             arrived.address(), phase.address());
  for (int round = 0; round < rounds; ++round) {
    before = values;
    for (int i = 0; i < run.size; ++i) {
      values[i] =
          before[(i + run.size - 1) % run.size] + 3 * before[i] - before[(i + 1) % run.size];
    }
  }
  return differing(b.read<int>(), values);
}

double message(Run& run) {
  const std::vector<int> values = run.integers(run.size, -1000, 1000);
  const unsigned readers = 3;
  std::vector<int> wanted;
  for (unsigned reader = 1; reader <= readers; ++reader) {
    for (int value : values) wanted.push_back(value * 3 + int(reader));
  }
  const Buffer in = Buffer::of(values), box(values.size() * 4),
               flag = Buffer::of(std::vector<unsigned>{0}), out(wanted.size() * 4);
  run.launch(run.function("message"), {1 + readers}, {unsigned(run.size)}, 0, in.address(),
             box.address(), flag.address(), out.address());
  return differing(out.read<int>(), wanted);
}

double halves(Run& run) {
  std::vector<int> values = run.integers(16, -1000, 1000);
  const Buffer in = Buffer::of(values), out(64);
  run.launch(run.function("halves"), {1}, {32}, 0, in.address(), out.address());
  for (int& value : values) value += 7;
  return differing(out.read<int>(), values);
}

}  // namespace

std::vector<Experiment> control_experiments() {
  const auto file = kernel_file;
  const std::vector<std::string> tables{"--jump-table-density=50"};  // switches by brx.idx
  return {
      {"search", 75, file("tree.cu"), {}, {1, 33, 500}, 100, 0, found},
      {"recursion", 75, file("tree.cu"), {}, {1, 33, 150}, 70, 0, sums},
      {"votes", 75, file("tree.cu"), {}, {1, 33, 150}, 70, 0, heights},
      {"calls", 75, file("calls.cu"), {}, {1, 33, 200}, 70, 0, calls},
      {"jump table", 75, file("calls.cu"), tables, {1, 33, 200}, 70, 0, machine},
      {"spaces", 75, file("spaces.cu"), {}, {1, 33, 100}, 40, 0, spaces},
      {"dynamic shared", 75, file("spaces.cu"), {}, {1, 777, 15000}, 777, 0, reversed},
      {"pipeline", 80, file("pipeline.cu"), {}, {1, 257, 5001}, 3001, 0, pipeline},
      {"grid barrier", 75, file("grid.cu"), {}, {1, 255, 1001}, 301, 0, smoothed},
      {"message", 75, file("grid.cu"), {}, {1, 33, 128}, 65, 0, message},
      {"halves of a warp", 75, file("grid.cu"), {}, {32}, 32, 0, halves},
  };
}

}  // namespace emulator_test
