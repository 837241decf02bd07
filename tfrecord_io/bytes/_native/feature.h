// Appends one tf.train.Feature to one column. The fast path handles the form that all known writers produce, the slow
// path all forms that protobuf allows; a Feature that the fast path rejects is left to the slow path.
#pragma once

#include <vector>

#include "column.h"
#include "wire.h"

namespace tfr {

struct Span {
  const u8* begin;
  const u8* end;
};

// kOther: done, in a column of another kind. kEmpty: the Feature has no type, no row was appended. kReject: the slow
// path must take the record.
enum class FastResult { kDone, kOther, kEmpty, kReject };

// True if the column may have these bytes as a value of row `row`. With Text::kTrack records the first row that is not
// text.
bool text_fits(Column& column, int64_t row, const u8* p, size_t size);

// Copies a bytes value to the room for it; false if the column may not have it.
inline bool copy_value(Column& column, int64_t row, const u8* p, size_t size) {
  bool checked = column.text != Text::kNo && column.binary_row < 0;
  u8* to = column.room_bytes(size);
  if (checked) return copy_ascii(to, p, size) || text_fits(column, row, p, size);
  copy_bytes(to, p, size);
  return true;
}

// Appends the Feature as row `row` of `column`.
FastResult append_fast(Column& column, int64_t row, const u8* p, const u8* end);

// True if [p, end) is a well-formed Feature, as protobuf would parse it; if not, sets `error`.
bool validate_feature(const u8* p, const u8* end, int depth, WireError& error);

// A valid Feature, possibly in several pieces, which protobuf merges.
using Pieces = std::vector<Span>;

struct Measure {
  Kind kind = Kind::kNone;
  int64_t count = 0;
  int switches = 0;  // changes of kind between lists; only the lists after the last one count
};
Measure measure(const Pieces& pieces);

// Checks the Feature against the column's plan; kOk if it may be appended.
Code check_feature(const Column& column, const Pieces& pieces, const Measure& measured);

// Appends a Feature that check_feature() accepted.
void append_slow(Column& column, int64_t row, const Pieces& pieces, const Measure& measured);

}  // namespace tfr
