// Three CRC32 chains at once (the instruction has a latency of three cycles and a throughput of one), joined by
// carry-less multiplication: Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel
// 2011.
#include "crc32c.h"

#if defined(__x86_64__)

#include <nmmintrin.h>
#include <wmmintrin.h>

#include "wire.h"

namespace tfr {
namespace {

template <size_t kLane>
struct Shift {
  // Shift a CRC by kLane bytes; −33: 32 bits for the instruction's own reduction, one for the reflected product.
  static constexpr uint32_t one = power_of_x(kLane * 8 - 33);
  static constexpr uint32_t two = power_of_x(kLane * 16 - 33);
};

__attribute__((target("sse4.2,pclmul"))) inline uint64_t multiply(uint32_t crc, uint32_t factor) {
  return static_cast<uint64_t>(_mm_cvtsi128_si64(
      _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(crc)), _mm_cvtsi32_si128(static_cast<int>(factor)), 0)));
}

template <size_t kLane>
__attribute__((target("sse4.2,pclmul"))) inline uint64_t three_lanes(uint64_t crc, const uint8_t*& data, size_t& size) {
  while (size >= 3 * kLane) {
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      a = _mm_crc32_u64(a, load64(data + i));
      b = _mm_crc32_u64(b, load64(data + kLane + i));
      c = _mm_crc32_u64(c, load64(data + 2 * kLane + i));
    }
    uint64_t joined =
        multiply(static_cast<uint32_t>(a), Shift<kLane>::two) ^ multiply(static_cast<uint32_t>(b), Shift<kLane>::one);
    crc = c ^ _mm_crc32_u64(0, joined);
    data += 3 * kLane;
    size -= 3 * kLane;
  }
  return crc;
}

// Processes the last `size` < 8 bytes before `end` without a branch, as their number is unpredictable; 8 bytes before
// `end` are readable. Leading zeros do not change a CRC of 0, so they fill up the word.
__attribute__((target("sse4.2,pclmul"))) inline uint32_t last_bytes(uint64_t crc, const uint8_t* end, size_t size) {
  uint64_t bits = 8 * size, half = (64 - bits) / 2,
           other = 64 - bits - half;  // two steps, as a shift by 64 is undefined
  uint64_t word = load64(end - 8) >> half >> other;
  uint64_t taken = (word ^ crc) & ((uint64_t{1} << bits) - 1);
  return static_cast<uint32_t>(_mm_crc32_u64(0, taken << half << other) ^ crc >> bits);
}

}  // namespace

__attribute__((target("sse4.2,pclmul"))) uint32_t crc32c_sse42(uint32_t value, const uint8_t* data, size_t size) {
  const uint8_t* begin = data;
  uint64_t crc = static_cast<uint32_t>(~value);
  if (size >= 3 * 64) {
    crc = three_lanes<4096>(crc, data, size);
    crc = three_lanes<512>(crc, data, size);
    crc = three_lanes<64>(crc, data, size);
  }
  if (size < 8 && data == begin) {
    for (; size > 0; ++data, --size) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), *data);
    return ~static_cast<uint32_t>(crc);
  }
  for (; size >= 8; data += 8, size -= 8) crc = _mm_crc32_u64(crc, load64(data));
  return ~last_bytes(static_cast<uint32_t>(crc), data + size, size);
}

Crc32cFunction crc32c_x86() {
  __builtin_cpu_init();  // this may run before other constructors
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") ? crc32c_sse42 : nullptr;
}

}  // namespace tfr

#else

namespace tfr {
Crc32cFunction crc32c_x86() { return nullptr; }
}  // namespace tfr

#endif
