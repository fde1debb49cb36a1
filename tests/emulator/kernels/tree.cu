// Walks over a binary search tree, every thread on a path of its own.

struct Node {
  int key, left, right;  // children: indices, -1 for none
};

// Depth of each query, or minus one minus the number of nodes passed where it is not there.
extern "C" __global__ void find(const Node* nodes, int root, const int* queries, int* depths,
                                int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int at = root, depth = 0;
  const int wanted = queries[i];
  while (at >= 0) {
    const Node node = nodes[at];
    if (node.key == wanted) break;
    at = wanted < node.key ? node.left : node.right;
    ++depth;
  }
  depths[i] = at >= 0 ? depth : -1 - depth;
}

// Sum of keys below a node, by recursion to both sides.
__device__ __noinline__ long long sum_below(const Node* nodes, int at) {
  if (at < 0) return 0;
  const Node node = nodes[at];
  return sum_below(nodes, node.left) + node.key + sum_below(nodes, node.right);
}

extern "C" __global__ void sums(const Node* nodes, long long* results, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) results[i] = sum_below(nodes, i);
}

// Height of a node by a walk with a stack of its own; threads leave the loop at different times, and
// vote on whether anyone is left.
extern "C" __global__ void heights(const Node* nodes, int* results, int* rounds, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int stack[64], levels[64], top = 0, best = 0, turns = 0;
  if (i < count) {
    stack[0] = i;
    levels[0] = 1;
    top = 1;
  }
  while (__any_sync(0xffffffffu, top > 0)) {
    ++turns;
    if (top == 0) continue;
    --top;
    const int at = stack[top], level = levels[top];
    const Node node = nodes[at];
    best = max(best, level);
    if (node.left >= 0) {
      stack[top] = node.left;
      levels[top++] = level + 1;
    }
    if (node.right >= 0) {
      stack[top] = node.right;
      levels[top++] = level + 1;
    }
  }
  if (i < count) results[i] = best;
  if (threadIdx.x % 32 == 0) rounds[i / 32] = turns;
}
