// The loops of fast_path.h with AVX2 and BMI2: an entry's head is one comparison, a varint one extraction.
#include "fast_path.h"

#if defined(__x86_64__) && defined(__GNUC__)

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
  return equal == ~uint64_t{0};
}

// Without a branch on n, which is as unpredictable as the values.
inline bool read_exact(const u8* p, size_t n, uint64_t* out) {
  constexpr uint64_t kGroups = 0x7f7f7f7f7f7f7f7fu, kMore = 0x8080808080808080u;
  if (n - 1 >= 10) return false;
  unsigned bits = static_cast<unsigned>(8 * n), high_bits = bits > 64 ? bits - 64 : 0;
  uint64_t low = _bzhi_u64(load64(p), bits);
  uint64_t high = _bzhi_u64(static_cast<uint64_t>(p[8]) | static_cast<uint64_t>(p[9]) << 8, high_bits);
  uint64_t wrong = ((low & kMore) ^ _bzhi_u64(kMore, bits - 8)) | ((high & 0x8080) ^ (high_bits & 16) << 3);
  *out = _pext_u64(low, kGroups) | (high & 0x7f) << 56 | (high >> 8) << 63;
  return wrong == 0;
}

// Printable ASCII of at most 32 bytes.
inline bool is_plain_ascii(const u8* p, size_t n) {
  __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  __m256i low = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), bytes), del = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x7f));
  uint32_t other = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_or_si256(low, del)));
  return n <= 32 && _bzhi_u32(other, static_cast<unsigned>(n)) == 0;
}

constexpr size_t kShort = 192;  // below this size one chain of the CRC instruction is fast enough

inline uint32_t checksum(const u8* p, size_t n) {
  if (n == 8) return mask_crc(~static_cast<uint32_t>(_mm_crc32_u64(0xffffffffu, load64(p))));
  return n < kShort ? mask_crc(crc32c_sse42(0, p, n)) : masked_crc32c(p, n);
}

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
