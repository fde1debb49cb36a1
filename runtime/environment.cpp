#include "runtime/environment.h"

#include <charconv>
#include <cstdlib>

#include "dsl/error.h"

namespace krait {
namespace {

std::uint64_t cache_size(const std::string& value) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;  // MiB, so that bytes fit 64 bits
  std::uint64_t mebibytes = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, mebibytes);
  if (error != std::errc() || stop != end || mebibytes < 1 || mebibytes > most) {
    throw UsageError("KRAIT_CACHE_SIZE", value, "a whole number of MiB, at least 1");
  }
  return mebibytes << 20;
}

}  // namespace

Environment read_environment(const std::function<const char*(const char*)>& get) {
  const auto value = [&](const char* variable) {
    const char* found = get(variable);
    return std::string(found ? found : "");
  };
  Environment result;
  const std::filesystem::path own = value("KRAIT_CACHE_DIR"), xdg = value("XDG_CACHE_HOME"),
                              home = value("HOME");
  if (!own.empty()) {
    result.cache_directory = own;
  } else if (xdg.is_absolute()) {
    result.cache_directory = xdg / "krait";
  } else if (!home.empty()) {
    result.cache_directory = home / ".cache" / "krait";
  }
  if (const std::string size = value("KRAIT_CACHE_SIZE"); !size.empty()) {
    result.cache_limit_bytes = cache_size(size);
  }
  result.host_cpu = value("KRAIT_HOST_CPU");
  result.libblas = value("KRAIT_LIBBLAS");
  result.schedule_file = value("KRAIT_SCHEDULE");
  result.dump = value("KRAIT_DUMP");
  if (const std::string folder = value("KRAIT_DUMP_DIR"); !folder.empty())
    result.dump_directory = folder;
  if (const std::string folder = value("KRAIT_OVERRIDE_DIR"); !folder.empty())
    result.override_directory = folder;
  return result;
}

Environment read_environment() {
  return read_environment([](const char* variable) { return std::getenv(variable); });
}

}  // namespace krait
