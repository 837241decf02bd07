// The loops of fast_path.h with AVX-512: an entry's head is one comparison for 64 bytes.
#include "fast_path.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "feature.h"
#include "frame.h"

// Code from here on is compiled for these instructions, the headers above are not.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx2,bmi,bmi2,sse4.2"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx2,bmi,bmi2,sse4.2")
#endif

namespace tfr {
namespace {

// True if the bytes of the head from the 65th on match, too.
inline bool high_matches(const Shape& shape, const u8* p, size_t n) {
  __m256i base = _mm256_load_si256(reinterpret_cast<const __m256i*>(shape.base() + 64));
  __m256i expected = _mm256_mask_add_epi8(base, shape.high_varying(), base, _mm256_set1_epi8(static_cast<char>(n)));
  __m256i actual = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 64));
  return (_mm256_cmpeq_epi8_mask(expected, actual) | shape.high_after_head()) == ~uint32_t{0};
}

inline bool matches(const Shape& shape, const u8* p, size_t n) {
  __m512i base = _mm512_load_si512(shape.base());
  __m512i expected = _mm512_mask_add_epi8(base, shape.varying(), base, _mm512_set1_epi8(static_cast<char>(n)));
  bool low_matches = (_mm512_cmpeq_epi8_mask(expected, _mm512_loadu_si512(p)) | shape.after_head()) == ~uint64_t{0};
  return low_matches && (shape.head() <= 64 || high_matches(shape, p, n));
}

inline uint64_t compact_groups(uint64_t groups) { return _pext_u64(groups, 0x7f7f7f7f7f7f7f7fu); }

// Without a branch on n, up to 128.
[[gnu::noinline]] bool copy_longer(u8* to, const u8* p, size_t n) {
  const __m512i space = _mm512_set1_epi8(0x20), del = _mm512_set1_epi8(0x7f);
  __m512i first = _mm512_loadu_si512(p), second = _mm512_loadu_si512(p + 64);
  _mm512_storeu_si512(to, first);
  _mm512_storeu_si512(to + 64, second);
  uint64_t low = _mm512_cmplt_epi8_mask(first, space) | _mm512_cmpeq_epi8_mask(first, del);
  uint64_t high = _mm512_cmplt_epi8_mask(second, space) | _mm512_cmpeq_epi8_mask(second, del);
  unsigned size = static_cast<unsigned>(n);
  return (_bzhi_u64(low, size) | _bzhi_u64(high, size < 64 ? 0 : size - 64)) == 0;
}

inline bool copy_text(u8* to, const u8* p, size_t n) {
  if (n > 32) return copy_longer(to, p, n);
  __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
  __mmask32 other =
      _mm256_cmplt_epi8_mask(bytes, _mm256_set1_epi8(0x20)) | _mm256_cmpeq_epi8_mask(bytes, _mm256_set1_epi8(0x7f));
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

const Runs* runs_avx512() {
  static const Runs fast = {run_records, run_entries};
  __builtin_cpu_init();
  bool supported = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && runs_x86() != nullptr;
  return supported ? &fast : nullptr;
}

}  // namespace tfr

#else

namespace tfr {
const Runs* runs_avx512() { return nullptr; }
}  // namespace tfr

#endif
