#include "schedules/schedule.h"

#include <charconv>
#include <map>
#include <sstream>

#include "dsl/error.h"

namespace krait {
namespace {

constexpr std::int64_t kMostChunk = 1 << 20;
constexpr std::int64_t kMostSegments = 1 << 20;
constexpr std::int64_t kMostWarps = 32;
constexpr std::int64_t kMostStages = 2;
constexpr MathKind kMaths[] = {MathKind::fast, MathKind::exact};
constexpr GemmKind kGemms[] = {GemmKind::library, GemmKind::generated};
constexpr PlanKind kPlans[] = {PlanKind::chunks, PlanKind::recurrent, PlanKind::step};

/// The keys with a number for value, in the order of the text form.
struct NumberKey {
  const char* name;
  std::optional<std::int64_t> Schedule::*member;
  enum Kind { chunk, segments, warps, stages, percent } kind;
};
constexpr NumberKey kNumbers[] = {
    {"chunk", &Schedule::chunk, NumberKey::chunk},
    {"backward.chunk", &Schedule::backward_chunk, NumberKey::chunk},
    {"segments", &Schedule::segments, NumberKey::segments},
    {"backward.segments", &Schedule::backward_segments, NumberKey::segments},
    {"warps", &Schedule::warps, NumberKey::warps},
    {"backward.warps", &Schedule::backward_warps, NumberKey::warps},
    {"stages", &Schedule::stages, NumberKey::stages},
    {"backward.stages", &Schedule::backward_stages, NumberKey::stages},
    {"save.every", &Schedule::save_every, NumberKey::chunk},
    {"backward.save.every", &Schedule::backward_save_every, NumberKey::chunk},
    {"tile", &Schedule::tile, NumberKey::chunk},
    {"backward.tile", &Schedule::backward_tile, NumberKey::chunk},
    {"width", &Schedule::width, NumberKey::chunk},
    {"backward.width", &Schedule::backward_width, NumberKey::chunk},
    {"recompute", &Schedule::recompute, NumberKey::percent},
};

/// Keys for both passes, with those that backward has of its own.
constexpr struct {
  std::optional<std::int64_t> Schedule::*both, Schedule::*backward;
} kScoped[] = {
    {&Schedule::chunk, &Schedule::backward_chunk},
    {&Schedule::segments, &Schedule::backward_segments},
    {&Schedule::warps, &Schedule::backward_warps},
    {&Schedule::stages, &Schedule::backward_stages},
    {&Schedule::save_every, &Schedule::backward_save_every},
    {&Schedule::tile, &Schedule::backward_tile},
    {&Schedule::width, &Schedule::backward_width},
};

template <typename Kind, std::size_t Count>
Kind parse_name(const char* key, const Kind (&kinds)[Count], const std::string& value) {
  std::string allowed;
  for (const Kind kind : kinds) {
    if (value == name(kind)) return kind;
    allowed += (allowed.empty() ? "" : ", ") + std::string(name(kind));
  }
  throw UsageError(std::string("schedule: ") + key, value, allowed);
}

std::int64_t parse_number(const NumberKey& key, const std::string& value) {
  if (key.kind == NumberKey::segments && value == "chunks") return 0;
  const char* const end = value.data() + value.size();
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  const std::int64_t least = key.kind == NumberKey::percent ? 0 : 1;
  const bool read = error == std::errc() && stop == end && number >= least;
  if (key.kind == NumberKey::warps) {
    KRAIT_REQUIRE(read && number <= kMostWarps && (number & (number - 1)) == 0,
                  "schedule: ", key.name, " is ", value.empty() ? "empty" : value,
                  "; allowed: 1, 2, 4, 8, 16, 32");
    return number;
  }
  const std::int64_t most = key.kind == NumberKey::percent    ? 100
                            : key.kind == NumberKey::stages   ? kMostStages
                            : key.kind == NumberKey::segments ? kMostSegments
                                                              : kMostChunk;
  KRAIT_REQUIRE(read && number <= most, "schedule: ", key.name, " is ",
                value.empty() ? "empty" : value, "; allowed: ", least, " to ", most,
                key.kind == NumberKey::segments ? ", or chunks" : "");
  return number;
}

/// The pass's own key where it is set, else the one for both.
std::int64_t pick(Pass pass, const char* key, const std::optional<std::int64_t>& both,
                  const std::optional<std::int64_t>& backward) {
  const std::optional<std::int64_t>& value =
      pass == Pass::backward && backward.has_value() ? backward : both;
  KRAIT_ASSERT(value.has_value(), "schedule has no ", key, " for ", name(pass));
  return *value;
}

}  // namespace

std::string_view name(PlanKind kind) {
  switch (kind) {
    case PlanKind::chunks: return "chunks";
    case PlanKind::recurrent: return "recurrent";
    case PlanKind::step: return "step";
  }
  throw InternalError("a plan without a name");
}

std::string_view name(MathKind math) { return math == MathKind::fast ? "fast" : "exact"; }

std::string_view name(GemmKind gemm) { return gemm == GemmKind::library ? "library" : "generated"; }

std::string_view name(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::backward: return "backward";
    case Pass::step: return "step";
  }
  throw InternalError("a pass without a name");
}

