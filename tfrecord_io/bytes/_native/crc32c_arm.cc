// Three CRC32 chains at once, joined by carry-less multiplication, as in crc32c_x86.cc; one chain on a CPU that has no
// carry-less multiplication of 64 bits.
#include "crc32c.h"

#if defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__))

#include <arm_acle.h>
#include <arm_neon.h>

#ifdef __linux__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "wire.h"

// Apple's compiler has these instructions without an attribute, because all Apple processors have them.
#if defined(__APPLE__)
#define TFR_CRC
#define TFR_CRC_PMULL
#elif defined(__clang__)
#define TFR_CRC __attribute__((target("crc")))
#define TFR_CRC_PMULL __attribute__((target("crc,aes")))
#else
#define TFR_CRC __attribute__((target("+crc")))
#define TFR_CRC_PMULL __attribute__((target("+crc+crypto")))
#endif

// Older versions of clang have the usual names only in files all of which are compiled for these instructions.
#if defined(__clang__)
#define TFR_CRC32CD __builtin_arm_crc32cd
#define TFR_CRC32CW __builtin_arm_crc32cw
#define TFR_CRC32CB __builtin_arm_crc32cb
#define TFR_PMULL __builtin_neon_vmull_p64
#else
#define TFR_CRC32CD __crc32cd
#define TFR_CRC32CW __crc32cw
#define TFR_CRC32CB __crc32cb
#define TFR_PMULL vmull_p64
#endif

namespace tfr {
namespace {

template <size_t kLane>
struct Shift {
  // Shift a CRC by kLane bytes; −33: 32 bits for the instruction's own reduction, one for the reflected product.
  static constexpr uint32_t one = power_of_x(kLane * 8 - 33);
  static constexpr uint32_t two = power_of_x(kLane * 16 - 33);
};

TFR_CRC_PMULL inline uint64_t multiply(uint32_t crc, uint32_t factor) {
  return vgetq_lane_u64(vreinterpretq_u64_p128(TFR_PMULL(crc, factor)), 0);
}

template <size_t kLane>
TFR_CRC_PMULL inline uint32_t three_lanes(uint32_t crc, const uint8_t*& data, size_t& size) {
  while (size >= 3 * kLane) {
    uint32_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      a = TFR_CRC32CD(a, load64(data + i));
      b = TFR_CRC32CD(b, load64(data + kLane + i));
      c = TFR_CRC32CD(c, load64(data + 2 * kLane + i));
    }
    crc = c ^ TFR_CRC32CD(0, multiply(a, Shift<kLane>::two) ^ multiply(b, Shift<kLane>::one));
    data += 3 * kLane;
    size -= 3 * kLane;
  }
  return crc;
}

TFR_CRC uint32_t one_chain(uint32_t value, const uint8_t* data, size_t size) {
  uint32_t crc = ~value;
  for (; size >= 8; data += 8, size -= 8) crc = TFR_CRC32CD(crc, load64(data));
  if ((size & 4) != 0) {
    crc = TFR_CRC32CW(crc, load32(data));
    data += 4;
  }
  for (size &= 3; size > 0; ++data, --size) crc = TFR_CRC32CB(crc, *data);
  return ~crc;
}

TFR_CRC_PMULL uint32_t three_chains(uint32_t value, const uint8_t* data, size_t size) {
  uint32_t crc = ~value;
  if (size >= 3 * 64) {
    crc = three_lanes<4096>(crc, data, size);
    crc = three_lanes<512>(crc, data, size);
    crc = three_lanes<64>(crc, data, size);
  }
  return one_chain(~crc, data, size);
}

}  // namespace

Crc32cFunction crc32c_arm_single() {
#ifdef __linux__
  if ((getauxval(AT_HWCAP) & HWCAP_CRC32) == 0) return nullptr;
#endif
  return one_chain;
}

Crc32cFunction crc32c_arm() {
#ifdef __linux__
  if ((getauxval(AT_HWCAP) & HWCAP_PMULL) == 0) return crc32c_arm_single();
#endif
  return crc32c_arm_single() == nullptr ? nullptr : three_chains;
}

}  // namespace tfr

#else

namespace tfr {
Crc32cFunction crc32c_arm() { return nullptr; }
Crc32cFunction crc32c_arm_single() { return nullptr; }
}  // namespace tfr

#endif
