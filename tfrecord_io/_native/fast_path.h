// The fast path for records and entries whose bytes match the shapes of the previous record: no parsing, no branch on
// lengths. Anything else is left to the general decoder.
#pragma once

#include "names.h"

namespace tfr {

// Position and limits of a run of records.
struct Run {
  Name** hints;      // names in the order of the previous record
  Name** hints_end;
  const u8* limit;   // entries must start before it: Shape::kReach bytes are readable from there
  bool check_crc;
  int64_t max_record_bytes;
  int64_t records_left;
  int64_t bytes_left;   // payload bytes for which the batch has room
  int64_t row;          // row of the next record
  int64_t records = 0;  // records decoded
  Arena* arena;         // its count of decoded payload bytes is updated
};

// Decodes records from [p, end) as long as all of their entries match the Shapes of the hints. Returns the position after
// the last one; the record there has changed nothing.
using RunRecords = const u8* (*)(Run& run, const u8* p, const u8* end);

// Appends the entries from p on to row `row`, advancing `hint` up to `hints_end`; an entry starts before `limit` and ends
// by `end`. Returns the position after the last entry appended.
using RunEntries = const u8* (*)(Name**& hint, Name** hints_end, const u8* p, const u8* limit, const u8* end, int64_t row);

struct Runs {
  RunRecords records;
  RunEntries entries;
};

extern const Runs runs;  // the fastest implementation this CPU supports
const Runs* runs_x86();  // nullptr if the CPU lacks AVX2, BMI2 or SSE4.2

}  // namespace tfr
