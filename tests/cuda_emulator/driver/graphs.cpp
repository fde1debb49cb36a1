// Graphs: nodes and edges.

#include <algorithm>

#include "tests/cuda_emulator/driver/driver.h"

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

std::shared_ptr<Graph> clone(Driver& driver, const Graph& graph, bool nested) {
  auto copy = std::make_shared<Graph>();
  driver.graphs.add(copy);
  copy->original = graph.handle;
  copy->nested = nested;
  std::map<CUgraphNode, CUgraphNode> copies;
  for (const std::shared_ptr<Node>& node : graph.nodes) {
    Action action = node->action;
    if (const auto* child = std::get_if<std::shared_ptr<ChildAction>>(&action)) {
      auto own = std::make_shared<ChildAction>();
      own->graph = clone(driver, *(*child)->graph, true);
      action = std::move(own);
    }
    const std::shared_ptr<Node> made = add_node(driver, *copy, std::move(action), {});
    made->original = node->handle;
    copies[node->handle] = made->handle;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (CUgraphNode before : graph.nodes[i]->dependencies)
      copy->nodes[i]->dependencies.push_back(copies.at(before));
  }
  return copy;
}

std::shared_ptr<Graph> graph_at(Call& call, CUgraph handle) {
  return call.driver.graphs.at(handle, CUDA_ERROR_INVALID_VALUE);
}

std::shared_ptr<Node> node_at(Call& call, CUgraphNode handle) {
  return call.driver.nodes.at(handle, CUDA_ERROR_INVALID_VALUE);
}

std::vector<CUgraphNode> checked_dependencies(Call& call, const Graph& graph,
                                              const CUgraphNode* nodes, size_t count) {
  require(count == 0 || nodes);
  std::vector<CUgraphNode> checked;
  for (size_t i = 0; i < count; ++i) {
    require(node_at(call, nodes[i])->graph == graph.handle);
    require(std::find(checked.begin(), checked.end(), nodes[i]) == checked.end());
    checked.push_back(nodes[i]);
  }
  return checked;
}

bool depends_on(Call& call, CUgraphNode node, CUgraphNode other) {
  std::vector<CUgraphNode> open = {node};
  std::set<CUgraphNode> seen = {node};
  while (!open.empty()) {
    const CUgraphNode next = open.back();
    open.pop_back();
    if (next == other) return true;
    for (CUgraphNode before : call.driver.nodes.at(next)->dependencies) {
      if (seen.insert(before).second) open.push_back(before);
    }
  }
  return false;
}

namespace {

// Fills an array of at most *count handles as cuGraphGetNodes does.
void give(const std::vector<CUgraphNode>& all, CUgraphNode* to, size_t* count) {
  require(count);
  if (to) {
    for (size_t i = 0; i < *count; ++i) to[i] = i < all.size() ? all[i] : nullptr;
    *count = std::min(*count, all.size());
  } else {
    *count = all.size();
  }
}

std::vector<CUgraphNode> dependents(Call& call, const Node& node) {
  std::vector<CUgraphNode> found;
  for (const std::shared_ptr<Node>& other : call.driver.graphs.at(node.graph)->nodes) {
    const auto& before = other->dependencies;
    if (std::find(before.begin(), before.end(), node.handle) != before.end())
      found.push_back(other->handle);
  }
  return found;
}

// Edges have no data here: all of them mean that the whole of a node comes after the whole of
// another.
void no_data(const CUgraphEdgeData* data, size_t count) {
  for (size_t i = 0; data && i < count; ++i)
    require(!data[i].from_port && !data[i].to_port && !data[i].type, CUDA_ERROR_NOT_SUPPORTED);
}

void clear(CUgraphEdgeData* data, size_t count) {
  for (size_t i = 0; data && i < count; ++i) data[i] = {};
}

CUresult get_edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                   size_t* count) {
  return entry("cuGraphGetEdges", [&](Call& call) {
    const std::shared_ptr<Graph> graph = graph_at(call, handle);
    require(count && !from == !to && (!data || from));
    std::vector<CUgraphNode> sources, targets;
    for (const std::shared_ptr<Node>& node : graph->nodes) {
      for (CUgraphNode before : node->dependencies) {
        sources.push_back(before);
        targets.push_back(node->handle);
      }
    }
    size_t given = *count;
    give(sources, from, &given);
    clear(data, given);
    give(targets, to, count);
  });
}

CUresult get_dependencies(CUgraphNode handle, CUgraphNode* to, CUgraphEdgeData* data,
                          size_t* count) {
  return entry("cuGraphNodeGetDependencies", [&](Call& call) {
    const std::shared_ptr<Node> node = node_at(call, handle);
    require(!data || to);
    give(node->dependencies, to, count);
    clear(data, *count);
  });
}

CUresult get_dependents(CUgraphNode handle, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  return entry("cuGraphNodeGetDependentNodes", [&](Call& call) {
    const std::shared_ptr<Node> node = node_at(call, handle);
    require(!data || to);
    give(dependents(call, *node), to, count);
    clear(data, *count);
  });
}

