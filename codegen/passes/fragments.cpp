// fragments: which results stand in registers, the second half of the pass place.
//
// What: a buffer that every statement touches element by element becomes a fragment where all of
// these can deal their points out alike: first results of products, whose layouts stand, then the
// others, the largest first, by a layout that one of the statements would take for itself: one that
// sums, if there is one. A statement may read along fewer dimensions than it has, where a thread
// walks the others by itself, and one position of a dimension that lies in registers. What takes a
// layout from another must not move more sectors of memory for it than by its own. All fragments
// that live at once have so many registers of a thread.
// Limits: no replicas but those of products; a buffer in parts by a view, or one that a sum is
// written to, stays in shared memory; so does what a loop loads ahead, where it waits for other
// such loads anyway.
#include "codegen/passes/fragments.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"

namespace krait {

std::optional<Walked> walked(const TileProgram& program, const Access& access,
                             const std::vector<int>& vars) {
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
  if (!access.guarded.empty()) return std::nullopt;
  Walked found{std::vector<int>(vars.size(), -1),
               std::vector<std::int64_t>(buffer.dims.size(), -1)};
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    const Index& index = access.index[d];
    if (index.terms.empty()) {
      found.at[d] = index.constant;
      continue;
    }
    if (index.constant != 0 || index.terms.size() != 1 || index.terms[0].factor != 1)
      return std::nullopt;
    const auto var = std::find(vars.begin(), vars.end(), index.terms[0].var);
    if (var == vars.end() ||
        !(program.vars[static_cast<std::size_t>(*var)].extent == buffer.dims[d].extent))
      return std::nullopt;
    int& dim = found.dim_of[static_cast<std::size_t>(var - vars.begin())];
    if (dim >= 0) return std::nullopt;
    dim = static_cast<int>(d);
  }
  return found;
}

std::optional<Layout> seen_by(const Layout& statement, const Walked& walked, std::size_t rank) {
  Layout made{std::vector<std::int64_t>(rank, 1), {}, statement.lanes, statement.warps};
  for (std::size_t v = 0; v < walked.dim_of.size(); ++v)
    if (walked.dim_of[v] >= 0)
      made.extents[static_cast<std::size_t>(walked.dim_of[v])] = statement.extents[v];
  for (Layout::Loop loop : statement.registers) {
    loop.dim = walked.dim_of[static_cast<std::size_t>(loop.dim)];
    if (loop.dim >= 0) made.registers.push_back(loop);
  }
  for (auto* bits : {&made.lanes, &made.warps})
    for (Layout::Bit& bit : *bits) {
      if (bit.dim < 0) continue;
      bit.dim = walked.dim_of[static_cast<std::size_t>(bit.dim)];
      if (bit.dim < 0) return std::nullopt;
    }
  return made;
}

std::optional<Layout> seen_of(const Layout& buffer, const Walked& walked) {
  const auto gone = [&](int dim) { return walked.at[static_cast<std::size_t>(dim)] >= 0; };
  Layout made = buffer;
  std::erase_if(made.registers, [&](const Layout::Loop& loop) { return gone(loop.dim); });
  for (const auto* bits : {&made.lanes, &made.warps})
    for (const Layout::Bit& bit : *bits)
      if (bit.dim >= 0 && gone(bit.dim)) return std::nullopt;
  return made;
}

bool same_threads(const Layout& a, const Layout& b) {
  return a.registers == b.registers && a.lanes == b.lanes && a.warps == b.warps;
}

namespace {

using Body = std::vector<Statement>;

struct Touch {
  Statement* statement;
  Walked walked;
  int depth;  // in loops
};

class Fragments {
 public:
  Fragments(TileProgram& program, const CudaTarget& target, const OwnLayout& own)
      : program_(program), target_(target), own_(own) {}

