// One tf.train.Feature into one column. Two ways: the fast one knows the form that every writer uses, the
// exact one knows all that protobuf allows; where the fast one is in doubt it leaves no row and says so.
#pragma once

#include <vector>

#include "column.h"
#include "wire.h"

namespace tfr {

struct Span {
  const u8* begin;
  const u8* end;
};

enum class Fast { kDone, kNothing, kDoubt };  // kNothing: kindless, no row was appended

// May the column have these bytes as a value of row `row`? Notes there that they are no text, where that is asked.
bool text_fits(Column& column, int64_t row, const u8* p, size_t size);

// Appends the Feature as row `row` of `column`.
Fast append_fast(Column& column, int64_t row, const u8* p, const u8* end);

// Walks [p, end) as a Feature as protobuf would. False: malformed, `error` says where.
bool validate_feature(const u8* p, const u8* end, int depth, WireError& error);

// A valid Feature given in pieces (protobuf joins them).
using Pieces = std::vector<Span>;

struct Measure {
  Kind kind = Kind::kNone;
  int64_t count = 0;
  int switches = 0;  // lists before this one were of other kinds, and do not count
};
Measure measure(const Pieces& pieces);

// What the plan of the column says against this Feature; kOk if nothing.
Code judge(const Column& column, const Pieces& pieces, const Measure& found);

// Appends a Feature that judge() accepted.
void append_slow(Column& column, int64_t row, const Pieces& pieces, const Measure& found);

}  // namespace tfr
