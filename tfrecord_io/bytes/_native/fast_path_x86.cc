// The loops of fast_path.h with AVX2 and BMI2: an entry's head is one comparison for 32 bytes.
#include "fast_path.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "feature.h"
#include "frame.h"

// Code from here on is compiled for these instructions, the headers above are not.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,sse4.2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,sse4.2")
#endif

namespace tfr {
namespace {

inline uint32_t compare(const Shape& shape, const u8* p, size_t at, __m256i more) {
  __m256i varies = _mm256_load_si256(reinterpret_cast<const __m256i*>(shape.varies() + at));
  __m256i base = _mm256_load_si256(reinterpret_cast<const __m256i*>(shape.base() + at));
  __m256i expected = _mm256_add_epi8(base, _mm256_and_si256(varies, more));
  __m256i actual = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + at));
  return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(expected, actual)));
}

inline bool matches(const Shape& shape, const u8* p, size_t n) {
  __m256i more = _mm256_set1_epi8(static_cast<char>(n));
  uint64_t equal = compare(shape, p, 0, more) | shape.after_head();
  if (shape.head() > 32) equal |= static_cast<uint64_t>(compare(shape, p, 32, more)) << 32;
  if (shape.head() > 64 && (compare(shape, p, 64, more) | shape.high_after_head()) != ~uint32_t{0}) return false;
  return equal == ~uint64_t{0};
}

// By multiplications, as some processors with BMI2 take very long for its extraction of bits.
inline uint64_t compact_groups(uint64_t groups) {
  __m128i pairs =
      _mm_maddubs_epi16(_mm_set1_epi16(static_cast<short>(0x8001)), _mm_cvtsi64_si128(static_cast<long long>(groups)));
  uint64_t quads = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_madd_epi16(pairs, _mm_set1_epi32(0x40000001))));
  return static_cast<uint32_t>(quads) | quads >> 32 << 28;
}

inline bool copy_text(u8* to, const u8* p, size_t n) {
  if (n > 32) return copy_ascii(to, p, n);
  __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
  __m256i low = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), bytes),
          del = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x7f));
  uint32_t other = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_or_si256(low, del)));
  return _bzhi_u32(other, static_cast<unsigned>(n)) == 0;
}

#include "fast_path_x86.inc"

#include "fast_path_loop.inc"

}  // namespace
}  // namespace tfr

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace tfr {

const Runs* runs_x86() {
  static const Runs fast = {run_records, run_entries};
  __builtin_cpu_init();
  bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && crc32c_x86() != nullptr;
  return supported ? &fast : nullptr;
}

}  // namespace tfr

#else

namespace tfr {
const Runs* runs_x86() { return nullptr; }
}  // namespace tfr

#endif