  void run() {
    collect(program_.body, 0);
    for (const int buffer : barred_) touches_.erase(buffer);
    leave_loads();
    if (touches_.empty()) return;
    lives_ = lives_of(program_, false);
    int times = 0;
    for (const Life& life : lives_) times = std::max(times, life.last + 1);
    live_.resize(static_cast<std::size_t>(times), 0);
    products_.resize(live_.size(), 0);
    note_products();
    std::vector<int> order;
    for (const auto& [number, list] : touches_) order.push_back(number);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return bytes_of(buffer(a)) > bytes_of(buffer(b)); });
    // What products add up to in the innermost loops comes first.
    waiting_.assign(order.begin(), order.end());
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [&](int a, int b) { return depth(a) > depth(b); });
    spread();
    for (const int number : order) {
      seed(number);
      spread();
    }
  }

 private:
  Buffer& buffer(int number) { return program_.buffers[static_cast<std::size_t>(number)]; }
  std::int64_t extent(int var) const {
    return program_.vars[static_cast<std::size_t>(var)].extent.offset;
  }

  // ------------------------------------------------------------------------------- who touches
  void collect(Body& body, int depth) {
    for (Statement& statement : body) {
      const std::vector<int> vars = layout_variables(statement);
      for_each_access(statement, [&](const Access& access, Use use) {
        const std::optional<Walked> how = elementwise(statement, access, use, vars);
        if (how) touches_[access.buffer].push_back({&statement, *how, depth});
        if (how) of_statement_[&statement].push_back({access.buffer, *how});
        if (!how) barred_.insert(access.buffer);
      });
      if (std::holds_alternative<Mma>(statement)) products_at_.push_back({&statement, time_});
      ++time_;  // as lives_of counts
      if (auto* inside = body_of(statement)) {
        collect(*inside, depth + 1);
        ++time_;
      }
    }
    for (std::size_t i = 0; i < program_.buffers.size(); ++i)
      if (const int of = program_.buffers[i].alias_of; of >= 0)
        barred_.insert({static_cast<int>(i), of});
  }

  int depth(int number) const {
    int most = 0;
    for (const Touch& touch : touches_.at(number)) most = std::max(most, touch.depth);
    return most;
  }

  std::optional<Walked> elementwise(const Statement& statement, const Access& access, Use use,
                                    const std::vector<int>& vars) {
    const bool read = use == Use::read;
    const bool by_points = std::holds_alternative<MapTile>(statement) ||
                           std::holds_alternative<Fill>(statement) ||
                           std::holds_alternative<Copy>(statement) ||
                           (std::holds_alternative<Mma>(statement) && !read) ||
                           std::holds_alternative<ReduceTile>(statement);
    if (!by_points || buffer(access.buffer).space != Space::shared) return std::nullopt;
    std::optional<Walked> how = walked(program_, access, vars);
    if (!how) return std::nullopt;
    // What is read, or summed, along no dimension each thread walks alone: that should not be much.
    constexpr std::int64_t most = 4;
    std::int64_t alone = 1;
    for (std::size_t v = 0; v < vars.size(); ++v)
      if (how->dim_of[v] < 0) alone *= extent(vars[v]);
    return alone <= most ? how : std::nullopt;
  }

  /// A loop that waits for what it loads ahead has the rest of its loads come with that.
  void leave_loads() {
    if (target_.stages < 2) return;
    for (const std::vector<int>& loads : loads_of_loops(program_))
      if (std::any_of(loads.begin(), loads.end(), [&](int load) { return !touches_.count(load); }))
        for (const int load : loads) touches_.erase(load);
  }

  // --------------------------------------------------------------------------------- agreement
  static const std::optional<Layout>& layout(const Touch& touch) {
    return *layout_of(static_cast<const Statement&>(*touch.statement));
  }

  /// The buffer's layout by that of a statement, where it says all of it.
  static std::optional<Layout> by(const Touch& touch, const Layout& statement, std::size_t rank,
                                  const Buffer& buffer) {
    for (std::size_t d = 0; d < rank; ++d)
      if (touch.walked.at[d] >= 0 && buffer.dims[d].extent.offset != 1) return std::nullopt;
    return seen_by(statement, touch.walked, rank);
  }

  /// A layout for the statement by that of the buffer; what it walks beside comes last.
  std::optional<Layout> for_statement(const Layout& buffer, const Touch& touch) const {
    const std::optional<Layout> seen = seen_of(buffer, touch.walked);
    if (!seen) return std::nullopt;
    const std::vector<int> vars = layout_variables(*touch.statement);
    std::vector<int> var_of(buffer.extents.size(), -1);
    std::vector<std::int64_t> sizes;
    for (std::size_t v = 0; v < vars.size(); ++v) {
      sizes.push_back(extent(vars[v]));
      if (const int dim = touch.walked.dim_of[v]; dim >= 0)
        var_of[static_cast<std::size_t>(dim)] = static_cast<int>(v);
    }
    Layout made = compose(*seen, std::move(sizes), var_of);
    for (std::size_t v = 0; v < vars.size(); ++v)
      if (touch.walked.dim_of[v] < 0 && extent(vars[v]) > 1)
        made.registers.push_back({static_cast<int>(v), 1, extent(vars[v])});
    return made;
  }

  /// The layout that some statement has and all others have or can take.
  std::optional<Layout> agreed(int number) {
    const std::vector<Touch>& list = touches_.at(number);
    std::optional<Layout> found;
    for (const Touch& touch : list)
      if (!found && layout(touch))
        found = by(touch, *layout(touch), buffer(number).dims.size(), buffer(number));
    return found && fits_all(number, *found) ? found : std::nullopt;
  }

  bool fits_all(int number, const Layout& wanted) {
    const int deepest = depth(number);
    const bool product = is_product(number);  // its result: others follow whatever it costs
    for (const Touch& touch : touches_.at(number)) {
      if (layout(touch)) {
        const auto a = seen_by(*layout(touch), touch.walked, wanted.extents.size());
        const auto b = seen_of(wanted, touch.walked);
        if (!a || !b || !same_threads(*a, *b)) return false;
        continue;
      }
      const std::optional<Layout> made = for_statement(wanted, touch);
      const bool rare = touch.depth < deepest;  // follows what runs more often
      if (!made || !suits(*touch.statement, *made, product || rare)) return false;
    }
    return true;
  }

  /// Whether the statement may take the layout: sums stay within a warp, and memory is moved by as
  /// few sectors as the statement's own layout moves it by.
  bool suits(const Statement& statement, const Layout& wanted, bool whatever) {
    // Replicas compute what is theirs, but store once.
    const MapTile* map = std::get_if<MapTile>(&statement);
    if (map != nullptr && map->destinations.size() > 1 && wanted.has_replicas()) return false;
    if (const ReduceTile* sum = std::get_if<ReduceTile>(&statement)) {
      const int kept = static_cast<int>(sum->domain.size());
      const auto shared = [&](const Layout::Bit& bit) { return bit.dim >= kept; };
      if (wanted.has_replicas() || std::any_of(wanted.warps.begin(), wanted.warps.end(), shared))
        return false;
    }
    if (whatever) return true;
    const Layout& own = own_layout(statement);
    bool few = true;
    for_each_access(statement, [&](const Access& access, Use) {
      if (buffer(access.buffer).space == Space::global && streams(statement, access))
        few = few && sectors(statement, access, wanted) <= sectors(statement, access, own);
    });
    return few;
  }

  /// Whether the access has an element for about every point: others are read again and again, and
  /// come from a cache.
  bool streams(const Statement& statement, const Access& access) const {
    std::int64_t points = 1, elements = 1;
    for (const int var : layout_variables(statement)) {
      points *= extent(var);
      if (std::any_of(access.index.begin(), access.index.end(),
                      [&](const Index& index) { return index.factor_of(var) != 0; }))
        elements *= extent(var);
    }
    return elements * 2 >= points;
  }

  const Layout& own_layout(const Statement& statement) {
    auto found = own_layouts_.find(&statement);
    if (found == own_layouts_.end())
      found = own_layouts_.emplace(&statement, own_(statement)).first;
    return found->second;
  }

  /// Sectors of 32 bytes that a warp touches for each 32 points, times 32; strides that are not
  /// known are far.
  std::int64_t sectors(const Statement& statement, const Access& access, const Layout& by) {
    const Buffer& of = buffer(access.buffer);
    const std::vector<int> vars = layout_variables(statement);
    std::vector<std::int64_t> strides(vars.size(), 0);
    for (std::size_t v = 0; v < vars.size(); ++v)
      for (std::size_t d = 0; d < access.index.size(); ++d)
        if (const std::int64_t factor = access.index[d].factor_of(vars[v]); factor != 0)
          strides[v] += factor * (of.dims[d].stride.is_constant()
                                      ? of.dims[d].stride.constant
                                      : std::int64_t{1} << (20 + of.dims[d].stride.argument % 20));
    const std::int64_t bytes = size_in_bytes(of.dtype);
    const bool wide =
        by.neighbours() > 1 && strides[static_cast<std::size_t>(by.registers[0].dim)] == 1;
    const int width = wide ? by.neighbours() : 1;
    std::vector<std::int64_t> touched;
    for (int lane = 0; lane < 32; ++lane) {
      std::int64_t at = 0;
      for (std::size_t bit = 0; bit < by.lanes.size(); ++bit)
        if (by.lanes[bit].dim >= 0 && (lane >> bit & 1) != 0)
          at += strides[static_cast<std::size_t>(by.lanes[bit].dim)] * by.lanes[bit].stride;
      for (int i = 0; i < width; ++i) touched.push_back((at + i) * bytes / 32);
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    return static_cast<std::int64_t>(touched.size()) * 32 / width;
  }

  // ---------------------------------------------------------------------------------- decisions
  /// Of the registers that a thread of the block can have, three eighths are for fragments, five
  /// for these and products; the rest is for addresses and what is under way.
  std::int64_t each() const { return 65536 / (32 * program_.warps); }
  std::int64_t fragments_most(bool product) const {
    const std::int64_t most = std::min(target_.fragment_registers, each() * 3 / 8);
    // Beside products compilers need the rest for addresses and loads under way, the more the fewer
    // barriers hold these back.
    constexpr std::int64_t values = 40;
    return product || products_at_.empty() ? most : std::min(most, values);
  }
  bool is_product(int number) const {
    const std::vector<Touch>& list = touches_.at(number);
    return std::any_of(list.begin(), list.end(), [](const Touch& touch) {
      return std::holds_alternative<Mma>(*touch.statement);
    });
  }
  std::int64_t all_most() const { return each() * 5 / 8; }

  /// What products hold of their operands, and of results that are no fragments.
  void note_products() {
    for (const auto& [statement, time] : products_at_) {
      const Mma& mma = std::get<Mma>(*statement);
      const std::vector<int> vars = layout_variables(*statement);
      std::int64_t left = 1, right = 1;
      for (const Layout::Loop& loop : mma.layout->registers) {
        const int var = vars[static_cast<std::size_t>(loop.dim)];
        left *= one_of(var, mma.columns) ? 1 : loop.count;
        right *= one_of(var, mma.rows) ? 1 : loop.count;
      }
      constexpr std::int64_t along_sum = 4;  // positions at once
      const bool apart = touches_.count(mma.destination.buffer) == 0;
      products_[time] =
          (left + right) * along_sum + (apart ? mma.layout->registers_per_thread() : 0);
    }
  }

  /// Takes registers for the buffer where its life has room for them.
  bool take(int number, const Layout& wanted) {
    const Life& life = lives_[static_cast<std::size_t>(number)];
    const std::int64_t cost =
        wanted.registers_per_thread() * size_in_bytes(buffer(number).dtype) / 4;
    const std::int64_t most = fragments_most(is_product(number));
    const auto first = static_cast<std::size_t>(life.first);
    const auto last = static_cast<std::size_t>(life.last);
    for (std::size_t at = first; at <= last; ++at)
      if (live_[at] + cost > most || live_[at] + products_[at] + cost > all_most()) return false;
    for (std::size_t at = first; at <= last; ++at) live_[at] += cost;
    buffer(number).space = Space::fragment;
    buffer(number).layout = wanted;
    return true;
  }

  void make(int number, const Layout& wanted) {
    if (!take(number, wanted)) return;
    for (const Touch& touch : touches_.at(number)) {
      std::optional<Layout>& has = *layout_of(*touch.statement);
      if (has) continue;
      has = for_statement(wanted, touch);
      for_each_access(static_cast<const Statement&>(*touch.statement),
                      [&](const Access& access, Use) { waiting_.push_back(access.buffer); });
    }
  }

  /// Buffers that statements with a layout touch, as long as there are new ones.
  void spread() {
    while (!waiting_.empty()) {
      const int number = waiting_.front();
      waiting_.pop_front();
      if (touches_.count(number) == 0 || buffer(number).space != Space::shared) continue;
      if (const std::optional<Layout> layout = agreed(number)) make(number, *layout);
    }
  }

  /// A layout for a buffer none of whose statements has one.
  void seed(int number) {
    const std::vector<Touch>& list = touches_.at(number);
    if (buffer(number).space != Space::shared ||
        std::any_of(list.begin(), list.end(), [](const Touch& t) { return layout(t).has_value(); }))
      return;
    const auto serves = [&](const std::optional<Layout>& wanted) {
      return wanted && !wanted->has_replicas() && fits_all(number, *wanted);
    };
    if (const Layout wanted = dealt(number); serves(wanted)) return make(number, wanted);
    for (const Touch& touch : list) {
      const auto wanted =
          by(touch, own_layout(*touch.statement), buffer(number).dims.size(), buffer(number));
      if (serves(wanted)) return make(number, *wanted);
    }
  }

  /// Along which dimension memory is read side by side, if any, comes first; what is summed stays
  /// within a warp, and what some access stands still along, within a thread.
  Layout dealt(int number) {
    const Buffer& of = buffer(number);
    const int rank = static_cast<int>(of.dims.size());
    std::vector<std::int64_t> sizes, scores(of.dims.size(), 0);
    for (const Dim& dim : of.dims) sizes.push_back(dim.extent.offset);
    std::vector<int> within_warp, order;
    for (const Touch& touch : touches_.at(number)) {
      const std::vector<int> vars = layout_variables(*touch.statement);
      const ReduceTile* sum = std::get_if<ReduceTile>(touch.statement);
      for (std::size_t v = 0; v < vars.size(); ++v) {
        const int dim = touch.walked.dim_of[v];
        if (dim < 0) continue;
        if (sum != nullptr && one_of(vars[v], sum->reduced)) within_warp.push_back(dim);
        for_each_access(static_cast<const Statement&>(*touch.statement),
                        [&](const Access& access, Use) {
                          if (runs_along(access, vars[v]))
                            scores[static_cast<std::size_t>(dim)] +=
                                buffer(access.buffer).space == Space::global ? 8 : 1;
                        });
      }
    }
    for (int dim = rank; dim-- > 0;) order.push_back(dim);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    std::vector<Layout::Loop> kept;
    std::int64_t points = 1, vector = 1;
    const std::set<int> still = stood_still(number);
    for (const int dim : order) {
      const std::int64_t size = sizes[static_cast<std::size_t>(dim)];
      if (still.count(dim) == 0)
        points *= split_extent(size).power;
      else if (dim == order[0] && size <= 4)
        vector = size;
      else
        kept.push_back({dim, 1, size});
    }
    if (still.count(order.empty() ? -1 : order[0]) == 0) {
      const std::int64_t size = order.empty() ? 1 : sizes[static_cast<std::size_t>(order[0])];
      vector = size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
      while (vector > 1 && points < vector * 32 * program_.warps) vector /= 2;
    }
    return deal(sizes, order, vector, program_.warps, kept, within_warp);
  }

  /// Whether neighbours along the variable stand side by side.
  bool runs_along(const Access& access, int var) {
    std::int64_t stride = 0;
    for (std::size_t d = 0; d < access.index.size(); ++d)
      if (const std::int64_t factor = access.index[d].factor_of(var); factor != 0) {
        const Stride& one = buffer(access.buffer).dims[d].stride;
        if (!one.is_constant()) return false;
        stride += factor * one.constant;
      }
    return stride == 1 && extent(var) > 1;
  }

  /// Dimensions of the buffer that some access to it, or to one that statements tie to it point by
  /// point, stands still along.
  std::set<int> stood_still(int number) {
    std::set<int> found;
    std::map<int, std::vector<int>> known;  // by buffer: which of these dimensions each of its is
    std::deque<int> next{number};
    std::vector<int>& own = known[number];  // none of a single element
    for (std::size_t dim = 0; dim < buffer(number).dims.size(); ++dim)
      own.push_back(static_cast<int>(dim));
    while (!next.empty()) {
      const int at = next.front();
      next.pop_front();
      const std::vector<int> dims = known.at(at);
      for (const Touch& touch : touches_.at(at)) {
        for (std::size_t d = 0; d < dims.size(); ++d)
          if (dims[d] >= 0 && touch.walked.at[d] >= 0 && buffer(at).dims[d].extent.offset > 1)
            found.insert(dims[d]);
        tie(touch, dims, known, next);
      }
    }
    return found;
  }

  /// Buffers that the touch's statement touches too, as `dims` tells of the first.
  void tie(const Touch& touch, const std::vector<int>& dims, std::map<int, std::vector<int>>& known,
           std::deque<int>& next) {
    const auto others = of_statement_.find(touch.statement);
    for (const auto& [other, walked] : others->second) {
      if (touches_.count(other) == 0 || known.count(other) != 0) continue;
      std::vector<int>& theirs = known[other];
      theirs.resize(buffer(other).dims.size(), -1);
      for (std::size_t v = 0; v < walked.dim_of.size(); ++v)
        if (walked.dim_of[v] >= 0 && touch.walked.dim_of[v] >= 0)
          theirs[static_cast<std::size_t>(walked.dim_of[v])] =
              dims[static_cast<std::size_t>(touch.walked.dim_of[v])];
      next.push_back(other);
    }
  }

  TileProgram& program_;
  const CudaTarget& target_;
  const OwnLayout& own_;
  std::map<int, std::vector<Touch>> touches_;
  std::map<const Statement*, std::vector<std::pair<int, Walked>>> of_statement_;
  std::set<int> barred_;
  std::map<const Statement*, Layout> own_layouts_;
  std::vector<Life> lives_;
  std::vector<std::int64_t> live_, products_;  // registers of fragments and of products, by time
  std::vector<std::pair<const Statement*, std::size_t>> products_at_;
  std::size_t time_ = 0;
  std::deque<int> waiting_;
};

}  // namespace

void make_fragments(TileProgram& program, const CudaTarget& target, const OwnLayout& own) {
  Fragments(program, target, own).run();
}

}  // namespace krait
