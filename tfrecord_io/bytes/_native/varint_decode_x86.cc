// Decodes sixteen varints per step. One mask holds the ends of all varints of 64 bytes, so the loads do not depend on
// one another; four varints are then compacted at a time by multiplications, in the 64-bit lanes of one register.
#include "cpu.h"
#include "varint.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "wire.h"

// Code from here on is compiled for these instructions, the headers above are not.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,lzcnt,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,lzcnt,popcnt")
#endif

namespace tfr {
namespace {

constexpr size_t kWindow = 64;           // bytes whose ends are found at once
constexpr size_t kReach = kWindow + 24;  // bytes from the start of a window that may be loaded
constexpr size_t kStep = 16;             // values per step, at most
constexpr ptrdiff_t kShort = 20;         // bytes that are sooner decoded one varint at a time

// Bit i: byte i of the window is the last one of a varint.
inline uint64_t find_ends(const u8* p) {
  __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  return ~(static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
           static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32);
}

// Bit i: bits i to i + 7 are set.
inline uint64_t runs_of_eight(uint64_t bits) {
  bits &= bits >> 1;
  bits &= bits >> 2;
  return bits & bits >> 4;
}

inline void widen(const u8* p, int64_t* out) {
  for (size_t i = 0; i < kWindow; i += 4) {
    int four;
    std::memcpy(&four, p + i, 4);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four)));
  }
}

inline __m256i load_lanes(const u8* p, const size_t at[4]) {
  auto word = [&](size_t i) { return static_cast<long long>(load64(p + at[i])); };
  return _mm256_setr_epi64x(word(0), word(1), word(2), word(3));
}

// The low seven bits of each byte up to the first one without the high bit; of all eight bytes if there is no such
// byte.
inline __m256i compact(__m256i words) {
  __m256i stops = _mm256_andnot_si256(words, _mm256_set1_epi8(-128));
  __m256i kept = _mm256_xor_si256(stops, _mm256_add_epi64(stops, _mm256_set1_epi64x(-1)));
  __m256i groups = _mm256_and_si256(_mm256_and_si256(words, kept), _mm256_set1_epi8(0x7f));
  __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi16(static_cast<short>(0x8001)), groups);
  __m256i quads = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x40000001));
  __m256i low = _mm256_blend_epi32(quads, _mm256_setzero_si256(), 0xaa);
  return _mm256_or_si256(low, _mm256_slli_epi64(_mm256_srli_epi64(quads, 32), 28));
}

// The bits of the ninth and the tenth byte, in the lanes that have no end among the first eight bytes.
inline __m256i upper_bits(__m256i words, __m256i next) {
  __m256i stops = _mm256_andnot_si256(words, _mm256_set1_epi8(-128));
  __m256i ninth = _mm256_and_si256(next, _mm256_set1_epi64x(0x7f));
  __m256i has_tenth = _mm256_cmpgt_epi64(_mm256_and_si256(next, _mm256_set1_epi64x(0x80)), _mm256_setzero_si256());
  __m256i tenth = _mm256_and_si256(has_tenth, _mm256_slli_epi64(_mm256_srli_epi64(next, 8), 63));
  __m256i upper = _mm256_or_si256(_mm256_slli_epi64(ninth, 56), tenth);
  return _mm256_and_si256(upper, _mm256_cmpeq_epi64(stops, _mm256_setzero_si256()));
}

// Writes the next four values; what follows the last end is arbitrary. Returns the position after the fourth one.
template <bool kLong>
inline size_t put_four(const u8* p, size_t from, uint64_t& ends, int64_t* out) {
  size_t at[4];
  for (size_t& start : at) {
    start = from;
    from = static_cast<size_t>(_tzcnt_u64(ends)) + 1;
    ends = _blsr_u64(ends);
  }
  __m256i words = load_lanes(p, at), values = compact(words);
  if (kLong) values = _mm256_or_si256(values, upper_bits(words, load_lanes(p + 8, at)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), values);
  return from;
}

// Decodes up to kStep of the varints that end at `ends`, and writes up to three more values. Returns the bytes decoded.
template <bool kLong>
inline size_t put_step(const u8* p, uint64_t ends, size_t count, int64_t* out) {
  size_t consumed = kWindow - static_cast<size_t>(_lzcnt_u64(ends)), from = 0;
  if (count > kStep) {
    for (size_t i = 0; i < kStep; i += 4) from = put_four<kLong>(p, from, ends, out + i);
    return from;
  }
  for (size_t i = 0; i < count; i += 4) from = put_four<kLong>(p, from, ends, out + i);
  return consumed;
}

// Decodes the first values of the `left` bytes at p, the last of which ends a varint; nullptr if malformed.
inline const u8* step(const u8* p, size_t left, int64_t*& out) {
  uint64_t inside = left < kWindow ? (uint64_t{1} << left) - 1 : ~uint64_t{0};
  uint64_t ends = find_ends(p) & inside, more = ~ends & inside;
  if (ends == ~uint64_t{0}) {
    widen(p, out);
    out += kWindow;
    return p + kWindow;
  }
  size_t count = static_cast<size_t>(_mm_popcnt_u64(ends)), step = count < kStep ? count : kStep;
  uint64_t eight = runs_of_eight(more);
  if (eight == 0) [[likely]] {
    p += put_step<false>(p, ends, count, out);
  } else {
    if ((eight & more >> 8 & more >> 9) != 0) return nullptr;  // ten bytes, and none of them is the last one
    p += put_step<true>(p, ends, count, out);
  }
  out += step;
  return p;
}

int64_t avx2(const u8* p, const u8* end, int64_t* out) {
  int64_t* start = out;
  if (end - p <= kShort) return decode_run_portable(p, end, out);
  if (end[-1] >= 0x80) return -1;
  while (static_cast<size_t>(end - p) >= kReach)
    if ((p = step(p, kWindow, out)) == nullptr) return -1;
  u8 rest[2 * kReach] = {};  // a copy, as loads may go beyond the end
  size_t left = static_cast<size_t>(end - p);
  std::memcpy(rest, p, left);
  for (const u8 *at = rest, *stop = rest + left; at < stop;)
    if ((at = step(at, static_cast<size_t>(stop - at), out)) == nullptr) return -1;
  return out - start;
}

}  // namespace
}  // namespace tfr

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace tfr {

DecodeRun decode_run_x86() {
  __builtin_cpu_init();
  bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && has_lzcnt() &&
                   __builtin_cpu_supports("popcnt");
  return supported ? avx2 : nullptr;
}

}  // namespace tfr

#else

namespace tfr {
DecodeRun decode_run_x86() { return nullptr; }
}  // namespace tfr

#endif
