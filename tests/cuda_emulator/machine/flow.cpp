#include "tests/cuda_emulator/machine/flow.h"

#include <algorithm>

namespace emulator {
namespace {

bool ends_block(const ptx::Instruction& instruction) {
  const std::string& o = instruction.opcode;
  return o == "bra" || o == "brx" || o == "ret" || o == "exit" || o == "trap";
}

// Instructions that a branch names, in order of writing.
std::vector<uint32_t> targets(const ptx::Function& function, const ptx::Instruction& instruction) {
  std::vector<uint32_t> result;
  for (const ptx::Operand& operand : instruction.operands) {
    if (operand.kind == ptx::Operand::Kind::label) {
      result.push_back(operand.index);
    } else if (operand.kind == ptx::Operand::Kind::table && instruction.opcode == "brx" &&
               operand.index < function.branch_targets.size()) {
      const auto& table = function.branch_targets[operand.index];
      result.insert(result.end(), table.begin(), table.end());
    }
  }
  return result;
}

void split(const ptx::Function& function, FlowGraph& graph) {
  const auto count = static_cast<uint32_t>(function.instructions.size());
  std::vector<char> leads(count + 1, 0);
  leads[0] = leads[count] = 1;
  for (uint32_t i = 0; i < count; ++i) {
    const ptx::Instruction& instruction = function.instructions[i];
    if (!ends_block(instruction)) continue;
    leads[i + 1] = 1;
    for (uint32_t target : targets(function, instruction)) leads[std::min(target, count)] = 1;
  }
  graph.block_of.resize(count + 1);
  for (uint32_t i = 0; i <= count; ++i) {
    if (leads[i]) {
      if (!graph.blocks.empty()) graph.blocks.back().last = i;
      graph.blocks.push_back({i, count, {}, false});
    }
    graph.block_of[i] = static_cast<uint32_t>(graph.blocks.size() - 1);
  }
}

void connect(const ptx::Function& function, FlowGraph& graph) {
  const auto count = static_cast<uint32_t>(function.instructions.size());
  for (FlowGraph::Block& block : graph.blocks) {
    if (block.first == count) continue;
    const ptx::Instruction& last = function.instructions[block.last - 1];
    block.falls_through = !ends_block(last) || last.guard.has_value();
    // What is visited first comes last in the order: the way straight on follows at once.
    for (uint32_t target : targets(function, last)) {
      block.successors.push_back(graph.block_of[std::min(target, count)]);
    }
    if (block.falls_through) block.successors.push_back(graph.block_of[block.last]);
  }
}

// Strongly connected components within components: a loop is a component, its header is the block
// through which it is entered first, and without the branches back to the header the rest is
// ordered in the same way. Works for loops with several entries too.
class Order {
 public:
  explicit Order(FlowGraph& graph)
      : graph_(graph), level_(graph.blocks.size(), 0), state_(graph.blocks.size()) {}

  void run() {
    place(0, 0);
    std::vector<char> placed(graph_.blocks.size(), 0);
    for (uint32_t block : graph_.order) placed[block] = 1;
    for (uint32_t block = 0; block < graph_.blocks.size(); ++block) {
      if (!placed[block]) graph_.order.push_back(block);
    }
  }

 private:
  static constexpr uint32_t kDeepest = 500;
  struct State {
    uint32_t number = 0, low = 0, next = 0;  // number 0: not visited
    bool open = false;
  };

  // Orders what is reachable from start within the blocks of that level, without edges to start.
  void place(uint32_t start, uint32_t level) {
    if (level > kDeepest) throw ptx::Error(0, "loops are nested too deep");
    const std::vector<std::vector<uint32_t>> components = find(start, level);
    for (auto component = components.rbegin(); component != components.rend(); ++component) {
      if (component->size() == 1) {
        graph_.order.push_back(component->front());
        continue;
      }
      for (uint32_t block : *component) {
        level_[block] = level + 1;
        state_[block] = {};
      }
      place(component->front(), level + 1);
    }
  }

  // Tarjan's algorithm without recursion; successors first. The first block of a component is the
  // one it is entered by.
  std::vector<std::vector<uint32_t>> find(uint32_t start, uint32_t level) {
    std::vector<std::vector<uint32_t>> components;
    std::vector<uint32_t> open, path{start};
    uint32_t numbers = 0;
    const auto visit = [&](uint32_t block) {
      state_[block] = {++numbers, numbers, 0, true};
      open.push_back(block);
    };
    visit(start);
    while (!path.empty()) {
      const uint32_t block = path.back();
      State& state = state_[block];
      const auto& successors = graph_.blocks[block].successors;
      if (state.next < successors.size()) {
        const uint32_t to = successors[state.next++];
        if ((level > 0 && to == start) || level_[to] != level) continue;
        if (state_[to].number == 0) {
          visit(to);
          path.push_back(to);
        } else if (state_[to].open) {
          state.low = std::min(state.low, state_[to].number);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        State& before = state_[path.back()];
        before.low = std::min(before.low, state.low);
      }
      if (state.low != state.number) continue;
      const auto first = std::find(open.rbegin(), open.rend(), block).base() - 1;
      components.emplace_back(first, open.end());
      for (uint32_t member : components.back()) state_[member].open = false;
      open.erase(first, open.end());
    }
    return components;
  }

  FlowGraph& graph_;
  std::vector<uint32_t> level_;  // of the loop that a block is in, as far as known
  std::vector<State> state_;
};

}  // namespace

FlowGraph flow_graph(const ptx::Function& function) {
  FlowGraph graph;
  split(function, graph);
  connect(function, graph);
  Order(graph).run();
  return graph;
}

}  // namespace emulator
