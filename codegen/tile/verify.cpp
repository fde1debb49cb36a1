#include <algorithm>
#include <set>

#include "codegen/tile/access.h"
#include "codegen/tile/range.h"
#include "codegen/tile/tile.h"
#include "codegen/tile/written.h"
#include "dsl/error.h"

namespace krait {
namespace {

bool mentions(const Access& access, int var) {
  return std::any_of(access.index.begin(), access.index.end(),
                     [&](const Index& index) { return index.factor_of(var) != 0; });
}

class Verifier {
 public:
  Verifier(const TileProgram& program, bool guarded)
      : program_(program), guarded_(guarded), written_(program) {}

  void run() {
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) check_buffer(static_cast<int>(i));
    for (int var : program_.grid) {
      check(valid_var(var) && program_.vars[var].kind == VarKind::grid, "the grid has a variable ",
            "of another kind");
      enter(var);
    }
    for (std::size_t i = 0; i < program_.vars.size(); ++i)
      if (program_.vars[i].kind == VarKind::size) scope_.insert(static_cast<int>(i));
    walk(program_.body);
  }

 private:
  template <typename... Parts>
  void check(bool holds, const Parts&... parts) const {
    if (holds) return;
    std::string where = "tile program " + program_.name + ": " + text(parts...);
    if (current_) where += "\n" + to_text(program_, *current_);
    throw InternalError(where);
  }

  bool valid_var(int var) const { return var >= 0 && var < static_cast<int>(program_.vars.size()); }

  void check_argument(int number, const Buffer& buffer) const {
    check(number < static_cast<int>(program_.arguments.size()), buffer.name,
          " has stride argument ", number, " of ", program_.arguments.size());
  }

  void check_buffer(int number) const {
    const Buffer& buffer = program_.buffers[number];
    const bool global = buffer.space == Space::global;
    check(global == (buffer.pointer >= 0), buffer.name, " is global or has a pointer, not both");
    for (const Dim& dim : buffer.dims) {
      check_argument(dim.stride.argument, buffer);
      if (global) continue;
      if (!dim.extent.is_constant() || !dim.stride.is_constant() || dim.extent.offset < 1)
        check(false, buffer.name, " is on chip, but dimension ", dim.axis, " has extent ",
              dim.extent.text());
    }
    check(!global || buffer.alias_of < 0, buffer.name, " is global and shares memory");
    if (!global) check_strides(buffer);
    if (buffer.alias_of < 0) return;
    check(buffer.alias_of < static_cast<int>(program_.buffers.size()) && buffer.alias_of < number,
          buffer.name, " shares memory with a later buffer");
    const Buffer& other = program_.buffers[buffer.alias_of];
    check(buffer.alias_offset >= 0 && buffer.stages == 1 &&
              buffer.alias_offset * size_in_bytes(other.dtype) + bytes_of(buffer) <=
                  (other.stages == 1 ? bytes_of(other) : slot_bytes(other)),
          buffer.name, " leaves the memory of ", other.name);
  }

  /// No two elements in one place.
  void check_strides(const Buffer& buffer) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, positions
    for (const Dim& dim : buffer.dims)
      if (dim.extent.offset > 1) dims.push_back({dim.stride.constant, dim.extent.offset});
    std::sort(dims.begin(), dims.end());
    std::int64_t last = 0;
    for (const auto& [stride, positions] : dims) {
      check(stride > last, buffer.name, " has two elements in one place");
      last += stride * (positions - 1);
    }
  }

