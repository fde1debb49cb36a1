// Schedule: how a graph is cut and mapped. A small value with a text form that round-trips.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace krait {

enum class PlanKind : std::uint8_t { chunks, recurrent, step };
/// Elementary functions of a GPU: by approximate instructions, or as the host has them, bit by bit.
/// The host computes as `exact` says anyhow.
enum class MathKind : std::uint8_t { fast, exact };
/// What does the matrix products of parameters and of weight gradients: a library of the device, or
/// kernels that krait generates.
enum class GemmKind : std::uint8_t { library, generated };
enum class Pass : std::uint8_t { forward, backward, step };

std::string_view name(PlanKind kind);
std::string_view name(MathKind math);
std::string_view name(GemmKind gemm);
std::string_view name(Pass pass);

/// Keys that are set; what is not set is left to the defaults. Text: "plan=chunks chunk=64
/// backward.chunk=128 segments=3 warps=8 stages=2 save.every=256 tile=32 math=exact gemm=library",
/// keys in one fixed order, blanks between them. A key may be scoped to a pass ("backward.chunk");
/// the unscoped key holds for both passes, the scoped one wins.
struct Schedule {
  std::optional<PlanKind> plan;
  /// Positions per chunk, 1 and up.
  std::optional<std::int64_t> chunk, backward_chunk;
  /// Parts of the chunk axis that run in parallel; 0 is "chunks": one chunk a segment, up to
  /// `most_segments` chunks (the number is compiled in, whatever the length is when it runs).
  std::optional<std::int64_t> segments, backward_segments;
  /// Most warps of a block of a GPU: 1, 2, 4, 8, 16 or 32.
  std::optional<std::int64_t> warps, backward_warps;
  /// Slots of what a loop of a GPU's kernel loads: with 2, a turn's loads run beside the work of
  /// the turn before, from compute capability 8.0 on; with 1 they come first. Else 2 where there is
  /// room.
  std::optional<std::int64_t> stages, backward_stages;
  /// Positions between the states that a loop over chunks keeps for kernels that are cut otherwise;
  /// these make the ones between again. Rounded up to whole chunks. Not set: every chunk's is kept.
  std::optional<std::int64_t> save_every, backward_save_every;
  /// Most positions along the longest axis of a state that nothing sums over (headdim) which stand
  /// on chip together: kernels with states take the largest divisor of it up to that, and the rest
  /// is grid or a loop. Not set: all.
  std::optional<std::int64_t> tile, backward_tile;
  /// Elements of one value that a kernel without states and products may hold at once: where it has
  /// larger ones, what they are summed to is kept in memory, so that others are cut along the grid.
  /// Not set: 16384 in a step, any number in other passes.
  std::optional<std::int64_t> width, backward_width;
  /// Products that the grid points of a loop share are made again by each where that adds at most
  /// so many hundredths to its products; else, and where not set, they are kept in memory. 0 to
  /// 100.
  std::optional<std::int64_t> recompute;
  std::optional<MathKind> math;
  /// Without: the library where there is one, but generated with math=exact, so that every sum has
  /// one order on all devices.
  std::optional<GemmKind> gemm;

  bool operator==(const Schedule&) const = default;

  /// What it says of one pass: the backward pass's own keys stand in place of those for both.
  Schedule of(Pass pass) const;
  std::int64_t chunk_of(Pass pass) const;  // requires it to be set
  std::int64_t segments_of(Pass pass) const;
  GemmKind gemm_or_default() const;
  /// The scoped key where it is set, else the one for both, else none.
  std::optional<std::int64_t> save_every_of(Pass pass) const;
  std::optional<std::int64_t> tile_of(Pass pass) const;
  std::optional<std::int64_t> width_of(Pass pass) const;
};

/// Parses the text form. Throws UsageError that names the key, its value and what is allowed.
Schedule parse_schedule(const std::string& text);
/// Parses the text of a file: keys over any number of lines, "#" to the end of a line is a comment.
Schedule parse_schedule_file(const std::string& text);
/// The text form, only the keys that are set.
std::string to_text(const Schedule& schedule);
/// `over` where it is set, else `base`. A key that `over` sets for both passes holds for both,
/// whatever `base` says of one. What precedence is made of: the command line over the user's file
/// over the defaults.
Schedule merge(const Schedule& base, const Schedule& over);

}  // namespace krait
