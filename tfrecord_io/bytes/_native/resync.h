// Finds the next record from any byte of a file, to resynchronize after corruption.
#pragma once

#include "frame.h"

namespace tfr {

// Offset of the first record header at or after `begin`: a length up to `max_record_bytes` with a matching CRC. −1 if
// none is complete.
int64_t find_header(const u8* data, size_t size, size_t begin, int64_t max_record_bytes);

using FindHeader = int64_t (*)(const u8* data, size_t size, size_t begin, uint64_t limit);

FindHeader find_header_x86();  // nullptr if the CPU lacks AVX2 or SSE4.2

}  // namespace tfr
