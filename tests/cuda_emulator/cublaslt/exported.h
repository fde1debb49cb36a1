#pragma once

// An entry point that programs look up; its prototype is that of cublasLt.h.
#define EXPORTED extern "C" __attribute__((visibility("default")))
