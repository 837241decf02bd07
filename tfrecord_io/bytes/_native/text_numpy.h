// Text as an array of NumPy's StringDType, written by functions of NumPy's C API. Their numbers are part of NumPy 2's
// ABI, so its headers are not needed.
#pragma once

#include "wire.h"

namespace tfr {

constexpr size_t kStringBytes = 16;  // of an item of such an array, on every platform with 64-bit pointers

// Fill `items`, the zeroed items of an array of `dtype`: slot i is text[offsets[i]:offsets[i + 1]], or missing where
// `valid` is false (null: none is). `api` is the table in NumPy's capsule _ARRAY_API. Returns false if there is no
// memory for it.
template <class Offset>
bool fill_strings(void* const* api, const void* dtype, u8* items, size_t count, const bool* valid,
                  const Offset* offsets, const u8* text);

}  // namespace tfr