// The pair of nodes of an edge, both of that graph.
std::pair<std::shared_ptr<Node>, std::shared_ptr<Node>> ends(Call& call, CUgraph graph,
                                                             CUgraphNode from, CUgraphNode to) {
  std::pair<std::shared_ptr<Node>, std::shared_ptr<Node>> pair{node_at(call, from),
                                                               node_at(call, to)};
  require(pair.first->graph == graph && pair.second->graph == graph);
  return pair;
}

CUresult add_dependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                          const CUgraphEdgeData* data, size_t count) {
  return entry("cuGraphAddDependencies", [&](Call& call) {
    graph_at(call, graph);
    require(count == 0 || (from && to));
    no_data(data, count);
    for (size_t i = 0; i < count; ++i) {
      const auto [source, target] = ends(call, graph, from[i], to[i]);
      auto& before = target->dependencies;
      require(std::find(before.begin(), before.end(), from[i]) == before.end());
      require(!depends_on(call, from[i], to[i]));
      before.push_back(from[i]);
    }
  });
}

CUresult remove_dependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                             const CUgraphEdgeData* data, size_t count) {
  return entry("cuGraphRemoveDependencies", [&](Call& call) {
    graph_at(call, graph);
    require(count == 0 || (from && to));
    no_data(data, count);
    for (size_t i = 0; i < count; ++i) {
      const auto [source, target] = ends(call, graph, from[i], to[i]);
      require(std::erase(target->dependencies, from[i]) == 1);
    }
  });
}

}  // namespace
}  // namespace emulator::driver

CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
  return entry("cuGraphCreate", [&](Call& call) {
    require(phGraph && flags == 0);
    *phGraph = call.driver.graphs.add(std::make_shared<Graph>());
  });
}

CUresult cuGraphDestroy(CUgraph hGraph) {
  return entry("cuGraphDestroy", [&](Call& call) {
    const std::shared_ptr<Graph> graph = graph_at(call, hGraph);
    require(!graph->nested);
    for (const std::shared_ptr<Capture>& capture : call.driver.captures)
      require(capture->graph != graph);
    destroy_graph(call.driver, graph);
  });
}

CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  return entry("cuGraphClone", [&](Call& call) {
    require(phGraphClone);
    *phGraphClone = clone(call.driver, *graph_at(call, originalGraph), false)->handle;
  });
}

CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode,
                                CUgraph hClonedGraph) {
  return entry("cuGraphNodeFindInClone", [&](Call& call) {
    require(phNode);
    for (const std::shared_ptr<Node>& node : graph_at(call, hClonedGraph)->nodes) {
      if (node->original != hOriginalNode) continue;
      *phNode = node->handle;
      return;
    }
    fail();
  });
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  return entry("cuGraphGetNodes", [&](Call& call) {
    std::vector<CUgraphNode> all;
    for (const std::shared_ptr<Node>& node : graph_at(call, hGraph)->nodes)
      all.push_back(node->handle);
    give(all, nodes, numNodes);
  });
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  return entry("cuGraphGetRootNodes", [&](Call& call) {
    std::vector<CUgraphNode> roots;
    for (const std::shared_ptr<Node>& node : graph_at(call, hGraph)->nodes) {
      if (node->dependencies.empty()) roots.push_back(node->handle);
    }
    give(roots, rootNodes, numRootNodes);
  });
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edgeData, size_t* numEdges) {
  return get_edges(hGraph, from, to, edgeData, numEdges);
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges) {
  return get_edges(hGraph, from, to, nullptr, numEdges);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies,
                                       CUgraphEdgeData* edgeData, size_t* numDependencies) {
  return get_dependencies(hNode, dependencies, edgeData, numDependencies);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies,
                                    size_t* numDependencies) {
  return get_dependencies(hNode, dependencies, nullptr, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                         CUgraphEdgeData* edgeData, size_t* numDependentNodes) {
  return get_dependents(hNode, dependentNodes, edgeData, numDependentNodes);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                      size_t* numDependentNodes) {
  return get_dependents(hNode, dependentNodes, nullptr, numDependentNodes);
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edgeData, size_t numDependencies) {
  return add_dependencies(hGraph, from, to, edgeData, numDependencies);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t numDependencies) {
  return add_dependencies(hGraph, from, to, nullptr, numDependencies);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from,
                                      const CUgraphNode* to, const CUgraphEdgeData* edgeData,
                                      size_t numDependencies) {
  return remove_dependencies(hGraph, from, to, edgeData, numDependencies);
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t numDependencies) {
  return remove_dependencies(hGraph, from, to, nullptr, numDependencies);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  return entry("cuGraphDestroyNode", [&](Call& call) {
    const std::shared_ptr<Node> node = node_at(call, hNode);
    const std::shared_ptr<Graph> graph = graph_at(call, node->graph);
    for (const std::shared_ptr<Capture>& capture : call.driver.captures)
      require(capture->graph != graph);
    for (const std::shared_ptr<Node>& other : graph->nodes) std::erase(other->dependencies, hNode);
    if (const auto* child = std::get_if<std::shared_ptr<ChildAction>>(&node->action))
      destroy_graph(call.driver, (*child)->graph);
    std::erase(graph->nodes, node);
    call.driver.nodes.remove(hNode);
  });
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  return entry("cuGraphNodeGetType", [&](Call& call) {
    require(type);
    *type = node_at(call, hNode)->type;
  });
}
