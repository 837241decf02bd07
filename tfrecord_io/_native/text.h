// Whether bytes are UTF-8, and whether they are text.
#pragma once

#include <cstddef>

#include "fault.h"

namespace tfr {

// Well-formed UTF-8 (Unicode 15, table 3-7).
bool is_utf8(const u8* data, size_t size);

// UTF-8 without control characters (category Cc: U+0000–1F, 7F–9F) except \t, \n and \r.
bool is_text(const u8* data, size_t size);

}  // namespace tfr
