#include "tests/emulator/faults.h"

namespace emulator_test {
namespace {

using Faults = std::vector<Fault>;

void append(Faults* all, const Faults& more) { all->insert(all->end(), more.begin(), more.end()); }

Faults in_reduction() {
  const std::string file = "reduction.cu", one = "reduction";
  return {
      {"barrier dropped between warps",
       one,
       {{file, "  __syncthreads();\n  if (warp == 0) {", "  if (warp == 0) {"}},
       "race|undefined value"},
      {"shuffle with a mask of half the warp",
       one,
       {{file, "__shfl_down_sync(0xffffffffu, value.sum",
         "__shfl_down_sync(0x0000ffffu, value.sum"}},
       "member mask"},
      {"tail mask missing over warps",
       one,
       {{file, "lane < count ? warps[lane] : Partial{0, 0x7fffffff, -0x7fffffff - 1}",
         "warps[lane]"}},
       "undefined value|numbers"},
      {"fence missing before the ticket",
       one,
       {{file, "    partials[blockIdx.x] = mine;\n    __threadfence();",
         "    partials[blockIdx.x] = mine;"}},
       "race"},
      {"guard shifted by one",
       one,
       {{file, "i < count; i += gridDim", "i <= count; i += gridDim"}},
       "out of bounds"},
      {"loop ends one early",
       one,
       {{file, "i < gridDim.x; i += blockDim.x) mine", "i < gridDim.x - 1; i += blockDim.x) mine"}},
       "numbers"},
      {"ticket not returned", one, {{file, "    *ticket = 0;\n", ""}}, "numbers"},
  };
}

Faults in_scan() {
  const std::string file = "scan.cu", one = "scan";
  return {
      {"fence missing before the flag",
       one,
       {{file, "  *value = what;\n  __threadfence();", "  *value = what;"}},
       "race"},
      {"fence missing after the flag",
       one,
       {{file, "    __threadfence();\n    if (flag", "    if (flag"}},
       "race"},
      {"flag stored as ordinary value",
       one,
       {{file, "*(volatile unsigned*)flag = state;", "*flag = state;"}},
       "race"},
      {"lane compared with one off",
       one,
       {{file, "if (lane >= distance)", "if (lane > distance)"}},
       "numbers"},
      {"sums of warps read without a barrier",
       one,
       {{file, "  __syncthreads();\n  unsigned before_thread", "  unsigned before_thread"}},
       "race|undefined value"},
      {"prefix read without a barrier",
       one,
       {{file, "  __syncthreads();\n  for (int i = 0; i < kItems; ++i) {\n    if",
         "  for (int i = 0; i < kItems; ++i) {\n    if"}},
       "race|undefined value"},
      {"prefix without what came before",
       one,
       {{file, "before_tile + all, kPrefix", "all, kPrefix"}},
       "numbers"},
      {"flag never raised",
       one,
       {{file, "if (tile > 0) publish(&tiles.aggregate[tile], &tiles.flag[tile], all, kAggregate)",
         "if (tile > 0) tiles.aggregate[tile] = all"},
        {file, "before_tile + all, kPrefix", "before_tile + all, kNothing"}},
       "deadlock"},
  };
}

Faults in_transpose() {
  const std::string file = "transpose.cu", one = "transpose";
  return {
      {"swizzle wrong on one side",
       one,
       {{file, "tile[x][y ^ x]", "tile[x][y]"}},
       "undefined value|numbers"},
      {"barrier dropped", one, {{file, "  __syncthreads();\n", ""}}, "race|undefined value"},
      {"barrier dropped from the PTX", one, {{"ptx", "bar.sync", "// bar.sync"}}, "race"},
      {"barrier for half of the threads",
       one,
       {{file, "  __syncthreads();", "  if (x < 16) __syncthreads();"}},
       "race|divergence|deadlock"},
      {"guard shifted by one row",
       one,
       {{file, "row < columns && column < rows", "row <= columns && column < rows"}},
       "out of bounds|undefined value"},
      {"wrong stride",
       one,
       {{file, "out[row * rows + column]", "out[row * columns + column]"}},
       "out of bounds|race|numbers"},
      {"tile a row short", one, {{file, "tile[32][32]", "tile[31][32]"}}, "out of bounds"},
  };
}

Faults in_product() {
  const std::string file = "gemm.cu", one = "product bf16";
  return {
      {"wait forgotten", one, {{file, "    wait<1>();\n", ""}}, "race"},
      {"wait_group count off by one", one, {{file, "    wait<1>();", "    wait<2>();"}}, "race"},
      {"commit forgotten",
       one,
       {{file, "    commit();\n    wait<1>();", "    wait<1>();"}},
       "race"},
      {"stage overwritten early: barrier dropped",
       one,
       {{file, "warp_column);\n    __syncthreads();\n  }", "warp_column);\n  }"}},
       "race"},
      {"stage overwritten early: wrong stage",
       one,
       {{file, "load_stage(base + (step + 1) % 2 * kStage", "load_stage(base + step % 2 * kStage"}},
       "race"},
      {"barrier dropped before the product",
       one,
       {{file, "    wait<1>();\n    __syncthreads();", "    wait<1>();"}},
       "race"},
      {"swizzle wrong on one side",
       one,
       {{file, "copy(stage + offset_a(row, piece)", "copy(stage + offset_a(row, piece ^ 1)"}},
       "numbers"},
      {"fragment index off by one",
       one,
       {{file, "b[j / 2][j % 2 * 2 + 1]", "b[j / 2][j % 2 * 2]"}},
       "numbers"},
      {"accumulator not initialised",
       one,
       {{file, "float c[2][4][4] = {};", "float c[2][4][4];"}},
       "undefined value"},
      {"tail mask missing",
       one,
       {{file, "elements > 8 ? 16 : elements * 2", "16"}},
       "numbers|out of bounds"},
      {"guard shifted by one",
       one,
       {{file, "row < p.m && column < p.n", "row <= p.m && column < p.n"}},
       "out of bounds"},
      {"read past the tile",
       one,
       {{file, "kk < kK / 16; ++kk", "kk <= kK / 16; ++kk"}},
       "out of bounds|undefined value|race|numbers"},
      {"misaligned copy",
       one,
       {{file, "(long long)(row0 + row) * p.lda", "(long long)(row0 + row) * (p.lda - 1)"}},
       "misaligned address"},
      {"last step left out", one, {{file, "(p.k + kK - 1) / kK", "p.k / kK"}}, "numbers"},
      {"load transposed as if it were not",
       one,
       {{file, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
         "ldmatrix.sync.aligned.m8n8.x4.shared.b16"}},
       "numbers"},
  };
}

Faults in_histogram() {
  const std::string file = "histogram.cu", one = "histogram";
  return {
      {"counts without atomics",
       one,
       {{file, "atomicAdd(&mine[values[i]], 1u);", "mine[values[i]] += 1;"}},
       "race"},
      {"one bin not cleared",
       one,
       {{file, "i < 256; i += blockDim.x) mine[i] = 0", "i < 255; i += blockDim.x) mine[i] = 0"}},
       "undefined value"},
      {"barrier dropped after clearing",
       one,
       {{file, "mine[i] = 0;\n  __syncthreads();", "mine[i] = 0;"}},
       "race|undefined value"},
      {"sums of blocks without atomics",
       one,
       {{file, "atomicAdd(&bins[i], mine[i])", "bins[i] += mine[i]"}},
       "race"},
  };
}

Faults in_pipeline() {
  const std::string file = "pipeline.cu", one = "pipeline";
  return {
      {"arrive count one too many",
       one,
       {{file, "init(empty + stage * 8, kConsumers * 32)",
         "init(empty + stage * 8, kConsumers * 32 + 1)"}},
       "deadlock"},
      {"arrive count one too few",
       one,
       {{file, "init(full + stage * 8, 32)", "init(full + stage * 8, 31)"}},
       "race|wrong use of a barrier|deadlock"},
      {"wrong parity",
       one,
       {{file, "(turn / kStages - 1) & 1", "(turn / kStages) & 1"}},
       "deadlock|race"},
      {"full stage not waited for",
       one,
       {{file, "      wait(full + stage * 8, (turn / kStages) & 1);\n", ""}},
       "race|undefined value"},
      {"empty stage not waited for",
       one,
       {{file, "      if (turn >= kStages) wait(empty + stage * 8, (turn / kStages - 1) & 1);\n",
         ""}},
       "race|wrong use of a barrier"},
      {"consumers' barrier dropped",
       one,
       {{file, "      asm volatile(\"bar.sync 1, 96;\" ::: \"memory\");  // the consumers alone\n",
         ""}},
       "race|undefined value"},
      {"barrier that waits for all warps",
       one,
       {{file, "\"bar.sync 1, 96;\" ::: \"memory\");  //",
         "\"bar.sync 1, 128;\" ::: \"memory\");  //"}},
       "deadlock|wrong use of a barrier|race"},
      {"mbarriers used before others see them",
       one,
       {{file, "  __syncthreads();\n", ""}},
       "race|wrong use of a barrier"},
      {"arrival that does not wait for the copies",
       one,
       {{file, "arrive_after_copies(full", "arrive(full"}},
       "race"},
      {"the same with test_wait",
       one,
       {{file, "arrive_after_copies(full", "arrive(full"}},
       "race",
       "sm_80"},
  };
}

Faults in_walks() {
  const std::string tree = "tree.cu", calls = "calls.cu", spaces = "spaces.cu";
  return {
      {"walk goes on past a leaf",
       "search",
       {{tree, "while (at >= 0)", "while (at >= -1)"}},
       "out of bounds"},
      {"recursion without an end",
       "recursion",
       {{tree, "  if (at < 0) return 0;\n", "  if (at == -2) return 0;\n"}},
       "out of bounds"},
      {"recursion that never ends",
       "recursion",
       {{tree, "sum_below(nodes, node.left) + node.key", "sum_below(nodes, at) + node.key"}},
       "stack overflow"},
      {"vote without its last lane",
       "votes",
       {{tree, "__any_sync(0xffffffffu", "__any_sync(0x7fffffffu"}},
       "member mask"},
      {"stack of a thread too small",
       "votes",
       {{tree, "int stack[64]", "int stack[2]"}},
       "numbers|out of bounds"},
      {"table of functions read past its end",
       "calls",
       {{calls, "functions[in[i] % 3]", "functions[in[i] % 4]"}},
       "out of bounds"},
      {"array of a thread read past its end",
       "spaces",
       {{spaces, "out[i * 16 + k] = values[k];", "out[i * 16 + k] = values[k + (count > 0)];"}},
       "out of bounds"},
      {"misaligned pair",
       "spaces",
       {{spaces, "const int value = in[i * 16 + k];",
         "const int2 pair = reinterpret_cast<const int2*>(in + 1)[i * 8 + k / 2];\n"
         "    const int value = pair.x + pair.y;"}},
       "misaligned address"},
      {"dynamic shared memory read past its end",
       "dynamic shared",
       {{spaces, "dynamic[count - 1 - i]", "dynamic[count - i]"}},
       "out of bounds"},
      {"one place written by two threads",
       "dynamic shared",
       {{spaces, "out[i] = dynamic[count - 1 - i]", "out[i / 2] = dynamic[count - 1 - i]"}},
       "race"},
      {"write to constant memory",
       "spaces",
       {{spaces, "if (i == 0) launches += 1;",
         "if (i == 0) launches += 1;\n"
         "  asm volatile(\"st.f32 [%0], %1;\" ::\"l\"(&coefficients[1]), \"f\"(0.f) : "
         "\"memory\");"}},
       "write to read-only memory"},
  };
}

Faults in_waits() {
  const std::string file = "grid.cu";
  return {
      {"barrier of the grid dropped",
       "grid barrier",
       {{file, "    wait_for_grid(arrived, phase);\n", ""}},
       "race"},
      {"fence missing in the barrier of the grid",
       "grid barrier",
       {{file, "= *(volatile unsigned*)phase;\n    __threadfence();",
         "= *(volatile unsigned*)phase;"}},
       "race"},
      {"fence missing before the flag",
       "message",
       {{file, "    __threadfence();\n    __syncthreads();", "    __syncthreads();"}},
       "race"},
      {"flag read without a fence or a barrier",
       "message",
       {{file,
         "    if (threadIdx.x == 0) {\n      while (atomicAdd(flag, 0u) == 0) {\n      }\n"
         "      __threadfence();\n    }\n    __syncthreads();",
         "    while (atomicAdd(flag, 0u) == 0) {\n    }"}},
       "race"},
      {"flag never raised",
       "message",
       {{file, "atomicExch(flag, 1u)", "atomicExch(flag, 0u)"}},
       "deadlock"},
      {"release that is only volatile",
       "halves of a warp",
       {{file, "st.release.cta.shared.u32", "st.volatile.shared.u32"}},
       "race"},
      {"acquire that is only volatile",
       "halves of a warp",
       {{file, "ld.acquire.cta.shared.u32", "ld.volatile.shared.u32"}},
       "race"},
      {"syncwarp dropped",
       "halves of a warp",
       {{file, "    __syncwarp(0x0000ffffu);\n", ""}},
       "race"},
      {"syncwarp of lanes that do not come",
       "halves of a warp",
       {{file, "__syncwarp(0x0000ffffu)", "__syncwarp(0x0001ffffu)"}},
       "deadlock|member mask"},
  };
}

}  // namespace

const std::vector<Fault>& kernel_faults() {
  static const Faults all = [] {
    Faults list;
    for (const auto part : {in_reduction, in_scan, in_transpose, in_product, in_histogram,
                            in_pipeline, in_walks, in_waits}) {
      append(&list, part());
    }
    return list;
  }();
  return all;
}

}  // namespace emulator_test
