// simplify: drops what computes nothing.
//
// What: loops of one round become their body; copies from one buffer on chip to another, of the
// same shape and type, are read through; what a statement makes only to be copied on is written
// where the copy takes it, so that a state is loaded straight to its place; statements and results
// whose buffers nobody reads go, and so do buffers that nobody uses; sums over nothing are maps.
// Why here: first, so that no later pass spends guards, packing or scratch on dead code.
// Limits: a copy is read through only where the two buffers stand in one body and the source is not
// written again there, and written through only where nothing touches its destination in between;
// operands that no result reads are kept.
#include <algorithm>
#include <set>

#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"

namespace krait {
namespace {

using Body = std::vector<Statement>;

void replace(Index& index, int var) {
  std::erase_if(index.terms, [&](const Index::Term& term) { return term.var == var; });
}

void for_each_statement(Body& body, const std::function<void(Statement&)>& f) {
  for (Statement& statement : body) {
    f(statement);
    if (For* loop = std::get_if<For>(&statement)) for_each_statement(loop->body, f);
  }
}

void drop_unit_loops(const TileProgram& program, Body& body) {
  Body kept;
  for (Statement& statement : body) {
    For* loop = std::get_if<For>(&statement);
    if (loop != nullptr) drop_unit_loops(program, loop->body);
    if (loop == nullptr || loop->block_var >= 0 || loop->until >= 0 ||
        !program.digits_of(loop->var).empty() ||
        !(program.vars[loop->var].extent == Extent::constant(1))) {
      kept.push_back(std::move(statement));
      continue;
    }
    const int var = loop->var;
    for_each_statement(loop->body, [&](Statement& inner) {
      for_each_index(inner, [&](Index& index) { replace(index, var); });
    });
    std::move(loop->body.begin(), loop->body.end(), std::back_inserter(kept));
  }
  body = std::move(kept);
}

/// Whether an access walks its whole buffer, one variable of its own a dimension.
bool covers(const TileProgram& program, const Access& access) {
  const Buffer& buffer = program.buffers[access.buffer];
  std::set<int> seen;
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    const Index& index = access.index[d];
    const bool one = buffer.dims[d].extent == Extent::constant(1);
    if (one && index == Index::of(0)) continue;
    if (index.constant != 0 || index.terms.size() != 1 || index.terms[0].factor != 1) return false;
    const int var = index.terms[0].var;
    if (!(program.vars[var].extent == buffer.dims[d].extent) || !seen.insert(var).second)
      return false;
  }
  return access.guarded.empty();
}

bool has_alias(const TileProgram& program, int buffer) {
  if (program.buffers[buffer].alias_of >= 0) return true;
  return std::any_of(program.buffers.begin(), program.buffers.end(),
                     [&](const Buffer& other) { return other.alias_of == buffer; });
}

/// Number of the buffer that may be read in place of the destination of body[at], or -1.
int forwarded(const TileProgram& program, const Body& body, std::size_t at) {
  const Copy* copy = std::get_if<Copy>(&body[at]);
  if (copy == nullptr || copy->keep) return -1;
  const int from = copy->source.buffer, to = copy->destination.buffer;
  const Buffer &source = program.buffers[from], &destination = program.buffers[to];
  if (source.space == Space::global || destination.space == Space::global || from == to) return -1;
  if (source.dtype != destination.dtype || source.dims.size() != destination.dims.size()) return -1;
  if (copy->source.index != copy->destination.index || !covers(program, copy->source) ||
      !covers(program, copy->destination) || has_alias(program, from) || has_alias(program, to))
    return -1;
  // All uses of the copy come after it in this body, none of them a write, and no write of the
  // source does.
  int here = 0, everywhere = 0;
  bool fine = true;
  visit_statements(program.body, [&](const Statement& statement) {
    for_each_access(statement,
                    [&](const Access& access, Use) { everywhere += access.buffer == to; });
  });
  const auto look = [&](const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use use) {
      here += access.buffer == to;
      if (&statement != &body[at] && use != Use::read)
        fine &= access.buffer != to && access.buffer != from;
    });
  };
  for (std::size_t i = at; i < body.size(); ++i) {
    look(body[i]);
    if (const Body* inside = body_of(body[i])) visit_statements(*inside, look);
  }
  return fine && here == everywhere ? from : -1;
}

void forward_copies(TileProgram& program, Body& body) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (For* loop = std::get_if<For>(&body[i])) {
      forward_copies(program, loop->body);
      continue;
    }
    const int from = forwarded(program, body, i);
    if (from < 0) continue;
    const int to = std::get<Copy>(body[i]).destination.buffer;
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(i--));
    for_each_statement(program.body, [&](Statement& statement) {
      for_each_access(statement, [&](Access& access, Use) {
        if (access.buffer == to) access.buffer = from;
      });
    });
  }
}

