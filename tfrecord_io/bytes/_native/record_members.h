// The length-delimited fields of messages whose fields are messages, found without parsing what is in them.
#pragma once

#include <vector>

#include "fault.h"

namespace tfr {

// For each field: its number, the index of its message, and the start and size of its content.
struct Members {
  std::vector<int64_t> fields, records, starts, lengths;
  Fault fault;  // of the first message that is not valid
};

// The fields with the numbers 1 to `most` of the messages at `starts` in `data`. Others are skipped, as they are
// unknown.
Members find_members(const u8* data, const int64_t* starts, const int64_t* lengths, size_t count, uint32_t most);

}  // namespace tfr
