// Whether CPU-specific code may be used: TFRECORD_IO_PORTABLE=1 in the environment turns it off.
#pragma once

#include <cstdlib>

namespace tfr {

inline bool use_fast_paths() { return std::getenv("TFRECORD_IO_PORTABLE") == nullptr; }

}  // namespace tfr
