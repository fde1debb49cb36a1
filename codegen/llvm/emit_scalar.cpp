// Scalar expressions to vector code.
#include <map>

#include "codegen/llvm/kernel_emitter.h"
#include "dsl/error.h"

namespace krait {

/// Expressions over the same operands at one position. A value's type tells its kind: i1, i32, or
/// the element type of the computation. Nodes are made when they are first needed.
struct KernelEmitter::Expressions {
  KernelEmitter& e;
  ir::Builder& b;
  const std::vector<Operand>& operands;
  const std::vector<std::pair<std::string, Index>>& positions;
  const std::string element;
  const Lanes lanes;
  std::map<int, Val> loaded;

  const Scalar* scalar = nullptr;
  std::vector<ScalarKind> kinds;
  std::map<int, Val> made;

  std::string type(const std::string& of) const { return ir::vector_type(of, lanes.count); }
  Val constant(double value) const {
    return ir::splat_constant(ir::real(element, value), lanes.count);
  }
  Val integer(std::int64_t value) const { return ir::splat_constant(ir::i32(value), lanes.count); }

  Val root(const Scalar& of) {
    std::vector<bool> integers;
    for (const Operand& operand : operands) integers.push_back(operand.dtype == DType::i32);
    scalar = &of;
    kinds = of.kinds(integers);
    made.clear();
    const int id = of.root_index();
    return kinds[id] == ScalarKind::real ? real(id) : value(id);
  }

  Val real(int id) {
    const ScalarNode& node = scalar->nodes()[id];
    if (node.op == ScalarOp::constant) return constant(node.value);
    return e.convert(value(id), element, lanes.count);
  }
  Val whole(int id) {
    const ScalarNode& node = scalar->nodes()[id];
    if (node.op == ScalarOp::constant) return integer(static_cast<std::int64_t>(node.value));
    return e.convert(value(id), "i32", lanes.count);
  }
  Val boolean(int id) { return e.convert(value(id), "i1", lanes.count); }

  Val value(int id) {
    auto found = made.find(id);
    if (found == made.end()) found = made.emplace(id, make(id)).first;
    return found->second;
  }

  Val make(int id) {
    const ScalarNode& node = scalar->nodes()[id];
    const auto [x, y, z] = node.args;
    const bool whole_result = kinds[id] == ScalarKind::integer;
    auto is_whole = [&](int arg) { return kinds[arg] != ScalarKind::real; };
    auto arithmetic = [&](const char* of_integers, const char* of_reals) {
      return whole_result ? b.binary(of_integers, whole(x), whole(y))
                          : b.binary(of_reals, real(x), real(y));
    };
    auto compare = [&](const char* of_integers, const char* of_reals) {
      return is_whole(x) && is_whole(y) ? b.compare(of_integers, whole(x), whole(y))
                                        : b.compare(of_reals, real(x), real(y));
    };
    switch (node.op) {
      case ScalarOp::constant:
        return whole_result ? integer(static_cast<std::int64_t>(node.value)) : constant(node.value);
      case ScalarOp::operand: return operand(node.operand);
      case ScalarOp::index: return position(node.axis);
      case ScalarOp::extent:
        return b.splat(b.cast("trunc", e.size(node.extent), "i32"), lanes.count);
      case ScalarOp::neg:
        return whole_result ? b.binary("sub", integer(0), whole(x))
                            : b.emit(type(element), "fneg " + real(x).text());
      case ScalarOp::abs: {
        if (!whole_result) return b.intrinsic("fabs", {real(x)});
        Val number = whole(x);
        return b.intrinsic("smax", {number, b.binary("sub", integer(0), number)});
      }
      case ScalarOp::sqrt: return b.intrinsic("sqrt", {real(x)});
      case ScalarOp::rsqrt: return b.binary("fdiv", constant(1), b.intrinsic("sqrt", {real(x)}));
      case ScalarOp::floor: return floor(id);
      case ScalarOp::wrap: {
        Val number = real(x);
        Val turns = b.intrinsic("floor", {b.binary("fadd", number, constant(0.5))});
        return b.binary("fsub", number, turns);
      }
      case ScalarOp::nonpositive: return whole_result ? whole(x) : real(x);
      case ScalarOp::logical_not:
        return b.binary("xor", boolean(x), ir::splat_constant({"i1", "true"}, lanes.count));
      case ScalarOp::add: return arithmetic("add", "fadd");
      case ScalarOp::sub: return arithmetic("sub", "fsub");
      case ScalarOp::mul: return arithmetic("mul", "fmul");
      case ScalarOp::div: return b.binary("fdiv", real(x), real(y));
      case ScalarOp::min:
        if (whole_result) return b.intrinsic("smin", {whole(x), whole(y)});
        return e.extremum("fcmp olt", real(x), real(y));
      case ScalarOp::max:
        if (whole_result) return b.intrinsic("smax", {whole(x), whole(y)});
        return e.extremum("fcmp ogt", real(x), real(y));
      case ScalarOp::less: return compare("icmp slt", "fcmp olt");
      case ScalarOp::less_equal: return compare("icmp sle", "fcmp ole");
      case ScalarOp::equal: return compare("icmp eq", "fcmp oeq");
      case ScalarOp::logical_and: return b.binary("and", boolean(x), boolean(y));
      case ScalarOp::logical_or: return b.binary("or", boolean(x), boolean(y));
      case ScalarOp::select: {
        Val condition = boolean(x);
        if (kinds[id] == ScalarKind::boolean) return b.select(condition, boolean(y), boolean(z));
        return whole_result ? b.select(condition, whole(y), whole(z))
                            : b.select(condition, real(y), real(z));
      }
      default: return e.math(node.op, real(x), element, lanes.count);
    }
  }

