// Scalar expressions as CUDA C++.
#include <charconv>
#include <cmath>

#include "codegen/cuda/kernel_emitter.h"
#include "dsl/error.h"

namespace krait {

std::string CudaEmitter::literal(double value, DType dtype) const {
  if (dtype == DType::i32) return std::to_string(static_cast<std::int64_t>(value));
  const bool single = dtype != DType::f64;
  if (std::isnan(value))
    return single ? "__int_as_float(0x7fc00000)" : "__longlong_as_double(0x7ff8000000000000LL)";
  if (std::isinf(value)) {
    const std::string inf =
        single ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000LL)";
    return value < 0 ? "-" + inf : inf;
  }
  // Shortest digits that read back as the same number, whatever the locale.
  char digits[64];
  const std::to_chars_result end =
      single ? std::to_chars(digits, digits + sizeof digits, static_cast<float>(value))
             : std::to_chars(digits, digits + sizeof digits, value);
  std::string made(digits, end.ptr);
  if (made.find_first_of(".e") == std::string::npos) made += ".0";
  return single ? made + "f" : made;
}

std::string CudaEmitter::convert(const std::string& value, DType from, DType to) const {
  return type_of(from) == type_of(to) ? value : "(" + type_of(to) + ")(" + value + ")";
}

std::string CudaEmitter::call(const std::string& function, DType dtype) {
  prelude_.insert(function + (dtype == DType::f64 ? "_f64" : ""));
  return function;
}

namespace {

const char* function_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp: return "exp_";
    case ScalarOp::exp_nonpositive: return "exp_nonpositive";
    case ScalarOp::log: return "log_";
    case ScalarOp::log1p: return "log1p_";
    case ScalarOp::expm1: return "expm1_";
    case ScalarOp::tanh: return "tanh_";
    case ScalarOp::sigmoid: return "sigmoid";
    case ScalarOp::softplus: return "softplus";
    case ScalarOp::sin_turns: return "sin_turns";
    case ScalarOp::cos_turns: return "cos_turns";
    case ScalarOp::sqrt: return "sqrt_";
    case ScalarOp::rsqrt: return "rsqrt_";
    case ScalarOp::floor: return "floor_";
    case ScalarOp::wrap: return "wrap";
    case ScalarOp::min: return "least";
    case ScalarOp::max: return "greatest";
    default: return nullptr;
  }
}

/// How tightly the outermost operator of a text binds, as C++ has it.
enum Level : std::uint8_t { primary, unary, product, sum, relation, equality, conjunction, choice };

}  // namespace

/// The texts of one expression, node by node.
class CudaEmitter::Expression {
 public:
  Expression(CudaEmitter& emitter, const Scalar& scalar, const Loaded& loaded,
             const std::vector<CudaOperand>& operands, const Positions& positions, DType real,
             const std::string& lane_index)
      : emitter_(emitter),
        scalar_(scalar),
        loaded_(loaded),
        operands_(operands),
        positions_(positions),
        real_type_(real),
        lane_index_(lane_index) {
    std::vector<bool> integers;
    for (const CudaOperand& operand : operands)
      integers.push_back(operand.buffer->dtype == DType::i32);
    kinds_ = scalar.kinds(integers);
  }

  std::string run() {
    std::vector<int> uses(scalar_.nodes().size(), 0);
    for (const ScalarNode& node : scalar_.nodes())
      for (int arg : node.args)
        if (arg >= 0) ++uses[static_cast<std::size_t>(arg)];
    for (std::size_t id = 0; id < scalar_.nodes().size(); ++id) {
      Text made = text_of(static_cast<int>(id));
      if (arity(node(static_cast<int>(id)).op) > 0 && uses[id] > 1) {
        const std::string name = emitter_.unique("e");
        const ScalarKind kind = kinds_[id];
        const std::string type = kind == ScalarKind::boolean   ? "bool"
                                 : kind == ScalarKind::integer ? "int"
                                                               : emitter_.type_of(real_type_);
        emitter_.w_.line("const " + type + " " + name + " = " + made.text + ";");
        made = {name, primary};
      }
      texts_.push_back(std::move(made));
    }
    const int root = scalar_.root_index();
    return kind(root) == ScalarKind::real ? real(root, choice) : texts_.back().text;
  }

