// Shared state of the CUDA emitter: one object per kernel, a file per kind of statement.
//
// Notation of the text that it writes:
//   NAME           a tensor in memory, a buffer on chip; what a block gave no name is NAME_tile
//                  where it is a part of the tensor NAME, else vN for the graph's %N
//   NAME_stride_X  its stride along axis X, in elements      X_size  the size X
//   NAME_at        where the part of a statement starts      NAME_v  what a thread read of it
//   NAME_room      positions of a tile that lie inside       NAME_new  what it will write
//   NAME_wide      whether wide accesses are aligned
//   X_0            where a thread starts along axis X        rN      its loops over registers
//   tid            the thread                                eN      parts of expressions
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_target.h"
#include "codegen/cuda/writer.h"
#include "codegen/tile/tile.h"

namespace krait {

/// Elements by which an address moves: a constant and multiples of launch arguments.
struct CudaStride {
  std::int64_t constant = 0;
  std::map<int, std::int64_t> arguments;  // argument, factor
  void add(const Stride& stride, std::int64_t factor);
  bool is(std::int64_t value) const { return arguments.empty() && constant == value; }
};

/// An access made ready at the start of its statement.
struct CudaOperand {
  struct Guard {
    std::map<int, std::int64_t> factors;  // of the statement's own variables
    std::string from, room;               // names of bounds of their sum, "" where it needs none
  };
  const Access* access = nullptr;
  const Buffer* buffer = nullptr;
  std::string base;        // a pointer, a fragment's array, or a scalar's name
  std::int64_t start = 0;  // elements from there to where the statement's part begins
  std::map<int, CudaStride> strides;
  std::vector<Guard> guards;
  // Condition of taking `wide_elements` along `wide_var` at once: "true" or a name.
  std::string wide;
  int wide_var = -1, wide_elements = 1;

  CudaStride stride(int var) const {
    auto found = strides.find(var);
    return found == strides.end() ? CudaStride{} : found->second;
  }
  bool guarded_by(int var) const;
};

class CudaEmitter {
 public:
  CudaEmitter(const TileProgram& program, const CudaTarget& target);
  std::string run();

 private:
  // ---- names.cpp
  void name_everything();
  void name_pointers();
  void name_buffers();
  void name_arguments();
  /// A name that nothing else bears, until the statement that it is made in ends.
  std::string unique(const std::string& wanted);
  /// All but the first `count` names that were made.
  void forget(std::size_t count);
  /// Whether the buffer bears a name of its own: an alias from the first element on goes by that of
  /// the memory.
  bool is_root(int buffer) const;

  // ---- titles.cpp
  void heading(CudaWriter& out) const;
  void title(const Statement& statement);

  // ---- kernel_emitter.cpp: the frame, sizes
  std::string signature() const;
  void declare_buffers();
  void emit_grid();
  std::string turn_of(int var, bool reverse) const;  // position, counted from the end if need be
  void declare_digits(int var);
  void emit_body(const std::vector<Statement>& body);
  /// Names of the first value of a loop's variable and of what lies past the last; their lines.
  struct Bounds {
    std::string begin, end;
  };
  Bounds bounds(int var, int block_var, std::int64_t blocks);
  Bounds part_of_run(const For& s) const;        // of a loop until a variable
  std::string size(const Extent& extent) const;  // i64
  std::string outer_index(const Index& index, const std::vector<int>& own) const;  // i64
  std::string int_index(const Index& index) const;  // int, of all variables
  /// Of a value in registers: halves are f32 there.
  std::string type_of(DType dtype) const;
  /// Of an element of a buffer.
  std::string memory_type_of(DType dtype);
  const std::string& value(int var) const { return values_.at(var); }

  // ---- operand.cpp
  CudaOperand operand(const Access& access, const std::vector<int>& own);
  std::string address(const CudaOperand& operand) const;    // offset from the base, by values_
  std::string condition(const CudaOperand& operand) const;  // of its guards, "" for none
  /// Where the element stands, guards left aside.
  std::string place(const CudaOperand& operand) const;
  std::string register_of(const CudaOperand& operand) const;  // its number in a fragment
  /// Its value, as an expression; outside of its guards `fill`.
  std::string element(const CudaOperand& operand, const std::string& fill);
  void store(const CudaOperand& operand, const std::string& value);
  std::string stride_text(const CudaStride& stride) const;

