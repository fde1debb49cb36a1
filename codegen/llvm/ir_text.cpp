#include "codegen/llvm/ir_text.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

#include "dsl/error.h"

namespace krait::ir {
namespace {

bool is_number(const Val& value) {
  return !value.name.empty() &&
         (value.name[0] == '-' || (value.name[0] >= '0' && value.name[0] <= '9'));
}

std::int64_t number(const Val& value) { return std::strtoll(value.name.c_str(), nullptr, 10); }

/// Lanes and element of a type: "<8 x float>" is 8, "float"; "float" is 0, "float".
std::pair<int, std::string> parts(const std::string& type) {
  if (type[0] != '<') return {0, type};
  const std::size_t x = type.find(" x ");
  return {std::atoi(type.c_str() + 1), type.substr(x + 3, type.size() - x - 4)};
}

std::string boolean_of(const std::string& type) {
  auto [lanes, element] = parts(type);
  return lanes == 0 ? "i1" : true_vector_type("i1", lanes);
}

}  // namespace

std::string vector_type(const std::string& element, int lanes) {
  return lanes == 1 ? element : true_vector_type(element, lanes);
}

std::string true_vector_type(const std::string& element, int lanes) {
  return '<' + std::to_string(lanes) + " x " + element + '>';
}

Val i64(std::int64_t value) { return {"i64", std::to_string(value)}; }
Val i32(std::int64_t value) { return {"i32", std::to_string(value)}; }

Val real(const std::string& type, double value) {
  if (type == "float") value = static_cast<float>(value);
  char digits[24];
  std::snprintf(digits, sizeof digits, "0x%016llX",
                static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(value)));
  return {type, digits};
}

Val splat_constant(const Val& scalar, int lanes) {
  if (lanes == 1) return scalar;
  return {true_vector_type(scalar.type, lanes), "splat (" + scalar.text() + ')'};
}

Val zero(const std::string& type) {
  if (type[0] == '<') return {type, "zeroinitializer"};
  return {type, type == "float" || type == "double" || type == "half" ? "0.0" : "0"};
}

Val lane_numbers(const std::string& element, int lanes, std::int64_t first, std::int64_t step) {
  if (lanes == 1) return {element, std::to_string(first)};
  std::string all = "<";
  for (int i = 0; i < lanes; ++i)
    all += (i > 0 ? ", " : "") + element + ' ' + std::to_string(first + i * step);
  return {true_vector_type(element, lanes), all + '>'};
}

Val first_lanes(int lanes, int count) {
  std::string all = "<";
  for (int i = 0; i < lanes; ++i)
    all += std::string(i > 0 ? ", " : "") + (i < count ? "i1 true" : "i1 false");
  return {true_vector_type("i1", lanes), all + '>'};
}

std::string mangled(const std::string& type) {
  auto [lanes, element] = parts(type);
  std::string name = element == "float"    ? "f32"
                     : element == "double" ? "f64"
                     : element == "half"   ? "f16"
                     : element == "ptr"    ? "p0"
                                           : element;
  return lanes == 0 ? name : 'v' + std::to_string(lanes) + name;
}

std::string Builder::fresh(const char* hint) { return hint + std::to_string(next_++); }

void Builder::line(const std::string& text) { text_.append("  ").append(text).push_back('\n'); }

Val Builder::emit(const std::string& type, const std::string& text) {
  std::string name = '%' + fresh();
  line(name + " = " + text);
  return {type, std::move(name)};
}

void Builder::label(const std::string& name) {
  text_.append(name).append(":\n");
  block_ = name;
}

void Builder::branch(const Val& condition, const std::string& yes, const std::string& no) {
  line("br i1 " + condition.name + ", label %" + yes + ", label %" + no);
}

Val Builder::binary(const char* op, const Val& a, const Val& b) {
  KRAIT_ASSERT(a.type == b.type, op, " of ", a.text(), " and ", b.text());
  return emit(a.type, std::string(op) + ' ' + a.text() + ", " + b.name);
}

Val Builder::add(const Val& a, const Val& b) {
  if (is_number(a) && is_number(b)) return i64(number(a) + number(b));
  if (a.name == "0") return b;
  if (b.name == "0") return a;
  return binary("add", a, b);
}

Val Builder::sub(const Val& a, const Val& b) {
  if (is_number(a) && is_number(b)) return i64(number(a) - number(b));
  if (b.name == "0") return a;
  return binary("sub", a, b);
}

Val Builder::mul(const Val& a, const Val& b) {
  if (is_number(a) && is_number(b)) return i64(number(a) * number(b));
  if (a.name == "0" || b.name == "1") return a;
  if (b.name == "0" || a.name == "1") return b;
  return binary("mul", a, b);
}

Val Builder::compare(const char* predicate, const Val& a, const Val& b) {
  KRAIT_ASSERT(a.type == b.type, predicate, " of ", a.text(), " and ", b.text());
  return emit(boolean_of(a.type), std::string(predicate) + ' ' + a.text() + ", " + b.name);
}

Val Builder::select(const Val& condition, const Val& yes, const Val& no) {
  KRAIT_ASSERT(yes.type == no.type, "select of ", yes.text(), " and ", no.text());
  return emit(yes.type, "select " + condition.text() + ", " + yes.text() + ", " + no.text());
}

