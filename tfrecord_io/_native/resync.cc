#include "resync.h"

namespace tfr {

int64_t find_header(const u8* data, size_t size, size_t begin, int64_t max_record_bytes) {
  uint64_t limit = static_cast<uint64_t>(max_record_bytes);
  for (size_t at = begin; at + kHeaderBytes <= size; ++at) {
    if (load64(data + at) > limit) continue;  // rejects nearly every offset of most files without a CRC
    // For eight bytes the portable code is the fastest: no call through a pointer, no vector setup.
    if (load32(data + at + 8) == mask_crc(crc32c_portable(0, data + at, 8))) return static_cast<int64_t>(at);
  }
  return -1;
}

}  // namespace tfr
