#include "codegen/in_place.h"

#include <algorithm>
#include <set>

#include "codegen/tile/access.h"

namespace krait {
namespace {

/// Accesses to the two pointers, in the order of the program.
class Walk {
 public:
  Walk(const TileProgram& program, int read, int written)
      : program_(program), read_(read), written_(written) {}

  bool run() {
    visit(program_.body);
    if (!first_) return false;
    for (int var : program_.grid) loops_.push_back(var);
    return fits_ && varies_with(loops_) && is_injective();
  }

 private:
  void visit(const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      if (const For* loop = std::get_if<For>(&statement)) {
        open_.push_back(loop->var);
        if (loop->block_var >= 0) fits_ = false;
        visit(loop->body);
        open_.pop_back();
        continue;
      }
      bool reads = false, writes = false;
      for_each_access(statement, [&](const Access& access, Use use) {
        const Buffer& buffer = program_.buffers[access.buffer];
        if (buffer.space != Space::global) return;
        if (buffer.pointer != read_ && buffer.pointer != written_) return;
        reads |= buffer.pointer == read_;
        writes |= buffer.pointer == written_;
        // Nothing may be read back from where the results go.
        if (buffer.pointer == written_ && use == Use::read) fits_ = false;
        take(access, buffer);
      });
      // In one statement only where an element's result needs that element alone.
      if (reads && writes)
        fits_ &=
            std::holds_alternative<Copy>(statement) || std::holds_alternative<MapTile>(statement);
      if (reads && written_before_) fits_ = false;
      written_before_ |= writes;
    }
  }

  void take(const Access& access, const Buffer& buffer) {
    loops_.insert(loops_.end(), open_.begin(), open_.end());
    if (!first_) {
      first_ = &access;
      dims_ = &buffer.dims;
      return;
    }
    fits_ &= access.index == first_->index && buffer.dims.size() == dims_->size();
    for (std::size_t d = 0; fits_ && d < dims_->size(); ++d)
      fits_ &= buffer.dims[d].extent == (*dims_)[d].extent;
  }

  bool varies_with(const std::vector<int>& vars) const {
    return std::all_of(vars.begin(), vars.end(), [&](int var) {
      if (program_.vars[var].extent == Extent::constant(1)) return true;
      return std::any_of(first_->index.begin(), first_->index.end(),
                         [&](const Index& index) { return index.factor_of(var) != 0; });
    });
  }

  /// Whether no two settings of the variables name one element: each stands in one dim, and those
  /// of a dim are digits of one number.
  bool is_injective() const {
    std::set<int> seen;
    for (const Index& index : first_->index) {
      std::vector<Index::Term> terms = index.terms;
      std::sort(terms.begin(), terms.end(),
                [](const auto& a, const auto& b) { return a.factor < b.factor; });
      std::int64_t reach = 1;
      for (std::size_t i = 0; i < terms.size(); ++i) {
        const Var& var = program_.vars[terms[i].var];
        if (var.kind == VarKind::size) continue;
        if (terms[i].factor < reach || !seen.insert(terms[i].var).second) return false;
        if (i + 1 < terms.size() && !var.extent.is_constant()) return false;
        reach = terms[i].factor * var.extent.offset;
      }
    }
    return true;
  }

  const TileProgram& program_;
  int read_, written_;
  bool fits_ = true, written_before_ = false;
  std::vector<int> open_;   // loops around the statement
  std::vector<int> loops_;  // loops around the accesses, and the grid
  const Access* first_ = nullptr;
  const std::vector<Dim>* dims_ = nullptr;
};

}  // namespace

bool may_share(const TileProgram& program, int read, int written) {
  return Walk(program, read, written).run();
}

}  // namespace krait
