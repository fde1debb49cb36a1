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
  return from == to ? value : "(" + type_of(to) + ")(" + value + ")";
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

}  // namespace

std::vector<std::string> CudaEmitter::evaluate(
    const std::vector<Scalar>& results, const Loaded& loaded,
    const std::vector<CudaOperand>& operands,
    const std::vector<std::pair<std::string, Index>>& positions, DType compute,
    const std::string& lane_index) {
  const DType real_type = compute == DType::f64 ? DType::f64 : DType::f32;
  std::vector<bool> integers;
  for (const CudaOperand& operand : operands)
    integers.push_back(operand.buffer->dtype == DType::i32);
  std::vector<std::string> made;
  for (const Scalar& scalar : results) {
    const std::vector<ScalarKind> kinds = scalar.kinds(integers);
    std::vector<int> uses(scalar.nodes().size(), 0);
    for (const ScalarNode& node : scalar.nodes())
      for (int arg : node.args)
        if (arg >= 0) ++uses[static_cast<std::size_t>(arg)];
    std::vector<std::string> texts(scalar.nodes().size());
    const auto as_real = [&](int id) {
      const ScalarNode& node = scalar.nodes()[static_cast<std::size_t>(id)];
      if (node.op == ScalarOp::constant) return literal(node.value, real_type);
      const std::string& of = texts[static_cast<std::size_t>(id)];
      return kinds[static_cast<std::size_t>(id)] == ScalarKind::real
                 ? of
                 : "(" + type_of(real_type) + ")" + of;
    };
    const auto as_whole = [&](int id) {
      const ScalarNode& node = scalar.nodes()[static_cast<std::size_t>(id)];
      if (node.op == ScalarOp::constant) return literal(node.value, DType::i32);
      const std::string& of = texts[static_cast<std::size_t>(id)];
      return kinds[static_cast<std::size_t>(id)] == ScalarKind::integer ? of : "(int)" + of;
    };
    const auto as_bool = [&](int id) {
      const std::string& of = texts[static_cast<std::size_t>(id)];
      return kinds[static_cast<std::size_t>(id)] == ScalarKind::boolean ? of : "(" + of + " != 0)";
    };
    for (std::size_t id = 0; id < scalar.nodes().size(); ++id) {
      const ScalarNode& node = scalar.nodes()[id];
      const auto [x, y, z] = node.args;
      const bool whole = kinds[id] == ScalarKind::integer;
      const auto binary = [&](const char* sign) {
        return whole ? "(" + as_whole(x) + sign + as_whole(y) + ")"
                     : "(" + as_real(x) + sign + as_real(y) + ")";
      };
      const auto compare = [&](const char* sign) {
        const bool of_whole = kinds[static_cast<std::size_t>(x)] != ScalarKind::real &&
                              kinds[static_cast<std::size_t>(y)] != ScalarKind::real;
        return of_whole ? "(" + as_whole(x) + sign + as_whole(y) + ")"
                        : "(" + as_real(x) + sign + as_real(y) + ")";
      };
      std::string text_of;
      switch (node.op) {
        case ScalarOp::constant:
          text_of = literal(node.value, whole ? DType::i32 : real_type);
          break;
        case ScalarOp::operand: {
          const auto number = static_cast<std::size_t>(node.operand);
          text_of =
              loaded.names.at(number) + (loaded.arrays.at(number) ? "[" + lane_index + "]" : "");
          const DType of = operands[number].buffer->dtype;
          if (of != DType::i32) text_of = convert(text_of, of, real_type);
          break;
        }
        case ScalarOp::index: {
          const Index* index = nullptr;
          for (const auto& [axis, position] : positions)
            if (axis == node.axis) index = &position;
          KRAIT_ASSERT(index != nullptr, "the position along ", node.axis, " is not given");
          text_of = "(" + int_index(*index) + ")";
          break;
        }
        case ScalarOp::extent: text_of = "(int)" + size(node.extent); break;
        case ScalarOp::neg: text_of = "(-" + (whole ? as_whole(x) : as_real(x)) + ")"; break;
        case ScalarOp::abs:
          if (whole)
            text_of = "abs(" + as_whole(x) + ")";
          else
            text_of = (real_type == DType::f64 ? "fabs(" : "fabsf(") + as_real(x) + ")";
          break;
        case ScalarOp::nonpositive: text_of = whole ? as_whole(x) : as_real(x); break;
        case ScalarOp::logical_not: text_of = "(!" + as_bool(x) + ")"; break;
        case ScalarOp::add: text_of = binary(" + "); break;
        case ScalarOp::sub: text_of = binary(" - "); break;
        case ScalarOp::mul: text_of = binary(" * "); break;
        case ScalarOp::div: text_of = "(" + as_real(x) + " / " + as_real(y) + ")"; break;
        case ScalarOp::less: text_of = compare(" < "); break;
        case ScalarOp::less_equal: text_of = compare(" <= "); break;
        case ScalarOp::equal: text_of = compare(" == "); break;
        case ScalarOp::logical_and: text_of = "(" + as_bool(x) + " && " + as_bool(y) + ")"; break;
        case ScalarOp::logical_or: text_of = "(" + as_bool(x) + " || " + as_bool(y) + ")"; break;
        case ScalarOp::select: {
          const bool boolean = kinds[id] == ScalarKind::boolean;
          const auto part = [&](int arg) {
            return boolean ? as_bool(arg) : whole ? as_whole(arg) : as_real(arg);
          };
          text_of = "(" + as_bool(x) + " ? " + part(y) + " : " + part(z) + ")";
          break;
        }
        case ScalarOp::min:
        case ScalarOp::max:
          if (whole) {
            text_of = std::string(node.op == ScalarOp::min ? "min" : "max") + "(" + as_whole(x) +
                      ", " + as_whole(y) + ")";
            break;
          }
          text_of =
              call(function_of(node.op), real_type) + "(" + as_real(x) + ", " + as_real(y) + ")";
          break;
        case ScalarOp::floor:
          if (whole) {
            const ScalarNode& of = scalar.nodes()[static_cast<std::size_t>(x)];
            if (of.op != ScalarOp::div) {
              text_of = as_whole(x);
            } else {
              prelude_.insert("floor_div");
              text_of = "floor_div(" + as_whole(of.args[0]) + ", " + as_whole(of.args[1]) + ")";
            }
            break;
          }
          [[fallthrough]];
        default: {
          const char* function = function_of(node.op);
          KRAIT_ASSERT(function != nullptr, name(node.op), " is no function of the CUDA emitter");
          text_of = call(function, real_type) + "(" + as_real(x) + ")";
        }
      }
      const bool leaf = arity(node.op) == 0;
      if (!leaf && uses[id] > 1) {
        const std::string temporary = unique("e" + std::to_string(temporaries_++));
        const std::string type =
            kinds[id] == ScalarKind::boolean ? "bool" : (whole ? "int" : type_of(real_type));
        w_.line("const " + type + " " + temporary + " = " + text_of + ";");
        text_of = temporary;
      }
      texts[id] = text_of;
    }
    const int root = scalar.root_index();
    made.push_back(kinds[static_cast<std::size_t>(root)] == ScalarKind::boolean
                       ? texts[static_cast<std::size_t>(root)]
                   : kinds[static_cast<std::size_t>(root)] == ScalarKind::integer
                       ? texts[static_cast<std::size_t>(root)]
                       : as_real(root));
  }
  return made;
}

}  // namespace krait
