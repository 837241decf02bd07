// Records and entries that look as those of the record before did: no parsing, no branch on lengths. What does not look so is
// left to the general way.
#pragma once

#include "names.h"

namespace tfr {

// Where a run of records stands and how far it may go.
struct Run {
  Name** hints;      // names in the order of the record before
  Name** hints_end;
  const u8* limit;   // an entry starts before it: Shape::kReach bytes are readable from there
  bool check_crc;
  int64_t max_record_bytes;
  int64_t records_left;
  int64_t bytes_left;   // payload bytes that the batch may still take
  int64_t row;          // of the next record
  int64_t records = 0;  // taken
  Arena* arena;         // told how many payload bytes are done
};

// Takes whole records from [p, end) as long as all of their entries have the Shapes that the hints have learnt, and
// gives the first byte that was not taken. A record that is not taken left no trace.
using RunRecords = const u8* (*)(Run& run, const u8* p, const u8* end);

// Appends the entries from p on to row `row`. `hint` moves along and stops at `hints_end`; an entry starts before `limit`
// and ends by `end`. Gives the first byte that was not taken.
using RunEntries = const u8* (*)(Name**& hint, Name** hints_end, const u8* p, const u8* limit, const u8* end, int64_t row);

struct Runs {
  RunRecords records;
  RunEntries entries;
};

extern const Runs runs;  // the fastest this machine runs
const Runs* runs_x86();  // nullptr where the machine has no AVX2, BMI2 and SSE4.2

}  // namespace tfr
