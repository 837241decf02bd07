// Which CPU-specific code may be used: TFRECORD_IO_PORTABLE=1 in the environment turns off all of it, TFRECORD_IO_PORTABLE=avx2
// what goes beyond AVX2.
#pragma once

#include <cstdlib>
#include <cstring>

namespace tfr {

inline bool use_avx512() { return std::getenv("TFRECORD_IO_PORTABLE") == nullptr; }

inline bool use_fast_paths() { return use_avx512() || std::strcmp(std::getenv("TFRECORD_IO_PORTABLE"), "avx2") == 0; }

}  // namespace tfr
