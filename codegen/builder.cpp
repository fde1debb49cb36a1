#include "codegen/builder.h"

#include <algorithm>

#include "dsl/error.h"

namespace krait {
namespace {

/// Positions below which an axis does not fill a vector.
constexpr std::int64_t short_axis = 8;

}  // namespace

Builder::Builder(const Plan& plan, const PlannedKernel& kernel)
    : plan_(plan), kernel_(kernel), built_(std::make_shared<BuiltKernel>()) {
  program().name = kernel.name;
  before_.resize(1);
  after_.resize(1);
}

Builder::Builder(Builder& outer, const PlannedKernel& kernel, int levels, const std::string& axis,
                 bool reverse, std::int64_t run)
    : plan_(outer.plan_),
      kernel_(kernel),
      built_(outer.built_),
      mapped_(outer.mapped_),
      part_vars_(outer.part_vars_),
      tile_vars_(outer.tile_vars_),
      loops_(outer.loops_.begin(), outer.loops_.begin() + levels),
      until_(outer.mapped_.at(axis)),
      run_(run) {
  mapped_[axis] = program().add_var({axis, VarKind::loop, graph().axis(axis).extent});
  loops_.push_back({axis, AxisMapping::Kind::serial, reverse, 1, ""});
  before_.resize(loops_.size() + 1);
  after_.resize(loops_.size() + 1);
}

void Builder::map_axes(const std::vector<AxisMapping>& mapping, const std::vector<Digit>& digits) {
  using Kind = AxisMapping::Kind;
  for (const AxisMapping& axis : mapping) {
    const Extent extent = graph().axis(axis.axis).extent;
    if (axis.kind == Kind::grid) {
      mapped_[axis.axis] = program().add_var({axis.axis, VarKind::grid, extent});
      program().grid.push_back(mapped_[axis.axis]);
      continue;
    }
    if (axis.kind == Kind::blocked) {
      const int part =
          program().add_var({axis.block_axis, VarKind::grid, Extent::constant(axis.blocks)});
      part_vars_[axis.axis] = part;
      // What each part starts from and leaves varies along the axis of the parts.
      if (graph().has_axis(axis.block_axis)) mapped_[axis.block_axis] = part;
      program().grid.push_back(part);
    }
    mapped_[axis.axis] = program().add_var({axis.axis, VarKind::loop, extent});
    loops_.push_back(axis);
  }
  for (const Digit& digit : digits) {
    const int of = mapped_.at(digit.axis);
    const Extent extent =
        digit.rest ? Extent::constant(digit.base) : program().vars[of].extent.ceil_div(digit.base);
    mapped_[digit.name] = program().add_var(
        {digit.name, VarKind::digit, extent, of, digit.base, digit.rest, digit.reverse});
  }
  before_.resize(loops_.size() + 1);
  after_.resize(loops_.size() + 1);
}

int Builder::loop_of(const std::string& axis) const {
  for (std::size_t i = 0; i < loops_.size(); ++i)
    if (loops_[i].axis == axis) return static_cast<int>(i);
  return -1;
}

int Builder::level_of(const AxisNames& axes) const {
  int level = 0;
  for (const auto& axis : axes) level = std::max(level, loop_of(axis) + 1);
  return level;
}

int Builder::var(const std::string& axis) {
  if (auto found = mapped_.find(axis); found != mapped_.end()) return found->second;
  auto [found, added] = tile_vars_.emplace(axis, -1);
  if (added) {
    const Extent extent = graph().axis(axis).extent;
    if (!extent.is_constant())
      throw UsageError(text("axis ", axis, " of kernel ", kernel_.name,
                            " has no constant size and is neither grid nor loop"));
    found->second = program().add_var({axis, VarKind::tile, extent});
  }
  return found->second;
}

int Builder::size_var(const Extent& extent) {
  for (std::size_t i = 0; i < program().vars.size(); ++i)
    if (program().vars[i].kind == VarKind::size && program().vars[i].extent == extent)
      return static_cast<int>(i);
  return program().add_var(
      {"size_" + std::to_string(program().vars.size()), VarKind::size, extent});
}

AxisNames Builder::tile_axes(const AxisNames& axes) const {
  AxisNames kept;
  for (const auto& axis : axes)
    if (!is_mapped(axis)) kept.push_back(axis);
  return kept;
}

std::vector<int> Builder::vars(const AxisNames& axes) {
  std::vector<int> numbers;
  for (const auto& axis : axes) numbers.push_back(var(axis));
  return numbers;
}

Index Builder::index(const AxisIndex& affine) {
  Index index = Index::of(affine.constant);
  for (const auto& [axis, factor] : affine.terms)
    index = index + Index::variable(var(axis), factor);
  for (const auto& [extent, factor] : affine.sizes)
    index = index + Index::variable(size_var(extent), factor);
  return index;
}

int Builder::pointer_of(int object) {
  auto& objects = built_->objects;
  auto found = std::find(objects.begin(), objects.end(), object);
  if (found == objects.end()) found = objects.insert(objects.end(), object);
  return static_cast<int>(found - objects.begin());
}

Buffer Builder::global(int object, bool written) {
  const MemoryObject& memory = plan_.objects[object];
  Buffer buffer;
  buffer.name = memory.name;
  buffer.dtype = memory.dtype;
  buffer.space = Space::global;
  buffer.pointer = pointer_of(object);
  buffer.written = written;
  for (std::size_t d = 0; d < memory.dims.size(); ++d) {
    Stride stride{memory.strides[d], -1};
    if (memory.strides[d] == 0)
      stride.argument = program().argument(
          {TileProgram::Argument::Kind::stride, "", buffer.pointer, static_cast<int>(d)});
    buffer.dims.push_back({memory.dims[d].name, memory.dims[d].extent, stride});
  }
  return buffer;
}

Access Builder::access(const View& view, bool written) {
  Access access = shape_of(view, written);
  for (const View::Dim& dim : view.dims) access.index.push_back(index(dim.index));
  return access;
}

Access Builder::shape_of(const View& view, bool written) {
  Buffer buffer = global(view.object, written);
  const std::vector<Dim> dims = std::move(buffer.dims);
  buffer.dims.clear();
  for (const View::Dim& dim : view.dims)
    buffer.dims.push_back(dim.first < 0
                              ? Dim{"limit", dim.extent, Stride{}}
                              : Dim{dims[dim.last].axis, dim.extent, dims[dim.last].stride});
  return {program().add_buffer(std::move(buffer)), {}, {}};
}

Access Builder::access(int object, const std::vector<Index>& index, bool written) {
  return {program().add_buffer(global(object, written)), index, {}};
}

int Builder::tile(const std::string& name, DType dtype, const AxisNames& axes) {
  std::vector<Axis> dims;
  for (const auto& axis : tile_axes(axes)) {
    var(axis);  // rejects what has no constant size
    dims.push_back(graph().axis(axis));
  }
  // Short axes outside: rows of the innermost one fill vectors.
  std::stable_partition(dims.begin(), dims.end(),
                        [](const Axis& axis) { return axis.extent.offset < short_axis; });
  return program().add_buffer(on_chip(name, dtype, dims));
}

int Builder::shown(const std::string& name, int buffer, const View& view, const AxisNames& axes) {
  const Buffer& whole = program().buffers[buffer];
  Buffer part;
  part.name = name;
  part.dtype = whole.dtype;
  part.space = whole.space;
  part.alias_of = buffer;
  for (std::size_t d = 0; d < view.dims.size(); ++d) {
    const AxisIndex& index = view.dims[d].index;
    const std::int64_t stride = whole.dims[d].stride.constant;
    part.alias_offset += index.constant * stride;
    for (const auto& [axis, factor] : index.terms) {
      KRAIT_ASSERT(contains(axes, axis), axis, " is no axis of ", name);
      part.dims.push_back({axis, graph().axis(axis).extent, {factor * stride, -1}});
    }
  }
  return program().add_buffer(std::move(part));
}

Access Builder::access(int buffer) {
  Access access{buffer, {}, {}};
  const std::vector<Dim> dims = program().buffers[buffer].dims;
  for (const Dim& dim : dims) access.index.push_back(Index::variable(var(dim.axis)));
  return access;
}

std::vector<Statement> Builder::nested(std::size_t from) {
  std::vector<Statement> inner;
  for (std::size_t level = loops_.size() + 1; level-- > from;) {
    std::vector<Statement> body = std::move(before_[level]);
    if (level < loops_.size()) {
      const AxisMapping& loop = loops_[level];
      For statement;
      statement.var = mapped_.at(loop.axis);
      statement.reverse = loop.reverse;
      if (loop.kind == AxisMapping::Kind::blocked) {
        statement.block_var = part_vars_.at(loop.axis);
        statement.blocks = loop.blocks;
      }
      if (level + 1 == loops_.size()) {
        statement.until = until_;
        statement.run = run_;
      }
      statement.body = std::move(inner);
      body.push_back(std::move(statement));
    }
    for (Statement& statement : after_[level]) body.push_back(std::move(statement));
    inner = std::move(body);
  }
  return inner;
}

void Builder::take(Builder inner) {
  const std::size_t own = inner.loops_.size() - 1;
  tile_vars_ = inner.tile_vars_;
  for (std::size_t level = 0; level <= own; ++level) {
    KRAIT_ASSERT(level == own || inner.after_[level].empty(), "kernel ", kernel_.name,
                 ": a state is made again from what an outer loop leaves");
    std::vector<Statement> made =
        level == own ? inner.nested(own) : std::move(inner.before_[level]);
    for (Statement& statement : made) before_[level].push_back(std::move(statement));
  }
}

BuiltKernel Builder::finish() {
  program().body = nested(0);
  auto needs = [&](const Extent& extent) {
    if (!extent.is_constant())
      program().argument({TileProgram::Argument::Kind::size, extent.symbol, -1, -1});
  };
  for (const Var& var : program().vars) needs(var.extent);
  for (const Buffer& buffer : program().buffers)
    for (const Dim& dim : buffer.dims) needs(dim.extent);
  return std::move(*built_);
}

}  // namespace krait
