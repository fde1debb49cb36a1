#include "tests/codegen/harness.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "codegen/llvm/emit_llvm.h"
#include "codegen/passes/passes.h"
#include "runtime/host/orc.h"

namespace krait::test {
namespace {

constexpr std::int64_t margin = 64;  // bytes beside every tensor that must stay as they are
constexpr unsigned char canary = 0xA5;

void put(unsigned char* at, double value, DType dtype) {
  switch (dtype) {
    case DType::f64: std::memcpy(at, &value, 8); break;
    case DType::f32: {
      const float x = static_cast<float>(value);
      std::memcpy(at, &x, 4);
      break;
    }
    case DType::i32: {
      const auto x = static_cast<std::int32_t>(value);
      std::memcpy(at, &x, 4);
      break;
    }
    case DType::bf16: {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      const auto x = static_cast<std::uint16_t>(bits >> 16);
      std::memcpy(at, &x, 2);
      break;
    }
    case DType::f16: {
      // Halves by hand: the compiler need not know them.
      std::uint16_t bits = std::signbit(value) ? 0x8000 : 0;
      const double size = std::fabs(value);
      if (std::isinf(size)) {
        bits |= 0x7c00;
      } else if (size != 0) {
        const int exponent = std::max(std::ilogb(size), -14);
        const auto mantissa = static_cast<int>(std::ldexp(size, 10 - exponent));
        bits |= mantissa >= 1024 ? ((exponent + 15) << 10) | (mantissa - 1024) : mantissa;
      }
      std::memcpy(at, &bits, 2);
      break;
    }
  }
}

double get(const unsigned char* at, DType dtype) {
  switch (dtype) {
    case DType::f64: {
      double x;
      std::memcpy(&x, at, 8);
      return x;
    }
    case DType::f32: {
      float x;
      std::memcpy(&x, at, 4);
      return x;
    }
    case DType::i32: {
      std::int32_t x;
      std::memcpy(&x, at, 4);
      return x;
    }
    case DType::bf16: {
      std::uint16_t x;
      std::memcpy(&x, at, 2);
      return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
    }
    case DType::f16: {
      std::uint16_t x;
      std::memcpy(&x, at, 2);
      const int exponent = (x >> 10) & 31, mantissa = x & 1023;
      double size = exponent == 0    ? std::ldexp(mantissa, -24)
                    : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                                     : std::ldexp(mantissa + 1024, exponent - 25);
      return (x & 0x8000) != 0 ? -size : size;
    }
  }
  return 0;
}

DType dtype_of_pointer(const TileProgram& program, int pointer) {
  for (const Buffer& buffer : program.buffers)
    if (buffer.pointer == pointer) return buffer.dtype;
  FAIL("no buffer has pointer " << pointer);
  return DType::f32;
}

const HostJit& jit() {
  static const HostJit instance(host_target());
  return instance;
}

Buffer dense(std::string name, DType dtype, const std::vector<std::int64_t>& extents,
             std::vector<int> order, std::int64_t pad) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  if (order.empty()) {
    order.resize(extents.size());
    std::iota(order.begin(), order.end(), 0);
  }
  buffer.dims.resize(extents.size());
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const int d = order[i];
    buffer.dims[d] = {"d" + std::to_string(d), Extent::constant(extents[d]), Stride{stride, -1}};
    stride = stride * extents[d] + (i + 1 == order.size() ? pad : 0);
  }
  return buffer;
}

}  // namespace

int Build::var(std::string name, std::int64_t extent, VarKind kind) {
  return var(std::move(name), Extent::constant(extent), kind);
}

int Build::var(std::string name, Extent extent, VarKind kind) {
  return program.add_var({std::move(name), kind, std::move(extent)});
}

int Build::global(std::string name, DType dtype, std::vector<std::int64_t> extents, bool written,
                  std::vector<int> order, std::int64_t pad) {
  Buffer buffer = dense(std::move(name), dtype, extents, std::move(order), pad);
  buffer.space = Space::global;
  buffer.pointer = static_cast<int>(sizes_of_pointers.size());
  buffer.written = written;
  std::int64_t elements = 1;
  for (const Dim& dim : buffer.dims) elements += (dim.extent.offset - 1) * dim.stride.constant;
  sizes_of_pointers.push_back(elements);
  return program.add_buffer(std::move(buffer));
}