/// A statement that only moves what stands on chip: what it reads and what it writes.
struct Move {
  const Access *source, *destination;
  const std::vector<int>* domain;
};

std::optional<Move> move_of(const TileProgram& program, const Statement& statement) {
  if (const Copy* copy = std::get_if<Copy>(&statement)) {
    if (copy->keep || !copy->source.guarded.empty()) return std::nullopt;
    return Move{&copy->source, &copy->destination, &copy->domain};
  }
  const MapTile* map = std::get_if<MapTile>(&statement);
  if (map == nullptr || map->results.size() != 1) return std::nullopt;
  const ScalarNode& root = map->results[0].root();
  if (root.op != ScalarOp::operand) return std::nullopt;
  const Access& source = map->operands[static_cast<std::size_t>(root.operand)];
  if (program.buffers[source.buffer].dtype != map->compute) return std::nullopt;
  return Move{&source, &map->destinations[0], &map->domain};
}

int uses_of(const std::vector<Statement>& body, int buffer) {
  int uses = 0;
  visit_statements(body, [&](const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use) { uses += access.buffer == buffer; });
  });
  return uses;
}

/// Whether the statement, or one of its body, reads or writes the memory.
bool touches(const TileProgram& program, const Statement& statement, int memory) {
  bool found = false;
  for_each_access(statement, [&](const Access& access, Use) {
    found = found || memory_of(program, access.buffer) == memory;
  });
  const auto* inside = body_of(statement);
  return found || (inside != nullptr &&
                   std::any_of(inside->begin(), inside->end(), [&](const Statement& inner) {
                     return touches(program, inner, memory);
                   }));
}

/// Where the statement writes the buffer, all of it and with no regard for what was there.
Access* only_write(const TileProgram& program, Statement& statement, int buffer) {
  if (!std::holds_alternative<Copy>(statement) && !std::holds_alternative<Fill>(statement) &&
      !std::holds_alternative<MapTile>(statement) && !std::holds_alternative<ReduceTile>(statement))
    return nullptr;
  Access* found = nullptr;
  for_each_access(statement, [&](Access& access, Use use) {
    if (access.buffer == buffer) found = use == Use::write ? &access : nullptr;
  });
  return found != nullptr && covers(program, *found) ? found : nullptr;
}

/// Where `write`, which fills what the move reads, has to write to make the move needless; none
/// where the move says more than that.
std::optional<Access> moved_on(const TileProgram& program, const Move& move, const Access& write) {
  std::vector<std::pair<int, Index>> known;  // the move's variables, by those of `write`
  for (std::size_t d = 0; d < write.index.size(); ++d) {
    const Index& index = move.source->index[d];
    if (!index.terms.empty()) known.push_back({index.terms[0].var, write.index[d]});
  }
  Access to = *move.destination;
  for (Index& index : to.index) {
    Index made = Index::of(index.constant);
    for (const auto& [var, factor] : index.terms) {
      const auto found = std::find_if(known.begin(), known.end(),
                                      [&, v = var](const auto& pair) { return pair.first == v; });
      const bool own = one_of(var, *move.domain);
      if (own && found == known.end() && program.vars[var].extent.offset != 1) return std::nullopt;
      if (own && found == known.end()) continue;
      made = made + (own ? found->second * factor : Index::variable(var, factor));
    }
    index = made;
  }
  return to;
}

/// The move body[at] goes where the statement that makes what it moves can write past it.
bool write_through(TileProgram& program, Body& body, std::size_t at) {
  const std::optional<Move> move = move_of(program, body[at]);
  if (!move) return false;
  const int from = move->source->buffer, to = move->destination->buffer;
  const Buffer &source = program.buffers[from], &destination = program.buffers[to];
  if (source.space == Space::global || destination.space == Space::global || from == to ||
      source.dtype != destination.dtype || !covers(program, *move->source) ||
      !move->destination->guarded.empty() || has_alias(program, from) ||
      uses_of(program.body, from) != 2)
    return false;
  const int memory = memory_of(program, to);
  for (std::size_t i = at; i-- > 0;) {
    if (touches(program, body[i], memory)) return false;
    Access* write = only_write(program, body[i], from);
    if (write == nullptr) continue;
    const std::optional<Access> made = moved_on(program, *move, *write);
    if (!made) return false;
    *write = *made;
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
  }
  return false;
}

void write_through_moves(TileProgram& program, Body& body) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (For* loop = std::get_if<For>(&body[i]))
      write_through_moves(program, loop->body);
    else if (write_through(program, body, i))
      --i;
  }
}

