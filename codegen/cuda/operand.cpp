// Addresses, guards, and loads and stores of elements.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/tile/access.h"
#include "codegen/tile/range.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// For a place behind + or -: in brackets where it is a sum itself, or negative.
std::string in_sum(const std::string& text) {
  const bool sum = text.find(" + ") != std::string::npos || text.find(" - ") != std::string::npos;
  return sum || text[0] == '-' ? "(" + text + ")" : text;
}

}  // namespace

bool CudaOperand::guarded_by(int var) const {
  return std::any_of(guards.begin(), guards.end(),
                     [&](const Guard& guard) { return guard.factors.count(var) != 0; });
}

std::string CudaEmitter::stride_text(const CudaStride& stride) const {
  std::string sum;
  for (const auto& [argument, factor] : stride.arguments) {
    sum += sum.empty() ? "" : " + ";
    sum += argument_names_[static_cast<std::size_t>(argument)];
    if (factor != 1) sum += " * " + std::to_string(factor);
  }
  if (stride.constant != 0 || sum.empty())
    sum += (sum.empty() ? "" : " + ") + std::to_string(stride.constant);
  return stride.arguments.size() + (stride.constant != 0 ? 1u : 0u) > 1 ? "(" + sum + ")" : sum;
}

CudaOperand CudaEmitter::operand(const Access& access, const std::vector<int>& own) {
  CudaOperand made;
  made.access = &access;
  made.buffer = &program_.buffers.at(static_cast<std::size_t>(access.buffer));
  const Buffer& buffer = *made.buffer;
  const std::string& name = buffer_names_[static_cast<std::size_t>(access.buffer)];
  made.base = name;
  if (buffer.space == Space::scalar) return made;
  if (buffer.space == Space::fragment) {
    for (const Index& index : access.index)
      for (const auto& [var, factor] : index.terms) made.strides[var].constant = factor;
    return made;
  }

  std::string offset;
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    const Stride& stride = buffer.dims[d].stride;
    bool alone = true;  // nothing but the statement's own variables moves it
    for (const auto& [var, factor] : access.index[d].terms) {
      if (one_of(var, own))
        made.strides[var].add(stride, factor);
      else
        alone = false;
    }
    if (alone && buffer.space == Space::shared) {
      made.start += access.index[d].constant * stride.constant;
      continue;
    }
    const std::string outer = outer_index(access.index[d], own);
    if (outer == "0") continue;
    CudaStride one;
    one.add(stride, 1);
    if (one.is(0)) continue;
    offset += offset.empty() ? "" : " + ";
    offset += one.is(1) ? outer : in_sum(outer) + " * " + stride_text(one);
  }
  if (const Buffer& root =
          program_.buffers[static_cast<std::size_t>(memory_of(program_, access.buffer))];
      root.stages > 1) {
    const std::string turn = value(root.stage_var);
    const std::string slot =
        root.stages == 2 ? turn + " & 1" : turn + " % " + std::to_string(root.stages);
    offset += (offset.empty() ? "" : " + ") + ("(" + slot + ") * ") +
              std::to_string(slot_bytes(root) / size_in_bytes(buffer.dtype));
  }
  for (auto it = made.strides.begin(); it != made.strides.end();)
    it = it->second.is(0) ? made.strides.erase(it) : std::next(it);
  if (!offset.empty()) {
    made.base = unique(name + "_at");
    w_.line((buffer.written || buffer.space == Space::shared ? "" : "const ") +
            memory_type_of(buffer.dtype) + "* const " + made.base + " = " + name + " + " +
            in_sum(offset) + ";");
  }
  for (int d : access.guarded) {
    const Leaves sides = leaves(program_, access, d);
    if (!sides.any()) continue;
    CudaOperand::Guard guard;
    for (const auto& [var, factor] : access.index[static_cast<std::size_t>(d)].terms)
      if (one_of(var, own)) guard.factors[var] = factor;
    const std::string outer = outer_index(access.index[static_cast<std::size_t>(d)], own);
    const std::string& axis = buffer.dims[static_cast<std::size_t>(d)].axis;
    const auto bound = [&](const char* what, const std::string& value) {
      const std::string bound_name = unique(name + "_" + what);
      prelude_.insert("near");
      w_.line("const int " + bound_name + " = near(" + value + ");  // along " + axis);
      return bound_name;
    };
    if (sides.above)
      guard.room = bound(
          "room", size(buffer.dims[static_cast<std::size_t>(d)].extent) + " - " + in_sum(outer));
    const std::string start = in_sum(outer);
    // Two signs in a row are another operator.
    if (sides.below)
      guard.from = bound("from", start.starts_with('-') ? "-(" + start + ")" : "-" + start);
    made.guards.push_back(std::move(guard));
  }
  if (access.wide.elements == 1) return made;
  made.wide_var = access.wide.var;
  made.wide_elements = access.wide.elements;
  made.wide = "true";
  if (access.wide.address_tested) {
    made.wide = unique(name + "_wide");
    const std::string bytes =
        std::to_string(access.wide.elements * size_in_bytes(buffer.dtype) - 1);
    std::string strides;
    for (int argument : access.wide.strides_tested)
      strides +=
          (strides.empty() ? "" : " | ") + argument_names_[static_cast<std::size_t>(argument)];
    std::string test = "((u64)" + made.base + " & " + bytes + ") == 0";
    if (access.wide.strides_tested.size() > 1) strides = "(" + strides + ")";
    if (!strides.empty())
      test += " && (" + strides + " & " + std::to_string(access.wide.elements - 1) + ") == 0";
    w_.line("const bool " + made.wide + " = " + test + ";");
  }
  return made;
}

