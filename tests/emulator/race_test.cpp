// Small kernels with and without the synchronisation that they need: every racy one is reported,
// none of its clean twins.

#include <catch2/catch.hpp>

#include "tests/emulator/harness.h"

namespace emulator_test {
namespace {

// A kernel's body. EITHER(clean, racy) and CLEAN(statement) tell the twins apart. t: the thread,
// b: the block, g: 4096 zeros in global memory, s: 256 words of shared memory.
struct Twins {
  const char* name;
  unsigned blocks, threads;
  const char* body;
  int from = 75;
};

const char* const kPrologue = R"(
#ifdef RACY
#define EITHER(clean, racy) racy
#define CLEAN(statement)
#else
#define EITHER(clean, racy) clean
#define CLEAN(statement) statement
#endif
typedef unsigned long long u64;
__device__ unsigned s_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ int acquire(int* p) { int v; asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ int acquire_block(int* p) { int v; asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ int relaxed(int* p) { int v; asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ void release(int* p, int v) { asm volatile("st.release.gpu.b32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__device__ void release_block(int* p, int v) { asm volatile("st.release.cta.b32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__device__ void store_relaxed(int* p, int v) { asm volatile("st.relaxed.gpu.b32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__device__ void copy4(int* to, const int* from) { asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(s_address(to)), "l"(__cvta_generic_to_global(from)) : "memory"); }
__device__ void wait_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
extern "C" __global__ void kernel(int* g) {
  __shared__ int s[256];
  const int t = threadIdx.x, b = blockIdx.x;
  for (int i = t; i < 256; i += blockDim.x) s[i] = 0;
  __syncthreads();
)";

const Twins kTwins[] = {
    // Shared memory within a block.
    {"write, read", 1, 64, "s[t] = t; CLEAN(__syncthreads();) g[t] = s[63 - t];"},
    {"write, read in a warp", 1, 32, "s[t] = t; CLEAN(__syncwarp();) g[t] = s[31 - t];"},
    {"write, read in half a warp", 1, 32,
     "s[t] = t; if (t < 16) { CLEAN(__syncwarp(0xffff);) g[t] = s[15 - t]; }"},
    {"half a warp is not the whole", 1, 32,
     "s[t] = t; if (t < 16) __syncwarp(0xffff); CLEAN(__syncwarp();) g[t] = s[31 - t];"},
    {"read, write", 1, 64,
     "s[t] = t; __syncthreads(); int v = s[63 - t]; CLEAN(__syncthreads();) s[t] = v + 1;"},
    {"read, write in a warp", 1, 32,
     "s[t] = t; __syncwarp(); int v = s[31 - t]; CLEAN(__syncwarp();) s[t] = v + 1;"},
    {"read, shuffle, write in a warp", 1, 32,
     "s[t] = t; __syncwarp(); int v = s[31 - t]; CLEAN(v = __shfl_xor_sync(-1, v, 1);) s[t] = v;"},
    {"write, write", 1, 64,
     "if (t == 0) s[0] = 1; CLEAN(__syncthreads();) if (t == 32) s[0] = 2;"
     " __syncthreads(); g[t] = s[0];"},
    {"lanes of one store", 1, 32, "s[EITHER(t, t / 2)] = t; __syncwarp(); g[t] = s[t];"},
    {"all store the same", 1, 64, "s[0] = EITHER(7, t); __syncthreads(); g[t] = s[0];"},
    {"who stores the same still races with readers", 1, 64,
     "s[t] = 0; __syncthreads(); if (t > 40) s[0] = 1; CLEAN(__syncthreads();) if (s[0]) g[t] = "
     "1;"},
    {"bytes of a word by neighbours", 1, 64,
     "char* c = (char*)s; c[t] = t; CLEAN(__syncthreads();) g[t] = c[63 - t];"},
    {"halves of a word by neighbours", 1, 64,
     "short* c = (short*)s; c[t] = t; c[t] += 1; CLEAN(__syncthreads();) g[t] = c[63 - t];"},
    {"bytes of a word read by one, written by another", 1, 32,
     "char* c = (char*)s; c[t] = t; __syncwarp(); int v = c[EITHER(t, 31 - t)]; c[t] = v + 1;"},
    {"vectors", 1, 32,
     "((int4*)s)[t] = make_int4(t, t, t, t); CLEAN(__syncwarp();) g[t] = s[127 - t * 4];"},
    {"all read one word", 1, 128,
     "s[t] = t; __syncthreads(); int v = s[5]; CLEAN(__syncthreads();) g[256 + t] = v; if (t == "
     "77) s[5] = v + 1;"
     " __syncthreads(); g[t] = s[5];"},
    {"all read one word, one of them writes it", 1, 32,
     "s[t] = t; __syncwarp(); int v = s[5]; CLEAN(__syncwarp();) g[256 + t] = v; if (t == 5) s[5] "
     "= v + 1;"
     " __syncwarp(); g[t] = s[5];"},
    {"tile loop without its second barrier", 1, 64,
     "int v = 0; for (int i = 0; i < 4; ++i) { s[t] = i * t; __syncthreads(); v += s[63 - t];"
     " CLEAN(__syncthreads();) } g[t] = v;"},
    {"two stages need one barrier", 1, 64,
     "int v = 0; for (int i = 0; i < 4; ++i) { int* p = s + (EITHER(i & 1, 0)) * 64; p[t] = i * t;"
     " __syncthreads(); v += p[63 - t]; } g[t] = v;"},
    {"atomics, then a read", 1, 64,
     "if (t == 0) s[0] = 0; __syncthreads(); atomicAdd(s, t); CLEAN(__syncthreads();)"
     " if (t == 3) g[0] = s[0];"},
    {"atomics need the first value", 1, 64,
     "if (t == 0) s[0] = 0; CLEAN(__syncthreads();) atomicAdd(s, t);"},
    {"atomics against plain updates", 1, 64,
     "if (t == 0) s[0] = 0; __syncthreads();"
     " if (EITHER(true, t != 40)) atomicAdd(s, t); else s[0] += t;"},
    {"threads that have exited", 1, 64,
     "s[t] = t; if (t >= 32) return; CLEAN(__syncthreads();) g[t] = s[t + 32];"},
    {"named barriers", 1, 64,
     "if (t < 32) { s[t] = t; asm volatile(\"bar.arrive 1, 64;\" ::: \"memory\"); }"
     " else { CLEAN(asm volatile(\"bar.sync 1, 64;\" ::: \"memory\");) g[t] = s[t - 32];"
     " EITHER(, asm volatile(\"bar.sync 1, 64;\" ::: \"memory\")); }"},
    {"arrives too early at a named barrier", 1, 64,
     "if (t < 32) { EITHER(s[t] = t, ); asm volatile(\"bar.arrive 1, 64;\" ::: \"memory\");"
     " EITHER(, s[t] = t); }"
     " else { asm volatile(\"bar.sync 1, 64;\" ::: \"memory\"); g[t] = s[t - 32]; }"},
    {"a barrier of the others", 1, 96,
     "s[t] = t; if (t < 64) { asm volatile(\"bar.sync 1, 64;\" ::: \"memory\");"
     " g[t] = s[EITHER(63 - t, 95 - t)]; }"},
    {"volatile flag and fence", 1, 64,
     "volatile int* f = s + 128; if (t == 0) *f = 0; __syncthreads();"
     " if (t < 32) { s[t] = t; __syncwarp();"
     " if (t == 0) { CLEAN(__threadfence_block();) *f = 1; } }"
     " else { while (*f == 0) ; __threadfence_block(); g[t] = s[t - 32]; }"},
    {"volatile flag, no fence where it is read", 1, 64,
     "volatile int* f = s + 128; if (t == 0) *f = 0; __syncthreads();"
     " if (t == 0) { s[0] = 5; __threadfence_block(); *f = 1; }"
     " if (t == 32) { while (*f == 0) ; CLEAN(__threadfence_block();) g[t] = s[0]; }"},
    {"fences of other lanes", 1, 64,
     "volatile int* f = s + 128; if (t == 0) *f = 0; __syncthreads();"
     " if (t < 32) { s[t] = t; __threadfence_block(); CLEAN(__syncwarp();) if (t == 0) *f = 1; }"
     " else { while (*f == 0) ; __threadfence_block(); g[t] = s[t - 32]; }"},
    {"release and acquire in shared memory", 1, 64,
     "int* f = s + 128; if (t == 0) *f = 0; __syncthreads();"
     " if (t == 0) { s[0] = 5; EITHER(release_block(f, 1), store_relaxed(f, 1)); }"
     " if (t == 32) { while (acquire_block(f) == 0) ; g[t] = s[0]; }"},
    // Asynchronous copies.
    {"copy without its wait", 1, 64,
     "copy4(s + t, g + t); CLEAN(wait_copies();) __syncthreads(); g[100 + t] = s[63 - t];"
     " EITHER(, wait_copies());",
     80},
    {"copy, read by its own thread", 1, 32,
     "copy4(s + t, g + t); CLEAN(wait_copies();) g[100 + t] = s[t]; EITHER(, wait_copies());", 80},
    {"copy without a barrier after the wait", 1, 64,
     "copy4(s + t, g + t); wait_copies(); CLEAN(__syncthreads();) g[100 + t] = s[63 - t];", 80},
    {"copy into what is still read", 1, 64,
     "s[t] = t; __syncthreads(); int v = s[63 - t]; CLEAN(__syncthreads();) copy4(s + t, g + t);"
     " wait_copies(); g[100 + t] = v + s[t];",
     80},
    {"two copies to one place", 1, 32,
     "copy4(s + t, g + t); CLEAN(wait_copies();) copy4(s + t, g + 64 + t); wait_copies();", 80},
    {"copy from what is just written", 1, 64,
     "g[t] = t; CLEAN(__syncthreads();) copy4(s + t, g + 63 - t); wait_copies();", 80},
    {"source of a copy written before it lands", 1, 64,
     "copy4(s + t, g + t); EITHER(wait_copies(), ); __syncthreads(); g[63 - t] = t; wait_copies();",
     80},
    // Global memory.
    {"global: write, read in a block", 1, 64,
     "g[t] = t; CLEAN(__syncthreads();) g[100 + t] = g[63 - t];"},
    {"global: read, write in a block", 1, 64,
     "int v = g[63 - t]; CLEAN(__syncthreads();) g[t] = v + 1;"},
    {"global: write, write in a block", 1, 64, "g[EITHER(t, t & 31)] = t;"},
    {"global: blocks write one word", 4, 32, "if (t == 0) g[EITHER(b, 0)] = b;"},
    {"global: blocks write neighbouring bytes", 8, 32,
     "if (t == 0) ((char*)g)[EITHER(b, b / 2)] = b + 1;"},
    {"global: a block reads what another writes", 4, 32,
     "if (b == 3) g[t] = 1; else g[64 + b * 32 + t] = g[EITHER(500 + t, t)];"},
    {"global: a block writes what others read", 4, 32,
     "int v = g[7]; g[64 + b * 32 + t] = v; if (b == 2 && t == 0) g[EITHER(8, 7)] = v + 1;"},
    {"global: atomics of all blocks", 4, 64, "EITHER(atomicAdd(g, t), g[0] += t);"},
    {"global: a plain read of what others add to", 4, 64,
     "if (b < 3) atomicAdd(g, t); else if (t == 0) g[1] = EITHER(atomicAdd(g, 0), g[0]);"},
    {"global: additions by compare-and-swap", 4, 64,
     "u64* p = (u64*)g; u64 old = *p, seen; do { seen = old;"
     " EITHER(old = atomicCAS(p, seen, seen + t), *p = seen + t); } while (old != seen);"},
    {"global: atomics of a block's scope", 4, 64,
     "EITHER(atomicAdd(g, t), atomicAdd_block(g, t));"},
    {"last block: fence by the thread that takes the ticket", 4, 64,
     "if (t == 0) { g[64 + b] = b; CLEAN(__threadfence();)"
     " s[0] = atomicAdd(g, 1); } __syncthreads();"
     " if (s[0] == 3 && t < 4) g[128 + t] = g[64 + t];"},
    {"last block: barrier, then a fence by one thread", 4, 64,
     "g[64 + b * 64 + t] = b; __syncthreads();"
     " if (t == 0) { CLEAN(__threadfence();) s[0] = atomicAdd(g, 1); __threadfence(); }"
     " __syncthreads(); if (s[0] == 3) for (int i = 0; i < 4; ++i) g[1024 + t] += g[64 + i * 64 + "
     "t];"},
    {"last block: fences by all, then a barrier", 4, 64,
     "g[64 + b * 64 + t] = b; CLEAN(__threadfence();) __syncthreads();"
     " if (t == 0) s[0] = atomicAdd(g, 1);"
     " __syncthreads(); if (s[0] == 3) for (int i = 0; i < 4; ++i) g[1024 + t] += g[64 + i * 64 + "
     "t];"},
    {"last block: a fence of the block is too narrow", 4, 64,
     "g[64 + b * 64 + t] = b; EITHER(__threadfence(), __threadfence_block()); __syncthreads();"
     " if (t == 0) s[0] = atomicAdd(g, 1);"
     " __syncthreads(); if (s[0] == 3) for (int i = 0; i < 4; ++i) g[1024 + t] += g[64 + i * 64 + "
     "t];"},
    {"last block: barrier, then a fence that is too narrow", 4, 64,
     "g[64 + b * 64 + t] = b; __syncthreads();"
     " if (t == 0) { EITHER(__threadfence(), __threadfence_block()); s[0] = atomicAdd(g, 1); }"
     " __syncthreads(); if (s[0] == 3) for (int i = 0; i < 4; ++i) g[1024 + t] += g[64 + i * 64 + "
     "t];"},
    {"global: read by its writer first, then by another block", 2, 32,
     "if (t == 0) { if (b == 0) { int v = g[7]; atomicAdd(g, 1); while (relaxed(g) < 2) ;"
     " CLEAN(__threadfence();) g[7] = v + 1; }"
     " else { while (relaxed(g) < 1) ; g[64] = g[7]; CLEAN(__threadfence();) atomicAdd(g, 1); } }"},
    {"spin lock", 4, 1,
     "while (atomicCAS(g, 0, 1) != 0) ; CLEAN(__threadfence();) g[1] += b; CLEAN(__threadfence();)"
     " atomicExch(g, 0);"},
    {"spin lock: nothing on the way out", 4, 1,
     "while (atomicCAS(g, 0, 1) != 0) ; __threadfence(); g[1] += b; CLEAN(__threadfence();)"
     " atomicExch(g, 0);"},
    {"spin lock: opened by a plain write", 4, 1,
     "while (atomicCAS(g, 0, 1) != 0) ; __threadfence(); g[1] += b; __threadfence();"
     " EITHER(atomicExch(g, 0), g[0] = 0);"},
    {"look-back over volatile flags", 4, 32,
     "volatile int* f = g; if (t == 0) { int v = 1;"
     " if (b > 0) { while (f[b - 1] == 0) ; __threadfence(); v += g[64 + b - 1]; }"
     " g[64 + b] = v; CLEAN(__threadfence();) f[b] = 1; }"},
    {"look-back: no fence where the flag is read", 4, 32,
     "volatile int* f = g; if (t == 0) { int v = 1;"
     " if (b > 0) { while (f[b - 1] == 0) ; CLEAN(__threadfence();) v += g[64 + b - 1]; }"
     " g[64 + b] = v; __threadfence(); f[b] = 1; }"},
    {"look-back: flag and value in one word", 4, 32,
     "volatile int* f = g; if (t == 0) { int v = 1;"
     " if (b > 0) { int w; while ((w = EITHER(f, g)[b - 1]) == 0) EITHER(, __nanosleep(20)); v += "
     "w; }"
     " f[b] = v; }"},
    {"release and acquire", 4, 32,
     "if (t == 0) { int v = 1; if (b > 0) { while (acquire(g + b - 1) == 0) ; v += g[64 + b - 1]; }"
     " g[64 + b] = v; EITHER(release, store_relaxed)(g + b, 1); }"},
    {"release and a relaxed read", 4, 32,
     "if (t == 0) { int v = 1;"
     " if (b > 0) { while (EITHER(acquire, relaxed)(g + b - 1) == 0) ; v += g[64 + b - 1]; }"
     " g[64 + b] = v; release(g + b, 1); }"},
    {"release at the scope of a block", 4, 32,
     "if (t == 0) { int v = 1; if (b > 0) { while (acquire(g + b - 1) == 0) ; v += g[64 + b - 1]; }"
     " g[64 + b] = v; EITHER(release, release_block)(g + b, 1); }"},
    {"acquire at the scope of a block", 4, 32,
     "if (t == 0) { int v = 1; if (b > 0) {"
     " while (EITHER(acquire, acquire_block)(g + b - 1) == 0) ; v += g[64 + b - 1]; }"
     " g[64 + b] = v; release(g + b, 1); }"},
    {"an update continues what was released before", 3, 32,
     "if (t == 0) { if (b == 0) { g[64] = 1; EITHER(release, store_relaxed)(g, 1); }"
     " if (b == 1) { while (relaxed(g) != 1) ; atomicAdd(g, 1); }"
     " if (b == 2) { while (acquire(g) != 2) ; g[65] = g[64]; } }"},
    {"another write takes its place", 3, 32,
     "if (t == 0) { if (b == 0) { g[64] = 1; release(g, 1); }"
     " if (b == 1) { while (relaxed(g) != 1) ; EITHER(atomicExch(g, 2), store_relaxed(g, 2)); }"
     " if (b == 2) { while (acquire(g) != 2) ; g[65] = g[64]; } }"},
    {"barrier of all blocks", 4, 64,
     "g[64 + b * 64 + t] = b; __syncthreads();"
     " if (t == 0) { CLEAN(__threadfence();) atomicAdd(g, 1);"
     " while (*(volatile int*)g < 4) ; CLEAN(__threadfence();) } __syncthreads();"
     " g[1024 + b * 64 + t] = g[64 + (3 - b) * 64 + t];"},
};

struct Result {
  CUresult code;
  std::string report;
};

Result run_once(const Twins& twins, const std::string& ptx, uint64_t seed) {
  Device device;
  device.seed(seed);
  Buffer g = Buffer::of(std::vector<int>(4096));
  const CUfunction function = device.load(ptx, "kernel");
  const CUresult code = device.launch(function, {twins.blocks}, {twins.threads}, 0, g.address());
  return {code, device.report()};
}

std::string compiled(const Twins& twins, bool racy) {
  std::vector<std::string> options;
  if (racy) options.push_back("-DRACY");
  return compile(std::string(kPrologue) + twins.body + "\n}\n", "sm_90a", options);
}

}  // namespace

TEST_CASE("Races: every racy kernel is reported, none of its clean twins", "[races]") {
  if (!has_nvrtc()) {
    WARN("no NVRTC here: nothing was tested");
    return;
  }
  for (const Twins& twins : kTwins) {
    INFO(twins.name);
    const std::string clean = compiled(twins, false), racy = compiled(twins, true);
    int reported = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      INFO("seed " << seed);
      const Result right = run_once(twins, clean, seed);
      CHECK(right.code == CUDA_SUCCESS);
      CHECK(right.report == "");
      const Result wrong = run_once(twins, racy, seed);
      if (wrong.code == CUDA_SUCCESS) continue;
      INFO(wrong.report);
      CHECK(wrong.report.find("race: ") == 0);
      CHECK(wrong.report.find("kernel kernel") != std::string::npos);
      CHECK(wrong.report.find("the other access: block") != std::string::npos);
      CHECK(wrong.report.find("seed " + std::to_string(seed)) != std::string::npos);
      ++reported;
    }
    // Blocks of several host threads meet by chance: a write that would be missed may be gone.
    CHECK(reported >= (twins.blocks == 1 ? 20 : 15));
  }
}

}  // namespace emulator_test
