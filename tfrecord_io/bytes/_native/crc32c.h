// CRC32C (Castagnoli polynomial, RFC 3720 appendix B.4) and TFRecord's mask over it
// (tensorflow/tsl/lib/hash/crc32c.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfr {

// Continues `value`, the CRC of the preceding bytes (0 at the start).
using Crc32cFunction = uint32_t (*)(uint32_t value, const uint8_t* data, size_t size);

extern const Crc32cFunction crc32c;  // the fastest implementation this CPU supports

uint32_t crc32c_portable(uint32_t value, const uint8_t* data, size_t size);
uint32_t crc32c_sse42(uint32_t value, const uint8_t* data, size_t size);  // only if crc32c_x86() is not nullptr
Crc32cFunction crc32c_x86();                                              // nullptr if the CPU lacks SSE4.2 or PCLMUL
Crc32cFunction crc32c_avx512();      // nullptr if it lacks 512-bit carry-less multiplication
Crc32cFunction crc32c_arm();         // nullptr if it lacks CRC32 instructions
Crc32cFunction crc32c_arm_single();  // the same with one chain, which needs no carry-less multiplication

// The CRC of two parts, the second of `second_size` bytes, that follow one another.
uint32_t crc32c_combine(uint32_t first, uint32_t second, uint64_t second_size);

// x^n modulo the polynomial, reflected.
constexpr uint32_t power_of_x(uint64_t n) {
  uint32_t value = 0x80000000u;  // x^0
  for (uint64_t i = 0; i < n; ++i) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78u : 0);
  return value;
}

inline uint32_t mask_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

inline uint32_t masked_crc32c(const uint8_t* data, size_t size) { return mask_crc(crc32c(0, data, size)); }

}  // namespace tfr
