// Sums of many points for few: all warps of a block take part in them.
//
// What: a sum that would leave warps idle, since a warp shares its sums with no other, becomes two:
// one of the variables that it sums over gives partial sums first, a second statement adds these
// up. It is the variable that memory runs along the least, for lanes are to lie along the others.
// Why here: place begins with it, when the number of warps is known and nothing has a layout yet.
// Limits: the variable alone must be long enough for the warps; short sums stay as they are.
#include <algorithm>
#include <map>

#include "codegen/passes/cuda_passes.h"
#include "codegen/tile/access.h"

namespace krait {
namespace {

class Sharer {
 public:
  explicit Sharer(TileProgram& program) : program_(program) {}

  void run() {
    note_rows();
    program_.body = walk(std::move(program_.body));
  }

 private:
  using Body = std::vector<Statement>;

  Buffer& buffer(int number) { return program_.buffers[static_cast<std::size_t>(number)]; }
  std::int64_t extent(int var) const {
    return program_.vars[static_cast<std::size_t>(var)].extent.offset;
  }
  std::int64_t points(const std::vector<int>& vars) const {
    std::int64_t count = 1;
    for (int var : vars) count *= extent(var);
    return count;
  }

  bool runs_along(const Access& access, int var) {
    for (std::size_t d = 0; d < access.index.size(); ++d)
      if (access.index[d].factor_of(var) == 1)
        return buffer(access.buffer).dims[d].stride == Stride{1, -1};
    return false;
  }

  /// How often statements that touch a buffer on chip walk memory side by side along each of its
  /// dimensions.
  void note_rows() {
    visit_statements(program_.body, [&](const Statement& statement) {
      std::map<int, int> along;  // by variable
      for_each_access(statement, [&](const Access& access, Use) {
        if (buffer(access.buffer).space != Space::global) return;
        for (int var : own_variables(statement)) along[var] += runs_along(access, var) ? 1 : 0;
      });
      for_each_access(statement, [&](const Access& access, Use) {
        for (std::size_t d = 0; d < access.index.size(); ++d)
          for (const auto& [var, times] : along)
            if (times > 0 && access.index[d].factor_of(var) != 0)
              rows_[{access.buffer, static_cast<int>(d)}] += times;
      });
    });
  }

  int rows_along(const ReduceTile& sum, int var) const {
    int times = 0;
    for (const Access& access : sum.operands)
      for (std::size_t d = 0; d < access.index.size(); ++d)
        if (const auto found = rows_.find({access.buffer, static_cast<int>(d)});
            found != rows_.end() && access.index[d].factor_of(var) != 0)
          times += found->second;
    return times;
  }

  /// The variable that gives partial sums; -1 where the sum stays as it is.
  int shared_out(const ReduceTile& sum) const {
    constexpr std::int64_t each = 4;  // points of a thread that are worth another barrier
    const std::int64_t kept = points(sum.domain);
    if (kept >= program_.warps || kept * points(sum.reduced) < each * 32 * program_.warps)
      return -1;
    int best = -1;
    for (int var : sum.reduced)
      if (split_extent(extent(var)).power * kept >= program_.warps &&
          (best < 0 || rows_along(sum, var) < rows_along(sum, best)))
        best = var;
    return sum.reduced.size() > 1 ? best : -1;
  }

  /// What gives the partial sums; `sum` is left with adding them up.
  ReduceTile parts_of(ReduceTile& sum, int var) {
    ReduceTile parts = sum;
    parts.accumulate = false;
    parts.domain.push_back(var);
    std::erase(parts.reduced, var);
    sum.reduced = {var};
    sum.operands.clear();
    sum.positions.clear();
    for (std::size_t i = 0; i < sum.results.size(); ++i) {
      const Buffer to = buffer(sum.destinations[i].buffer);
      const bool whole = to.dtype == DType::i32;
      std::vector<Axis> axes;
      Access at;
      for (int kept : parts.domain) {
        axes.push_back(Axis(program_.vars[static_cast<std::size_t>(kept)].name, extent(kept)));
        at.index.push_back(Index::variable(kept));
      }
      at.buffer =
          program_.add_buffer(on_chip(to.name + "_parts", whole ? DType::i32 : sum.compute, axes));
      parts.destinations[i] = at;
      Scalar same;
      same.finish(same.operand(static_cast<int>(i)));
      sum.results[i] = same;
      sum.operands.push_back(at);
    }
    return parts;
  }

  Body walk(Body body) {
    Body made;
    for (Statement& statement : body) {
      if (For* loop = std::get_if<For>(&statement)) loop->body = walk(std::move(loop->body));
      if (ReduceTile* sum = std::get_if<ReduceTile>(&statement))
        if (const int var = shared_out(*sum); var >= 0) made.push_back(parts_of(*sum, var));
      made.push_back(std::move(statement));
    }
    return made;
  }

  TileProgram& program_;
  std::map<std::pair<int, int>, int> rows_;  // by buffer and dimension
};

}  // namespace

void share_sums(TileProgram& program) { Sharer(program).run(); }

}  // namespace krait
