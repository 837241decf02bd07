// The values of some fields of messages of any type, each field by itself.
#pragma once

#include <map>
#include <vector>

#include "fault.h"

namespace tfr {

// How a field is read. `type` is its wire type, and of the elements where they are packed.
struct FieldForm {
  uint32_t number;
  uint32_t type;
  bool repeated;
  bool wanted;  // else its values are skipped
  int oneof;    // the fields of one number exclude each other in a message; -1: none
  bool all;     // all values of a field that is not repeated are kept
};

// For each value, in order: the row of its message, and the number (as 64 bits), or the start and size of its content.
// A field that is not repeated has a single value for each row, the last; but content keeps all values, as protobuf
// merges messages.
struct FieldValues {
  std::vector<int32_t> rows;
  std::vector<int64_t> values, lengths;
};

struct MessageFields {
  std::vector<FieldValues> fields;
  std::map<uint32_t, int64_t> unknown;  // how many fields of other numbers, or of another wire type, there are
  Fault fault;                          // of the first message that is not valid; `record` is its index
};

// The messages at `starts` in `data`; successive messages with the same row are parts of one message.
MessageFields find_fields(const u8* data, const int64_t* starts, const int64_t* lengths, const int32_t* rows,
                          size_t count, const std::vector<FieldForm>& forms);

}  // namespace tfr
