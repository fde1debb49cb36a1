#pragma once

// Graphs, what they become when instantiated, and captures of streams into them.

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/cuda_emulator/driver/action.h"

namespace emulator::driver {

struct Stream;

struct Node {
  CUgraphNode handle = nullptr;
  CUgraph graph = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Action action;
  std::vector<CUgraphNode> dependencies;   // each once
  CUgraphNode original = nullptr;          // of a clone
  std::vector<void*> parameter_addresses;  // as KernelNodeGetParams gives them
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
  std::shared_ptr<Body> child;
};

// Immutable while a launch of it may run: changes make a new one.
struct Body {
  std::vector<Step> steps;  // in an order that the edges allow
};

struct GraphExec {
  CUgraphExec handle = nullptr;
  std::shared_ptr<const Body> body;
  unsigned long long flags = 0;
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

}  // namespace emulator::driver
