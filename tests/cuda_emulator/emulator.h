#pragma once

// What libcuda_emulator.so offers beyond the driver's entry points, for programs that test kernels:
// looked up by name with dlsym. Environment variables do the same for programs that do not know the
// emulator: KRAIT_EMULATED_ARCH (such as 8.0), KRAIT_EMULATOR_MEMORY (bytes of the device),
// KRAIT_EMULATOR_SEED, KRAIT_EMULATOR_THREADS, KRAIT_EMULATOR_REPORTS (a file that reports are
// appended to, beside stderr) and KRAIT_EMULATOR_STATS (a file for the counts, as JSON).

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The last report as text, "" where there was none since cuda_emulator_reset; valid until the next
// launch.
const char* cuda_emulator_report(void);

// Counts of all launches since the last reset, in the format of KRAIT_EMULATOR_STATS: an object
// with "launches" (a list, in order) and "kernels" (sums by name). Valid until the next call of it.
const char* cuda_emulator_statistics(void);

// Seed of the interleavings of the launches that follow; without it, or with 0, every launch draws
// one, which its report prints.
void cuda_emulator_seed(uint64_t seed);

// The architecture of the device, as by KRAIT_EMULATED_ARCH: before cuInit or after a reset. 0 on
// success, 1 for one that is not known.
int cuda_emulator_architecture(int major, int minor);

// Bytes of device memory, as by KRAIT_EMULATOR_MEMORY; before cuInit or after a reset.
void cuda_emulator_memory(uint64_t bytes);

// The n-th allocation of device memory from now on (from 1) has no memory left; 0: none.
void cuda_emulator_fail_allocation(uint64_t n);

// What the n-th call from now on (from 1) of the entry point of that name returns instead of doing
// its work; sticky != 0: and everything after it, as with a lost device. n = 0 removes it.
void cuda_emulator_fail_call(const char* entry_point, uint64_t n, int result, int sticky);

// Device objects that are alive: allocations (modules' globals not counted), modules, streams,
// events, graphs, executable graphs and contexts, in this order.
void cuda_emulator_alive(uint64_t counts[7]);

// Everything as before cuInit: destroys all objects, forgets reports and counts.
void cuda_emulator_reset(void);

#ifdef __cplusplus
}
#endif
