#include "runtime/cli/shape_flags.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>

#include "dsl/error.h"
#include "runtime/file.h"
#include "runtime/spec_json.h"

namespace krait {
namespace {

std::string names_of(const std::vector<CliBlock>& blocks) {
  std::string names;
  for (const std::string& name : block_names()) names += (names.empty() ? "" : ", ") + name;
  for (const CliBlock& block : blocks) names += ", " + block.name;
  return names;
}

/// Sets the axes given as AXIS=N.
Sizes with_axis_sizes(Sizes sizes, const std::vector<std::string>& given) {
  std::string axes;
  for (const auto& [axis, unused] : sizes) axes += (axes.empty() ? "" : ", ") + axis;
  for (const std::string& entry : given) {
    const std::size_t equals = entry.find('=');
    const std::string axis = entry.substr(0, equals);
    KRAIT_REQUIRE(equals != std::string::npos && sizes.count(axis) != 0, "--size is ", entry,
                  "; allowed: AXIS=N with AXIS one of ", axes.empty() ? "none" : axes);
    const char* const end = entry.data() + entry.size();
    std::int64_t size = 0;
    const auto [stop, error] = std::from_chars(entry.data() + equals + 1, end, size);
    KRAIT_REQUIRE(error == std::errc() && stop == end && size >= 1 && size <= kLargestSize,
                  "--size is ", entry, "; allowed: AXIS=N with N from 1 to ", kLargestSize);
    sizes[axis] = size;
  }
  return sizes;
}

bool gives_sizes(const BlockSizes& sizes) {
  return sizes.d_model || sizes.heads || sizes.headdim || sizes.d_state || sizes.ngroups ||
         sizes.d_conv || sizes.expand;
}

BlockSpec spec_of(const ShapeFlags& flags) {
  const BlockSpec named = flags.spec_file.empty()
                              ? default_spec(flags.block)
                              : spec_from_json(read_text(flags.spec_file), flags.block);
  BlockSpec spec = with_sizes(named, flags.sizes);
  if (flags.states) spec = with_states(spec, true);
  if (flags.documents) spec = with_documents(spec, true);
  return spec;
}

}  // namespace

void add_shape_flags(CLI::App& command, ShapeFlags& flags) {
  command.add_option("--block", flags.block, "Name of a block");
  command.add_option("--spec", flags.spec_file, "JSON file with the fields of a block");
  command.add_option("--batch", flags.batch, "Rows, b")->capture_default_str();
  command.add_option("--seqlen", flags.seqlen, "Positions, t")->capture_default_str();
  command.add_option("--d-model", flags.sizes.d_model, "Width of a block");
  command.add_option("--heads", flags.sizes.heads, "Heads of a scan");
  command.add_option("--headdim", flags.sizes.headdim, "Channels a head");
  command.add_option("--d-state", flags.sizes.d_state, "State width");
  command.add_option("--ngroups", flags.sizes.ngroups, "Groups of B and C");
  command.add_option("--d-conv", flags.sizes.d_conv, "Taps of the convolution");
  command.add_option("--expand", flags.sizes.expand, "Inner width by d_model");
  command.add_option("--size", flags.axis_sizes, "AXIS=N, for an axis of a block of your own");
  command.add_option("--dtype", flags.dtype, "Of activations: f64, f32, bf16, f16")
      ->capture_default_str();
  command.add_flag("--states", flags.states, "Take initial states as inputs");
  command.add_flag("--documents", flags.documents, "Take seq_idx, the documents of a row");
}

Problem problem_of(const ShapeFlags& flags, const std::vector<CliBlock>& blocks) {
  KRAIT_REQUIRE(!flags.block.empty() || !flags.spec_file.empty(),
                "--block is not given; allowed: ", names_of(blocks), ", or --spec FILE");
  KRAIT_REQUIRE(flags.batch >= 1, "--batch is ", flags.batch, "; allowed: 1 and up");
  KRAIT_REQUIRE(flags.seqlen >= 1, "--seqlen is ", flags.seqlen, "; allowed: 1 and up");
  Problem problem;
  problem.dtype = dtype_from_name(flags.dtype, "--dtype");
  KRAIT_REQUIRE(is_float(problem.dtype), "--dtype is ", flags.dtype,
                "; allowed: f64, f32, bf16, f16");
  problem.sizes = {{"b", flags.batch}, {"t", flags.seqlen}};
  const auto own = std::find_if(blocks.begin(), blocks.end(),
                                [&](const CliBlock& block) { return block.name == flags.block; });
  if (own != blocks.end()) {
    KRAIT_REQUIRE(flags.spec_file.empty(), "--spec is ", flags.spec_file,
                  "; allowed: none with --block ", own->name);
    KRAIT_REQUIRE(!gives_sizes(flags.sizes) && !flags.states && !flags.documents, "--block is ",
                  own->name, "; allowed: --size AXIS=N alone to shape a block of your own");
    const Sizes sizes = with_axis_sizes(own->sizes, flags.axis_sizes);
    problem.block = own->name;
    problem.function = [build = own->build, sizes](Scope& scope) { build(scope, sizes); };
    return problem;
  }
  KRAIT_REQUIRE(flags.axis_sizes.empty(), "--size is ", flags.axis_sizes.front(),
                "; allowed: none; this block has flags of its own");
  const std::vector<std::string>& known = block_names();
  KRAIT_REQUIRE(
      flags.block.empty() || std::find(known.begin(), known.end(), flags.block) != known.end(),
      "--block is ", flags.block, "; allowed: ", names_of(blocks));
  const BlockSpec spec = spec_of(flags);
  problem.block = block_name(spec);
  problem.spec = spec;
  problem.function = block_function(spec);
  problem.chunk_wish = chunk_size(spec);
  return problem;
}

}  // namespace krait
