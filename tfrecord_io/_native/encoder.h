// Encodes columns into framed records: each record's size is computed first, then it is written once.
#pragma once

#include <string>
#include <vector>

#include "buffer.h"
#include "column.h"

namespace tfr {

// One column's buffers, borrowed from the caller; nullptr if absent.
struct Source {
  std::string name;
  Kind kind = Kind::kNone;
  Layout layout = Layout::kNull;
  const u8* validity = nullptr;
  const int64_t* offsets = nullptr;
  const int64_t* value_offsets = nullptr;
  const u8* values = nullptr;
  int steps = -1;  // of a feature list: the index of the Source that holds its steps
};

struct Encoded {
  Buffer buffer;
  size_t size = 0;
  int64_t rows = 0;  // fewer than requested only if the next record would exceed protobuf's limit
};

// `columns`: indices of the Sources that are features; `prefix` is put in front of the first record's message.
Encoded encode(const std::vector<Source>& sources, const std::vector<int>& columns, int64_t begin, int64_t end, const std::string& prefix,
               bool sequence);

}  // namespace tfr
