// Which CPU-specific code may be used: TFRECORD_IO_PORTABLE=1 in the environment turns off all of it,
// TFRECORD_IO_PORTABLE=avx2 what goes beyond AVX2.
#pragma once

#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// Code for some processors stands behind __x86_64__ and __aarch64__, which GCC and clang define, clang-cl on Windows
// too. The compiler of Visual Studio does not: it compiles no single function for other processors, and gets portable
// code.
namespace tfr {

#if defined(__GNUC__) || defined(__clang__)
// Fetches memory that is needed soon into a far cache. With a side effect: GCC leaves out a loop that does nothing
// else.
inline void prefetch_bytes(const void* at) {
  asm volatile("" : : "r"(at));
  __builtin_prefetch(at, 0, 2);
}
#else
inline void prefetch_bytes(const void*) {}
#endif

inline bool use_avx512() { return std::getenv("TFRECORD_IO_PORTABLE") == nullptr; }

inline bool use_fast_paths() { return use_avx512() || std::strcmp(std::getenv("TFRECORD_IO_PORTABLE"), "avx2") == 0; }

#if defined(__x86_64__)
// Before version 15 clang's __builtin_cpu_supports has no "lzcnt".
inline bool has_lzcnt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & bit_LZCNT) != 0;
}
#endif

}  // namespace tfr
