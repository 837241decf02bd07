// Packed runs with AVX-512 VBMI. Decoding permutes the bytes of eight or sixteen varints into the lanes of a register.
// Encoding computes the bytes of as many varints at their full width, and compresses the register to the bytes in use.
#include "cpu.h"
#include "varint.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "wire.h"

#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // in the header of GCC before version 13
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Code from here on is compiled for these instructions, the headers above are not.
#if defined(__clang__)
#pragma clang attribute push(                                                                                 \
    __attribute__((                                                                                           \
        target("avx512f,avx512bw,avx512vl,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt,popcnt"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt,popcnt")
#endif

namespace tfr {
namespace {

constexpr size_t kWindow = 64;  // bytes of a register
constexpr uint64_t kAll = ~uint64_t{0};
constexpr long long kByteOfLane = 0x0706050403020100;

inline __m512i bytes(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }

// The bytes of `from` that are set in `mask`, one after another. Written into zeros, as the instruction waits for what
// its result replaces, and the compiler would let that be any value.
inline __m512i compress(uint64_t mask, __m512i from) {
  __m512i zeros = _mm512_setzero_si512();
  asm("" : "+v"(zeros));
  return _mm512_mask_compress_epi8(zeros, mask, from);
}

// Byte i of row r: r * (64 / size) + i / size, the number of the lane of `size` bytes.
template <size_t size>
struct Lanes {
  constexpr Lanes() {
    for (size_t i = 0; i < sizeof rows; ++i) rows[i] = static_cast<u8>(i / size);
  }
  alignas(64) u8 rows[kWindow * size] = {};
};

// For each byte of a lane the number of the lane, from the `first` one on.
template <size_t size>
inline __m512i lanes_from(size_t first) {
  static constexpr Lanes<size> lanes;
  return _mm512_load_si512(lanes.rows + first * size);
}

// Up to 64 bytes of a run, from the start of a varint on.
struct Window {
  __m512i content;
  __m512i starts;  // of the varints
  uint64_t more;   // bit i: byte i is not the last one of a varint
  size_t count;    // varints that end here
  size_t size;     // their bytes
};

// Bytes up to the last end of a varint in the 64 at p, from the last 16 of them: by plain registers, as the next window
// waits for it. What it is if these have no end does not matter: the run is malformed.
inline size_t whole_varints(const u8* p) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  uint64_t last = ~load64(p + 56) & kHighBits, before = ~load64(p + 48) & kHighBits;
  size_t size = last != 0 ? 64 : 56;
  return size - static_cast<size_t>(_lzcnt_u64(last != 0 ? last : before)) / 8;
}

// Reads the `left` bytes at p; the last byte ends a varint.
inline Window read(const u8* p, size_t left) {
  uint64_t inside = left < kWindow ? _bzhi_u64(kAll, static_cast<unsigned>(left)) : kAll;
  Window window;
  window.content = left < kWindow ? _mm512_maskz_loadu_epi8(inside, p) : _mm512_loadu_si512(p);
  window.size = left < kWindow ? left : whole_varints(p);
  window.more = _mm512_movepi8_mask(window.content);
  uint64_t ends = ~window.more & inside;
  window.count = static_cast<size_t>(_mm_popcnt_u64(ends));
  window.starts = window.more == 0 ? lanes_from<1>(0) : compress(ends << 1 | 1, lanes_from<1>(0));
  return window;
}

// Varints of one byte.
inline void put_bytes(const Window& window, int64_t* out) {
  for (size_t i = 0; i < window.count; i += 8)
    _mm512_storeu_si512(out + i, _mm512_maskz_permutexvar_epi8(0x0101010101010101, lanes_from<8>(i), window.content));
}

// Varints of up to four bytes.
inline void put_short(const Window& window, int64_t* out) {
  for (size_t i = 0; i < window.count; i += 16) {
    __m512i starts = _mm512_permutexvar_epi8(lanes_from<4>(i), window.starts);
    __m512i at = _mm512_add_epi8(starts, _mm512_set1_epi32(static_cast<int>(kByteOfLane)));
    __m512i groups = _mm512_permutexvar_epi8(at, window.content);
    __m512i stops = _mm512_andnot_si512(groups, bytes(0x80));
    __m512i kept = _mm512_xor_si512(stops, _mm512_add_epi32(stops, _mm512_set1_epi32(-1)));
    groups = _mm512_and_si512(_mm512_and_si512(groups, kept), bytes(0x7f));
    __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(static_cast<short>(0x8001)), groups);
    __m512i values = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x40000001));
    _mm512_storeu_si512(out + i, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(values)));
    _mm512_storeu_si512(out + i + 8, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(values, 1)));
  }
}

