#include "crc32c.h"

#include <array>

#include "cpu.h"

namespace tfr {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;  // reflected

// table[k][b]: the CRC of byte b followed by k zero bytes.
constexpr auto kTable = [] {
  std::array<std::array<uint32_t, 256>, 8> table{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    table[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (uint32_t b = 0; b < 256; ++b) table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 255];
  return table;
}();

Crc32cFunction choose() {
  if (!use_fast_paths()) return crc32c_portable;
  if (Crc32cFunction fast = use_avx512() ? crc32c_avx512() : nullptr) return fast;
  if (Crc32cFunction fast = crc32c_x86()) return fast;
  if (Crc32cFunction fast = crc32c_arm()) return fast;
  return crc32c_portable;
}

}  // namespace

const Crc32cFunction crc32c = choose();

uint32_t crc32c_portable(uint32_t value, const uint8_t* data, size_t size) {
  uint32_t crc = ~value;
  for (; size >= 8; data += 8, size -= 8) {
    uint32_t low = crc ^ (data[0] | data[1] << 8 | data[2] << 16 | static_cast<uint32_t>(data[3]) << 24);
    crc = kTable[7][low & 255] ^ kTable[6][(low >> 8) & 255] ^ kTable[5][(low >> 16) & 255] ^ kTable[4][low >> 24] ^
          kTable[3][data[4]] ^ kTable[2][data[5]] ^ kTable[1][data[6]] ^ kTable[0][data[7]];
  }
  for (; size > 0; ++data, --size) crc = (crc >> 8) ^ kTable[0][(crc ^ *data) & 255];
  return ~crc;
}

}  // namespace tfr