Val Builder::cast(const char* op, const Val& a, const std::string& type) {
  if (a.type == type) return a;
  return emit(type, std::string(op) + ' ' + a.text() + " to " + type);
}

Val Builder::splat(const Val& scalar, int lanes) {
  if (lanes == 1) return scalar;
  if (scalar.name[0] != '%') return splat_constant(scalar, lanes);
  const std::string type = true_vector_type(scalar.type, lanes);
  Val one = emit(type, "insertelement " + type + " poison, " + scalar.text() + ", i64 0");
  return emit(type, "shufflevector " + one.text() + ", " + type + " poison, " +
                        true_vector_type("i32", lanes) + " zeroinitializer");
}

Val Builder::extract(const Val& vector, int lane) {
  auto [lanes, element] = parts(vector.type);
  if (lanes == 0) return vector;
  return emit(element, "extractelement " + vector.text() + ", i64 " + std::to_string(lane));
}

Val Builder::shuffle(const Val& a, const Val& b, const std::vector<int>& lanes) {
  std::string mask = true_vector_type("i32", static_cast<int>(lanes.size())) + " <";
  for (std::size_t i = 0; i < lanes.size(); ++i)
    mask += (i > 0 ? ", i32 " : "i32 ") + std::to_string(lanes[i]);
  return emit(true_vector_type(parts(a.type).second, static_cast<int>(lanes.size())),
              "shufflevector " + a.text() + ", " + b.text() + ", " + mask + '>');
}

Val Builder::intrinsic(const std::string& name, const std::vector<Val>& arguments) {
  const std::string& type = arguments.at(0).type;
  const std::string full = "llvm." + name + '.' + mangled(type);
  std::string types;
  for (const Val& argument : arguments) types += (types.empty() ? "" : ", ") + argument.type;
  return call(type, full, arguments, "declare " + type + " @" + full + '(' + types + ')');
}

Val Builder::intrinsic_to(const std::string& name, const std::string& type, const Val& argument) {
  const std::string full = "llvm." + name + '.' + mangled(type) + '.' + mangled(argument.type);
  return call(type, full, {argument}, "declare " + type + " @" + full + '(' + argument.type + ')');
}

Val Builder::call(const std::string& type, const std::string& name,
                  const std::vector<Val>& arguments, const std::string& declaration,
                  const std::string& suffix) {
  if (!declaration.empty()) declare(declaration);
  std::string list;
  for (const Val& argument : arguments) list += (list.empty() ? "" : ", ") + argument.text();
  return emit(type, "call " + type + " @" + name + '(' + list + ')' + suffix);
}

void Builder::call_void(const std::string& name, const std::vector<Val>& arguments,
                        const std::string& declaration, const std::string& suffix) {
  if (!declaration.empty()) declare(declaration);
  std::string list;
  for (const Val& argument : arguments) list += (list.empty() ? "" : ", ") + argument.text();
  line("call void @" + name + '(' + list + ')' + suffix);
}

Val Builder::element(const Val& base, const std::string& type, const Val& index) {
  if (index.name == "0") return base;
  return emit("ptr", "getelementptr " + type + ", " + base.text() + ", " + index.text());
}

Builder::Loop Builder::begin_loop(const Val& from, const Val& to, std::int64_t step,
                                  std::vector<Val> carried) {
  Loop loop;
  loop.index = {"i64", '%' + fresh("i")};
  loop.from = from, loop.to = to, loop.step = step;
  loop.entry = block_;
  loop.initial = std::move(carried);
  loop.runs_once = is_number(from) && is_number(to);
  const std::string stem = fresh("loop");
  loop.header = stem, loop.exit = stem + "x", loop.latch = stem + "n";
  for (const Val& initial : loop.initial) loop.carried.push_back({initial.type, '%' + fresh("c")});
  branch(loop.header);
  label(loop.header);
  loop.phis = text_.size();
  if (!loop.runs_once) {
    Val more = compare("icmp slt", loop.index, to);
    branch(more, stem + "b", loop.exit);
    label(stem + "b");
  }
  return loop;
}

std::vector<Val> Builder::end_loop(const Loop& loop, const std::vector<Val>& next) {
  KRAIT_ASSERT(next.size() == loop.carried.size(), "a loop carries ", loop.carried.size(),
               " values and ends with ", next.size());
  branch(loop.latch);
  label(loop.latch);
  Val after = binary("add", loop.index, i64(loop.step));
  if (loop.runs_once) {
    Val more = compare("icmp slt", after, loop.to);
    branch(more, loop.header, loop.exit);
  } else {
    branch(loop.header);
  }
  label(loop.exit);
  auto phi = [&](const Val& value, const Val& first, const Val& later) {
    return "  " + value.name + " = phi " + value.type + " [ " + first.name + ", %" + loop.entry +
           " ], [ " + later.name + ", %" + loop.latch + " ]\n";
  };
  std::string phis = phi(loop.index, loop.from, after);
  for (std::size_t i = 0; i < next.size(); ++i)
    phis += phi(loop.carried[i], loop.initial[i], next[i]);
  text_.insert(loop.phis, phis);
  return loop.runs_once ? next : loop.carried;
}

void Builder::declare(const std::string& declaration) {
  auto at = std::lower_bound(declarations_.begin(), declarations_.end(), declaration);
  if (at == declarations_.end() || *at != declaration) declarations_.insert(at, declaration);
}

}  // namespace krait::ir
