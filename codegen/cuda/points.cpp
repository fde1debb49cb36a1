// Loops over the points that a layout gives a thread.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {

std::pair<int, int> CudaEmitter::vector_of(const Layout& layout,
                                           const std::vector<int>& vars) const {
  const int width = layout.neighbours();
  if (width == 1) return {1, -1};
  return {width, vars[static_cast<std::size_t>(layout.registers[0].dim)]};
}

std::string CudaEmitter::replicas(const Layout& layout) const {
  const std::uint32_t mask = layout.replica_lanes() | layout.replica_warps() << layout.lanes.size();
  if (mask == 0) return "";
  const std::uint32_t all = static_cast<std::uint32_t>(32 * program_.warps - 1);
  // Low threads alone, where all bits from some on are replicas.
  const std::uint32_t low = ~mask & all;
  if ((low & (low + 1)) == 0) return "tid < " + std::to_string(low + 1);
  return "(tid & " + std::to_string(mask) + ") == 0";
}

bool CudaEmitter::touches_fragment(const Statement& statement) const {
  bool any = false;
  for_each_access(statement, [&](const Access& access, Use) {
    any = any || program_.buffers[static_cast<std::size_t>(access.buffer)].space == Space::fragment;
  });
  return any;
}

std::string CudaEmitter::coordinate(int dim, const Layout& layout) const {
  std::vector<Layout::Bit> bits = layout.lanes;
  bits.insert(bits.end(), layout.warps.begin(), layout.warps.end());
  std::string sum;
  for (std::size_t i = 0; i < bits.size();) {
    if (bits[i].dim != dim) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < bits.size() && bits[end].dim == dim &&
           bits[end].stride == bits[end - 1].stride * 2)
      ++end;
    std::string run = i == 0 ? "tid" : "(tid >> " + std::to_string(i) + ")";
    if (end < bits.size()) run = "(" + run + " & " + std::to_string((1 << (end - i)) - 1) + ")";
    if (bits[i].stride != 1) run += " * " + std::to_string(bits[i].stride);
    sum += (sum.empty() ? "" : " + ") + run;
    i = end;
  }
  return sum.empty() ? "0" : sum;
}

std::vector<std::string> CudaEmitter::stand(const Layout& layout, const std::vector<int>& vars) {
  std::vector<std::string> base(vars.size());
  for (std::size_t d = 0; d < vars.size(); ++d) {
    base[d] = coordinate(static_cast<int>(d), layout);
    if (base[d] == "0") continue;
    const std::string name = unique(var_names_[static_cast<std::size_t>(vars[d])] + "_0");
    const bool one = base[d].front() == '(' && base[d].find(')') + 1 == base[d].size();
    w_.line("const int " + name + " = " + (one ? base[d].substr(1, base[d].size() - 2) : base[d]) +
            ";");
    base[d] = name;
  }
  return base;
}

std::string CudaEmitter::position(const Layout& layout, const std::vector<std::string>& base,
                                  int dim) const {
  const std::string& start = base[static_cast<std::size_t>(dim)];
  std::string sum = start == "0" ? "" : start;
  for (std::size_t i = 0; i < layout.registers.size(); ++i) {
    const Layout::Loop& loop = layout.registers[i];
    const auto found = registers_.find(static_cast<int>(i));
    if (loop.dim != dim || found == registers_.end()) continue;
    sum += (sum.empty() ? "" : " + ") + found->second;
    if (loop.stride != 1) sum += " * " + std::to_string(loop.stride);
  }
  return sum.empty() ? "0" : sum;
}

void CudaEmitter::close_all(int depth) {
  while (w_.depth() > depth) w_.close();
}

void CudaEmitter::walk(const Walk& walk, const std::function<void()>& body) {
  const Layout& layout = *walk.layout;
  const int depth = w_.depth();
  walked_ = &layout;
  walked_vars_ = walk.vars;
  registers_.clear();
  if (walk.one_writer)
    if (const std::string alone = replicas(layout); !alone.empty()) w_.open("if (" + alone + ")");
  const std::vector<std::string> base = stand(layout, walk.vars);
  std::int64_t rounds = 1;
  for (std::size_t i = layout.registers.size(); i-- > 0;) {
    const Layout::Loop& loop = layout.registers[i];
    rounds *= loop.count;
    if (i == 0 && walk.vector > 1) break;
    const std::string counter = "r" + std::to_string(i);
    registers_[static_cast<int>(i)] = counter;
    w_.line(walk.unroll || rounds <= 16 ? "#pragma unroll" : "#pragma unroll 1");
    w_.open("for (int " + counter + " = 0; " + counter + " < " + std::to_string(loop.count) +
            "; ++" + counter + ")");
  }
  std::string inside;
  for (std::size_t d = 0; d < walk.vars.size(); ++d) {
    const int var = walk.vars[d];
    const std::string sum = position(layout, base, static_cast<int>(d));
    if (sum == base[d]) {
      values_[var] = sum;
    } else {
      const std::string& name = var_names_[static_cast<std::size_t>(var)];
      w_.line("const int " + name + " = " + sum + ";");
      values_[var] = name;
    }
    if (layout.padded(static_cast<int>(d)))
      inside +=
          (inside.empty() ? "" : " && ") + values_[var] + " < " + std::to_string(layout.extents[d]);
  }
  if (!inside.empty()) w_.open("if (" + inside + ")");
  body();
  close_all(depth);
  for (int var : walk.vars) values_.erase(var);
  walked_ = nullptr;
  registers_.clear();
}

}  // namespace krait
