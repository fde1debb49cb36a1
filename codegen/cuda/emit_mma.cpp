// Mma by multiply-adds: each thread holds a block of rows and columns of the result, and walks
// along the sum with what its rows and columns need of the operands in registers.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {

namespace {

/// An operand's share of the registers: those loops along which it varies.
struct Share {
  std::vector<int> loops;  // numbers of register loops, innermost first
  std::int64_t count = 1;
};

}  // namespace

void CudaEmitter::emit(const Mma& s) {
  w_.open("");
  std::vector<int> vars = s.batch;
  vars.insert(vars.end(), s.rows.begin(), s.rows.end());
  vars.insert(vars.end(), s.columns.begin(), s.columns.end());
  const Layout& layout = *s.layout;
  std::vector<int> all = vars;
  all.insert(all.end(), s.sum.begin(), s.sum.end());
  const int inner = s.sum.back();
  const auto [width_, vector_var] = vector_of(layout, vars);
  const int width = width_;
  // Vectors along the sum where an operand lies so, else along its rows or columns.
  struct Side {
    CudaOperand operand;
    Share share;
    const char* name;
    bool along_sum = false;
    int vector = -1;  // the register loop that a load takes at once
  };
  const auto side = [&](const Access& access, const std::vector<int>& others, const char* name) {
    Side made{operand(access, all), {}, name};
    made.along_sum = made.operand.wide_elements > 1 && made.operand.wide_var == inner;
    if (made.operand.wide_elements > 1 && !made.along_sum)
      made.vector = layout.side_by_side(static_cast<int>(
          std::find(vars.begin(), vars.end(), made.operand.wide_var) - vars.begin()));
    for (std::size_t i = 0; i < layout.registers.size(); ++i)
      if (const int var = vars[static_cast<std::size_t>(layout.registers[i].dim)];
          one_of(var, s.batch) || !one_of(var, others)) {
        made.share.loops.push_back(static_cast<int>(i));
        made.share.count *= layout.registers[i].count;
      }
    return made;
  };
  Side left = side(s.left, s.columns, "lhs"), right = side(s.right, s.rows, "rhs");
  const std::int64_t step = left.along_sum || right.along_sum ? 4 : 1;
  const CudaOperand destination = operand(s.destination, vars);
  const DType type = destination.buffer->dtype;
  const std::string element_type = type_of(type);
  // Halves are summed in f32 and rounded once.
  const bool fragment = destination.buffer->space == Space::fragment;
  // The host adds up what one statement sums before it adds that to what is there.
  const bool apart = s.accumulate && target_.exact;
  const bool direct = fragment && !apart && type != DType::bf16 && type != DType::f16;
  const std::string acc = direct ? destination.base : "acc";
  const std::string count = std::to_string(layout.registers_per_thread());

  // Coordinates of the thread, and of each register: clamped to the tile, so that padding reads
  // something that is there and is dropped.
  const int depth = w_.depth();
  walked_ = &layout;
  walked_vars_ = vars;
  registers_.clear();
  const std::vector<std::string> base = stand(layout, vars);
  const auto at = [&](std::size_t d, bool clamp) {
    const std::string sum = position(layout, base, static_cast<int>(d));
    if (sum == "0") return sum;
    if (clamp && layout.padded(static_cast<int>(d))) {
      // A vector starts at a multiple of its width.
      const int loop = layout.side_by_side(static_cast<int>(d));
      const bool vector = loop >= 0 && registers_.count(loop) == 0;
      return "min(" + sum + ", " +
             std::to_string(layout.extents[d] -
                            (vector ? layout.registers[static_cast<std::size_t>(loop)].count : 1)) +
             ")";
    }
    return sum.find(' ') == std::string::npos ? sum : "(" + sum + ")";
  };
  const auto set_vars = [&](bool clamp) {
    for (std::size_t d = 0; d < vars.size(); ++d) values_[vars[d]] = at(d, clamp);
  };
  const auto open_loops = [&](const std::vector<int>& loops, int skip) {
    for (std::size_t i = loops.size(); i-- > 0;) {
      const int loop = loops[i];
      if (loop == skip) continue;
      const std::string counter = "r" + std::to_string(loop);
      registers_[loop] = counter;
      w_.line("#pragma unroll");
      w_.open("for (int " + counter + " = 0; " + counter + " < " +
              std::to_string(layout.registers[static_cast<std::size_t>(loop)].count) + "; ++" +
              counter + ")");
    }
  };
  const auto number_in = [&](const std::vector<int>& loops) {
    std::string sum;
    std::int64_t weight = 1;
    for (int loop : loops) {
      const auto found = registers_.find(loop);
      if (found != registers_.end()) {
        sum += (sum.empty() ? "" : " + ") + found->second;
        if (weight != 1) sum += " * " + std::to_string(weight);
      }
      weight *= layout.registers[static_cast<std::size_t>(loop)].count;
    }
    return sum.empty() ? std::string("0") : sum;
  };
  std::vector<int> every(layout.registers.size());
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<int>(i);

  const auto inside = [&] {
    std::string all_inside;
    for (std::size_t d = 0; d < vars.size(); ++d)
      if (layout.padded(static_cast<int>(d)))
        all_inside += (all_inside.empty() ? "" : " && ") + values_[vars[d]] + " < " +
                      std::to_string(layout.extents[d]);
    return all_inside;
  };
  if (!direct) {
    const std::string alone = fragment ? "" : replicas(layout);
    if (!alone.empty()) w_.open("if (" + alone + ")");
    w_.line(element_type + " acc[" + count + "];");
  }
  const int open_depth = w_.depth();
  if (!s.accumulate || !direct) {
    const int before = w_.depth();
    open_loops(every, -1);
    set_vars(false);
    std::string start = literal(0, type);
    if (s.accumulate && !apart) {
      // Padding must not read what another thread writes.
      const std::string in_tile = inside();
      start = in_tile.empty()
                  ? element(destination, "0")
                  : "(" + in_tile + " ? " + element(destination, "0") + " : " + start + ")";
    }
    w_.line(acc + "[" + number_in(every) + "] = " + start + ";");
    close_all(before);
    registers_.clear();
  }

  for (std::size_t i = 0; i < s.sum.size(); ++i) {
    const int var = s.sum[i];
    const std::string& name = var_names_[static_cast<std::size_t>(var)];
    const std::int64_t by = i + 1 == s.sum.size() ? step : 1;
    const std::int64_t extent = program_.vars[static_cast<std::size_t>(var)].extent.offset;
    values_[var] = name;
    w_.line(extent / by <= 4 ? "#pragma unroll" : "#pragma unroll 2");
    w_.open("for (int " + name + " = 0; " + name + " < " + std::to_string(extent) + "; " +
            (by == 1 ? "++" + name : name + " += " + std::to_string(by)) + ")");
  }
  for (Side* of : {&left, &right}) {
    const std::string array = of->name;
    w_.line(element_type + " " + array + "[" + std::to_string(of->share.count) + "][" +
            std::to_string(step) + "];");
    const int before = w_.depth();
    registers_.clear();
    open_loops(of->share.loops, of->vector);
    set_vars(true);
    if (of->along_sum) {
      prelude_.insert("load4");
      w_.line("load4(" + array + "[" + number_in(of->share.loops) + "], &" + of->operand.base +
              "[" + address(of->operand) + "], " + of->operand.wide + ");");
    } else {
      const std::string old = values_[inner];
      if (step > 1) {
        w_.line("#pragma unroll");
        w_.open("for (int kk = 0; kk < " + std::to_string(step) + "; ++kk)");
        values_[inner] = "(" + old + " + kk)";
      }
      const std::string k = step > 1 ? "kk" : "0";
      if (of->vector >= 0) {
        const std::string elements = std::to_string(of->operand.wide_elements);
        const std::string load = "load" + elements;
        const std::string term = array + "_term";
        prelude_.insert(load);
        w_.line(element_type + " " + term + "[" + elements + "];");
        w_.line(load + "(" + term + ", &" + of->operand.base + "[" + address(of->operand) + "], " +
                of->operand.wide + ");");
        w_.line("#pragma unroll");
        registers_[of->vector] = "i";
        w_.line("for (int i = 0; i < " + elements + "; ++i) " + array + "[" +
                number_in(of->share.loops) + "][" + k + "] = " + term + "[i];");
        registers_.erase(of->vector);
      } else {
        w_.line(array + "[" + number_in(of->share.loops) + "][" + k +
                "] = " + element(of->operand, "0") + ";");
      }
      values_[inner] = old;
    }
    close_all(before);
    registers_.clear();
  }
  {
    const int before = w_.depth();
    w_.line("#pragma unroll");
    w_.open("for (int kk = 0; kk < " + std::to_string(step) + "; ++kk)");
    open_loops(every, -1);
    const std::string sum = acc + "[" + number_in(every) + "]";
    const std::string function = type == DType::f64 ? "__fma_rn" : "__fmaf_rn";
    w_.line(sum + " = " + function + "(lhs[" + number_in(left.share.loops) + "][kk], rhs[" +
            number_in(right.share.loops) + "][kk], " + sum + ");");
    close_all(before);
    registers_.clear();
  }
  close_all(open_depth);
  for (int var : s.sum) values_.erase(var);
  if (!direct) {
    const bool wide = destination.wide_elements > 1 && !apart;
    open_loops(every, wide ? 0 : -1);
    set_vars(false);
    if (const std::string in_tile = inside(); !in_tile.empty()) w_.open("if (" + in_tile + ")");
    if (wide) {
      w_.line(element_type + " out[" + std::to_string(width) + "];");
      w_.line("#pragma unroll");
      registers_[0] = "i";
      w_.line("for (int i = 0; i < " + std::to_string(width) + "; ++i) out[i] = acc[" +
              number_in(every) + "];");
      registers_.erase(0);
      store_vector(destination, "out", width, vector_var);
    } else {
      const std::string old = apart ? element(destination, "0") + " + " : "";
      store(destination, old + "acc[" + number_in(every) + "]");
    }
  }
  close_all(depth);
  for (int var : vars) values_.erase(var);
  walked_ = nullptr;
  registers_.clear();
  w_.close();
}

}  // namespace krait
