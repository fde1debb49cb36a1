// A graph as text for Graphviz.

#include <fstream>
#include <sstream>

#include "tests/cuda_emulator/driver/driver.h"

using namespace emulator::driver;

namespace {

std::string label_of(const Node& node, bool verbose) {
  std::ostringstream text;
  if (const auto* kernel = std::get_if<KernelAction>(&node.action)) {
    text << "KERNEL\\n" << kernel->function->name;
    if (verbose)
      text << "\\ngrid " << kernel->grid.x << " x " << kernel->grid.y << " x " << kernel->grid.z
           << ", block " << kernel->block.x << " x " << kernel->block.y << " x " << kernel->block.z
           << ", " << kernel->dynamic_shared << " bytes of shared memory";
  } else if (const auto* copy = std::get_if<CopyAction>(&node.action)) {
    text << "MEMCPY\\n" << (copy->from.host ? "H" : "D") << "to" << (copy->to.host ? "H" : "D");
    if (verbose) text << "\\n" << copy->width << " x " << copy->height << " x " << copy->depth;
  } else if (const auto* fill = std::get_if<FillAction>(&node.action)) {
    text << "MEMSET";
    if (verbose)
      text << "\\nvalue " << fill->given.value << ", " << fill->given.width << " x "
           << fill->given.height << " of " << fill->given.elementSize << " bytes";
  } else if (std::holds_alternative<HostAction>(node.action)) {
    text << "HOST";
  } else if (std::holds_alternative<RecordAction>(node.action)) {
    text << "EVENT_RECORD";
  } else if (std::holds_alternative<WaitAction>(node.action)) {
    text << "EVENT_WAIT";
  } else {
    text << "EMPTY";
  }
  return text.str();
}

class Printer {
 public:
  Printer(std::ostream& out, bool verbose) : out_(out), verbose_(verbose) {}

  void print(const Graph& graph) {
    const int number = graphs_++;
    out_ << "subgraph cluster_" << number << " {\nlabel=\"graph_" << number << "\";\n";
    std::map<CUgraphNode, std::string> names;
    for (const std::shared_ptr<Node>& node : graph.nodes) {
      const std::string name =
          "\"graph_" + std::to_string(number) + "_node_" + std::to_string(names.size()) + "\"";
      names[node->handle] = name;
      const auto* child = std::get_if<std::shared_ptr<ChildAction>>(&node->action);
      out_ << name << " [shape=box label=\"" << names.size() - 1 << " "
           << (child ? "GRAPH\\ngraph_" + std::to_string(graphs_) : label_of(*node, verbose_))
           << "\"];\n";
      if (child) print(*(*child)->graph);
    }
    for (const std::shared_ptr<Node>& node : graph.nodes) {
      for (CUgraphNode before : node->dependencies)
        out_ << names.at(before) << " -> " << names.at(node->handle) << ";\n";
    }
    out_ << "}\n";
  }

 private:
  std::ostream& out_;
  bool verbose_;
  int graphs_ = 0;
};

}  // namespace

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags) {
  return entry("cuGraphDebugDotPrint", [&](Call& call) {
    const std::shared_ptr<Graph> graph = graph_at(call, hGraph);
    require(path);
    std::ofstream out(path);
    out << "digraph dot {\n";
    Printer(out, flags != 0).print(*graph);
    out << "}\n";
    require(bool(out.flush()), CUDA_ERROR_OPERATING_SYSTEM);
  });
}