int Build::chip(std::string name, DType dtype, std::vector<std::int64_t> extents,
                std::vector<int> order) {
  return program.add_buffer(dense(std::move(name), dtype, extents, std::move(order), 0));
}

Access Build::at(int buffer, std::vector<int> vars) const {
  Access access{buffer, {}, {}};
  for (int var : vars) access.index.push_back(Index::variable(var));
  return access;
}

std::vector<int> Build::order(int n) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

World random_world(const Build& build, const Sizes& sizes, unsigned seed) {
  std::mt19937 random(seed);
  World world;
  world.sizes = sizes;
  for (std::size_t i = 0; i < build.sizes_of_pointers.size(); ++i) {
    const DType dtype = dtype_of_pointer(build.program, static_cast<int>(i));
    std::vector<double> values(build.sizes_of_pointers[i]);
    for (double& value : values)
      value = dtype == DType::i32
                  ? std::uniform_int_distribution<int>(0, 3)(random)
                  : rounded(std::uniform_real_distribution<double>(-1, 1)(random), dtype);
    world.pointers.push_back(std::move(values));
  }
  return world;
}

Ran run_on_host(TileProgram program, const World& world, const VectorTarget& target) {
  run_passes(program, target, host_passes());
  const KernelSource source = emit_llvm(program, target);
  const auto loaded = jit().load(jit().compile(source), source);
  const std::vector<std::int64_t> arguments = world.arguments(program);
  const std::int64_t points = world.grid_points(program);
  Ran ran{{}, program, source.text};
  std::vector<std::vector<unsigned char>> first;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::vector<unsigned char>> memories;
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < world.pointers.size(); ++i) {
      const DType dtype = dtype_of_pointer(program, static_cast<int>(i));
      const int bytes = size_in_bytes(dtype);
      std::vector<unsigned char> memory(world.pointers[i].size() * bytes + 2 * margin, canary);
      for (std::size_t j = 0; j < world.pointers[i].size(); ++j)
        put(&memory[margin + j * bytes], world.pointers[i][j], dtype);
      memories.push_back(std::move(memory));
    }
    for (auto& memory : memories) pointers.push_back(memory.data() + margin);
    // Scratch full of NaN: what is read before it is written shows.
    std::vector<unsigned char> scratch(program.scratch_bytes + 64 + margin, 0xFF);
    void* aligned =
        scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
    // In two calls, as two threads would.
    loaded.function(pointers.data(), arguments.data(), aligned, 0, points / 2);
    loaded.function(pointers.data(), arguments.data(), aligned, points / 2, points);
    for (auto& memory : memories) {
      bool kept = true;
      for (std::int64_t j = 0; j < margin; ++j)
        kept &= memory[j] == canary && memory[memory.size() - 1 - j] == canary;
      INFO(to_text(program));
      REQUIRE(kept);
    }
    if (round == 0)
      first = std::move(memories);
    else
      REQUIRE(first == memories);
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    const DType dtype = dtype_of_pointer(program, static_cast<int>(i));
    std::vector<double> values(world.pointers[i].size());
    for (std::size_t j = 0; j < values.size(); ++j)
      values[j] = get(&first[i][margin + j * size_in_bytes(dtype)], dtype);
    ran.pointers.push_back(std::move(values));
  }
  return ran;
}

std::vector<VectorTarget> targets() { return {{512, 32}, {256, 16}, {128, 16}}; }

void compare(const Build& build, const World& world, double tolerance) {
  World expected = world;
  interpret(build.program, expected);
  for (const VectorTarget& target : targets()) {
    const Ran ran = run_on_host(build.program, world, target);
    for (std::size_t i = 0; i < expected.pointers.size(); ++i) {
      double worst = 0;
      std::size_t where = 0;
      for (std::size_t j = 0; j < expected.pointers[i].size(); ++j) {
        const double want = expected.pointers[i][j], got = ran.pointers[i][j];
        if (want == got || (std::isnan(want) && std::isnan(got))) continue;
        double error = std::fabs(want - got) / std::max(1.0, std::fabs(want));
        if (std::isnan(error)) error = INFINITY;
        if (error > worst) worst = error, where = j;
      }
      INFO(to_text(ran.program));
      INFO("vectors of " << target.vector_bits << " bits, pointer " << i << ", element " << where
                         << ": " << ran.pointers[i][where] << ", expected "
                         << expected.pointers[i][where]);
      REQUIRE(worst <= tolerance);
    }
  }
}

}  // namespace krait::test
