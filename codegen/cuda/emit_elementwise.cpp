// Copy, Fill and MapTile: every point by itself, up to four side by side.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

bool on_chip_of_all(const Buffer& buffer) {
  return buffer.space == Space::shared || buffer.space == Space::global;
}

}  // namespace

std::vector<int> CudaEmitter::operand_uses(const std::vector<Scalar>& results, std::size_t count) {
  std::vector<int> uses(count, 0);
  for (const Scalar& result : results)
    for (const ScalarNode& node : result.nodes()) {
      for (int arg : node.args)
        if (arg >= 0 && result.nodes()[static_cast<std::size_t>(arg)].op == ScalarOp::operand)
          ++uses[static_cast<std::size_t>(result.nodes()[static_cast<std::size_t>(arg)].operand)];
      if (&node == &result.root() && node.op == ScalarOp::operand)
        ++uses[static_cast<std::size_t>(node.operand)];
    }
  return uses;
}

const std::string& CudaEmitter::name_of(const CudaOperand& operand) const {
  return buffer_names_[static_cast<std::size_t>(operand.access->buffer)];
}

CudaEmitter::Loaded CudaEmitter::load_operands(const std::vector<CudaOperand>& operands,
                                               const std::vector<int>& uses, int width,
                                               int vector_var, double fill_value) {
  Loaded loaded;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const CudaOperand& operand = operands[i];
    loaded.names.push_back("");
    loaded.arrays.push_back(false);
    if (uses[i] == 0) continue;
    const std::string fill = literal(fill_value, operand.buffer->dtype);
    if (operand.buffer->space == Space::scalar || (width == 1 && uses[i] == 1)) {
      loaded.names.back() = element(operand, fill);
      continue;
    }
    if (operand.buffer->space == Space::fragment) {
      if (width > 1) registers_[0] = "i";
      loaded.names.back() = element(operand, fill);
      if (width > 1) registers_.erase(0);
      continue;
    }
    const std::string name = unique(name_of(operand) + "_v");
    loaded.names.back() = name;
    const std::string type = type_of(operand.buffer->dtype);
    const bool varies =
        width > 1 && (!operand.stride(vector_var).is(0) || operand.guarded_by(vector_var));
    if (!varies) {
      w_.line("const " + type + " " + name + " = " + element(operand, fill) + ";");
      continue;
    }
    loaded.arrays.back() = true;
    w_.line(type + " " + name + "[" + std::to_string(width) + "];");
    if (operand.wide_elements == width && operand.wide_var == vector_var) {
      const std::string load = "load" + std::to_string(width);
      prelude_.insert(load);
      const std::string at = "&" + operand.base + "[" + address(operand) + "]";
      const std::string guard = condition(operand);
      if (guard.empty()) {
        w_.line(load + "(" + name + ", " + at + ", " + operand.wide + ");");
      } else {
        w_.line("if (" + guard + ") " + load + "(" + name + ", " + at + ", " + operand.wide + ");");
        std::string zeros;
        for (int v = 0; v < width; ++v)
          zeros += name + "[" + std::to_string(v) + "] = " + (v + 1 < width ? "" : fill + ";");
        w_.line("else " + zeros);
      }
      continue;
    }
    const std::string at = values_[vector_var];
    w_.line("#pragma unroll");
    w_.open("for (int i = 0; i < " + std::to_string(width) + "; ++i)");
    values_[vector_var] = at == "0" ? "i" : "(" + at + " + i)";
    w_.line(name + "[i] = " + element(operand, fill) + ";");
    values_[vector_var] = at;
    w_.close();
  }
  return loaded;
}

void CudaEmitter::store_vector(const CudaOperand& operand, const std::string& array, int width,
                               int vector_var) {
  if (operand.wide_elements == width && operand.wide_var == vector_var) {
    const std::string function =
        "store" + std::to_string(width) + (operand.buffer->space == Space::global ? "_global" : "");
    prelude_.insert(function);
    const std::string guard = condition(operand);
    w_.line((guard.empty() ? "" : "if (" + guard + ") ") + function + "(&" + operand.base + "[" +
            address(operand) + "], " + array + ", " + operand.wide + ");");
    return;
  }
  const std::string at = values_[vector_var];
  w_.line("#pragma unroll");
  w_.open("for (int i = 0; i < " + std::to_string(width) + "; ++i)");
  values_[vector_var] = at == "0" ? "i" : "(" + at + " + i)";
  registers_[0] = "i";
  store(operand, array + "[i]");
  registers_.erase(0);
  values_[vector_var] = at;
  w_.close();
}