std::string CudaEmitter::address(const CudaOperand& operand) const {
  std::string sum;
  for (const auto& [var, stride] : operand.strides) {
    const std::string& at = value(var);
    if (at == "0") continue;
    sum += sum.empty() ? "" : " + ";
    sum += stride.is(1) ? at : at + " * " + stride_text(stride);
  }
  if (sum.empty()) return std::to_string(operand.start);
  if (operand.start == 0) return sum;
  return sum + (operand.start < 0 ? " - " : " + ") + std::to_string(std::abs(operand.start));
}

std::string CudaEmitter::condition(const CudaOperand& operand) const {
  std::string all;
  for (const CudaOperand::Guard& guard : operand.guards) {
    std::string sum;
    for (const auto& [var, factor] : guard.factors) {
      if (value(var) == "0") continue;
      sum += sum.empty() ? "" : " + ";
      sum += factor == 1 ? value(var) : value(var) + " * " + std::to_string(factor);
    }
    if (sum.empty()) sum = "0";
    for (const auto& [bound, relation] :
         {std::pair{guard.room, " < "}, std::pair{guard.from, " >= "}}) {
      if (bound.empty()) continue;
      all += (all.empty() ? "" : " && ") + sum + relation + bound;
    }
  }
  return all;
}

std::string CudaEmitter::place(const CudaOperand& operand) const {
  if (operand.buffer->space == Space::scalar) return operand.base;
  const bool fragment = operand.buffer->space == Space::fragment;
  return operand.base + "[" + (fragment ? register_of(operand) : address(operand)) + "]";
}

std::string CudaEmitter::register_of(const CudaOperand& operand) const {
  // The fragment's loops are those of the statement, but that these may have others in between, and
  // that the access may stand still along a dimension.
  std::string number;
  std::int64_t weight = 1, still = 0;
  std::size_t next = 0;
  for (const Layout::Loop& loop : operand.buffer->layout->registers) {
    const Index& index = operand.access->index[static_cast<std::size_t>(loop.dim)];
    if (index.terms.empty()) {
      still += index.constant / loop.stride % loop.count * weight;
    } else {
      const auto var = [&](std::size_t i) {
        return walked_vars_[static_cast<std::size_t>(walked_->registers[i].dim)];
      };
      while (operand.stride(var(next)).is(0)) ++next;
      if (const auto found = registers_.find(static_cast<int>(next)); found != registers_.end()) {
        number += number.empty() ? "" : " + ";
        number += weight == 1 ? found->second : found->second + " * " + std::to_string(weight);
      }
      ++next;
    }
    weight *= loop.count;
  }
  if (number.empty()) return std::to_string(still);
  return still == 0 ? number : number + " + " + std::to_string(still);
}

namespace {

bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

bool has_guards(const Buffer& buffer) {
  return buffer.space == Space::shared || buffer.space == Space::global;
}

}  // namespace

std::string CudaEmitter::element(const CudaOperand& operand, const std::string& fill) {
  const DType dtype = operand.buffer->dtype;
  std::string inside = place(operand);
  if (is_half(dtype))
    inside = call("from_" + std::string(name(dtype)), DType::f32) + "(" + inside + ")";
  const std::string guard = has_guards(*operand.buffer) ? condition(operand) : "";
  return guard.empty() ? inside : "(" + guard + " ? " + inside + " : " + fill + ")";
}

void CudaEmitter::store(const CudaOperand& operand, const std::string& value) {
  const DType dtype = operand.buffer->dtype;
  const std::string kept =
      is_half(dtype) ? call("to_" + std::string(name(dtype)), DType::f32) + "(" + value + ")"
                     : value;
  const std::string guard = has_guards(*operand.buffer) ? condition(operand) : "";
  w_.line((guard.empty() ? "" : "if (" + guard + ") ") + place(operand) + " = " + kept + ";");
}

}  // namespace krait
