// The fast path for entries in the usual form, in any order. Those whose bytes match the shape that their name had
// before need no parsing and no branch on lengths; the others, longer or lists, are parsed.
#pragma once

#include <vector>

#include "names.h"
#include "varint.h"

namespace tfr {

// A map entry in the usual form: key, then value, nothing else.
struct FastEntry {
  const u8* key = nullptr;
  size_t key_size = 0;
  const u8* value = nullptr;
  const u8* end = nullptr;
};

inline bool read_entry(const u8* p, const u8* end, FastEntry& entry) {
  WireError error;
  size_t size = 0;
  if (*p != make_tag(1, kLen) || (p = read_size(p + 1, end, &size, error)) == nullptr) return false;
  entry.end = p + size;
  if (size == 0 || *p != make_tag(1, kLen) || (p = read_size(p + 1, entry.end, &entry.key_size, error)) == nullptr)
    return false;
  entry.key = p;
  p += entry.key_size;
  if (p == entry.end || *p != make_tag(2, kLen)) return false;
  entry.value = read_rest(p + 1, entry.end);
  return entry.value != nullptr;
}

// Looks up the name of an entry and marks it as met; nullptr if it is unknown. `full`: the record has a name twice.
inline Name* look_up(Names& names, const FastEntry& entry, bool* full) {
  Name* name = *names.expected();
  if (name == nullptr || !name->is(entry.key, entry.key_size)) name = names.find(entry.key, entry.key_size);
  *full = name != nullptr && !names.has_room();
  if (name != nullptr && !*full) names.meet(name);
  return name;
}

// Appends the entry at p, whatever its length, to row `row`, and marks its name as met. Returns the position after the
// entry; p if the name is unknown; nullptr if the slow path must take the record.
const u8* append_usual(Names& names, const u8* p, const u8* end, int64_t row);

// Position and limits of a run of records.
struct Run {
  Names& names;
  const u8* limit;  // entries must start before it: Shape::kReach bytes are readable from there
  bool check_crc;
  int64_t max_record_bytes;
  int64_t records_left;
  int64_t bytes_left;              // payload bytes for which the batch has room
  int64_t row;                     // row of the next record
  int64_t records = 0;             // records decoded
  Arena* arena;                    // its count of decoded payload bytes is updated
  std::vector<uint32_t>* lengths;  // gets the payload bytes of each record, unless it is null
};

// Decodes records from [p, end) as long as all of their entries have the usual form and known names. Returns the
// position after the last one; the record there has changed nothing.
using RunRecords = const u8* (*)(Run& run, const u8* p, const u8* end);

// Appends the entries from p on to row `row`, adding their names to those met; an entry starts before `limit` and ends
// by `end`. Returns the position after the last entry appended, or nullptr as append_usual().
using RunEntries = const u8* (*)(Names& names, const u8* p, const u8* limit, const u8* end, int64_t row);

struct Runs {
  RunRecords records;
  RunEntries entries;
};

extern const Runs runs;     // the fastest implementation this CPU supports
const Runs* runs_x86();     // nullptr if the CPU lacks AVX2, BMI2 or SSE4.2
const Runs* runs_avx512();  // nullptr if it lacks AVX-512 BW and VL too
const Runs* runs_arm();     // nullptr if this is not a 64-bit ARM

}  // namespace tfr
