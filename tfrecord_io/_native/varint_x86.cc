// Decodes 32 bytes per step: one mask holds the ends of all varints, so the loads do not depend on one another.
#include "varint.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "wire.h"

namespace tfr {
namespace {

constexpr uint64_t kPayloadBits = 0x7f7f7f7f7f7f7f7fu;

__attribute__((target("avx2,bmi,bmi2"))) inline void widen(__m256i bytes, int64_t* out) {
  __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
  for (int half = 0; half < 2; ++half) {
    __m128i part = half == 0 ? low : high;
    for (int i = 0; i < 4; ++i) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_cvtepu8_epi64(part));
      part = _mm_srli_si128(part, 4);
      out += 4;
    }
  }
}

// The varint of `length` ≤ 10 bytes at p; 8 bytes are readable at p.
__attribute__((target("avx2,bmi,bmi2"))) inline uint64_t one(const u8* p, unsigned length) {
  uint64_t word = load64(p);
  if (length <= 8) return _pext_u64(word, _bzhi_u64(kPayloadBits, length * 8));
  uint64_t value = _pext_u64(word, kPayloadBits) | static_cast<uint64_t>(p[8] & 0x7f) << 56;
  if (length == 10) value |= static_cast<uint64_t>(p[9]) << 63;
  return value;
}

__attribute__((target("avx2,bmi,bmi2"))) int64_t avx2(const u8* p, const u8* end, int64_t* out) {
  int64_t* start = out;
  while (end - p >= 40) {  // 32 bytes for the mask, and 8 more that a load may touch
    __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    uint32_t ends = ~static_cast<uint32_t>(_mm256_movemask_epi8(bytes));
    if (ends == 0xffffffffu) {
      widen(bytes, out);
      out += 32;
      p += 32;
      continue;
    }
    if (ends == 0) return -1;
    unsigned from = 0;
    do {
      unsigned last = static_cast<unsigned>(_tzcnt_u32(ends));
      unsigned length = last + 1 - from;
      if (length > 10) return -1;
      *out++ = static_cast<int64_t>(one(p + from, length));
      from = last + 1;
      ends = _blsr_u32(ends);
    } while (ends != 0);
    p += from;
  }
  int64_t rest = decode_run_portable(p, end, out);
  return rest < 0 ? -1 : (out - start) + rest;
}

}  // namespace

DecodeRun decode_run_x86() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? avx2 : nullptr;
}

}  // namespace tfr

#else

namespace tfr {
DecodeRun decode_run_x86() { return nullptr; }
}  // namespace tfr

#endif
