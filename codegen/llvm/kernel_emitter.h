// Shared state of the host emitter: one object per kernel, a file per kind of statement.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/llvm/ir_text.h"
#include "codegen/llvm/vector_math.h"
#include "codegen/llvm/vector_target.h"
#include "codegen/tile/tile.h"
#include "dsl/error.h"

namespace krait {

using ir::Val;

/// A number of elements: a constant and multiples of launch arguments.
struct Coefficient {
  std::int64_t constant = 0;
  std::vector<std::pair<int, std::int64_t>> dynamic;  // argument, factor; sorted
  bool is(std::int64_t value) const { return dynamic.empty() && constant == value; }
  bool is_constant() const { return dynamic.empty(); }
  void add(const Stride& stride, std::int64_t factor);
};

/// A dimension of an access that must be checked when it runs.
struct Guard {
  Val outer;                            // index without the statement's own variables
  std::map<int, std::int64_t> factors;  // of the statement's own variables
  Val extent;
  bool below = false, above = false;  // which side can be left
};

/// An access made ready at the start of its statement: what does not depend on the statement's own
/// variables is computed once.
struct Operand {
  const Access* access = nullptr;
  DType dtype = DType::f32;
  Val base;                            // address at the origin of the own variables
  std::map<int, Coefficient> strides;  // elements, by own variable; absent: 0
  std::vector<Guard> guards;
  std::string alias;  // metadata of its loads and stores
  int alignment = 1;  // of one element

  Coefficient stride(int var) const {
    auto found = strides.find(var);
    return found == strides.end() ? Coefficient{} : found->second;
  }
  bool unit(int var) const { return stride(var).is(1); }
};

/// The lanes of the vectors that are being computed: lane i stands at position + i of `var`.
struct Lanes {
  int count = 1;
  int var = -1;   // -1: no variable, one lane
  int valid = 0;  // lanes that exist; 0: all
};

/// The loops of a statement: own variables with their extents, outermost first.
struct Nest {
  std::vector<int> vars;
  std::map<int, std::int64_t> extents;
  std::int64_t extent(int var) const { return extents.at(var); }
};

class KernelEmitter {
 public:
  KernelEmitter(const TileProgram& program, const VectorTarget& target);
  /// The module's text.
  std::string run();

 private:
  // ---- kernel_emitter.cpp: the frame, sizes, addresses
  void emit_body(const std::vector<Statement>& body);
  void emit_for(const For& loop);
  void emit_grid(const Val& point);
  /// Where a grid or loop variable stands, counted from its end if need be; its run, its place
  /// there.
  struct Turn {
    Val position, quotient, rest;
  };
  Turn turn_of(int var, std::int64_t base, bool reverse);
  /// Sets the digits of a variable that has just been set.
  void define_digits(int var);
  void prepare_aliases();
  Val size(const Extent& extent);
  Val argument(int number);
  Val buffer_base(int buffer);
  /// Value of an index by the variables that are set, own ones left out.
  Val outer_index(const Index& index, const std::vector<int>& own);
  Val materialize(const Coefficient& coefficient);

  // ---- operand.cpp: loads and stores of lanes
  Operand operand(const Access& access, const std::vector<int>& own);
  /// Variables of one value stand at 0 and make no loop.
  Nest nest(const std::vector<int>& vars);
  /// Merges neighbours that every operand walks as one variable; `kept` are left alone. With
  /// `ordered`, only where the order of the points stays.
  void merge(Nest& nest, const std::vector<const Operand*>& operands, const std::set<int>& kept,
             bool ordered = false);
  /// Own variables that a guard or a position reads.
  std::set<int> checked_vars(const std::vector<const Operand*>& operands,
                             const std::vector<std::pair<std::string, Index>>* positions) const;
  Val address(const Operand& operand, std::int64_t offset = 0);
  /// Mask of the lanes inside the guards and inside the tail; empty: all of them.
  std::optional<Val> mask(const Operand& operand, const Lanes& lanes, bool with_tail = true);
  /// In the register type of `operand`'s dtype: float for every 16-bit float.
  Val load(const Operand& operand, const Lanes& lanes, double fill = 0);
  void store(const Operand& operand, const Lanes& lanes, const Val& value,
             const std::optional<Val>& only = {});
  Val load_memory(const Operand& operand, const Lanes& lanes, const std::optional<Val>& mask);
  Val from_memory(const Val& value, DType dtype, int lanes);
  Val to_memory(const Val& value, DType dtype, int lanes);
  /// Between register types: "float", "double", "i32", "i1".
  Val convert(const Val& value, const std::string& element, int lanes);
  Val both(const std::optional<Val>& a, const Val& b);

