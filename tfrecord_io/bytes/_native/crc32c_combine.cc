// The CRC of two concatenated parts from the CRCs of each: that of the first is multiplied by x^(8 · bytes of the
// second).
#include "crc32c.h"

namespace tfr {
namespace {

// The product of two polynomials modulo that of CRC32C, all reflected.
uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ ((b & 1) ? 0x82f63b78u : 0);
  }
  return product;
}

}  // namespace

uint32_t crc32c_combine(uint32_t first, uint32_t second, uint64_t second_size) {
  uint32_t power = power_of_x(8);  // x^(8 · 2^i) for bit i of the size
  for (; second_size != 0; second_size >>= 1) {
    if (second_size & 1) first = multiply(first, power);
    power = multiply(power, power);
  }
  return first ^ second;
}

}  // namespace tfr
