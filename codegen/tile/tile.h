// Tile program: one kernel as loops over tiles. Both emitters print it; passes rewrite it.
//
// A program runs once for every point of its grid. It owns on-chip buffers (scratch of one grid
// point: on the host memory of the running thread) and reads and writes global ones. Everything is
// addressed by affine indices of variables. Statements that work on tiles bring variables of their
// own, their domain: every combination of these is computed, in no promised order unless said.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/tile/layout.h"
#include "dsl/axis.h"
#include "dsl/dtype.h"
#include "dsl/scalar.h"

namespace krait {

// ------------------------------------------------------------------------------------- variables
/// grid: a coordinate of the grid point. loop: set by a For. tile: belongs to the domain of one
/// statement. size: a number known when the program is launched, `extent` itself. digit: follows
/// from another variable.
enum class VarKind : std::uint8_t { grid, loop, tile, size, digit };

struct Var {
  std::string name;
  VarKind kind = VarKind::tile;
  /// grid, loop, tile, digit: values run from 0 to extent - 1. Tile extents are constant.
  Extent extent;
  /// digit: of the grid or loop variable `of`, counted from its end where `reverse`, divided by
  /// `base`: the quotient, or what is left (`rest`).
  int of = -1;
  std::int64_t base = 1;
  bool rest = false, reverse = false;
  bool operator==(const Var&) const = default;
};

/// constant + sum of factor * variable.
struct Index {
  struct Term {
    int var = 0;  // number in TileProgram::vars
    std::int64_t factor = 1;
    bool operator==(const Term&) const = default;
  };
  std::int64_t constant = 0;
  std::vector<Term> terms;  // sorted by variable, no zero factors

  static Index of(std::int64_t constant) { return {constant, {}}; }
  static Index variable(int var, std::int64_t factor = 1) { return {0, {{var, factor}}}; }
  /// factor of `var`, 0 where it does not occur.
  std::int64_t factor_of(int var) const;
  bool operator==(const Index&) const = default;
};
Index operator+(const Index& a, const Index& b);
Index operator*(const Index& a, std::int64_t factor);

// --------------------------------------------------------------------------------------- buffers
/// shared: scratch of the grid point. For threads of a block also: fragment: each thread holds the
/// elements that the buffer's layout gives it; scalar: every thread holds the one element.
enum class Space : std::uint8_t { global, shared, fragment, scalar };

/// A stride in elements: a constant, or argument number `argument` of the launch.
struct Stride {
  std::int64_t constant = 0;
  int argument = -1;
  bool is_constant() const { return argument < 0; }
  bool operator==(const Stride&) const = default;
};

struct Dim {
  std::string axis;  // for printing
  Extent extent;     // constant in every space but global
  Stride stride;
  bool operator==(const Dim&) const = default;
};

struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  Space space = Space::shared;
  std::vector<Dim> dims;
  /// global: its number among the pointers of the launch; `written` tells whether it is an output.
  int pointer = -1;
  bool written = false;
  /// Not global: the buffer whose memory this one shares, from its element `alias_offset` on.
  int alias_of = -1;
  std::int64_t alias_offset = 0;
  /// shared, no alias: slots that each hold all elements, more than one by the stage pass.
  /// Accesses, by aliases too, are to slot number (value of stage_var) mod stages.
  int stages = 1, stage_var = -1;
  /// shared, no alias: first byte in the scratch of the grid point; set by the last pass.
  std::int64_t scratch_offset = -1;
  /// fragment: of its dims.
  std::optional<Layout> layout{};
  bool operator==(const Buffer&) const = default;
};

/// Neighbours that one instruction moves, decided by the vectorize pass: `elements` of them along
/// `var` stand side by side from a multiple of their own size on. What is not known before the
/// kernel runs, the address of a tensor and some strides, it tests once a statement; where a test
/// fails, elements go one by one.
struct Wide {
  int var = -1;      // of the statement's domain, or summed
  int elements = 1;  // 1: one by one; else 2 or 4
  bool address_tested = false;
  std::vector<int> strides_tested;  // numbers of arguments
  bool operator==(const Wide&) const = default;
};

