#include "resync.h"

#include "cpu.h"

namespace tfr {
namespace {

inline uint32_t length_crc(uint64_t length) {
  u8 bytes[8];
  std::memcpy(bytes, &length, 8);
  return crc32c(0, bytes, 8);
}

#include "resync_loop.inc"

FindHeader choose() {
  FindHeader fast = use_fast_paths() ? find_header_x86() : nullptr;
  return fast == nullptr ? find : fast;
}

const FindHeader fastest = choose();

}  // namespace

int64_t find_header(const u8* data, size_t size, size_t begin, int64_t max_record_bytes) {
  return fastest(data, size, begin, static_cast<uint64_t>(max_record_bytes));
}

}  // namespace tfr