// The low seven bits of each of the lower eight bytes up to the first one without the high bit. Byte i of the result
// has the upper 7 − i bits of group i, and i + 1 bits of the next one.
inline __m512i compact(__m512i groups, __m512i stops) {
  __m512i kept = _mm512_xor_si512(stops, _mm512_add_epi64(stops, _mm512_set1_epi64(-1)));
  groups = _mm512_and_si512(groups, kept);
  __m512i low = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x00362d241b120900), groups);
  __m512i high = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x00372e251c130a01), groups);
  __m512i values = _mm512_ternarylogic_epi64(_mm512_set1_epi64(0x000103070f1f3f7f), low, high, 0xca);  // a ? b : c
  return _mm512_and_si512(values, _mm512_set1_epi64(0x00ffffffffffffff));
}

// Eight varints, from the i-th one on, of up to eight bytes, or ten if kLong.
template <bool kLong>
inline void put_eight(const Window& window, size_t i, int64_t* out) {
  __m512i starts = _mm512_permutexvar_epi8(lanes_from<8>(i), window.starts);
  __m512i at = _mm512_add_epi8(starts, _mm512_set1_epi64(kByteOfLane));
  __m512i groups = _mm512_permutexvar_epi8(at, window.content);
  __m512i stops = _mm512_andnot_si512(groups, bytes(0x80));
  __m512i values = compact(groups, stops);
  if (kLong) {
    // The highest byte is the ninth one, whose high bit, if set, gives way to the lowest bit of the tenth one.
    __m512i next = _mm512_permutexvar_epi8(_mm512_add_epi8(at, bytes(8)), window.content);
    __m512i tenth = _mm512_srli_epi64(next, 1);
    next = _mm512_ternarylogic_epi64(next, tenth, _mm512_set1_epi64(0x80), 0xd0);  // c ? a & b : a
    __mmask8 is_long = _mm512_testn_epi64_mask(stops, stops);
    values = _mm512_mask_or_epi64(values, is_long, values, _mm512_slli_epi64(next, 56));
  }
  _mm512_storeu_si512(out + i, values);
}

template <bool kLong>
inline void put_any(const Window& window, int64_t* out) {
  for (size_t i = 0; i < window.count; i += 8) put_eight<kLong>(window, i, out);
}

// Writes the values of a window; false if a varint has more than ten bytes.
inline bool put(const Window& window, int64_t* out) {
  uint64_t more = window.more, two = more & more >> 1, four = two & two >> 2, eight = four & four >> 4;
  if (more == 0) {
    put_bytes(window, out);
  } else if (four == 0 && window.count > 8) {
    put_short(window, out);
  } else if (eight == 0) {
    put_any<false>(window, out);
  } else {
    if ((eight & more >> 8 & more >> 9) != 0) return false;
    put_any<true>(window, out);
  }
  return true;
}

int64_t decode_windows(const u8* p, const u8* end, int64_t* out) {
  int64_t* start = out;
  if (end[-1] >= 0x80) return -1;
  size_t left = static_cast<size_t>(end - p);
  Window next = read(p, left);
  for (;;) {
    Window window = next;
    p += window.size;
    left -= window.size;
    if (left != 0) next = read(p, left);  // before the values are written, as it takes long until it is known
    if (!put(window, out)) return -1;
    out += window.count;
    if (left == 0) return out - start;
  }
}

