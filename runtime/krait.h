// krait: kernels for blocks of the Mamba family, and for recurrences of your own, made while the
// program runs. The one header for users.
//
//   - the language in which a block is written ......... dsl/expr.h
//   - the blocks that krait brings, and their specs .... dsl/blocks/blocks.h
//   - what a description means, in float64 ............. dsl/evaluate.h
//   - its gradients, as a description again ............ dsl/differentiate.h
//   - a block that runs, with parameters ............... runtime/layer.h
//   - where it runs: devices, streams, captured calls .. runtime/device.h
//   - its kernels for a GPU that need not be here ...... runtime/cuda/sources.h
//   - errors ........................................... dsl/error.h
#pragma once

#include "dsl/blocks/blocks.h"
#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "dsl/evaluate.h"
#include "dsl/expr.h"
#include "runtime/cuda/code_report.h"
#include "runtime/cuda/facts.h"
#include "runtime/cuda/sources.h"
#include "runtime/host/device.h"
#include "runtime/layer.h"
#include "runtime/safetensors.h"
#include "runtime/spec_json.h"
#include "runtime/tensor.h"
#include "schedules/schedule.h"
