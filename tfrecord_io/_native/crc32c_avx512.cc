// CRC32C by folding 256 bytes at a time with carry-less products of 512-bit registers: Gopal et al., "Fast CRC Computation
// for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009. Pays from a few hundred bytes on.
#include "crc32c.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512dq,vpclmulqdq,pclmul,sse4.2"))), apply_to = function)
#else
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // in GCC 12's own header
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,vpclmulqdq,pclmul,sse4.2")
#endif

namespace tfr {
namespace {

constexpr size_t kFoldMinimum = 320;  // below this size three chains of the CRC instruction are as fast

// Factors that shift the two halves of 16 bytes by `bits` bits: the product of reflected numbers is 33 bits low.
struct Factors {
  uint64_t low, high;
};
constexpr Factors over(uint64_t bits) { return {power_of_x(bits + 31), power_of_x(bits - 33)}; }

constexpr Factors kOver[] = {over(512), over(1024), over(1536), over(2048)};  // by 1 to 4 registers
constexpr Factors kLane[] = {over(384), over(256), over(128)};                // to the last lane of a register

inline __m512i load(const uint8_t* data) { return _mm512_loadu_si512(data); }

inline __m512i spread(Factors f) {
  return _mm512_broadcast_i64x2(_mm_set_epi64x(static_cast<long long>(f.high), static_cast<long long>(f.low)));
}

inline __m512i carry(__m512i value, __m512i factors) {
  return _mm512_xor_si512(_mm512_clmulepi64_epi128(value, factors, 0x00), _mm512_clmulepi64_epi128(value, factors, 0x11));
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

uint32_t avx512(uint32_t value, const uint8_t* data, size_t size) {
  if (size < kFoldMinimum) return crc32c_sse42(value, data, size);
  __m512i a = _mm512_mask_xor_epi64(load(data), 1, load(data), _mm512_set1_epi64(static_cast<uint32_t>(~value)));
  __m512i b = load(data + 64), c = load(data + 128), d = load(data + 192);
  const __m512i over4 = spread(kOver[3]), over1 = spread(kOver[0]);
  data += 256;
  size -= 256;
  for (; size >= 256; data += 256, size -= 256) {
    a = _mm512_xor_si512(carry(a, over4), load(data));
    b = _mm512_xor_si512(carry(b, over4), load(data + 64));
    c = _mm512_xor_si512(carry(c, over4), load(data + 128));
    d = _mm512_xor_si512(carry(d, over4), load(data + 192));
  }
  d = _mm512_xor_si512(d, carry(c, over1));
  a = _mm512_xor_si512(carry(a, spread(kOver[2])), carry(b, spread(kOver[1])));
  d = _mm512_xor_si512(d, a);
  for (; size >= 64; data += 64, size -= 64) d = _mm512_xor_si512(carry(d, over1), load(data));
  return crc32c_sse42(~reduce(d), data, size);
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
  bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("vpclmulqdq") && crc32c_x86() != nullptr;
  return supported ? avx512 : nullptr;
}

}  // namespace tfr

#else

namespace tfr {
Crc32cFunction crc32c_avx512() { return nullptr; }
}  // namespace tfr

#endif
