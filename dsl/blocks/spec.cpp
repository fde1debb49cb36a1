#include "dsl/blocks/spec.h"

#include <cmath>

namespace krait {

void require_size(const std::string& field, std::int64_t value, std::int64_t low) {
  if (value < low || value > kLargestSize) {
    throw UsageError(field, text(value), text("whole numbers from ", low, " to ", kLargestSize));
  }
}

void require_divisor(const std::string& field, std::int64_t divisor, const std::string& what,
                     std::int64_t value) {
  if (divisor < 1 || value % divisor != 0) {
    throw UsageError(field, text(divisor), text("divisors of ", what, ", which is ", value));
  }
}

void require_positive(const std::string& field, double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    throw UsageError(field, text(value), "finite numbers above 0");
  }
}

void require_range(const std::string& low_field, double low, const std::string& high_field,
                   double high) {
  require_positive(low_field, low);
  if (!(high >= low) || !std::isfinite(high)) {
    throw UsageError(high_field, text(high), text("finite numbers from ", low_field, " ", low));
  }
}

void require_dt_limit(const std::pair<double, double>& limit) {
  if (!(limit.first >= 0) || !(limit.second >= limit.first) || std::isinf(limit.first)) {
    throw UsageError("dt_limit", text("[", limit.first, ", ", limit.second, "]"),
                     "[low, high] with 0 <= low <= high; high may be infinite");
  }
}

void require_rope(double rope_fraction, std::int64_t d_state) {
  if (rope_fraction != 0.5 && rope_fraction != 1) {
    throw UsageError("rope_fraction", text(rope_fraction), "0.5 and 1");
  }
  require_size("d_state", d_state);
  if (d_state % 2 != 0) {
    throw UsageError("d_state", text(d_state), "even numbers: channels rotate in pairs");
  }
  if (rope_angles(rope_fraction, d_state) < 1) {
    throw UsageError("d_state", text(d_state),
                     text("numbers from 4 for rope_fraction ", rope_fraction));
  }
}

std::int64_t rope_angles(double rope_fraction, std::int64_t d_state) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(d_state) * rope_fraction)) / 2;
}

}  // namespace krait
