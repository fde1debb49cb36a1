// A plan as text: objects, then kernels with what they read, compute and write.
#include <locale>
#include <sstream>

#include "dsl/number_text.h"
#include "schedules/plan.h"

namespace krait {
namespace {

class PlanPrinter {
 public:
  explicit PlanPrinter(const Plan& plan) : plan_(plan) { out_.imbue(std::locale::classic()); }

  std::string text() {
    out_ << "plan " << name(plan_.pass);
    if (const std::string schedule = to_text(plan_.schedule); !schedule.empty())
      out_ << " (" << schedule << ')';
    out_ << '\n';
    for (std::size_t i = 0; i < plan_.objects.size(); ++i) print(plan_.objects[i], i);
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) print(plan_.kernels[i], i);
    return out_.str();
  }

 private:
  void print(const MemoryObject& object, std::size_t number) {
    constexpr const char* kinds[] = {"input", "output", "temporary"};
    out_ << '@' << number << ' ' << kinds[static_cast<int>(object.kind)] << ' ' << object.name
         << ' ' << name(object.dtype) << " [";
    for (std::size_t d = 0; d < object.dims.size(); ++d) {
      const Axis& dim = object.dims[d];
      out_ << (d > 0 ? ", " : "") << dim.name;
      if (dim.extent != Extent::symbolic(dim.name)) out_ << ' ' << dim.extent.text();
      if (object.strides[d] != 0) out_ << " by " << object.strides[d];
    }
    out_ << ']';
    if (object.kind == MemoryObject::Kind::temporary)
      out_ << " kernels " << object.first_kernel << " to " << object.last_kernel;
    out_ << '\n';
  }

  void print(const PlannedKernel& kernel, std::size_t number) {
    constexpr const char* kinds[] = {"fused", "product", "finish"};
    out_ << "kernel " << number << ' ' << kernel.name << ": "
         << kinds[static_cast<int>(kernel.kind)] << '\n';
    if (!kernel.mapping.empty()) out_ << "  map";
    for (const AxisMapping& axis : kernel.mapping) {
      out_ << ' ' << axis.axis << '=';
      if (axis.kind == AxisMapping::Kind::grid) out_ << "grid";
      if (axis.kind == AxisMapping::Kind::serial) out_ << "serial";
      if (axis.kind == AxisMapping::Kind::blocked)
        out_ << "blocked(" << axis.blocks << ' ' << axis.block_axis << ')';
      if (axis.reverse) out_ << " reverse";
    }
    if (!kernel.mapping.empty()) out_ << '\n';
    for (const Digit& digit : kernel.digits)
      out_ << "  count " << digit.name << " = " << digit.axis
           << (digit.reverse ? " from the end" : "") << (digit.rest ? " % " : " / ") << digit.base
           << '\n';
    print(kernel.loads, kernel.nodes, "");
    for (const Remade& remade : kernel.remade) {
      out_ << "  make " << label({remade.scan, 0}) << " again, kept every " << remade.every << '\n';
      print(remade.loads, remade.nodes, "  ");
    }
    for (const Partial& partial : kernel.partials) {
      out_ << (kernel.kind == PlannedKernel::Kind::finish ? "  add up @" : "  partial @")
           << partial.object << " of " << label(partial.value) << " over";
      for (const auto& axis : partial.over) out_ << ' ' << axis;
      out_ << '\n';
    }
    for (const auto& [value, v] : kernel.stores)
      out_ << "  store " << view(v) << " = " << label(value) << '\n';
  }

  void print(const std::map<Value, std::vector<View>>& loads, const std::vector<int>& nodes,
             const std::string& indent) {
    for (const auto& [value, views] : loads) {
      out_ << indent << "  load " << label(value) << " =";
      if (views.empty()) out_ << " 0";
      for (const View& v : views) out_ << ' ' << view(v);
      out_ << '\n';
    }
    if (nodes.empty()) return;
    out_ << indent << "  compute";
    for (int node : nodes) out_ << ' ' << label({node, 0});
    out_ << '\n';
  }

  std::string label(Value value) const {
    std::string number = "%" + std::to_string(value.node);
    if (plan_.graph.node(value.node).results.size() > 1)
      number += '.' + std::to_string(value.result);
    const std::string named = plan_.graph.label(value);
    return named == number || named.front() == '%' ? number : number + ' ' + named;
  }

  static void add(std::string& sum, const std::string& what, std::int64_t factor) {
    if (factor < 0)
      sum += '-';
    else if (!sum.empty())
      sum += '+';
    const std::int64_t size = factor < 0 ? -factor : factor;
    if (what.empty() || size != 1) sum += std::to_string(size);
    if (!what.empty() && size != 1) sum += '*';
    sum += what;
  }

  static std::string index(const AxisIndex& affine) {
    std::string sum;
    for (const auto& [axis, factor] : affine.terms) add(sum, axis, factor);
    for (const auto& [extent, factor] : affine.sizes)
      add(sum, "size(" + extent.text() + ")", factor);
    if (affine.constant != 0 || sum.empty()) add(sum, "", affine.constant);
    return sum;
  }

  std::string view(const View& view) const {
    std::string text = "@" + std::to_string(view.object) + "[";
    for (const View::Dim& dim : view.dims) {
      if (text.back() != '[') text += ", ";
      text += index(dim.index);
      if (dim.first != dim.last) text += " of " + dim.extent.text();
    }
    text += ']';
    if (view.keep) text += " keep";
    if (view.fill != 0) text += " else " + number_text(view.fill);
    return text;
  }

  const Plan& plan_;
  std::ostringstream out_;
};

}  // namespace

std::string to_text(const Plan& plan) { return PlanPrinter(plan).text(); }

}  // namespace krait