 private:
  struct Text {
    std::string text;
    Level level = primary;
  };

  const ScalarNode& node(int id) const { return scalar_.nodes()[static_cast<std::size_t>(id)]; }
  ScalarKind kind(int id) const { return kinds_[static_cast<std::size_t>(id)]; }

  static std::string bracketed(const Text& text, Level most) {
    return text.level > most ? "(" + text.text + ")" : text.text;
  }
  /// The node as a number of that kind, for a place where nothing looser than `most` may stand.
  std::string real(int id, Level most) const {
    if (node(id).op == ScalarOp::constant) return emitter_.literal(node(id).value, real_type_);
    const Text& of = texts_[static_cast<std::size_t>(id)];
    if (kind(id) == ScalarKind::real) return bracketed(of, most);
    return "(" + emitter_.type_of(real_type_) + ")" + bracketed(of, unary);
  }
  std::string whole(int id, Level most) const {
    if (node(id).op == ScalarOp::constant) return emitter_.literal(node(id).value, DType::i32);
    const Text& of = texts_[static_cast<std::size_t>(id)];
    if (kind(id) == ScalarKind::integer) return bracketed(of, most);
    return "(int)" + bracketed(of, unary);
  }
  std::string boolean(int id, Level most) const {
    const Text& of = texts_[static_cast<std::size_t>(id)];
    if (kind(id) == ScalarKind::boolean) return bracketed(of, most);
    return bracketed({bracketed(of, relation) + " != 0", equality}, most);
  }
  /// As `whole` says.
  std::string number(bool is_whole, int id, Level most) const {
    return is_whole ? whole(id, most) : real(id, most);
  }

  /// Operators group to the left: what stands right of one of its own kind keeps its brackets, so
  /// that sums are rounded in the order of the expression.
  Text binary(bool is_whole, int x, const char* sign, int y, Level level) const {
    const Level tighter = static_cast<Level>(level - 1);
    return {number(is_whole, x, level) + sign + number(is_whole, y, tighter), level};
  }
  Text compare(int x, const char* sign, int y, Level level) const {
    const bool is_whole = kind(x) != ScalarKind::real && kind(y) != ScalarKind::real;
    return {number(is_whole, x, sum) + sign + number(is_whole, y, sum), level};
  }
  /// A text that others made, of a sum or a product.
  static Text loosest(const std::string& made) {
    const auto has = [&](const char* sign) { return made.find(sign) != std::string::npos; };
    return {made, has(" + ") || has(" - ") ? sum
                  : has(" * ")             ? product
                  : has("(")               ? unary
                                           : primary};
  }
  /// What is the argument itself.
  Text same(bool is_whole, int x) const {
    const ScalarKind wanted = is_whole ? ScalarKind::integer : ScalarKind::real;
    if (node(x).op != ScalarOp::constant && kind(x) == wanted)
      return texts_[static_cast<std::size_t>(x)];
    return {number(is_whole, x, unary), unary};
  }
  Text called(const char* function, int x) {
    return {emitter_.call(function, real_type_) + "(" + real(x, choice) + ")"};
  }

  Text operand(const ScalarNode& node) const {
    const auto number = static_cast<std::size_t>(node.operand);
    const std::string value =
        loaded_.names.at(number) + (loaded_.arrays.at(number) ? "[" + lane_index_ + "]" : "");
    const DType of = operands_[number].buffer->dtype;
    if (of == DType::i32) return {value};
    const std::string converted = emitter_.convert(value, of, real_type_);
    return {converted, converted == value ? primary : unary};
  }
  Text index(const ScalarNode& node) const {
    for (const auto& [axis, position] : positions_)
      if (axis == node.axis) return loosest(emitter_.int_index(position));
    throw InternalError(text("the position along ", node.axis, " is not given"));
  }
  Text select(const ScalarNode& node, ScalarKind kind) const {
    const auto part = [&](int arg) {
      return kind == ScalarKind::boolean ? boolean(arg, conjunction)
                                         : number(kind == ScalarKind::integer, arg, conjunction);
    };
    const auto [condition, yes, no] = node.args;
    return {boolean(condition, conjunction) + " ? " + part(yes) + " : " + part(no), choice};
  }
  Text floor(bool is_whole, int x) {
    if (!is_whole) return called("floor_", x);
    if (node(x).op != ScalarOp::div) return same(is_whole, x);
    emitter_.prelude_.insert("floor_div");
    return {"floor_div(" + whole(node(x).args[0], choice) + ", " + whole(node(x).args[1], choice) +
            ")"};
  }

