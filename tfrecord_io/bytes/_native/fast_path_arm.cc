// The loops of fast_path.h for 64-bit ARM: an entry's head is one comparison for 16 bytes.
#include "fast_path.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "feature.h"
#include "frame.h"
#include "text.h"

namespace tfr {
namespace {

alignas(16) constexpr u8 kPlaces[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

inline bool matches(const Shape& shape, const u8* p, size_t n) {
  const uint8x16_t more = vdupq_n_u8(static_cast<u8>(n)), places = vld1q_u8(kPlaces);
  uint8x16_t other = vdupq_n_u8(0);
  for (size_t at = 0; at < shape.head(); at += 16) {
    uint8x16_t expected = vaddq_u8(vld1q_u8(shape.base() + at), vandq_u8(vld1q_u8(shape.varies() + at), more));
    uint8x16_t in_head = vcltq_u8(places, vdupq_n_u8(static_cast<u8>(shape.head() - at)));
    other = vorrq_u8(other, vandq_u8(veorq_u8(expected, vld1q_u8(p + at)), in_head));
  }
  return vmaxvq_u8(other) == 0;
}

inline uint64_t compact_groups(uint64_t groups) { return pack_sevens(groups); }

inline uint64_t low_bits(uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((uint64_t{1} << (bits & 63)) - 1);
}

inline bool copy_text(u8* to, const u8* p, size_t n) { return copy_ascii(to, p, n); }

inline uint32_t checksum(const u8* p, size_t n) { return masked_crc32c(p, n); }

#include "fast_path_number.inc"

#include "fast_path_loop.inc"

}  // namespace

const Runs* runs_arm() {
  static const Runs fast = {run_records, run_entries};
  return &fast;
}

}  // namespace tfr

#else

namespace tfr {
const Runs* runs_arm() { return nullptr; }
}  // namespace tfr

#endif