/// One element of a buffer for each point of a domain: an index per dimension. Where an index can
/// leave [0, extent of the dimension), its dimension is listed in `guarded`: such a read gives the
/// statement's fill value, such a write is left out. The guard pass lists them.
struct Access {
  int buffer = -1;
  std::vector<Index> index;
  std::vector<int> guarded;
  Wide wide{};
  bool operator==(const Access&) const = default;
};

// ------------------------------------------------------------------------------------ statements
struct For;
struct Copy;
struct Fill;
struct Mma;
struct MapTile;
struct ReduceTile;
struct ScanTile;
struct Prefetch;
/// Made by passes only. Barrier: of the block's threads. Commit: the copies that were issued since
/// the last one are a group. Wait: until at most `pending` groups of the thread are under way; what
/// has landed is there for the thread itself, for others after a barrier.
struct Barrier {
  bool operator==(const Barrier&) const = default;
};
struct Commit {
  bool operator==(const Commit&) const = default;
};
struct Wait {
  int pending = 0;
  bool operator==(const Wait&) const = default;
};
using Statement = std::variant<For, Copy, Fill, Mma, MapTile, ReduceTile, ScanTile, Prefetch,
                               Commit, Wait, Barrier>;

/// Runs body for var = 0 .. extent - 1, or from the end. Where `block_var` >= 0 the loop covers one
/// block of a blocked axis: positions block_var * ceil(size / blocks) and on, at most that many and
/// none at or past `size`; `var` is then the position itself (not counted from the block's start).
/// Where `until` >= 0, a variable of the same extent, positions are counted from where the loop
/// starts in runs of `run`, and the loop has those of the run of `until` that come before it.
struct For {
  int var = -1;
  bool reverse = false;
  bool unroll = false;
  int block_var = -1;       // a grid variable
  std::int64_t blocks = 1;  // its extent
  int until = -1;           // a grid variable, or one of a loop around
  std::int64_t run = 1;
  std::vector<Statement> body;
  bool operator==(const For&) const;
};

/// Made by passes only: issues copies (asynchronous ones) ahead of the turn of a loop that they are
/// for. `first`: before the loop, for its first turn; else in its body, for the turn that follows.
/// Nothing where the loop has no such turn. Inside, the loop's variable is what it is in that turn.
/// The fields are those of the loop.
struct Prefetch {
  int var = -1;
  bool reverse = false;
  int block_var = -1;
  std::int64_t blocks = 1;
  bool first = false;
  std::vector<Statement> body;
  bool operator==(const Prefetch&) const;
};

/// destination = source (converted between dtypes). A guarded source position reads `fill`; with
/// `keep` the destination is left as it is there instead.
struct Copy {
  std::vector<int> domain;
  Access destination, source;
  double fill = 0;
  bool keep = false;
  bool asynchronous = false;       // from global to shared memory, lands by the Wait of its group
  std::optional<Layout> layout{};  // of the domain
  bool operator==(const Copy&) const = default;
};

struct Fill {
  std::vector<int> domain;
  Access destination;
  double value = 0;
  std::optional<Layout> layout{};  // of the domain
  bool operator==(const Fill&) const = default;
};

/// destination (+)= sum over `sum` of left * right. `batch`: in all three; `rows`: in left and
/// destination; `columns`: in right and destination. On-chip operands, one float dtype.
struct Mma {
  std::vector<int> batch, rows, columns, sum;
  Access destination, left, right;
  bool accumulate = false;
  std::optional<Layout> layout{};  // of batch, rows and columns
  bool operator==(const Mma&) const = default;
};

/// Expressions of one element, computed together: results[i] is stored to destinations[i]. Operand
/// number n of the expressions is operands[n]; index(axis) is positions[axis].
struct MapTile {
  std::vector<int> domain;
  std::vector<Scalar> results;
  std::vector<Access> destinations;
  std::vector<Access> operands;
  std::vector<std::pair<std::string, Index>> positions;
  DType compute = DType::f32;
  std::optional<Layout> layout{};  // of the domain
  bool operator==(const MapTile&) const = default;
};

/// destinations[i] (+)= sum or max over `reduced` of results[i], for every point of `domain`.
struct ReduceTile {
  std::vector<int> domain, reduced;
  enum class Kind : std::uint8_t { sum, max } kind = Kind::sum;
  std::vector<Scalar> results;
  std::vector<Access> destinations;
  std::vector<Access> operands;
  std::vector<std::pair<std::string, Index>> positions;
  DType compute = DType::f32;
  bool accumulate = false;
  std::optional<Layout> layout{};  // of domain and reduced; warps share no sum
  bool operator==(const ReduceTile&) const = default;
};

