// C[m][n] = A[m][k] B[k][n] on tensor cores: tiles of 64 x 64 x 32 in two stages by cp.async, 4 warps
// of 32 x 32 each, ldmatrix with an xor swizzle of 16-byte pieces. Element type: ELEMENT_BF16, else
// f16. Rows start at multiples of 16 bytes (lda, ldb), and what lies past k or n is zero-filled.
// Parts before 8.0 have neither cp.async nor m16n8k16: plain copies and m16n8k8.

using u16 = unsigned short;
using u32 = unsigned;
constexpr int kM = 64, kN = 64, kK = 32, kThreads = 128;
constexpr u32 kTileA = kM * kK * 2, kTileB = kK * kN * 2, kStage = kTileA + kTileB;

// Byte offsets of the 16-byte piece of a row: A has 4 a row, B has 8.
__device__ u32 offset_a(int row, int piece) { return row * 64 + ((piece ^ ((row >> 1) & 3)) << 4); }
__device__ u32 offset_b(int row, int piece) { return row * 128 + ((piece ^ (row & 7)) << 4); }

__device__ void copy(u32 to, const u16* from, int elements) {
  const int bytes = elements < 0 ? 0 : elements > 8 ? 16 : elements * 2;
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
#else
  for (int i = 0; i < 8; ++i) {
    const u16 value = i * 2 < bytes ? from[i] : u16(0);
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to + i * 2), "h"(value) : "memory");
  }
#endif
}

__device__ void commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int kPending>
__device__ void wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

__device__ void load_matrices(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ void load_transposed(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ < 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, "
      "%2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b0));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, "
      "%2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[2]), "r"(a[3]), "r"(b1));
#elif defined(ELEMENT_BF16)
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

struct Matrices {
  const u16* a;
  const u16* b;
  float* c;
  int m, n, k, lda, ldb;
};

__device__ void load_stage(u32 stage, const Matrices& p, int row0, int column0, int k0) {
  for (int i = threadIdx.x; i < kM * 4; i += kThreads) {
    const int row = i / 4, piece = i % 4, left = p.k - (k0 + piece * 8);
    const bool inside = row0 + row < p.m && left > 0;
    copy(stage + offset_a(row, piece),
         inside ? p.a + (long long)(row0 + row) * p.lda + k0 + piece * 8 : p.a, inside ? left : 0);
  }
  for (int i = threadIdx.x; i < kK * 8; i += kThreads) {
    const int row = i / 8, piece = i % 8, left = p.n - (column0 + piece * 8);
    const bool inside = k0 + row < p.k && left > 0;
    copy(stage + kTileA + offset_b(row, piece),
         inside ? p.b + (long long)(k0 + row) * p.ldb + column0 + piece * 8 : p.b,
         inside ? left : 0);
  }
}

__device__ void multiply_stage(u32 stage, float (&c)[2][4][4], int warp_row, int warp_column) {
  const int lane = threadIdx.x % 32, row = lane % 16, half = lane / 16;
  for (int kk = 0; kk < kK / 16; ++kk) {
    u32 a[2][4], b[2][4];
    for (int i = 0; i < 2; ++i) {
      load_matrices(a[i], stage + offset_a(warp_row + i * 16 + row, kk * 2 + half));
      load_transposed(b[i],
                      stage + kTileA + offset_b(kk * 16 + row, warp_column / 8 + i * 2 + half));
    }
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 4; ++j) multiply(c[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) gemm(const Matrices p) {
  __shared__ __align__(128) unsigned char stages[2 * kStage];
  const u32 base = u32(__cvta_generic_to_shared(stages));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = blockIdx.y * kM, column0 = blockIdx.x * kN;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  float c[2][4][4] = {};
  const int steps = (p.k + kK - 1) / kK;
  load_stage(base, p, row0, column0, 0);
  commit();
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) load_stage(base + (step + 1) % 2 * kStage, p, row0, column0, (step + 1) * kK);
    commit();
    wait<1>();
    __syncthreads();
    multiply_stage(base + step % 2 * kStage, c, warp_row, warp_column);
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int e = 0; e < 4; ++e) {
        const int row = row0 + warp_row + i * 16 + lane / 4 + e / 2 * 8;
        const int column = column0 + warp_column + j * 8 + lane % 4 * 2 + e % 2;
        if (row < p.m && column < p.n) p.c[(long long)row * p.n + column] = c[i][j][e];
      }
    }
  }
}
