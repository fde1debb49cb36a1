// What the specs of all blocks share: checks of fields, and names in public checkpoints.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "dsl/error.h"

namespace krait {

/// A parameter of a block's graph, its name in public checkpoints, and its shape there. Elements
/// lie in the same order in both: only dimensions of size 1 differ.
struct CheckpointName {
  std::string parameter;
  std::string checkpoint;
  std::vector<std::int64_t> shape;
};

/// The largest size of a constant axis.
inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 24;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Throws UsageError unless `value` is in [low, kLargestSize].
void require_size(const std::string& field, std::int64_t value, std::int64_t low = 1);
/// Throws UsageError unless `divisor` is positive and divides `value`; `what` says what the value
/// is: "headdim is 48; allowed: divisors of d_inner 64".
void require_divisor(const std::string& field, std::int64_t divisor, const std::string& what,
                     std::int64_t value);
/// Throws UsageError unless `value` is finite and > 0.
void require_positive(const std::string& field, double value);
/// Throws UsageError unless 0 < low <= high, both finite; fields named apart.
void require_range(const std::string& low_field, double low, const std::string& high_field,
                   double high);
/// dt_limit: 0 <= low <= high; high may be infinite.
void require_dt_limit(const std::pair<double, double>& limit);
/// rope_fraction is 0.5 or 1; d_state is even and leaves at least one angle.
void require_rope(double rope_fraction, std::int64_t d_state);
/// Angles a token has: floor(n * rope_fraction) / 2, rounded down.
std::int64_t rope_angles(double rope_fraction, std::int64_t d_state);

}  // namespace krait
