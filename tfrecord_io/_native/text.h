// What counts as UTF-8 and as text.
#pragma once

#include <cstddef>

#include "fault.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tfr {

// Well-formed UTF-8 (Unicode 15, table 3-7).
bool is_utf8(const u8* data, size_t size);

// UTF-8 without characters of category Cc (U+0000–1F, 7F–9F) but \t, \n and \r.
bool is_text(const u8* data, size_t size);

// Surely text: at most 16 bytes of printable ASCII. 16 bytes must be readable.
inline bool is_short_ascii([[maybe_unused]] const u8* data, [[maybe_unused]] size_t size) {
#if defined(__SSE2__)
  __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
  __m128i printable = _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8(0x1f)), _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x7f)));
  return size <= 16 && (~_mm_movemask_epi8(printable) & ((1 << size) - 1)) == 0;
#else
  return false;
#endif
}

}  // namespace tfr
