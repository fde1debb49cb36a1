// A builder of LLVM IR as text: fresh names, folded address arithmetic, loops, typed operations.
// Nothing here knows tile programs, and no header of LLVM is needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace krait::ir {

/// A typed SSA value or constant: {"i64", "%v7"}, {"float", "0x3FF0000000000000"}.
struct Val {
  std::string type, name;
  std::string text() const { return type + ' ' + name; }
};

/// "float" for one lane, "<8 x float>" else.
std::string vector_type(const std::string& element, int lanes);
/// Vectors of one lane too: "<1 x float>".
std::string true_vector_type(const std::string& element, int lanes);

Val i64(std::int64_t value);
Val i32(std::int64_t value);
/// Of type float or double, the nearest such number.
Val real(const std::string& type, double value);
/// The same constant in every lane; of one lane, the constant itself.
Val splat_constant(const Val& scalar, int lanes);
Val zero(const std::string& type);
/// <first, first + step, ...> of i32 or i64; of one lane, the number.
Val lane_numbers(const std::string& element, int lanes, std::int64_t first = 0,
                 std::int64_t step = 1);
/// A mask whose first `count` lanes are set.
Val first_lanes(int lanes, int count);

/// A shorthand of an intrinsic's mangled type: "v8f32", "f32", "v4i32".
std::string mangled(const std::string& type);

class Builder {
 public:
  /// A name that was not given before.
  std::string fresh(const char* hint = "v");
  /// Appends one instruction without a result.
  void line(const std::string& text);
  /// Appends `%new = text` and gives the value.
  Val emit(const std::string& type, const std::string& text);
  /// Starts a block.
  void label(const std::string& name);
  const std::string& block() const { return block_; }
  void branch(const std::string& label) { line("br label %" + label); }
  void branch(const Val& condition, const std::string& yes, const std::string& no);

  /// Operators of two arguments of one type: "fadd", "mul", "and", "xor", ...
  Val binary(const char* op, const Val& a, const Val& b);
  /// Integer arithmetic on i64 that folds constants, 0 and 1.
  Val add(const Val& a, const Val& b);
  Val sub(const Val& a, const Val& b);
  Val mul(const Val& a, const Val& b);
  Val compare(const char* predicate, const Val& a, const Val& b);  // "fcmp olt", "icmp slt"
  Val select(const Val& condition, const Val& yes, const Val& no);
  /// "sitofp", "bitcast", "trunc", ...; nothing where the type stays.
  Val cast(const char* op, const Val& a, const std::string& type);
  Val splat(const Val& scalar, int lanes);
  Val extract(const Val& vector, int lane);
  Val shuffle(const Val& a, const Val& b, const std::vector<int>& lanes);
  /// Calls an intrinsic `llvm.NAME` that is overloaded on its first argument's type, and declares
  /// it.
  Val intrinsic(const std::string& name, const std::vector<Val>& arguments);
  /// An intrinsic that is overloaded on its result and its one argument.
  Val intrinsic_to(const std::string& name, const std::string& type, const Val& argument);
  /// Calls a function of any name whose declaration is given.
  Val call(const std::string& type, const std::string& name, const std::vector<Val>& arguments,
           const std::string& declaration, const std::string& suffix = "");
  void call_void(const std::string& name, const std::vector<Val>& arguments,
                 const std::string& declaration, const std::string& suffix = "");
  /// base + elements of `type`.
  Val element(const Val& base, const std::string& type, const Val& index);

  /// A loop from `from` below `to` by `step`, with values that pass from one round to the next.
  struct Loop {
    Val index;
    std::vector<Val> carried;  // as they enter the round
    // What is needed to close the loop.
    std::string entry, header, exit, latch;
    Val from, to;
    std::int64_t step = 1;
    bool runs_once = false;
    std::vector<Val> initial;
    std::size_t phis = 0;  // where they go in the text
  };
  /// Where both ends are constants at least one round runs; else there may be none.
  Loop begin_loop(const Val& from, const Val& to, std::int64_t step, std::vector<Val> carried = {});
  /// Closes the loop; gives the carried values after it.
  std::vector<Val> end_loop(const Loop& loop, const std::vector<Val>& next = {});

  const std::string& text() const { return text_; }
  /// Declarations of all intrinsics that were called, one a line, sorted.
  const std::vector<std::string>& declarations() const { return declarations_; }
  void declare(const std::string& declaration);

 private:
  std::string text_, block_ = "entry";
  int next_ = 0;
  std::vector<std::string> declarations_;
};

}  // namespace krait::ir