  // ---- points.cpp: loops over the points of a layout
  struct Walk {
    const Layout* layout = nullptr;
    std::vector<int> vars;
    bool one_writer = false;  // replicas stand aside
    bool unroll = false;
    int vector = 1;  // positions of the first register loop that the body takes at once
  };
  /// Width that the body may take at once along the first register loop, and its variable.
  std::pair<int, int> vector_of(const Layout& layout, const std::vector<int>& vars) const;
  /// Declares where the thread stands along each variable; their names, "0" for the start.
  std::vector<std::string> stand(const Layout& layout, const std::vector<int>& vars);
  /// Its base, and what the register loops that are open add.
  std::string position(const Layout& layout, const std::vector<std::string>& base, int dim) const;
  std::string replicas(const Layout& layout) const;
  /// Registers of a fragment have numbers only where all loops over them are unrolled.
  bool touches_fragment(const Statement& statement) const;
  void walk(const Walk& walk, const std::function<void()>& body);
  std::string coordinate(int dim, const Layout& layout) const;
  void close_all(int depth);

  // ---- a file per kind of statement
  void emit(const For& s);
  void emit(const Copy& s);
  void emit(const Fill& s);
  void emit(const Mma& s);
  void emit(const MapTile& s);
  void emit(const ReduceTile& s);
  void emit(const ScanTile& s);
  void emit(const Prefetch& s);
  void emit(const Commit&);
  void emit(const Wait& s);
  void emit_asynchronous(const Copy& s);
  void emit(const Barrier&) { w_.line("__syncthreads();"); }
  /// Loads what the expressions read: names or arrays over a vector, by number of the operand.
  struct Loaded {
    std::vector<std::string> names;
    std::vector<bool> arrays;
  };
  /// `uses`: how often each operand is read; what is read once is read in its place.
  Loaded load_operands(const std::vector<CudaOperand>& operands, const std::vector<int>& uses,
                       int width, int vector_var, double fill);
  static std::vector<int> operand_uses(const std::vector<Scalar>& results, std::size_t count);
  const std::string& name_of(const CudaOperand& operand) const;
  void store_vector(const CudaOperand& operand, const std::string& array, int width,
                    int vector_var);

  // ---- scalar_text.cpp
  /// Expressions of one point; lines for what is used twice are written before.
  using Positions = std::vector<std::pair<std::string, Index>>;
  class Expression;
  std::vector<std::string> evaluate(const std::vector<Scalar>& results, const Loaded& loaded,
                                    const std::vector<CudaOperand>& operands,
                                    const Positions& positions, DType compute,
                                    const std::string& lane_index);
  std::string literal(double value, DType dtype) const;
  std::string call(const std::string& function, DType dtype);
  std::string convert(const std::string& value, DType from, DType to) const;

  const TileProgram& program_;
  const CudaTarget target_;
  CudaWriter w_;
  std::map<int, std::string> values_;  // text of the variables that are set
  std::map<int, Bounds> loops_;        // that are open, by variable
  std::vector<std::string> var_names_, buffer_names_, argument_names_;
  struct Pointer {
    std::string name, type;
  };
  std::vector<Pointer> pointers_;
  TileProgram named_;  // variables and buffers by these names, for titles
  std::set<std::string> taken_;
  std::vector<std::string> made_;         // names taken, in order
  std::set<std::string> prelude_;         // functions that were called
  std::map<int, std::string> registers_;  // loop counters by register loop of the current walk
  const Layout* walked_ = nullptr;        // and the variables that its dimensions are
  std::vector<int> walked_vars_;
};

/// Letters, digits and underscores.
std::string cuda_identifier(const std::string& name);
/// All names that functions of the prelude have or use.
std::set<std::string> prelude_names();
/// Whether math=exact makes another text of these, or of what they call.
bool prelude_has_twins(const std::set<std::string>& functions);
/// The functions named, those that they call, and the types; in a fixed order.
std::string prelude_text(const std::set<std::string>& functions, bool exact);

}  // namespace krait