  void walk(const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      current_ = &statement;
      std::vector<int> own = own_variables(statement);
      for (int var : own) {
        check(valid_var(var) && program_.vars[var].kind == VarKind::tile,
              "a domain has a variable of another kind");
        check(program_.vars[var].extent.is_constant() && program_.vars[var].extent.offset >= 1,
              "variable ", program_.vars[var].name, " has extent ",
              program_.vars[var].extent.text());
        check(std::count(own.begin(), own.end(), var) == 1, "variable ", program_.vars[var].name,
              " stands twice in a domain");
      }
      own_ = own;
      for_each_index(statement, [&](const Index& index) { check_index(index); });
      for_each_access(statement, [&](const Access& access, Use use) { check_access(access, use); });
      std::visit([&](const auto& s) { check_statement(s); }, statement);
      note_writes(statement);
    }
    current_ = nullptr;
  }

  /// Memory as the turn after the first one finds it.
  void next_turn(const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      if (const auto* inside = body_of(statement)) {
        next_turn(*inside);
        continue;
      }
      current_ = &statement;
      for_each_access(statement, [&](const Access& access, Use use) { check_read(access, use); });
      note_writes(statement);
    }
  }

  void check_read(const Access& access, Use use) const {
    const Buffer& buffer = program_.buffers[access.buffer];
    if (buffer.space == Space::global || use == Use::write) return;
    const std::string fault = written_.fault(access);
    check(fault.empty(), buffer.name, " ", fault);
  }

  void note_writes(const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use use) {
      if (use != Use::read && program_.buffers[access.buffer].space != Space::global)
        written_.write(access);
    });
  }

  void check_index(const Index& index) const {
    for (std::size_t i = 0; i < index.terms.size(); ++i) {
      const auto [var, factor] = index.terms[i];
      check(valid_var(var), "an index has variable number ", var);
      check(factor != 0 && (i == 0 || index.terms[i - 1].var < var), "an index is out of order at ",
            program_.vars[var].name);
      check(scope_.count(var) != 0 || one_of(var, own_), "variable ", program_.vars[var].name,
            " is not set here");
    }
  }

  void check_access(const Access& access, Use use) const {
    check(access.buffer >= 0 && access.buffer < static_cast<int>(program_.buffers.size()),
          "an access has buffer number ", access.buffer);
    const Buffer& buffer = program_.buffers[access.buffer];
    check(access.index.size() == buffer.dims.size(), buffer.name, " has ", buffer.dims.size(),
          " dimensions and ", access.index.size(), " indices");
    for (int dim : access.guarded)
      check(dim >= 0 && dim < static_cast<int>(buffer.dims.size()), buffer.name,
            " has no dimension ", dim, " to guard");
    const Buffer& memory = program_.buffers[memory_of(program_, access.buffer)];
    check(memory.stages == 1 || scope_.count(memory.stage_var) != 0, buffer.name,
          " has a slot a turn of a loop that does not run here");
    const bool global = buffer.space == Space::global;
    if (!global || guarded_) {
      for (int dim = 0; dim < static_cast<int>(buffer.dims.size()); ++dim)
        check(one_of(dim, access.guarded) || !leaves(program_, access, dim).any(), buffer.name,
              " can be left along ", buffer.dims[dim].axis, " without a guard");
    }
    check(!global || use == Use::read || buffer.written, buffer.name,
          " is written and not marked so");
    check_read(access, use);
  }

  void check_statement(const For& s) {
    check(valid_var(s.var) && program_.vars[s.var].kind == VarKind::loop,
          "a loop sets a variable of another kind");
    check(scope_.count(s.var) == 0, "variable ", program_.vars[s.var].name, " is set twice");
    if (s.block_var >= 0) {
      check(one_of(s.block_var, program_.grid), "a blocked loop whose block is not in the grid");
      check(s.blocks >= 1, "a loop over ", s.blocks, " blocks");
    }
    if (s.until >= 0) {
      check(s.block_var < 0 && s.run >= 1, "a loop over a part of a run of ", s.run);
      check(valid_var(s.until) && s.until != s.var && scope_.count(s.until) != 0 &&
                program_.vars[s.until].extent == program_.vars[s.var].extent,
            "a loop until a variable that has no position of its own range yet");
    }
    enter(s.var);
    loops_.push_back(&s);
    walk(s.body);
    loops_.pop_back();
    leave(s.var);
    if (written_.gives_way()) next_turn(s.body);
  }

  void enter(int var) {
    scope_.insert(var);
    for (int digit : program_.digits_of(var)) {
      const Var& number = program_.vars[digit];
      check(number.base >= 1 &&
                number.extent == (number.rest ? Extent::constant(number.base)
                                              : program_.vars[var].extent.ceil_div(number.base)),
            "digit ", number.name, " has another range than it can have");
      scope_.insert(digit);
    }
  }

  void leave(int var) {
    for (int digit : program_.digits_of(var)) scope_.erase(digit);
    scope_.erase(var);
  }

  void check_statement(const Prefetch& s) {
    check(valid_var(s.var) && program_.vars[s.var].kind == VarKind::loop,
          "a prefetch for a variable of another kind");
    if (s.first) {
      check(scope_.insert(s.var).second, "a prefetch for the first turn stands inside of the loop");
    } else {
      check(!loops_.empty() && loops_.back()->var == s.var && loops_.back()->reverse == s.reverse &&
                loops_.back()->block_var == s.block_var && loops_.back()->blocks == s.blocks,
            "a prefetch for the next turn of a loop that it does not stand in");
    }
    for (const Statement& inside : s.body) {
      const Copy* copy = std::get_if<Copy>(&inside);
      check(copy != nullptr && copy->asynchronous, "a prefetch of something else than copies");
    }
    in_prefetch_ = true;
    walk(s.body);
    in_prefetch_ = false;
    if (s.first) scope_.erase(s.var);
  }

  void check_statement(const Copy& s) {
    if (!s.asynchronous) return;
    const Buffer& to = program_.buffers[s.destination.buffer];
    const Buffer& from = program_.buffers[s.source.buffer];
    check(in_prefetch_, "an asynchronous copy that is no prefetch");
    check(from.space == Space::global && to.space == Space::shared && from.dtype == to.dtype &&
              size_in_bytes(to.dtype) >= 4,
          "an asynchronous copy from ", from.name, " to ", to.name);
    check(s.source.guarded.empty() || (s.fill == 0 && !s.keep),
          "an asynchronous copy fills with zeros");
  }
  void check_statement(const Commit&) {}
  void check_statement(const Wait& s) {
    check(s.pending >= 0, "a wait for ", s.pending, " groups");
  }
  void check_statement(const Fill&) {}
  void check_statement(const Barrier&) {}

  void check_statement(const Mma& s) {
    const DType dtype = program_.buffers[s.destination.buffer].dtype;
    for (const Access* access : {&s.destination, &s.left, &s.right}) {
      const Buffer& buffer = program_.buffers[access->buffer];
      check(buffer.space != Space::global, buffer.name, " is global and an operand of a product");
      check(is_float(dtype) && buffer.dtype == dtype, buffer.name, " is ", name(buffer.dtype),
            " in a product of ", name(dtype));
    }
    for (int var : s.rows) check(!mentions(s.right, var), "a row variable in the right operand");
    for (int var : s.columns) check(!mentions(s.left, var), "a column variable on the left");
    for (int var : s.sum) check(!mentions(s.destination, var), "a summed variable is kept");
    for (const auto* kept : {&s.batch, &s.rows, &s.columns})
      for (int var : *kept)
        check(mentions(s.destination, var), "the result does not vary with ",
              program_.vars[var].name);
    check(!s.sum.empty(), "a product without a sum");
  }

  template <typename S>
  void check_expressions(const S& s) {
    check(s.results.size() == s.destinations.size() && !s.results.empty(), s.results.size(),
          " results for ", s.destinations.size(), " destinations");
    check(is_float(s.compute), "expressions computed in ", name(s.compute));
    for (const Scalar& result : s.results) {
      check(!result.nodes().empty(), "an empty expression");
      check(result.operand_count() <= static_cast<int>(s.operands.size()),
            "an expression reads operand ", result.operand_count() - 1);
      for (const std::string& axis : result.index_axes())
        check(std::any_of(s.positions.begin(), s.positions.end(),
                          [&](const auto& position) { return position.first == axis; }),
              "the position along ", axis, " is not given");
    }
    for (const Access& access : s.destinations)
      for (int var : s.domain)
        check(program_.vars[var].extent.offset == 1 || mentions(access, var),
              "several points of a domain write one element: ", program_.vars[var].name);
  }

  void check_statement(const MapTile& s) { check_expressions(s); }

  void check_statement(const ReduceTile& s) {
    check_expressions(s);
    for (const Access& access : s.destinations)
      for (int var : s.reduced) check(!mentions(access, var), "a reduced variable is kept");
  }

  void check_statement(const ScanTile& s) {
    check(valid_var(s.along), "a scan along nothing");
    for (const Access* access : {&s.initial, &s.last})
      check(access->buffer < 0 || !mentions(*access, s.along), "a scan's end varies along it");
    check(s.pair == (s.low.buffer >= 0), "a scan with a low part is a pair, and no other is");
    if (s.pair)
      for (const Access* access : {&s.source, &s.low, &s.destination})
        check(access->buffer < 0 || program_.buffers[access->buffer].dtype == DType::f32,
              "a scan of pairs that is not f32");
    check(s.reset.buffer < 0 || program_.buffers[s.reset.buffer].dtype == DType::i32,
          "a reset that is not i32");
  }

  const TileProgram& program_;
  const bool guarded_;
  const Statement* current_ = nullptr;
  std::vector<int> own_;
  std::set<int> scope_;
  Written written_;
  std::vector<const For*> loops_;
  bool in_prefetch_ = false;
};

}  // namespace

void verify(const TileProgram& program, bool guarded) { Verifier(program, guarded).run(); }

}  // namespace krait
