#pragma once

// Graphs, what they become when instantiated, and captures of streams into them.

#include <memory>
#include <thread>
#include <vector>

#include "tests/cuda_emulator/driver/action.h"

namespace emulator::driver {

class Call;
class Driver;
struct Stream;
struct Work;

struct Node {
  CUgraphNode handle = nullptr;
  CUgraph graph = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Action action;
  std::vector<CUgraphNode> dependencies;  // each once
  CUgraphNode original = nullptr;         // of a clone
  // What KernelNodeGetParams points to.
  std::vector<void*> parameter_addresses;
};

struct Graph {
  CUgraph handle = nullptr;
  std::vector<std::shared_ptr<Node>> nodes;  // in the order they were added
  CUgraph original = nullptr;                // of a clone
  bool nested = false;                       // belongs to a child node
};

struct ChildAction {
  std::shared_ptr<Graph> graph;
};

struct Body;

struct Step {
  CUgraphNode origin = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Action action;
  std::vector<size_t> after;  // steps
  bool enabled = true;
  std::shared_ptr<const Body> child;
};

// Immutable, as a launch of it may run: changes make a new one.
struct Body {
  std::vector<Step> steps;
};

struct GraphExec {
  CUgraphExec handle = nullptr;
  std::shared_ptr<const Body> body;
  unsigned long long flags = 0;
  std::shared_ptr<Work> last;  // launches of it follow one another
};

struct Capture {
  std::shared_ptr<Graph> graph;
  std::weak_ptr<Stream> origin;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  unsigned long long id = 0;
  bool given = false;               // the graph is the program's, not one of this capture
  CUresult invalid = CUDA_SUCCESS;  // set once it is invalidated
  std::vector<std::shared_ptr<Stream>> streams;  // that joined, the origin first
};

// Runs the steps on the worker's thread, in an order drawn among those that the edges allow.
CUresult perform(const Body& body, uint64_t seed, CUresult context_error);

CUgraphNodeType type_of(const Action& action);
// A new node of the graph; dependencies are known to be its nodes.
std::shared_ptr<Node> add_node(Driver& driver, Graph& graph, Action action,
                               std::vector<CUgraphNode> dependencies);
// Removes the graph with its nodes and the graphs within them.
void destroy_graph(Driver& driver, const std::shared_ptr<Graph>& graph);
// A copy with nodes of its own.
std::shared_ptr<Graph> clone(Driver& driver, const Graph& graph, bool nested);
// INVALID_VALUE for handles that are none.
std::shared_ptr<Graph> graph_at(Call& call, CUgraph handle);
std::shared_ptr<Node> node_at(Call& call, CUgraphNode handle);
// Dependencies of a new node, checked: nodes of the graph, each once.
std::vector<CUgraphNode> checked_dependencies(Call& call, const Graph& graph,
                                              const CUgraphNode* nodes, size_t count);
// Whether one can reach the other along dependencies.
bool depends_on(Call& call, CUgraphNode node, CUgraphNode other);

// Actions from the parameters of nodes; INVALID_VALUE, INVALID_CONTEXT.
Action kernel_action(Call& call, const CUDA_KERNEL_NODE_PARAMS& params);
Action copy_action(Call& call, const CUDA_MEMCPY3D* params, CUcontext context);
Action fill_action(Call& call, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context);
Action host_action(const CUDA_HOST_NODE_PARAMS* params);
Action child_action(Call& call, CUgraph graph);
Action any_action(Call& call, const CUgraphNodeParams& params);
CUDA_KERNEL_NODE_PARAMS with_context(const CUDA_KERNEL_NODE_PARAMS_v1& params);

std::shared_ptr<const Body> body_of(const Graph& graph);
// A graph of the steps, for a launch in a stream that captures.
std::shared_ptr<Graph> graph_of(Driver& driver, const Body& body);

}  // namespace emulator::driver
