// Comments of the text: what the kernel is, and above each section what it computes.
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/tile/access.h"

namespace krait {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

/// The lines of a section's title.
class Title {
 public:
  explicit Title(const TileProgram& named) : named_(named) {}

  std::vector<std::string> operator()(const For&) const { return {}; }
  std::vector<std::string> operator()(const Barrier&) const { return {}; }
  std::vector<std::string> operator()(const Prefetch& s) const {
    const std::string& turn = named_.vars[static_cast<std::size_t>(s.var)].name;
    return {s.first ? "ahead of the loop, for its first " + turn
                    : "beside the work of this " + turn + ", for the next"};
  }
  std::vector<std::string> operator()(const Commit&) const { return {}; }
  std::vector<std::string> operator()(const Wait&) const { return {}; }
  std::vector<std::string> operator()(const Copy& s) const {
    return {at(s.destination) + " = " + at(s.source) + outside(s)};
  }
  std::vector<std::string> operator()(const Fill& s) const {
    return {at(s.destination) + " = " + number(s.value)};
  }
  std::vector<std::string> operator()(const Mma& s) const {
    return {at(s.destination) + (s.accumulate ? " += " : " = ") + "sum over " + along(s.sum) +
            " of " + at(s.left) + " * " + at(s.right)};
  }
  std::vector<std::string> operator()(const MapTile& s) const { return results(s, " = "); }
  std::vector<std::string> operator()(const ReduceTile& s) const {
    const std::string kind = s.kind == ReduceTile::Kind::sum ? "sum" : "max";
    const std::string assign = !s.accumulate                     ? " = "
                               : s.kind == ReduceTile::Kind::sum ? " += "
                                                                 : " max= ";
    return results(s, assign + kind + " over " + along(s.reduced) + " of ");
  }
  std::vector<std::string> operator()(const ScanTile& s) const {
    std::vector<std::string> sums;
    if (s.destination.buffer >= 0) sums.push_back(at(s.destination));
    if (s.low.buffer >= 0) sums.back() += " + " + at(s.low);
    if (s.last.buffer >= 0) sums.push_back(at(s.last) + " at the end");
    std::string line = listed(sums) + " = running sum along " + along({s.along}) + " of " +
                       at(s.source) + (s.reverse ? ", backwards" : "") +
                       (s.exclusive ? ", without the position itself" : "") +
                       (s.wrap ? ", in [-1/2, 1/2)" : "");
    if (s.initial.buffer >= 0) line += ", from " + at(s.initial);
    if (s.reset.buffer >= 0) line += ", anew where " + at(s.reset);
    return {line};
  }

 private:
  static std::string number(double value) {
    const std::string text = std::to_string(value);
    const std::size_t end = text.find_last_not_of('0');
    return text.substr(0, text[end] == '.' ? end : end + 1);
  }
  /// Guards and widths are seen in the text itself.
  std::string at(const Access& access) const {
    std::string text = to_text(named_, Access{access.buffer, access.index, {}, {}});
    if (text.size() > 2 && text.compare(text.size() - 2, 2, "[]") == 0)
      text.resize(text.size() - 2);
    return text;
  }
  std::string along(const std::vector<int>& vars) const {
    std::vector<std::string> names;
    for (int var : vars) names.push_back(named_.vars[static_cast<std::size_t>(var)].name);
    return listed(names);
  }
  std::string outside(const Copy& s) const {
    if (s.keep) return ", as it was outside";
    return s.source.guarded.empty() ? "" : ", " + number(s.fill) + " outside";
  }
  template <typename S>
  std::vector<std::string> results(const S& s, const std::string& assign) const {
    std::vector<std::string> operands, lines;
    for (const Access& operand : s.operands) operands.push_back(at(operand));
    for (std::size_t i = 0; i < s.results.size(); ++i)
      lines.push_back(at(s.destinations[i]) + assign + s.results[i].text(operands));
    return lines;
  }

  const TileProgram& named_;
};

}  // namespace

void CudaEmitter::title(const Statement& statement) {
  for (const std::string& line : std::visit(Title(named_), statement)) w_.comment(line);
}

void CudaEmitter::heading(CudaWriter& out) const {
  // Named as the schedule's key is, so that the line can be given back as a schedule.
  std::string schedule = program_.title;
  if (prelude_has_twins(prelude_))
    schedule +=
        std::string(schedule.empty() ? "" : " ") + "math=" + (target_.exact ? "exact" : "fast");
  if (!schedule.empty()) out.comment("schedule: " + schedule);
  std::vector<std::string> written, read, grid;
  for (const Pointer& pointer : pointers_) {
    const bool only_read = pointer.type.rfind("const ", 0) == 0;
    (only_read ? read : written).push_back(pointer.name);
  }
  for (int var : program_.grid) {
    const auto number = static_cast<std::size_t>(var);
    const std::string extent = program_.vars[number].extent.text();
    if (extent == "1") continue;
    grid.push_back(extent == program_.vars[number].name ? extent
                                                        : var_names_[number] + " < " + extent);
  }
  std::string line = program_.name + " computes " + listed(written);
  if (!read.empty()) line += " from " + listed(read);
  out.comment(line + ".");
  const std::string threads = std::to_string(32 * program_.warps) + " threads";
  line = grid.empty() ? "One block of " + threads
                      : "A block of " + threads + " for each of " + listed(grid);
  out.comment(line + "; " + std::to_string(program_.scratch_bytes) + " bytes of shared memory.");
}

}  // namespace krait
