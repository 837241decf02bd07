// Bytes copied from extents of a block: payloads without their frames, and payloads of several parts in frames.
#pragma once

#include "buffer.h"
#include "fault.h"

namespace tfr {

// Joins `count` extents of `data`; returns the number of bytes.
size_t join_extents(const u8* data, const int64_t* starts, const int64_t* lengths, size_t count, Buffer& out);

// Puts a frame around each `parts` extents of `data`, which are joined; returns the number of bytes.
size_t frame_extents(const u8* data, const int64_t* starts, const int64_t* lengths, size_t count, size_t parts,
                     Buffer& out);

// Puts a frame around each extent of `data`, and writes the frames to `out` without their first `skip` bytes, as far as
// its `size` allows; returns the number of bytes. The CRCs of payloads are not computed: they are 0.
size_t frame_window(const u8* data, const int64_t* starts, const int64_t* lengths, size_t count, size_t skip, u8* out,
                    size_t size);

}  // namespace tfr
