// Copies text and checks it in the same pass, 32 bytes a step. Each 64-bit ARM has these instructions.
#include "text.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstring>

namespace tfr {
namespace {

// Copies 16 bytes; returns `other` with 0xff in the lanes of bytes that are not printable ASCII.
inline uint8x16_t copy_16(u8* to, const u8* from, uint8x16_t other) {
  uint8x16_t bytes = vld1q_u8(from);
  vst1q_u8(to, bytes);
  return vorrq_u8(other, vcgeq_u8(vsubq_u8(bytes, vdupq_n_u8(0x20)), vdupq_n_u8(0x7f - 0x20)));
}

bool neon(u8* to, const u8* from, size_t size) {
  if (size < 16) return copy_ascii_portable(to, from, size);
  uint8x16_t other = vdupq_n_u8(0);
  size_t at = 0;
  for (; at + 32 <= size; at += 32) {
    other = copy_16(to + at + 16, from + at + 16, copy_16(to + at, from + at, other));
    if (vmaxvq_u8(other) == 0) continue;
    std::memcpy(to + at, from + at, size - at);
    return false;
  }
  if (at + 16 <= size) other = copy_16(to + at, from + at, other);
  other = copy_16(to + size - 16, from + size - 16, other);
  return vmaxvq_u8(other) == 0;
}

}  // namespace

CopyAscii copy_ascii_arm() { return neon; }

}  // namespace tfr

#else

namespace tfr {
CopyAscii copy_ascii_arm() { return nullptr; }
}  // namespace tfr

#endif
