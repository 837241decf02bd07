// Which CPU-specific code may be used: TFRECORD_IO_PORTABLE=1 in the environment turns off all of it,
// TFRECORD_IO_PORTABLE=avx2 what goes beyond AVX2.
#pragma once

#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

namespace tfr {

inline bool use_avx512() { return std::getenv("TFRECORD_IO_PORTABLE") == nullptr; }

inline bool use_fast_paths() { return use_avx512() || std::strcmp(std::getenv("TFRECORD_IO_PORTABLE"), "avx2") == 0; }

#if defined(__x86_64__) && defined(__GNUC__)
// Before version 15 clang's __builtin_cpu_supports has no "lzcnt".
inline bool has_lzcnt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & bit_LZCNT) != 0;
}
#endif

}  // namespace tfr
