// Decodes the records of an open file window by window, without a question to the caller in between.
#pragma once

#include "decoder.h"

namespace tfr {

struct FileWindows {
  static constexpr size_t kPage = 4096;

  int descriptor;
  int64_t file_bytes;
  u8* memory;  // of the windows
  size_t room;
  size_t window_bytes;
  int64_t max_record_bytes;
  int64_t most_record_bytes;  // a larger frame is left to the caller
  int64_t kept_from = -1;     // the bytes from here on stay in memory; −1: each window replaces the last one

  // Bytes [begin, end) of the file; null if they cannot be read.
  const u8* read(int64_t begin, int64_t end) const;
  // Where the bytes for which there is memory end, if those from `begin` on are read.
  int64_t end_of_room(int64_t begin) const {
    int64_t first = kept_from < 0 ? begin : kept_from;
    return first + static_cast<int64_t>(room) - first % static_cast<int64_t>(kPage);
  }
};

// Decodes the records that begin in [begin, end), the first at `begin`, and returns the number of their bytes. The
// number is smaller where feed() stops (a further call with the following bytes stops again), where the data cannot be
// read, or where the memory is full of kept results.
int64_t feed_file(Decoder& decoder, const FileWindows& windows, int64_t begin, int64_t end, int64_t max_records,
                  int64_t max_bytes);

}  // namespace tfr
