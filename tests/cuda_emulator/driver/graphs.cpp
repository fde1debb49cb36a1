// Graphs: nodes and edges.

#include <algorithm>

#include "tests/cuda_emulator/driver/capture.h"

using namespace emulator::driver;

namespace emulator::driver {

CUgraphNodeType type_of(const Action& action) {
  if (std::holds_alternative<KernelAction>(action)) return CU_GRAPH_NODE_TYPE_KERNEL;
  if (std::holds_alternative<CopyAction>(action)) return CU_GRAPH_NODE_TYPE_MEMCPY;
  if (std::holds_alternative<FillAction>(action)) return CU_GRAPH_NODE_TYPE_MEMSET;
  if (std::holds_alternative<HostAction>(action)) return CU_GRAPH_NODE_TYPE_HOST;
  if (std::holds_alternative<FreeAction>(action)) return CU_GRAPH_NODE_TYPE_MEM_FREE;
  if (std::holds_alternative<RecordAction>(action)) return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  if (std::holds_alternative<WaitAction>(action)) return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  if (std::holds_alternative<std::shared_ptr<ChildAction>>(action)) return CU_GRAPH_NODE_TYPE_GRAPH;
  return CU_GRAPH_NODE_TYPE_EMPTY;
}

std::shared_ptr<Node> add_node(Driver& driver, Graph& graph, Action action,
                               std::vector<CUgraphNode> dependencies) {
  auto node = std::make_shared<Node>();
  node->graph = graph.handle;
  node->type = type_of(action);
  node->action = std::move(action);
  node->dependencies = std::move(dependencies);
  driver.nodes.add(node);
  graph.nodes.push_back(node);
  return node;
}

void destroy_graph(Driver& driver, const std::shared_ptr<Graph>& graph) {
  for (const std::shared_ptr<Node>& node : graph->nodes) {
    if (const auto* child = std::get_if<std::shared_ptr<ChildAction>>(&node->action))
      destroy_graph(driver, (*child)->graph);
    driver.nodes.remove(node->handle);
  }
  driver.graphs.remove(graph->handle);
}

}  // namespace emulator::driver
