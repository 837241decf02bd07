// Finding the way back into a file of records from any byte of it.
#pragma once

#include "frame.h"

namespace tfr {

// The first byte from `begin` on at which a record's header stands: a length up to `max_record_bytes` and the right CRC
// of it. -1: none whose twelve bytes are all there.
int64_t find_header(const u8* data, size_t size, size_t begin, int64_t max_record_bytes);

}  // namespace tfr
