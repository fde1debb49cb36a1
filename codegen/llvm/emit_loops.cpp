// The loops of a statement: which variable vectors run along, and the nest around them.
#include <algorithm>
#include <limits>

#include "codegen/llvm/kernel_emitter.h"

namespace krait {

void KernelEmitter::with(int var, const Val& value, const std::function<void()>& body) {
  values_[var] = value;
  body();
  values_.erase(var);
}

void KernelEmitter::loops(const Nest& nest, const std::vector<int>& vars,
                          const std::function<void()>& body, std::size_t from) {
  if (from == vars.size()) {
    body();
    return;
  }
  const int var = vars[from];
  auto inner = [&] { loops(nest, vars, body, from + 1); };
  if (nest.extent(var) == 1) {
    with(var, ir::i64(0), inner);
    return;
  }
  auto loop = b_.begin_loop(ir::i64(0), ir::i64(nest.extent(var)), 1);
  with(var, loop.index, inner);
  b_.end_loop(loop);
}

std::vector<Val> KernelEmitter::carried_loops(const Nest& nest, const std::vector<int>& vars,
                                              std::vector<Val> carried, const Round& body,
                                              std::size_t from) {
  if (from == vars.size()) return body(carried);
  const int var = vars[from];
  std::vector<Val> next;
  if (nest.extent(var) == 1) {
    with(var, ir::i64(0), [&] { next = carried_loops(nest, vars, carried, body, from + 1); });
    return next;
  }
  auto loop = b_.begin_loop(ir::i64(0), ir::i64(nest.extent(var)), 1, std::move(carried));
  with(var, loop.index, [&] { next = carried_loops(nest, vars, loop.carried, body, from + 1); });
  return b_.end_loop(loop, next);
}

void KernelEmitter::vectors(const Nest& nest, int var, int width, int group,
                            const std::function<void(const std::vector<Lanes>&)>& body) {
  if (var < 0) {
    body({Lanes{}});
    return;
  }
  const std::int64_t extent = nest.extent(var), whole = extent / width * width;
  std::int64_t done = 0;
  // Groups first, then single vectors, then what is left of one.
  for (int together : {group, 1}) {
    const std::int64_t step = static_cast<std::int64_t>(together) * width;
    const std::int64_t end = done + (whole - done) / step * step;
    if (end == done) continue;
    const std::vector<Lanes> all(together, Lanes{width, var, 0});
    if (end == done + step) {
      with(var, ir::i64(done), [&] { body(all); });
    } else {
      auto loop = b_.begin_loop(ir::i64(done), ir::i64(end), step);
      with(var, loop.index, [&] { body(all); });
      b_.end_loop(loop);
    }
    done = end;
  }
  if (done < extent)
    with(var, ir::i64(done), [&] { body({Lanes{width, var, static_cast<int>(extent - done)}}); });
}

int KernelEmitter::vector_variable(const Nest& nest, const std::vector<const Operand*>& reads,
                                   const std::vector<const Operand*>& writes, int width,
                                   double work) const {
  double points = 1;
  for (int var : nest.vars) points *= static_cast<double>(nest.extent(var));
  // In units of one instruction on one vector; a strided access costs some for each lane.
  int best = -1;
  double least = points * (static_cast<double>(reads.size() + writes.size()) + work);
  for (int var : nest.vars) {
    const std::int64_t extent = nest.extent(var);
    if (extent == 1) continue;
    double each = work;
    for (const Operand* read : reads) {
      const Coefficient stride = read->stride(var);
      each += stride.is(0) ? 0.3 : stride.is(1) ? 1 : 1.5 * width;
    }
    for (const Operand* write : writes) {
      const Coefficient stride = write->stride(var);
      each += stride.is(1) ? 1 : stride.is(0) ? 1e6 : 2.0 * width;
    }
    const double rounds = static_cast<double>((extent + width - 1) / width);
    const double cost = points / static_cast<double>(extent) * rounds * each;
    if (cost < least) least = cost, best = var;
  }
  return best;
}

std::vector<int> KernelEmitter::outer_order(const Nest& nest, int vector,
                                            const Operand& leader) const {
  std::vector<int> vars;
  for (int var : nest.vars)
    if (var != vector) vars.push_back(var);
  auto weight = [&](int var) {
    const Coefficient stride = leader.stride(var);
    return stride.is_constant() ? std::abs(stride.constant)
                                : std::numeric_limits<std::int64_t>::max();
  };
  std::stable_sort(vars.begin(), vars.end(), [&](int a, int b) { return weight(a) > weight(b); });
  return vars;
}

}  // namespace krait
