// Whether the paths made for this processor may run: TFRECORD_IO_PORTABLE=1 in the environment turns them off.
#pragma once

#include <cstdlib>

namespace tfr {

inline bool use_fast_paths() { return std::getenv("TFRECORD_IO_PORTABLE") == nullptr; }

}  // namespace tfr