  Text text_of(int id) {
    const ScalarNode& node = this->node(id);
    const auto [x, y, z] = node.args;
    const bool is_whole = kind(id) == ScalarKind::integer;
    switch (node.op) {
      case ScalarOp::constant:
        return {emitter_.literal(node.value, is_whole ? DType::i32 : real_type_)};
      case ScalarOp::operand: return operand(node);
      case ScalarOp::index: return index(node);
      case ScalarOp::extent: return {"(int)" + emitter_.size(node.extent), unary};
      case ScalarOp::neg: return {"-" + number(is_whole, x, primary), unary};
      case ScalarOp::abs: {
        const char* function = is_whole ? "abs" : real_type_ == DType::f64 ? "fabs" : "fabsf";
        return {function + ("(" + number(is_whole, x, choice)) + ")"};
      }
      case ScalarOp::nonpositive: return same(is_whole, x);
      case ScalarOp::logical_not: return {"!" + boolean(x, primary), unary};
      case ScalarOp::add: return binary(is_whole, x, " + ", y, sum);
      case ScalarOp::sub: return binary(is_whole, x, " - ", y, sum);
      case ScalarOp::mul: return binary(is_whole, x, " * ", y, product);
      case ScalarOp::div: return binary(false, x, " / ", y, product);
      case ScalarOp::less: return compare(x, " < ", y, relation);
      case ScalarOp::less_equal: return compare(x, " <= ", y, relation);
      case ScalarOp::equal: return compare(x, " == ", y, equality);
      case ScalarOp::logical_and:
        return {boolean(x, equality) + " && " + boolean(y, equality), conjunction};
      // In brackets always: compilers warn of one operator inside the other.
      case ScalarOp::logical_or:
        return {"(" + boolean(x, equality) + " || " + boolean(y, equality) + ")"};
      case ScalarOp::select: return select(node, kind(id));
      case ScalarOp::min:
      case ScalarOp::max: {
        const std::string function = !is_whole ? emitter_.call(function_of(node.op), real_type_)
                                     : node.op == ScalarOp::min ? "min"
                                                                : "max";
        return {function + "(" + number(is_whole, x, choice) + ", " + number(is_whole, y, choice) +
                ")"};
      }
      case ScalarOp::floor: return floor(is_whole, x);
      default: break;
    }
    const char* function = function_of(node.op);
    KRAIT_ASSERT(function != nullptr, name(node.op), " is no function of the CUDA emitter");
    return called(function, x);
  }

  CudaEmitter& emitter_;
  const Scalar& scalar_;
  const Loaded& loaded_;
  const std::vector<CudaOperand>& operands_;
  const Positions& positions_;
  const DType real_type_;
  const std::string& lane_index_;
  std::vector<ScalarKind> kinds_;
  std::vector<Text> texts_;
};

std::vector<std::string> CudaEmitter::evaluate(const std::vector<Scalar>& results,
                                               const Loaded& loaded,
                                               const std::vector<CudaOperand>& operands,
                                               const Positions& positions, DType compute,
                                               const std::string& lane_index) {
  const DType real_type = compute == DType::f64 ? DType::f64 : DType::f32;
  std::vector<std::string> made;
  for (const Scalar& scalar : results)
    made.push_back(
        Expression(*this, scalar, loaded, operands, positions, real_type, lane_index).run());
  return made;
}

}  // namespace krait
