#pragma once

// What libcuda_emulator.so offers beyond the driver's entry points, for programs that test kernels:
// looked up by name with dlsym. Environment variables do the same for programs that do not know the
// emulator: KRAIT_EMULATED_ARCH (such as 8.0), KRAIT_EMULATOR_MEMORY (bytes of the device),
// KRAIT_EMULATOR_SEED, KRAIT_EMULATOR_THREADS, KRAIT_EMULATOR_REPORTS (a file that reports are
// appended to, beside stderr) and KRAIT_EMULATOR_STATS (a file for the counts, as JSON: those of
// all launches of the process, written at its end and at every reset, whole or not at all).
//
// What a call here sets stays through resets, and wins over the environment.
//
// How the driver behaves where the real one has a choice: work in streams runs one piece at a time,
// among the streams that can go on one is drawn; a failed launch makes the context's later calls
// fail with the same code, those that destroy or free do so all the same and then return it; pools
// keep no memory; modules are loaded when they are given, libraries into a context with its first
// use of them.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The last report as text, "" where there was none since cuda_emulator_reset; valid until the next
// call of it.
const char* cuda_emulator_report(void);

// Counts of all launches since the last reset that did not fail, as JSON. Valid until the next call
// of it. An object with
//   "launches": a list in the order of their ends, each an object with
//     "kernel", "grid" [x, y, z], "block" [x, y, z], "static_shared", "dynamic_shared" (bytes),
//     "seed", "seconds" (of the host), and the counts
//   "kernels": an object by name with sums of the counts, "launches" (how many) and "seconds".
// The counts:
//   "blocks"
//   "warp_instructions": "all", "by_class" {name: count}, "skipped" (guard false in all lanes)
//   "thread_instructions": "all", "by_class": the same by lanes
//   "branches": "all", "divergent"
//   "barriers": completed ones of a block
//   "mma": "flops", "by_shape" {"m16n8k16.f32.bf16.bf16.f32": count}
//   "global": "load", "store", "atomic" (each with "bytes" requested and 32-byte "sectors" of the
//     warps' instructions), "distinct_sectors" ("read", "written", "any": touched in the launch)
//   "shared": "load", "store", "async" (each with "lanes_by_bytes" {"4": lanes}, "wavefronts",
//     "ideal": those without bank conflicts), "ldmatrix", "stmatrix" (each with "instructions",
//     "wavefronts", "ideal"), "worst_bank_conflict" (wavefronts over ideal of one instruction)
// Classes and sizes that do not occur are left out.
const char* cuda_emulator_statistics(void);

// Seed of the interleavings of the launches that follow; without it, or with 0, every launch draws
// one, which its report prints.
void cuda_emulator_seed(uint64_t seed);

// The architecture of the device, as by KRAIT_EMULATED_ARCH: before cuInit or after a reset. 0, 0:
// what the environment says, or 9.0. Gives 0 on success, 1 for one that is not known.
int cuda_emulator_architecture(int major, int minor);

// Bytes of device memory, as by KRAIT_EMULATOR_MEMORY; before cuInit or after a reset. 0: those of
// the part.
void cuda_emulator_memory(uint64_t bytes);

// The n-th allocation of device memory from now on (from 1) has no memory left; 0: none. Modules
// count as one each, page-locked memory of the host does not count. A reset removes it.
void cuda_emulator_fail_allocation(uint64_t n);

// What the n-th call from now on (from 1) of the entry point of that name returns instead of doing
// its work; sticky != 0: and everything after it but cuGetErrorName and cuGetErrorString, as with a
// lost device. Names are taken without version and stream suffix: "cuMemAlloc" and "cuMemAlloc_v2"
// are the same. n = 0 removes it, and the loss that it caused; so does a reset.
void cuda_emulator_fail_call(const char* entry_point, uint64_t n, int result, int sticky);

// Device objects that are alive: allocations (modules' globals not counted), modules and libraries,
// streams, events, graphs, executable graphs and contexts, in this order.
void cuda_emulator_alive(uint64_t counts[7]);

// Everything as before cuInit: destroys all objects, forgets reports and counts.
void cuda_emulator_reset(void);

#ifdef __cplusplus
}
#endif
