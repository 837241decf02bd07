#include "text.h"

#include "cpu.h"
#include "wire.h"

namespace tfr {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101u;
constexpr uint64_t kHigh = 0x8080808080808080u;

// Nonzero if one of the eight bytes is not printable ASCII (0x20–0x7e).
inline uint64_t not_printable(uint64_t word) {
  uint64_t below_space = (word - kOnes * 0x20) & ~word;
  uint64_t is_delete =
      (word ^ kOnes * 0x7f) - kOnes;  // a borrow may mark a neighbour too, so a nonzero result is only a hint
  return (below_space | is_delete | word) & kHigh;
}

inline bool is_continuation(u8 byte) { return (byte & 0xc0) == 0x80; }

// Length of the well-formed sequence that starts with a byte ≥ 0x80, 0 if malformed.
inline size_t sequence_length(const u8* p, size_t left) {
  u8 lead = p[0];
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return left >= 2 && is_continuation(p[1]) ? 2 : 0;
  if (lead < 0xf0) {
    if (left < 3 || !is_continuation(p[1]) || !is_continuation(p[2])) return 0;
    if (lead == 0xe0 && p[1] < 0xa0) return 0;  // overlong
    if (lead == 0xed && p[1] > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (left < 4 || !is_continuation(p[1]) || !is_continuation(p[2]) || !is_continuation(p[3])) return 0;
  if (lead == 0xf0 && p[1] < 0x90) return 0;
  if (lead == 0xf4 && p[1] > 0x8f) return 0;  // after U+10FFFF
  return 4;
}

template <bool kText>
bool check(const u8* p, size_t size) {
  const u8* end = p + size;
  while (p < end) {
    while (end - p >= 8 && !(kText ? not_printable(load64(p)) : load64(p) & kHigh)) p += 8;
    if (p == end) return true;
    if (*p < 0x80) {
      if (kText && (*p < 0x20 || *p == 0x7f) && *p != '\t' && *p != '\n' && *p != '\r') return false;
      ++p;
      continue;
    }
    size_t length = sequence_length(p, static_cast<size_t>(end - p));
    if (length == 0) return false;
    if (kText && p[0] == 0xc2 && p[1] < 0xa0) return false;  // U+0080–9F
    p += length;
  }
  return true;
}

CopyAscii choose() {
  if (!use_fast_paths()) return copy_ascii_portable;
  if (CopyAscii fast = use_avx512() ? copy_ascii_avx512() : nullptr) return fast;
  if (CopyAscii fast = copy_ascii_x86()) return fast;
  if (CopyAscii fast = copy_ascii_arm()) return fast;
  return copy_ascii_portable;
}

}  // namespace

const CopyAscii copy_ascii = choose();

bool copy_ascii_portable(u8* to, const u8* from, size_t size) {
  copy_bytes(to, from, size);
  if (size >= 8) {
    for (size_t i = 0; i < size - 8; i += 8)
      if (not_printable(load64(from + i))) return false;
    return !not_printable(load64(from + size - 8));
  }
  for (size_t i = 0; i < size; ++i)
    if (from[i] < 0x20 || from[i] > 0x7e) return false;
  return true;
}

bool is_utf8(const u8* data, size_t size) { return check<false>(data, size); }
bool is_text(const u8* data, size_t size) { return check<true>(data, size); }

}  // namespace tfr
