// Checks of bytes: UTF-8 or not, text or not.
#pragma once

#include <cstddef>

#include "fault.h"

namespace tfr {

// Well-formed UTF-8 (Unicode 15, table 3-7).
bool is_utf8(const u8* data, size_t size);

// UTF-8 without control characters (category Cc: U+0000–1F, 7F–9F) except \t, \n and \r.
bool is_text(const u8* data, size_t size);

constexpr size_t kCopySlack = 128;  // bytes after a copy that may be overwritten

// Copies `size` bytes and checks them in the same pass: true if all are printable ASCII. After false they may still be
// text, and the copy is complete too.
using CopyAscii = bool (*)(u8* to, const u8* from, size_t size);

extern const CopyAscii copy_ascii;  // the fastest implementation this CPU supports

bool copy_ascii_portable(u8* to, const u8* from, size_t size);
CopyAscii copy_ascii_x86();     // nullptr if the CPU lacks AVX2
CopyAscii copy_ascii_avx512();  // nullptr if it lacks AVX-512 BW
CopyAscii copy_ascii_arm();     // nullptr if this is not a 64-bit ARM

}  // namespace tfr
