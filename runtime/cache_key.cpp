#include "runtime/cache_key.h"

#include <cstdint>

#include "runtime/cache_file.h"
#include "runtime/sha256.h"

namespace krait {
namespace {

void add_bytes(Sha256& hash, std::string_view bytes) {
  std::string length;
  for (int shift = 0; shift < 64; shift += 8) {
    length.push_back(static_cast<char>(std::uint64_t{bytes.size()} >> shift));
  }
  hash.update(length);
  hash.update(bytes);
}

void add_field(Sha256& hash, std::string_view tag, std::string_view value) {
  add_bytes(hash, tag);
  add_bytes(hash, value);
}

}  // namespace

std::string cache_key(const KernelSource& source, const Toolchain& toolchain) {
  Sha256 hash;
  add_field(hash, "format", cache_format);
  add_field(hash, "backend", name(source.backend));
  add_field(hash, "entry", source.entry);
  add_field(hash, "source", source.text);
  for (const std::string& option : source.options) add_field(hash, "option", option);
  add_field(hash, "arch", toolchain.arch);
  for (const auto& [tag, value] : toolchain.identity) add_field(hash, "identity." + tag, value);
  return hex(hash.finish());
}

std::string cache_key(const std::vector<std::pair<std::string, std::string>>& fields) {
  Sha256 hash;
  add_field(hash, "format", cache_format);
  for (const auto& [tag, value] : fields) add_field(hash, tag, value);
  return hex(hash.finish());
}

}  // namespace krait
