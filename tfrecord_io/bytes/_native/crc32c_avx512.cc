// CRC32C by folding 256 bytes at a time with carry-less products of 512-bit registers: Gopal et al., "Fast CRC
// Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009. Pays from 256 bytes on.
#include "crc32c.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstring>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,vpclmulqdq,pclmul,sse4.2"))), \
                             apply_to = function)
#else
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // in GCC 12's own header
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,vpclmulqdq,pclmul,sse4.2")
#endif

namespace tfr {
namespace {

constexpr size_t kFoldMinimum = 256;  // below this size the CRC instruction is as fast

// Factors that shift the two halves of 16 bytes by `bits` bits: the product of reflected numbers is 33 bits low.
struct Factors {
  uint64_t low, high;
};
constexpr Factors over(uint64_t bits) { return {power_of_x(bits + 31), power_of_x(bits - 33)}; }

constexpr Factors kOver1 = over(512), kOver2 = over(1024), kOver4 = over(2048);  // by registers
constexpr Factors kLane[] = {over(384), over(256), over(128)};                   // to the last lane of a register

inline __m512i load(const uint8_t* data) { return _mm512_loadu_si512(data); }

inline __m512i spread(Factors f) {
  return _mm512_broadcast_i64x2(_mm_set_epi64x(static_cast<long long>(f.high), static_cast<long long>(f.low)));
}

inline __m512i carry(__m512i value, __m512i factors) {
  return _mm512_xor_si512(_mm512_clmulepi64_epi128(value, factors, 0x00),
                          _mm512_clmulepi64_epi128(value, factors, 0x11));
}

inline __m128i lane(__m128i value, Factors f) {
  __m128i factors = _mm_set_epi64x(static_cast<long long>(f.high), static_cast<long long>(f.low));
  return _mm_xor_si128(_mm_clmulepi64_si128(value, factors, 0x00), _mm_clmulepi64_si128(value, factors, 0x11));
}

// CRC of the message that the register represents.
inline uint32_t reduce(__m512i value) {
  __m128i last = _mm512_extracti64x2_epi64(value, 3);
  last = _mm_xor_si128(last, lane(_mm512_castsi512_si128(value), kLane[0]));
  last = _mm_xor_si128(last, lane(_mm512_extracti64x2_epi64(value, 1), kLane[1]));
  last = _mm_xor_si128(last, lane(_mm512_extracti64x2_epi64(value, 2), kLane[2]));
  uint64_t crc = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(last)));
  return static_cast<uint32_t>(_mm_crc32_u64(crc, static_cast<uint64_t>(_mm_extract_epi64(last, 1))));
}

// Where the initial value is combined with the first register, and with the second one if it does not fit there.
alignas(64) constexpr auto kInitial = [] {
  std::array<uint8_t, 192> bytes{};
  for (size_t i = 64; i < 68; ++i) bytes[i] = 0xff;
  return bytes;
}();

// Zeros before the message, which change nothing, make it whole registers: a loop over its last bytes would have an
// unpredictable end.
uint32_t avx512(uint32_t value, const uint8_t* data, size_t size) {
  if (size < kFoldMinimum) return crc32c_sse42(value, data, size);
  size_t part = (size - 1) % 64 + 1;  // bytes of the first register
  const uint8_t* initial = kInitial.data() + part;
  __m512i seed = _mm512_set1_epi32(static_cast<int>(std::rotl(~value, static_cast<int>(8 * ((64 - part) % 4)))));
  __m512i first = _mm512_maskz_loadu_epi8(~uint64_t{0} << (64 - part), data - (64 - part));
  data += part;
  __m512i a = _mm512_xor_si512(first, _mm512_and_si512(seed, load(initial)));
  __m512i b = _mm512_xor_si512(load(data), _mm512_and_si512(seed, load(initial + 64)));
  const __m512i over1 = spread(kOver1);
  data += 64;
  size -= part + 64;
  if (size >= 128) {
    const __m512i over2 = spread(kOver2), over4 = spread(kOver4);
    __m512i c = load(data), d = load(data + 64);
    data += 128;
    size -= 128;
    for (; size >= 256; data += 256, size -= 256) {
      a = _mm512_xor_si512(carry(a, over4), load(data));
      b = _mm512_xor_si512(carry(b, over4), load(data + 64));
      c = _mm512_xor_si512(carry(c, over4), load(data + 128));
      d = _mm512_xor_si512(carry(d, over4), load(data + 192));
    }
    a = _mm512_xor_si512(carry(a, over2), c);
    b = _mm512_xor_si512(carry(b, over2), d);
  }
  b = _mm512_xor_si512(b, carry(a, over1));
  for (; size != 0; data += 64, size -= 64) b = _mm512_xor_si512(carry(b, over1), load(data));
  return ~reduce(b);
}

}  // namespace
}  // namespace tfr

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace tfr {

Crc32cFunction crc32c_avx512() {
  __builtin_cpu_init();
  bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("vpclmulqdq") && crc32c_x86() != nullptr;
  return supported ? avx512 : nullptr;
}

}  // namespace tfr

#else

namespace tfr {
Crc32cFunction crc32c_avx512() { return nullptr; }
}  // namespace tfr

#endif