Schedule Schedule::of(Pass pass) const {
  Schedule one = *this;
  for (const auto& key : kScoped) {
    if (pass == Pass::backward && one.*key.backward) one.*key.both = one.*key.backward;
    (one.*key.backward).reset();
  }
  return one;
}

std::int64_t Schedule::chunk_of(Pass pass) const {
  return pick(pass, "chunk", chunk, backward_chunk);
}

std::int64_t Schedule::segments_of(Pass pass) const {
  return pick(pass, "segments", segments, backward_segments);
}

GemmKind Schedule::gemm_or_default() const {
  return gemm.value_or(math == MathKind::exact ? GemmKind::generated : GemmKind::library);
}

std::optional<std::int64_t> Schedule::save_every_of(Pass pass) const { return of(pass).save_every; }

std::optional<std::int64_t> Schedule::tile_of(Pass pass) const { return of(pass).tile; }

std::optional<std::int64_t> Schedule::width_of(Pass pass) const { return of(pass).width; }

Schedule parse_schedule(const std::string& text) {
  Schedule schedule;
  std::map<std::string, std::string> seen;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    KRAIT_REQUIRE(equals != std::string::npos, "schedule has \"", word, "\"; allowed: KEY=VALUE");
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    KRAIT_REQUIRE(seen.emplace(key, value).second, "schedule: ", key, " is ", seen[key], " and ",
                  value, "; allowed: one value a key");
    if (key == "plan") {
      schedule.plan = parse_name("plan", kPlans, value);
      continue;
    }
    if (key == "math") {
      schedule.math = parse_name("math", kMaths, value);
      continue;
    }
    if (key == "gemm") {
      schedule.gemm = parse_name("gemm", kGemms, value);
      continue;
    }
    std::string allowed = "plan";
    bool known = false;
    for (const NumberKey& number : kNumbers) {
      allowed += std::string(", ") + number.name;
      if (key != number.name) continue;
      schedule.*number.member = parse_number(number, value);
      known = true;
    }
    KRAIT_REQUIRE(known, "schedule has key ", key, " (", word, "); allowed: ", allowed,
                  ", math, gemm");
  }
  return schedule;
}

Schedule parse_schedule_file(const std::string& text) {
  std::istringstream lines(text);
  std::string keys;
  for (std::string line; std::getline(lines, line);) keys += line.substr(0, line.find('#')) + ' ';
  return parse_schedule(keys);
}

std::string to_text(const Schedule& schedule) {
  std::string result;
  const auto append = [&](const std::string& key, const std::string& value) {
    result += (result.empty() ? "" : " ") + key + "=" + value;
  };
  if (schedule.plan) append("plan", std::string(name(*schedule.plan)));
  for (const NumberKey& key : kNumbers) {
    const std::optional<std::int64_t>& value = schedule.*key.member;
    if (!value) continue;
    append(key.name,
           key.kind == NumberKey::segments && *value == 0 ? "chunks" : std::to_string(*value));
  }
  if (schedule.math) append("math", std::string(name(*schedule.math)));
  if (schedule.gemm) append("gemm", std::string(name(*schedule.gemm)));
  return result;
}

Schedule merge(const Schedule& base, const Schedule& over) {
  Schedule result = base;
  if (over.plan) result.plan = over.plan;
  // A key for both passes replaces what `base` says of one.
  for (const auto& key : kScoped)
    if (over.*key.both) (result.*key.backward).reset();
  if (over.math) result.math = over.math;
  if (over.gemm) result.gemm = over.gemm;
  for (const NumberKey& key : kNumbers) {
    if (over.*key.member) result.*key.member = over.*key.member;
  }
  return result;
}

}  // namespace krait
