#include "codegen/tile/tile.h"

#include <algorithm>

#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {

// Here, where all statements are complete.
bool For::operator==(const For&) const = default;
bool Prefetch::operator==(const Prefetch&) const = default;

int TileProgram::add_var(Var var) {
  vars.push_back(std::move(var));
  return static_cast<int>(vars.size()) - 1;
}

int TileProgram::add_buffer(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return static_cast<int>(buffers.size()) - 1;
}

int TileProgram::argument(const Argument& wanted) {
  auto found = std::find(arguments.begin(), arguments.end(), wanted);
  if (found == arguments.end()) found = arguments.insert(found, wanted);
  return static_cast<int>(found - arguments.begin());
}

std::vector<int> TileProgram::digits_of(int var) const {
  std::vector<int> digits;
  for (std::size_t i = 0; i < vars.size(); ++i)
    if (vars[i].kind == VarKind::digit && vars[i].of == var) digits.push_back(static_cast<int>(i));
  return digits;
}

Buffer on_chip(std::string name, DType dtype, const std::vector<Axis>& dims) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  std::int64_t stride = 1;
  for (auto axis = dims.rbegin(); axis != dims.rend(); ++axis) {
    KRAIT_ASSERT(axis->extent.is_constant(), buffer.name, " has dimension ", axis->name,
                 " of size ", axis->extent.text());
    buffer.dims.insert(buffer.dims.begin(), Dim{axis->name, axis->extent, Stride{stride, -1}});
    stride *= axis->extent.offset;
  }
  return buffer;
}

std::vector<int> own_variables(const Statement& statement) {
  return std::visit(
      [](const auto& s) -> std::vector<int> {
        using S = std::decay_t<decltype(s)>;
        std::vector<int> all;
        auto append = [&](const std::vector<int>& some) {
          all.insert(all.end(), some.begin(), some.end());
        };
        if constexpr (std::is_same_v<S, Mma>) {
          for (const auto* some : {&s.batch, &s.rows, &s.columns, &s.sum}) append(*some);
        } else if constexpr (std::is_same_v<S, ReduceTile>) {
          append(s.domain);
          append(s.reduced);
        } else if constexpr (std::is_same_v<S, ScanTile>) {
          append(s.domain);
          all.push_back(s.along);
        } else if constexpr (requires { s.domain; }) {
          append(s.domain);
        }
        return all;
      },
      statement);
}

std::vector<int> layout_variables(const Statement& statement) {
  std::vector<int> vars = own_variables(statement);
  const auto drop = [&](const std::vector<int>& some) {
    for (int var : some) std::erase(vars, var);
  };
  if (const Mma* mma = std::get_if<Mma>(&statement)) drop(mma->sum);
  if (const ScanTile* scan = std::get_if<ScanTile>(&statement)) drop({scan->along});
  return vars;
}

bool one_of(int var, const std::vector<int>& variables) {
  return std::find(variables.begin(), variables.end(), var) != variables.end();
}

std::vector<int> Points::all() const {
  std::vector<int> both = vars;
  both.insert(both.end(), summed.begin(), summed.end());
  return both;
}

Points points_of(const Statement& statement) {
  Points points{own_variables(statement), {}};
  if (const Mma* mma = std::get_if<Mma>(&statement)) points.summed = mma->sum;
  if (const ScanTile* scan = std::get_if<ScanTile>(&statement)) points.summed = {scan->along};
  for (int var : points.summed) std::erase(points.vars, var);
  return points;
}

int memory_of(const TileProgram& program, int buffer) {
  while (program.buffers[buffer].alias_of >= 0) buffer = program.buffers[buffer].alias_of;
  return buffer;
}

std::int64_t memory_offset(const TileProgram& program, int buffer) {
  std::int64_t offset = 0;
  for (; program.buffers[buffer].alias_of >= 0; buffer = program.buffers[buffer].alias_of)
    offset += program.buffers[buffer].alias_offset;
  return offset;
}

namespace {

std::int64_t bytes_of_one(const Buffer& buffer) {
  std::int64_t last = 0;
  for (const Dim& dim : buffer.dims) {
    KRAIT_ASSERT(dim.extent.is_constant() && dim.stride.is_constant(), buffer.name, " is on chip, ",
                 "but its dimension ", dim.axis, " is known only when it runs");
    last += (dim.extent.offset - 1) * dim.stride.constant;
  }
  return (last + 1) * size_in_bytes(buffer.dtype);
}

}  // namespace

std::int64_t slot_bytes(const Buffer& buffer) { return (bytes_of_one(buffer) + 15) / 16 * 16; }

std::int64_t bytes_of(const Buffer& buffer) {
  return buffer.stages == 1 ? bytes_of_one(buffer) : buffer.stages * slot_bytes(buffer);
}

}  // namespace krait