  // ---- loops of a statement
  /// Runs `body` for every point of `vars`, serially.
  void loops(const Nest& nest, const std::vector<int>& vars, const std::function<void()>& body,
             std::size_t from = 0);
  /// The same with values that pass from one point to the next, in the order of `vars`.
  using Round = std::function<std::vector<Val>(const std::vector<Val>&)>;
  std::vector<Val> carried_loops(const Nest& nest, const std::vector<int>& vars,
                                 std::vector<Val> carried, const Round& body, std::size_t from = 0);
  /// Runs `body` along `var` for groups of whole vectors, then for single ones, then for the rest.
  /// The variable stands at the first lane of the first vector of the group.
  void vectors(const Nest& nest, int var, int width, int group,
               const std::function<void(const std::vector<Lanes>&)>& body);
  /// Sets a variable of the statement for as long as `body` runs.
  void with(int var, const Val& value, const std::function<void()>& body);

  // ---- a file per statement
  void emit(const For& s) { emit_for(s); }
  void emit(const Copy& s);
  void emit(const Fill& s);
  void emit(const Mma& s);
  void emit(const MapTile& s);
  void emit(const ReduceTile& s);
  void emit(const ScanTile& s);
  void emit(const Barrier&) {}
  // Made by passes for GPUs alone.
  [[noreturn]] void emit(const Prefetch&) { reject("a prefetch"); }
  [[noreturn]] void emit(const Commit&) { reject("a commit"); }
  [[noreturn]] void emit(const Wait&) { reject("a wait"); }
  [[noreturn]] void reject(const char* what) const {
    throw InternalError(program_.name + " has " + what + ", which the host has not");
  }
  bool emit_transpose(const Copy& s, const Operand& destination, const Operand& source,
                      const Nest& points);
  std::vector<Val> transpose(std::vector<Val> rows);
  std::vector<Val> add_to_pair(const Val& high, const Val& low, const Val& x);

  struct Expressions;  // emit_scalar.cpp
  /// All results at one position, in register type of the expression ("float", "double", "i32",
  /// "i1"), operands loaded once.
  std::vector<Val> evaluate(const std::vector<Scalar>& results,
                            const std::vector<Operand>& operands,
                            const std::vector<std::pair<std::string, Index>>& positions,
                            DType compute, const Lanes& lanes);
  /// Instructions for one point.
  static double work_of(const std::vector<Scalar>& results);
  /// b where `b wins a`, else a; a NaN where there is one.
  Val extremum(const char* wins, const Val& a, const Val& b);
  Val math(ScalarOp op, const Val& x, const std::string& element, int lanes);

  struct Product;  // emit_mma.cpp

  /// The variable to run vectors along, or -1 for none. `work`: instructions for one point beside
  /// its loads and stores.
  int vector_variable(const Nest& nest, const std::vector<const Operand*>& reads,
                      const std::vector<const Operand*>& writes, int width, double work) const;
  /// The other variables, largest stride of `leader` first.
  std::vector<int> outer_order(const Nest& nest, int vector, const Operand& leader) const;

  const TileProgram& program_;
  const VectorTarget target_;
  ir::Builder b_;
  std::map<int, Val> values_;     // variables that are set
  std::map<int, Val> arguments_;  // loaded at the entry
  std::map<int, Val> bases_;      // of buffers
  std::map<std::string, Val> sizes_;
  std::vector<std::string> alias_of_buffer_, metadata_;
  std::map<std::string, ir::MathFunction> functions_;
};

std::string register_element(DType dtype);  // "float", "double", "i32"
std::string memory_element(DType dtype);    // "float", "double", "i32", "i16" for bf16, "half"
DType computed_in(DType compute);           // f32 or f64

}  // namespace krait