/// Running sum along the variable `along` (in order, or from the end), for every point of `domain`:
///   value = (reset ? 0 : value) + source,  value starts as initial, or 0.
/// In reverse, reset at position i cuts between i - 1 and i (after i was added).
/// exclusive: what is stored at a position is the value before its reset and its source.
/// pair: f32 only; the sum is kept as high + low; `low` takes the low part.
/// wrap: value is brought into [-1/2, 1/2) after every addition.
struct ScanTile {
  std::vector<int> domain;
  int along = -1;
  bool reverse = false, exclusive = false, wrap = false, pair = false;
  Access source;                   // over domain and along
  Access destination;              // over domain and along; buffer -1: not wanted
  Access low;                      // with pair
  Access initial;                  // over domain; buffer -1: none
  Access last;                     // over domain: the final value; buffer -1: not wanted
  Access reset;                    // i32; buffer -1: none
  std::optional<Layout> layout{};  // of the domain; a thread walks along its points
  bool operator==(const ScanTile&) const = default;
};

// --------------------------------------------------------------------------------------- program
struct TileProgram {
  std::string name;   // the kernel's
  std::string title;  // the keys of the schedule that it obeys, for the first comment
  std::vector<Var> vars;
  std::vector<int> grid;  // grid variables, slowest first
  std::vector<Buffer> buffers;
  std::vector<Statement> body;
  /// Launch arguments, in order: what each 64-bit argument holds.
  struct Argument {
    enum class Kind : std::uint8_t { size, stride } kind = Kind::size;
    std::string symbol;          // size: a symbol of the graph
    int pointer = -1, dim = -1;  // stride: of dimension `dim` of global buffer `pointer`
    bool operator==(const Argument&) const = default;
  };
  std::vector<Argument> arguments;
  /// Pointers, one read and one written, that may be one tensor.
  std::vector<std::pair<int, int>> in_place;
  /// Threads of a block by 32, a power of two; 0: one thread, on the host. Before the place pass
  /// what the program wishes for, 0: as its tiles ask.
  int warps = 0;
  std::int64_t scratch_bytes = 0;  // of one grid point; set by the pass that packs

  bool operator==(const TileProgram&) const = default;
  int add_var(Var var);
  /// Variables of kind digit that follow from this one.
  std::vector<int> digits_of(int var) const;
  int add_buffer(Buffer buffer);
  /// Number of the argument, added where it is new.
  int argument(const Argument& wanted);
};

/// A buffer that stands on chip with dense strides, its first dimension outermost.
Buffer on_chip(std::string name, DType dtype, const std::vector<Axis>& dims);

/// Calls f for every statement, outer ones first, bodies included.
template <typename Function>
void visit_statements(const std::vector<Statement>& body, const Function& f);

/// Readable text, stable.
std::string to_text(const TileProgram& program);
/// One statement of it, with its body.
std::string to_text(const TileProgram& program, const Statement& statement);
/// "name[index, index]"; a mark ? behind what is guarded.
std::string to_text(const TileProgram& program, const Access& access);

/// Bounds of every unguarded access by the ranges of its variables, on-chip reads before writes,
/// domains that do not fit, dtypes of Mma; throws InternalError with the statement's text.
/// guarded = false: global accesses may still leave their bounds (before the guard pass).
void verify(const TileProgram& program, bool guarded = true);

/// The statements inside of one; null for one that has none. `Any` is Statement or const Statement.
template <typename Any>
auto* body_of(Any& statement) {
  using Found = std::conditional_t<std::is_const_v<Any>, const std::vector<Statement>,
                                   std::vector<Statement>>;
  return std::visit(
      [](auto& s) -> Found* {
        if constexpr (requires { s.body; })
          return &s.body;
        else
          return nullptr;
      },
      statement);
}

template <typename Function>
void visit_statements(const std::vector<Statement>& body, const Function& f) {
  for (const Statement& statement : body) {
    f(statement);
    if (const auto* inside = body_of(statement)) visit_statements(*inside, f);
  }
}

}  // namespace krait