// Up to eight varints of up to eight bytes, whose sizes cannot be foreseen, need no branch on them.
int64_t decode(const u8* p, const u8* end, int64_t* out) {
  size_t left = static_cast<size_t>(end - p);
  if (left > kWindow) return decode_windows(p, end, out);
  uint64_t inside = _bzhi_u64(kAll, static_cast<unsigned>(left));
  Window window;
  window.content = _mm512_maskz_loadu_epi8(inside, p);
  window.more = _mm512_movepi8_mask(window.content);
  uint64_t ends = ~window.more & inside;
  window.count = static_cast<size_t>(_mm_popcnt_u64(ends));
  uint64_t two = window.more & window.more >> 1, four = two & two >> 2, eight = four & four >> 4;
  uint64_t unfinished = window.more & ~(inside >> 1);
  if ((unfinished | eight | window.count >> 3) != 0) return left == 0 ? 0 : decode_windows(p, end, out);
  window.starts = compress(ends << 1 | 1, lanes_from<1>(0));
  put_eight<false>(window, 0, out);
  return static_cast<int64_t>(window.count);
}

// ---- encoding

constexpr size_t kStep = 16;  // values

// The first n of eight or more values; zeros for the others.
inline __m512i load(const uint64_t* values, size_t n) {
  if (n >= 8) [[likely]]
    return _mm512_loadu_si512(values);
  return _mm512_maskz_loadu_epi64(static_cast<__mmask8>(_bzhi_u32(0xff, static_cast<unsigned>(n))), values);
}

// Bytes of a varint, by the leading zeros of its value.
struct Sizes {
  constexpr Sizes() {
    for (size_t zeros = 0; zeros < 64; ++zeros) of[zeros] = static_cast<u8>(((64 - zeros) * 9 + 64) / 64);
  }
  alignas(64) u8 of[64] = {};
};

size_t size(const uint64_t* values, size_t count) {
  if (count == 1) return varint_size(*values);
  static constexpr Sizes sizes;
  __m512i table = _mm512_load_si512(sizes.of), sum = _mm512_setzero_si512();
  for (size_t i = 0; i < count; i += 8) {
    uint64_t low_bytes = 0x0101010101010101;
    if (count - i < 8) low_bytes = _bzhi_u64(low_bytes, static_cast<unsigned>(8 * (count - i)));
    __m512i zeros = _mm512_lzcnt_epi64(_mm512_or_si512(load(values + i, count - i), _mm512_set1_epi64(1)));
    sum = _mm512_add_epi64(sum, _mm512_maskz_permutexvar_epi8(low_bytes, zeros, table));
  }
  return static_cast<size_t>(_mm512_reduce_add_epi64(sum));
}

// Byte i of a varint is used if the value has a bit from 7 * i on, and followed if it has one from 7 * (i + 1) on. That
// is, if its leading zeros are at most those in byte i of the constant. Byte 0 is always used.
constexpr int kUsed32 = 0x0a1118ff, kFollowed32 = 0x030a1118;
constexpr long long kUsed = 0x0e151c232a3138ff, kFollowed = 0x070e151c232a3138;
constexpr long long kUsedHigh = 0x0007, kFollowedHigh = 0;                      // bytes 8 and 9
constexpr uint64_t kTen = 0x03ff03ff03ff03ff, kFirstNine = 0x01ff01ff01ff01ff;  // of 16 bytes

// The bit from which on byte i has seven bits of its value.
constexpr long long kShifts32 = 0x352e2720150e0700, kShifts = 0x312a231c150e0700, kShiftsHigh = 0x3f38;

// Pairs of 64-bit lanes.
inline __m512i lane_pairs(long long low, long long high) { return _mm512_set4_epi64(high, low, high, low); }

// The lowest byte of each 64-bit lane, in all of its bytes.
inline __m512i spread(__m512i lanes) { return _mm512_shuffle_epi8(lanes, lane_pairs(0, 0x0808080808080808)); }

inline u8* put_used(u8* out, uint64_t used, uint64_t followed, __m512i groups) {
  groups = _mm512_mask_add_epi8(groups, followed, groups, bytes(0x80));
  _mm512_storeu_si512(out, compress(used, groups));
  return out + _mm_popcnt_u64(used);
}