void CudaEmitter::emit(const Copy& s) {
  if (s.asynchronous) return emit_asynchronous(s);
  w_.open("");
  const auto [width, vector_var] = vector_of(*s.layout, s.domain);
  const CudaOperand source = operand(s.source, s.domain);
  const CudaOperand destination = operand(s.destination, s.domain);
  Walk points{.layout = &*s.layout, .vars = s.domain};
  points.one_writer = on_chip_of_all(*destination.buffer);
  points.unroll = touches_fragment(s);
  const bool keeps = s.keep && !source.guards.empty();
  points.vector = keeps ? 1 : width;
  walk(points, [&] {
    const DType from = source.buffer->dtype, to = destination.buffer->dtype;
    if (keeps) {
      w_.open("if (" + condition(source) + ")");
      CudaOperand inside = source;
      inside.guards.clear();
      store(destination, convert(element(inside, "0"), from, to));
      w_.close();
      return;
    }
    const std::string fill = literal(s.fill, from);
    if (points.vector == 1) {
      store(destination, convert(element(source, fill), from, to));
      return;
    }
    const Loaded loaded = load_operands({source}, {1}, width, vector_var, s.fill);
    std::string array = loaded.names[0];
    const std::string read = array + (loaded.arrays[0] ? "[i]" : "");
    if (destination.buffer->space == Space::fragment) {
      w_.line("#pragma unroll");
      w_.open("for (int i = 0; i < " + std::to_string(width) + "; ++i)");
      registers_[0] = "i";
      store(destination, convert(read, from, to));
      registers_.erase(0);
      w_.close();
      return;
    }
    if (!loaded.arrays[0] || from != to) {
      array = unique(name_of(destination) + "_new");
      w_.line(type_of(to) + " " + array + "[" + std::to_string(width) + "];");
      w_.line("#pragma unroll");
      w_.line("for (int i = 0; i < " + std::to_string(width) + "; ++i) " + array +
              "[i] = " + convert(read, from, to) + ";");
    }
    store_vector(destination, array, width, vector_var);
  });
  w_.close();
}

void CudaEmitter::emit(const Fill& s) {
  w_.open("");
  const CudaOperand destination = operand(s.destination, s.domain);
  Walk points{.layout = &*s.layout, .vars = s.domain};
  points.one_writer = on_chip_of_all(*destination.buffer);
  points.unroll = touches_fragment(s);
  points.vector = destination.wide_elements;
  const std::string value = literal(s.value, destination.buffer->dtype);
  walk(points, [&] {
    if (points.vector == 1) return store(destination, value);
    std::string values;
    for (int i = 0; i < points.vector; ++i) values += (i > 0 ? ", " : "") + value;
    w_.line("float out[" + std::to_string(points.vector) + "] = {" + values + "};");
    store_vector(destination, "out", points.vector, destination.wide_var);
  });
  w_.close();
}

void CudaEmitter::emit(const MapTile& s) {
  w_.open("");
  const auto [width, vector_var] = vector_of(*s.layout, s.domain);
  std::vector<CudaOperand> operands, destinations;
  for (const Access& access : s.operands) operands.push_back(operand(access, s.domain));
  for (const Access& access : s.destinations) destinations.push_back(operand(access, s.domain));
  const std::vector<int> uses = operand_uses(s.results, operands.size());
  Walk points{.layout = &*s.layout, .vars = s.domain};
  points.one_writer = std::any_of(destinations.begin(), destinations.end(),
                                  [](const CudaOperand& d) { return on_chip_of_all(*d.buffer); });
  // Replicas must compute fragments and scalars too.
  const bool for_all = std::any_of(destinations.begin(), destinations.end(),
                                   [](const CudaOperand& d) { return !on_chip_of_all(*d.buffer); });
  KRAIT_ASSERT(!(points.one_writer && for_all && s.layout->has_replicas()), program_.name,
               ": a map whose results are shared and not shared at once");
  points.unroll = touches_fragment(s);
  points.vector = width;
  walk(points, [&] {
    const Loaded loaded = load_operands(operands, uses, width, vector_var, 0);
    std::vector<std::string> values, names;
    for (const CudaOperand& destination : destinations)
      names.push_back(unique(name_of(destination) + "_new"));
    if (width == 1) {
      values = evaluate(s.results, loaded, operands, s.positions, s.compute, "");
      // All results before the first store: a destination may be an operand.
      for (std::size_t i = 0; i < values.size() && values.size() > 1; ++i) {
        w_.line("const " + type_of(destinations[i].buffer->dtype) + " " + names[i] + " = " +
                values[i] + ";");
        values[i] = names[i];
      }
      for (std::size_t i = 0; i < values.size(); ++i) store(destinations[i], values[i]);
      return;
    }
    // One result that stands in registers goes there at once.
    const bool direct =
        destinations.size() == 1 && destinations[0].buffer->space == Space::fragment;
    for (std::size_t i = 0; i < destinations.size() && !direct; ++i)
      w_.line(type_of(destinations[i].buffer->dtype) + " " + names[i] + "[" +
              std::to_string(width) + "];");
    const std::string at = values_[vector_var];
    w_.line("#pragma unroll");
    w_.open("for (int i = 0; i < " + std::to_string(width) + "; ++i)");
    values_[vector_var] = at == "0" ? "i" : "(" + at + " + i)";
    values = evaluate(s.results, loaded, operands, s.positions, s.compute, "i");
    if (direct) {
      registers_[0] = "i";
      store(destinations[0], values[0]);
      registers_.erase(0);
    }
    for (std::size_t i = 0; i < values.size() && !direct; ++i)
      w_.line(names[i] + "[i] = " + values[i] + ";");
    values_[vector_var] = at;
    w_.close();
    for (std::size_t i = 0; i < destinations.size() && !direct; ++i)
      store_vector(destinations[i], names[i], width, vector_var);
  });
  w_.close();
}

}  // namespace krait
