// One chain of ARMv8 CRC32C instructions.
#include "crc32c.h"

#if defined(__aarch64__) && defined(__linux__)

#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "wire.h"

namespace tfr {
namespace {

__attribute__((target("+crc"))) uint32_t armv8(uint32_t value, const uint8_t* data, size_t size) {
  uint32_t crc = ~value;
  for (; size >= 8; data += 8, size -= 8) crc = __crc32cd(crc, load64(data));
  for (; size > 0; ++data, --size) crc = __crc32cb(crc, *data);
  return ~crc;
}

}  // namespace

Crc32cFunction crc32c_arm() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) ? armv8 : nullptr; }

}  // namespace tfr

#else

namespace tfr {
Crc32cFunction crc32c_arm() { return nullptr; }
}  // namespace tfr

#endif
