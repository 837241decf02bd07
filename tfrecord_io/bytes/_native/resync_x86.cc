// The search of resync.h with the CRC32 instruction and vectors of AVX2.
#include "resync.h"

#if defined(__x86_64__)

#include <immintrin.h>

// Code from here on is compiled for these instructions, the headers above are not.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,sse4.2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,sse4.2")
#endif

namespace tfr {
namespace {

inline uint32_t length_crc(uint64_t length) { return ~static_cast<uint32_t>(_mm_crc32_u64(0xffffffffu, length)); }

#include "resync_loop.inc"

}  // namespace
}  // namespace tfr

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace tfr {

FindHeader find_header_x86() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("sse4.2") ? find : nullptr;
}

}  // namespace tfr

#else

namespace tfr {
FindHeader find_header_x86() { return nullptr; }
}  // namespace tfr

#endif
