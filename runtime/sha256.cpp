#include "runtime/sha256.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>

namespace krait {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void compress_plain(Sha256::State& state, const std::uint8_t* block) {
  using std::rotr;
  std::array<std::uint32_t, 64> w;
  for (int i = 0; i < 16; ++i) {
    w[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 |
           std::uint32_t{block[4 * i + 2]} << 8 | std::uint32_t{block[4 * i + 3]};
  }
  for (int i = 16; i < 64; ++i) {
    const std::uint32_t low = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t high = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t first =
        h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + choice + round_constants[i] + w[i];
    const std::uint32_t second = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + majority;
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  const std::array<std::uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += added[i];
}

#ifdef __x86_64__
/// Four steps of the schedule and of the rounds at a time; the state's words in the order that the
/// instructions take them in.
__attribute__((target("sha,sse4.1,ssse3"))) void compress_x86(Sha256::State& state,
                                                              const std::uint8_t* block) {
  const auto word = [&](int i) { return static_cast<int>(state[static_cast<std::size_t>(i)]); };
  __m128i abef = _mm_set_epi32(word(0), word(1), word(4), word(5));
  __m128i cdgh = _mm_set_epi32(word(2), word(3), word(6), word(7));
  const __m128i first_abef = abef, first_cdgh = cdgh;
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i w[4];
  for (int i = 0; i < 4; ++i)
    w[i] =
        _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i), big_endian);
  for (int i = 0; i < 16; ++i) {
    const __m128i terms = _mm_add_epi32(
        w[i % 4], _mm_loadu_si128(reinterpret_cast<const __m128i*>(round_constants.data()) + i));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, terms);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(terms, 0x0e));
    if (i >= 12) continue;
    const __m128i &one = w[(i + 1) % 4], &two = w[(i + 2) % 4], &three = w[(i + 3) % 4];
    const __m128i sums =
        _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], one), _mm_alignr_epi8(three, two, 4));
    w[i % 4] = _mm_sha256msg2_epu32(sums, three);
  }
  abef = _mm_add_epi32(abef, first_abef);
  cdgh = _mm_add_epi32(cdgh, first_cdgh);
  std::array<std::uint32_t, 4> feba, hgdc;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(feba.data()), abef);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(hgdc.data()), cdgh);
  state = {feba[3], feba[2], hgdc[3], hgdc[2], feba[1], feba[0], hgdc[1], hgdc[0]};
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0 || (c & bit_SSSE3) == 0)
    return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}
#endif

auto fastest() {
#ifdef __x86_64__
  static const bool here = has_instructions();
  if (here) return compress_x86;
#endif
  return compress_plain;
}

}  // namespace

Sha256::Sha256(By by) : compress_(by == By::plain ? compress_plain : fastest()) {}

void Sha256::update(std::string_view bytes) {
  total_ += bytes.size();
  while (!bytes.empty()) {
    if (pending_size_ == 0 && bytes.size() >= pending_.size()) {
      compress_(state_, reinterpret_cast<const std::uint8_t*>(bytes.data()));
      bytes.remove_prefix(pending_.size());
      continue;
    }
    const std::size_t take = std::min(bytes.size(), pending_.size() - pending_size_);
    std::copy_n(bytes.data(), take, pending_.begin() + pending_size_);
    pending_size_ += take;
    bytes.remove_prefix(take);
    if (pending_size_ == pending_.size()) {
      compress_(state_, pending_.data());
      pending_size_ = 0;
    }
  }
}

Sha256::Digest Sha256::finish() {
  const std::uint64_t bits = total_ * 8;
  std::string tail(1, '\x80');
  tail.append((119 - pending_size_) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) tail.push_back(static_cast<char>(bits >> shift));
  update(tail);
  Digest digest;
  for (int i = 0; i < 32; ++i) {
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

Sha256::Digest sha256(std::string_view bytes, Sha256::By by) {
  Sha256 hash(by);
  hash.update(bytes);
  return hash.finish();
}

std::string hex(const Sha256::Digest& digest) {
  std::string out;
  for (const std::uint8_t byte : digest) {
    out.push_back("0123456789abcdef"[byte >> 4]);
    out.push_back("0123456789abcdef"[byte & 15]);
  }
  return out;
}

}  // namespace krait