// The first n of 16 values below 2^28.
inline u8* put_sixteen(u8* out, __m512i a, __m512i b, size_t n) {
  const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i first_bytes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
  __m512i values = _mm512_permutex2var_epi32(a, evens, b);
  __m512i zeros = _mm512_shuffle_epi8(_mm512_lzcnt_epi32(values), first_bytes);
  uint64_t used = _mm512_cmple_epu8_mask(zeros, _mm512_set1_epi32(kUsed32));
  uint64_t followed = _mm512_cmple_epu8_mask(zeros, _mm512_set1_epi32(kFollowed32));
  if (n < kStep) used = _bzhi_u64(used, static_cast<unsigned>(4 * n));
  __m512i groups = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(kShifts32), values);
  return put_used(out, used, followed, _mm512_and_si512(groups, bytes(0x7f)));
}

// The first n of eight values below 2^56.
inline u8* put_eight(u8* out, __m512i values, size_t n) {
  __m512i zeros = spread(_mm512_lzcnt_epi64(values));
  uint64_t used = _mm512_cmple_epu8_mask(zeros, _mm512_set1_epi64(kUsed));
  uint64_t followed = _mm512_cmple_epu8_mask(zeros, _mm512_set1_epi64(kFollowed));
  if (n < 8) used = _bzhi_u64(used, static_cast<unsigned>(8 * n));
  __m512i groups = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(kShifts), values);
  return put_used(out, used, followed, _mm512_and_si512(groups, bytes(0x7f)));
}

// The first n of four values, each of which is in a pair of lanes.
inline u8* put_four(u8* out, __m512i values, size_t n) {
  __m512i zeros = spread(_mm512_lzcnt_epi64(values));
  uint64_t used = _mm512_mask_cmple_epu8_mask(kTen, zeros, lane_pairs(kUsed, kUsedHigh));
  uint64_t followed = _mm512_mask_cmple_epu8_mask(kFirstNine, zeros, lane_pairs(kFollowed, kFollowedHigh));
  if (n < 4) used = _bzhi_u64(used, static_cast<unsigned>(16 * n));
  __m512i groups = _mm512_multishift_epi64_epi8(lane_pairs(kShifts, kShiftsHigh), values);
  return put_used(out, used, followed, _mm512_and_si512(groups, lane_pairs(0x7f7f7f7f7f7f7f7f, 0x017f)));
}

// The first n of eight values.
inline u8* put_any(u8* out, __m512i values, size_t n) {
  if (_mm512_test_epi64_mask(values, _mm512_set1_epi64(~0xffffffffffffff)) == 0) return put_eight(out, values, n);
  out = put_four(out, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), values), n);
  if (n <= 4) return out;
  return put_four(out, _mm512_permutexvar_epi64(_mm512_setr_epi64(4, 4, 5, 5, 6, 6, 7, 7), values), n - 4);
}

// Counts of short lists cannot be foreseen: up to eight values, or none, need no branch on them.
u8* encode(u8* out, const uint64_t* values, size_t count) {
  size_t i = 0;
  do {
    size_t n = count - i;
    __m512i a = load(values + i, n), b = n > 8 ? load(values + i + 8, n - 8) : _mm512_setzero_si512();
    __m512i any = _mm512_or_si512(a, b);
    if (_mm512_test_epi64_mask(any, _mm512_set1_epi64(~0x7f)) == 0) {
      __m128i low = _mm512_cvtepi64_epi8(a), high = _mm512_cvtepi64_epi8(b);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi64(low, high));
      out += n < kStep ? n : kStep;
    } else if (_mm512_test_epi64_mask(any, _mm512_set1_epi64(~0xfffffff)) == 0) {
      out = put_sixteen(out, a, b, n);
    } else {
      out = put_any(out, a, n);
      if (n > 8) out = put_any(out, b, n - 8);
    }
    i += kStep;
  } while (i < count);
  return out;
}

}  // namespace
}  // namespace tfr

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace tfr {
namespace {

bool is_supported() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") && decode_run_x86() != nullptr &&
         encode_run_x86().put != nullptr;
}

}  // namespace

DecodeRun decode_run_avx512() { return is_supported() ? decode : nullptr; }

EncodeRun encode_run_avx512() { return is_supported() ? EncodeRun{size, encode} : EncodeRun{}; }

}  // namespace tfr

#else

namespace tfr {
DecodeRun decode_run_avx512() { return nullptr; }
EncodeRun encode_run_avx512() { return {}; }
}  // namespace tfr

#endif
