// pack: makes one operand of every product contiguous along the variable that vectors run along.
//
// What: `choose_axis` prices every row and column variable. Where the operand is not contiguous
// along the chosen one, a copy of exactly what the product reads is made before it, into a buffer
// of its own whose innermost dimension is that variable; the copy moves out of every loop that
// neither changes what it reads nor moves the window that it takes.
// Why here: before scratch is placed, since it adds buffers; on the host only, since a GPU chooses
// layouts by lanes.
// Limits: products share a copy only while nothing in between may change what it was made of.
#include <algorithm>
#include <set>

#include "codegen/passes/block.h"
#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"

namespace krait {
namespace {

using Body = std::vector<Statement>;

class Packer {
 public:
  Packer(TileProgram& program, const VectorTarget& target) : program_(program), target_(target) {}

  void run() { program_.body = walk(std::move(program_.body)); }

 private:
  /// A copy that still holds what its source holds.
  struct Made {
    std::string what;  // of which access, in which order
    int memory = -1;   // that it was made of
    int buffer = -1;
  };

  Body walk(Body body) {
    Body made;
    for (Statement& statement : body) {
      if (For* loop = std::get_if<For>(&statement)) {
        // In the loop holds what no round of it changes; after it, the same.
        visit_statements(loop->body, [&](const Statement& inner) { forget_written(inner); });
        const std::vector<Made> before = known_;
        loop->body = walk(std::move(loop->body));
        known_ = before;
        Body stay;
        // All are asked before any is moved: the answer reads the whole body.
        std::vector<bool> leaves;
        for (const Statement& inner : loop->body) leaves.push_back(may_leave(inner, *loop));
        for (std::size_t i = 0; i < leaves.size(); ++i)
          (leaves[i] ? made : stay).push_back(std::move(loop->body[i]));
        loop->body = std::move(stay);
      } else if (Mma* mma = std::get_if<Mma>(&statement)) {
        const MmaAxis axis = choose_axis(program_, *mma, target_, true);
        if (axis.var >= 0 && !axis.packed)
          pack(*mma, axis.in_rows ? mma->left : mma->right, axis.var, made);
      }
      forget_written(statement);
      made.push_back(std::move(statement));
    }
    return made;
  }

  void forget_written(const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use use) {
      if (use == Use::read) return;
      const int memory = memory_of(program_, access.buffer);
      std::erase_if(known_, [&](const Made& made) { return made.memory == memory; });
    });
  }

  /// The same for every access that walks the same elements in the same order of own variables.
  std::string describe(const Access& access, const std::vector<int>& own) const {
    std::string text = std::to_string(access.buffer);
    for (int var : own) text += ' ' + program_.vars[var].extent.text();
    for (const Index& index : access.index) {
      text += ';' + std::to_string(index.constant);
      for (const auto& [var, factor] : index.terms) {
        const auto at = std::find(own.begin(), own.end(), var);
        text += at == own.end() ? " v" + std::to_string(var)
                                : " own" + std::to_string(at - own.begin());
        text += '*' + std::to_string(factor);
      }
    }
    return text;
  }

  /// Whether a statement is a packing copy that gives the same in every round of `loop`.
  bool may_leave(const Statement& statement, const For& loop) const {
    const Copy* copy = std::get_if<Copy>(&statement);
    if (copy == nullptr || packed_.count(copy->destination.buffer) == 0) return false;
    for (const Index& index : copy->source.index)
      if (index.factor_of(loop.var) != 0) return false;
    bool same = true;
    const int read = memory_of(program_, copy->source.buffer);
    visit_statements(loop.body, [&](const Statement& other) {
      for_each_access(other, [&](const Access& access, Use use) {
        if (use != Use::read) same &= memory_of(program_, access.buffer) != read;
      });
    });
    return same;
  }

  /// Lets `operand` read a packed copy, which goes to the end of `body` where none holds.
  void pack(const Mma& mma, Access& operand, int var, Body& body) {
    const Buffer source = program_.buffers[operand.buffer];
    std::vector<int> own;
    for (const auto* list : {&mma.batch, &mma.rows, &mma.columns, &mma.sum})
      for (int v : *list) {
        const bool used = std::any_of(operand.index.begin(), operand.index.end(),
                                      [&](const Index& index) { return index.factor_of(v) != 0; });
        if (used && v != var) own.push_back(v);
      }
    own.push_back(var);
    Access packed;
    for (int v : own) packed.index.push_back(Index::variable(v));
    const std::string what = describe(operand, own);
    for (const Made& made : known_) {
      if (made.what != what) continue;
      packed.buffer = made.buffer;
      operand = packed;
      return;
    }
    std::vector<Axis> dims;
    Copy copy;
    copy.source = operand;
    std::vector<std::pair<int, int>> fresh;
    for (int v : own) {
      const Var& known = program_.vars[v];
      dims.emplace_back(known.name, known.extent);
      const int mine = program_.add_var({known.name, VarKind::tile, known.extent});
      fresh.push_back({v, mine});
      copy.domain.push_back(mine);
      copy.destination.index.push_back(Index::variable(mine));
    }
    for (Index& index : copy.source.index) {
      Index renamed = Index::of(index.constant);
      for (const auto& [v, factor] : index.terms) {
        auto found = std::find_if(fresh.begin(), fresh.end(),
                                  [&, wanted = v](const auto& p) { return p.first == wanted; });
        renamed = renamed + Index::variable(found == fresh.end() ? v : found->second, factor);
      }
      index = renamed;
    }
    Buffer buffer = on_chip(source.name + "_packed", source.dtype, dims);
    buffer.space = source.space;
    packed.buffer = copy.destination.buffer = program_.add_buffer(buffer);
    packed_.insert(packed.buffer);
    known_.push_back({what, memory_of(program_, operand.buffer), packed.buffer});
    operand = packed;
    body.push_back(copy);
  }

  TileProgram& program_;
  const VectorTarget& target_;
  std::set<int> packed_;  // buffers made here
  std::vector<Made> known_;
};

}  // namespace

void pack(TileProgram& program, const VectorTarget& target) { Packer(program, target).run(); }

}  // namespace krait