/// A sum over nothing is a map, which goes on with what stood there where it accumulates.
void map_sums_of_nothing(const TileProgram& program, Body& body) {
  for_each_statement(body, [&](Statement& statement) {
    const ReduceTile* sum = std::get_if<ReduceTile>(&statement);
    if (sum == nullptr || !sum->reduced.empty() || sum->kind != ReduceTile::Kind::sum) return;
    for (const Access& access : sum->destinations)
      if (program.buffers[access.buffer].dtype != sum->compute) return;
    MapTile map{
        sum->domain, sum->results, sum->destinations, sum->operands, sum->positions, sum->compute,
        {}};
    for (std::size_t i = 0; sum->accumulate && i < map.results.size(); ++i) {
      Scalar grown;
      std::vector<int> operands;
      for (int n = 0; n < static_cast<int>(map.operands.size()); ++n)
        operands.push_back(grown.operand(n));
      const int before = grown.operand(static_cast<int>(map.operands.size()));
      grown.finish(
          grown.apply(ScalarOp::add, before, grown.inline_expression(map.results[i], operands)));
      map.results[i] = grown;
      map.operands.push_back(map.destinations[i]);
    }
    statement = std::move(map);
  });
}

/// Memories that a statement other than an update of themselves reads, and all global ones.
std::set<int> read_memories(const TileProgram& program) {
  std::set<int> read;
  visit_statements(program.body, [&](const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use use) {
      if (use == Use::read || program.buffers[access.buffer].space == Space::global)
        read.insert(memory_of(program, access.buffer));
    });
  });
  return read;
}

template <typename S>
void keep_results(S& s, const std::function<bool(const Access&)>& wanted) {
  if (std::all_of(s.destinations.begin(), s.destinations.end(), wanted)) return;
  S kept = s;
  kept.results.clear();
  kept.destinations.clear();
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    if (!wanted(s.destinations[i])) continue;
    kept.results.push_back(s.results[i]);
    kept.destinations.push_back(s.destinations[i]);
  }
  s = std::move(kept);
}

/// True where something went.
bool drop_dead(const TileProgram& program, Body& body, const std::set<int>& read) {
  auto wanted = [&](const Access& access) {
    return access.buffer >= 0 && read.count(memory_of(program, access.buffer)) != 0;
  };
  const auto dead = [&](Statement& statement) {
    return std::visit(
        [&](auto& s) {
          using S = std::decay_t<decltype(s)>;
          if constexpr (std::is_same_v<S, For>) {
            return s.body.empty();
          } else if constexpr (!requires { s.layout; }) {
            return false;  // made by later passes
          } else if constexpr (std::is_same_v<S, MapTile> || std::is_same_v<S, ReduceTile>) {
            if (std::none_of(s.destinations.begin(), s.destinations.end(), wanted)) return true;
            keep_results(s, wanted);
            return false;
          } else if constexpr (std::is_same_v<S, ScanTile>) {
            if (!wanted(s.last)) s.last = {};
            if (!wanted(s.destination)) s.destination = {};
            return s.last.buffer < 0 && s.destination.buffer < 0 && !wanted(s.low);
          } else {
            return !wanted(s.destination);
          }
        },
        statement);
  };
  bool changed = false;
  for (Statement& statement : body)
    if (For* loop = std::get_if<For>(&statement)) changed |= drop_dead(program, loop->body, read);
  return std::erase_if(body, dead) > 0 || changed;
}

}  // namespace

void drop_buffers(TileProgram& program) {
  std::vector<bool> used(program.buffers.size(), false);
  visit_statements(program.body, [&](const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use) {
      for (int b = access.buffer; b >= 0; b = program.buffers[b].alias_of) used[b] = true;
    });
  });
  std::vector<int> moved(program.buffers.size(), -1);
  std::vector<Buffer> kept;
  for (std::size_t i = 0; i < used.size(); ++i) {
    // Global buffers stay: they say what the kernel is given.
    if (!used[i] && program.buffers[i].space != Space::global) continue;
    moved[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(program.buffers[i]));
  }
  for (Buffer& buffer : kept)
    if (buffer.alias_of >= 0) buffer.alias_of = moved[buffer.alias_of];
  program.buffers = std::move(kept);
  for_each_statement(program.body, [&](Statement& statement) {
    for_each_access(statement, [&](Access& access, Use) { access.buffer = moved[access.buffer]; });
  });
}

void simplify(TileProgram& program) {
  drop_unit_loops(program, program.body);
  forward_copies(program, program.body);
  write_through_moves(program, program.body);
  while (drop_dead(program, program.body, read_memories(program))) {
  }
  map_sums_of_nothing(program, program.body);
  drop_buffers(program);
}

}  // namespace krait
