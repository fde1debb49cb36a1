// Transposes through a tile in shared memory whose columns are swizzled by the row, so that neither
// side has bank conflicts. Block 32 x 8.

extern "C" __global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][32];
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < 32; y += 8) {
    const int row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    if (row < rows && column < columns) tile[y][x ^ y] = in[row * columns + column];
  }
  __syncthreads();
  for (int y = threadIdx.y; y < 32; y += 8) {
    const int row = blockIdx.x * 32 + y, column = blockIdx.y * 32 + x;
    if (row < columns && column < rows) out[row * rows + column] = tile[x][y ^ x];
  }
}
