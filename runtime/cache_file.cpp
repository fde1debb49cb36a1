#include "runtime/cache_file.h"

#include <cstdint>

#include "runtime/sha256.h"

namespace krait {
namespace {

void put_number(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

void put(std::string& out, std::string_view bytes) {
  put_number(out, bytes.size());
  out.append(bytes);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool number(std::uint64_t& value) {
    if (rest_.size() < 8) return false;
    value = 0;
    for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<std::uint8_t>(rest_[i]);
    rest_.remove_prefix(8);
    return true;
  }

  bool section(std::string& value) {
    std::uint64_t size = 0;
    if (!number(size) || size > rest_.size()) return false;
    value = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::string checksum(std::string_view bytes) {
  const Sha256::Digest digest = sha256(bytes);
  return {digest.begin(), digest.end()};
}

constexpr std::size_t checksum_size = 32;

}  // namespace

std::string CacheEntry::field(std::string_view tag) const {
  for (const auto& [name, value] : meta) {
    if (name == tag) return value;
  }
  return "";
}

std::string encode(const CacheEntry& entry) {
  std::string body;
  put(body, entry.key);
  put_number(body, entry.meta.size());
  for (const auto& [tag, value] : entry.meta) {
    put(body, tag);
    put(body, value);
  }
  put(body, entry.source);
  put(body, entry.binary);
  put(body, entry.text);
  put(body, entry.log);
  return std::string(cache_format) + checksum(body) + body;
}

std::optional<CacheEntry> decode(std::string_view bytes) {
  if (!bytes.starts_with(cache_format)) return std::nullopt;
  bytes.remove_prefix(cache_format.size());
  if (bytes.size() < checksum_size) return std::nullopt;
  const std::string_view body = bytes.substr(checksum_size);
  if (checksum(body) != bytes.substr(0, checksum_size)) return std::nullopt;

  CacheEntry entry;
  Reader reader(body);
  std::uint64_t fields = 0;
  if (!reader.section(entry.key) || !reader.number(fields)) return std::nullopt;
  for (std::uint64_t i = 0; i < fields; ++i) {
    std::pair<std::string, std::string> field;
    if (!reader.section(field.first) || !reader.section(field.second)) return std::nullopt;
    entry.meta.push_back(std::move(field));
  }
  if (!reader.section(entry.source) || !reader.section(entry.binary) ||
      !reader.section(entry.text) || !reader.section(entry.log) || !reader.at_end()) {
    return std::nullopt;
  }
  return entry;
}

}  // namespace krait