  Val operand(int number) {
    auto found = loaded.find(number);
    if (found == loaded.end())
      found = loaded.emplace(number, e.load(operands.at(number), lanes)).first;
    const Operand& from = operands[number];
    return from.dtype == DType::i32 ? found->second
                                    : e.convert(found->second, element, lanes.count);
  }

  Val position(const std::string& axis) {
    for (const auto& [name, index] : positions) {
      if (name != axis) continue;
      Val first = ir::i64(index.constant);
      for (const auto& [var, factor] : index.terms)
        first = b.add(b.mul(e.values_.at(var), ir::i64(factor)), first);
      const std::int64_t step = lanes.var >= 0 ? index.factor_of(lanes.var) : 0;
      Val start = first.name[0] == '%' ? b.cast("trunc", first, "i32") : Val{"i32", first.name};
      Val all = b.splat(start, lanes.count);
      if (lanes.count == 1 || step == 0) return all;
      return b.binary("add", all, ir::lane_numbers("i32", lanes.count, 0, step));
    }
    throw InternalError(text("the position along ", axis, " is not given"));
  }

  /// Of a quotient of integers in double, where the quotient of two 32-bit integers never rounds
  /// across a whole number.
  Val floor(int id) {
    const int x = scalar->nodes()[id].args[0];
    if (kinds[id] != ScalarKind::integer) return b.intrinsic("floor", {real(x)});
    const ScalarNode& of = scalar->nodes()[x];
    if (of.op != ScalarOp::div) return whole(x);
    const std::string wide = type("double");
    Val quotient = b.binary("fdiv", b.cast("sitofp", whole(of.args[0]), wide),
                            b.cast("sitofp", whole(of.args[1]), wide));
    return e.convert(b.intrinsic("floor", {quotient}), "i32", lanes.count);
  }
};

Val KernelEmitter::extremum(const char* wins, const Val& a, const Val& b) {
  // A NaN on either side stays one.
  Val chosen = b_.select(b_.compare(wins, b, a), b, a);
  return b_.select(b_.compare("fcmp uno", b, b), b, chosen);
}

std::vector<Val> KernelEmitter::evaluate(
    const std::vector<Scalar>& results, const std::vector<Operand>& operands,
    const std::vector<std::pair<std::string, Index>>& positions, DType compute,
    const Lanes& lanes) {
  Expressions expressions{*this, b_, operands, positions, register_element(computed_in(compute)),
                          lanes, {}, nullptr,  {},        {}};
  std::vector<Val> values;
  for (const Scalar& result : results) values.push_back(expressions.root(result));
  return values;
}

double KernelEmitter::work_of(const std::vector<Scalar>& results) {
  double work = 0;
  for (const Scalar& result : results)
    for (const ScalarNode& node : result.nodes())
      work += ir::is_math_function(node.op) ? 20 : arity(node.op) > 0 ? 1 : 0;
  return work;
}

Val KernelEmitter::math(ScalarOp op, const Val& x, const std::string& element, int lanes) {
  KRAIT_ASSERT(ir::is_math_function(op), name(op), " is not emitted");
  auto need = [&](auto& self, ScalarOp wanted) -> void {
    auto [at, is_new] = functions_.try_emplace(ir::math_function_name(wanted, element, lanes));
    if (!is_new) return;
    at->second = ir::math_function(wanted, element, lanes);
    for (ScalarOp called : std::vector<ScalarOp>(at->second.calls)) self(self, called);
  };
  need(need, op);
  return b_.call(x.type, ir::math_function_name(op, element, lanes), {x}, "");
}

}  // namespace krait
