// Encodes without a branch on the length: a varint of up to 8 bytes is one store.
#include "cpu.h"
#include "varint.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "wire.h"

namespace tfr {
namespace {

constexpr uint64_t kPayloadBits = 0x7f7f7f7f7f7f7f7fu;

constexpr uint64_t kMoreBits = 0x8080808080808080u;

__attribute__((target("lzcnt"))) inline size_t size_of(uint64_t value) {
  return ((64 - _lzcnt_u64(value | 1)) * 9 + 64) / 64;
}

__attribute__((target("avx2,lzcnt"))) size_t size_avx2(const uint64_t* values, size_t count) {
  const __m256i one = _mm256_set1_epi64x(0x7f), two = _mm256_set1_epi64x(0x3fff), three = _mm256_set1_epi64x(0x1fffff);
  const __m256i large = _mm256_set1_epi64x(~0xfffffffll);  // values of more than four bytes
  __m256i more = _mm256_setzero_si256();                   // bytes after the first
  size_t size = count, i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
    __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i + 4));
    if (!_mm256_testz_si256(_mm256_or_si256(a, b), large)) [[unlikely]] {
      for (size_t k = i; k < i + 8; ++k) size += size_of(values[k]) - 1;
      continue;
    }
    for (__m256i limit : {one, two, three})
      more = _mm256_sub_epi64(more, _mm256_add_epi64(_mm256_cmpgt_epi64(a, limit), _mm256_cmpgt_epi64(b, limit)));
  }
  alignas(32) uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), more);
  size += lanes[0] + lanes[1] + lanes[2] + lanes[3];
  for (; i < count; ++i) size += size_of(values[i]) - 1;
  return size;
}

// The low bytes of eight values.
__attribute__((target("avx2"))) inline uint64_t low_bytes(__m256i a, __m256i b) {
  const __m256i select = _mm256_setr_epi8(0, 8, -1, -1, 4, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                          -1, -1, 0, 8, -1, -1, 4, 12, -1, -1, -1, -1, -1, -1, -1, -1);
  __m256i bytes = _mm256_shuffle_epi8(_mm256_or_si256(a, _mm256_slli_epi64(b, 32)), select);
  return static_cast<uint64_t>(
      _mm_cvtsi128_si64(_mm_or_si128(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1))));
}

// Writes 8 bytes at `out`, or 10.
__attribute__((target("avx2,bmi,bmi2,lzcnt"))) inline u8* put_one(u8* out, uint64_t value) {
  if (value >> 56) [[unlikely]] {
    uint64_t low = _pdep_u64(value, kPayloadBits) | kMoreBits, tenth = value >> 63;
    uint16_t high = static_cast<uint16_t>((value >> 56 & 0x7f) | tenth << 7 | tenth << 8);
    std::memcpy(out, &low, 8);
    std::memcpy(out + 8, &high, 2);
    return out + 9 + tenth;
  }
  size_t size = size_of(value);
  uint64_t word = _pdep_u64(value, kPayloadBits) | _bzhi_u64(kMoreBits, static_cast<unsigned>(8 * size - 8));
  std::memcpy(out, &word, 8);
  return out + size;
}

__attribute__((target("avx2,bmi,bmi2,lzcnt"))) u8* put_avx2(u8* out, const uint64_t* values, size_t count) {
  const __m256i large = _mm256_set1_epi64x(~0x7fll);
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
    __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i + 4));
    if (_mm256_testz_si256(_mm256_or_si256(a, b), large)) {
      uint64_t word = low_bytes(a, b);
      std::memcpy(out, &word, 8);
      out += 8;
    } else {
      for (size_t k = i; k < i + 8; ++k) out = put_one(out, values[k]);
    }
  }
  for (; i < count; ++i) out = put_one(out, values[i]);
  return out;
}

}  // namespace

EncodeRun encode_run_x86() {
  __builtin_cpu_init();
  bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && has_lzcnt();
  return supported ? EncodeRun{size_avx2, put_avx2} : EncodeRun{};
}

}  // namespace tfr

#else

namespace tfr {
EncodeRun encode_run_x86() { return {}; }
}  // namespace tfr

#endif
