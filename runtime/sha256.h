// SHA-256 (FIPS 180-4): the identity of cache keys and the checksum of cache files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace krait {

class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;
  using State = std::array<std::uint32_t, 8>;
  /// The processor's own instructions where it has them, several times as fast; or never.
  enum class By : std::uint8_t { fastest, plain };

  explicit Sha256(By by = By::fastest);

  void update(std::string_view bytes);
  /// Closes the message. The object must not be used afterwards.
  Digest finish();

 private:
  void (*compress_)(State& state, const std::uint8_t* block);
  State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t total_ = 0;  // bytes
};

Sha256::Digest sha256(std::string_view bytes, Sha256::By by = Sha256::By::fastest);

/// 64 lower-case hexadecimal digits.
std::string hex(const Sha256::Digest& digest);

}  // namespace krait
