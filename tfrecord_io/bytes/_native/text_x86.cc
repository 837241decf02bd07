// Copies text and checks it in the same pass, 32 bytes a step with AVX2 and 64 with AVX-512.
#include "text.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

namespace tfr {
namespace {

// Copies 32 bytes; returns `other`, made nonzero where a byte is not printable ASCII.
__attribute__((target("avx2"), always_inline)) inline __m256i copy_32(u8* to, const u8* from, __m256i other) {
  __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
  __m256i low = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), bytes);  // as signed numbers: also those from 0x80 on
  __m256i del = _mm256_cmpeq_epi8(_mm256_set1_epi8(0x7f), bytes);
  return _mm256_or_si256(other, _mm256_or_si256(low, del));
}

// Bytes that are not text mostly show it at their start: the rest is only copied.
__attribute__((target("avx2"))) bool avx2(u8* to, const u8* from, size_t size) {
  if (size < 32) return copy_ascii_portable(to, from, size);
  __m256i other = _mm256_setzero_si256();
  size_t at = 0;
  for (; at + 64 <= size; at += 64) {
    other = copy_32(to + at + 32, from + at + 32, copy_32(to + at, from + at, other));
    if (_mm256_movemask_epi8(other) == 0) continue;
    std::memcpy(to + at, from + at, size - at);
    return false;
  }
  if (at + 32 <= size) other = copy_32(to + at, from + at, other);
  other = copy_32(to + size - 32, from + size - 32, other);
  return _mm256_movemask_epi8(other) == 0;
}

__attribute__((target("avx512f,avx512bw"), always_inline)) inline __mmask64 not_printable(__m512i bytes) {
  return _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(0x20)) | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(0x7f));
}

__attribute__((target("avx512f,avx512bw"))) bool avx512(u8* to, const u8* from, size_t size) {
  for (; size > 64; to += 64, from += 64, size -= 64) {
    __m512i bytes = _mm512_loadu_si512(from);
    _mm512_storeu_si512(to, bytes);
    if (not_printable(bytes) == 0) continue;
    std::memcpy(to, from, size);
    return false;
  }
  __mmask64 inside = size == 0 ? 0 : ~uint64_t{0} >> (64 - size);
  __m512i bytes = _mm512_mask_loadu_epi8(_mm512_set1_epi8(' '), inside, from);
  _mm512_storeu_si512(to, bytes);
  return not_printable(bytes) == 0;
}

}  // namespace

CopyAscii copy_ascii_x86() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") ? avx2 : nullptr;
}

CopyAscii copy_ascii_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bw") ? avx512 : nullptr;
}

}  // namespace tfr

#else

namespace tfr {
CopyAscii copy_ascii_x86() { return nullptr; }
CopyAscii copy_ascii_avx512() { return nullptr; }
}  // namespace tfr

#endif
