// The bytes of one file of the kernel cache.
//
//     format line | SHA-256 of all that follows | key | meta | source | binary | text | log
//
// Every section is length-prefixed, the checksum covers the rest to the end of the file; so a file
// that was cut, extended or changed in any bit does not decode.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace krait {

/// Begins every file and goes into every key: another layout is another format.
inline constexpr std::string_view cache_format = "krait kernel cache 2\n";

struct CacheEntry {
  std::string key;  ///< 64 hexadecimal digits, see cache_key.
  /// For people: name, backend, entry, arch, the compiler's identity. In the order given.
  std::vector<std::pair<std::string, std::string>> meta;
  std::string source;
  std::string binary;  ///< A relocatable object (host) or a device image (CUDA).
  std::string text;    ///< PTX (CUDA), or "".
  std::string log;     ///< What the compiler said.

  /// The value of a meta field, "" when absent.
  std::string field(std::string_view tag) const;
};

std::string encode(const CacheEntry& entry);

/// Nothing when the bytes are no intact entry.
std::optional<CacheEntry> decode(std::string_view bytes);

}  // namespace krait
