// One column being filled: Arrow's layout, decided by what comes (scalar until a row has other than one value).
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <string>

#include "buffer.h"
#include "fault.h"
#include "wire.h"

namespace tfr {

// The numbers are those of schema/kinds.py.
enum class Kind : int { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };
enum class Layout : int { kAny = 0, kNull = 1, kScalar = 2, kList = 3 };
enum class Text : int { kNo = 0, kTrack = 1, kUtf8 = 2, kStrict = 3 };

struct ColumnPlan {
  std::string name;
  Kind kind = Kind::kNone;
  Layout layout = Layout::kAny;
  Text text = Text::kTrack;
  bool required = false;
  bool steps = false;
};

class Column {
 public:
  explicit Column(const ColumnPlan& plan);

  // May a row of this kind be appended?
  bool accepts(Kind k) const {
    if (kind == Kind::kNone) return plan_layout != Layout::kNull && (plan_kind == Kind::kNone || plan_kind == k);
    return kind == k;
  }
  // Fixes the kind at its first row.
  void start(Kind k);

  // Brings the column to `row` rows by nulls.
  void fill_nulls(int64_t row);

  // Scalar rows, for a column of the kind with layout kScalar and `rows` rows.
  void append_int64(int64_t value) {
    int64_t row = begin_scalar(8);
    values.as<int64_t>()[row] = value;
  }
  void append_float(const u8* bits) {
    int64_t row = begin_scalar(4);
    std::memcpy(values.as<u8>() + row * 4, bits, 4);
  }
  void append_bytes(const u8* data, size_t size) {
    append_value(data, size);
    int64_t row = rows++;
    if (has_validity) set_valid(row);
  }

  // The same, where 16 bytes are readable at `data` though it may be shorter.
  void append_short_bytes(const u8* data, size_t size) {
    value_offsets.reserve(static_cast<size_t>(value_count + 2) * 4, static_cast<size_t>(value_count + 1) * 4);
    values.reserve(static_cast<size_t>(data_bytes) + size + 16, static_cast<size_t>(data_bytes));
    u8* to = values.as<u8>() + data_bytes;
    std::memcpy(to, data, 16);
    if (size > 16) std::memcpy(to + 16, data + 16, size - 16);
    data_bytes += static_cast<int64_t>(size);
    value_offsets.as<int32_t>()[++value_count] = static_cast<int32_t>(data_bytes);
    int64_t row = rows++;
    if (has_validity) set_valid(row);
  }

  // List rows: reserve room behind `value_count`, write there, then close the row.
  int64_t* room_int64(size_t count) {
    values.reserve((static_cast<size_t>(value_count) + count) * 8, static_cast<size_t>(value_count) * 8);
    return values.as<int64_t>() + value_count;
  }
  u8* room_float(size_t count) {
    values.reserve((static_cast<size_t>(value_count) + count) * 4, static_cast<size_t>(value_count) * 4);
    return values.as<u8>() + value_count * 4;
  }
  // One bytes value behind the others (a scalar row's slot or a list's item).
  void append_value(const u8* data, size_t size) {
    value_offsets.reserve(static_cast<size_t>(value_count + 2) * 4, static_cast<size_t>(value_count + 1) * 4);
    values.reserve(static_cast<size_t>(data_bytes) + size, static_cast<size_t>(data_bytes));
    copy_bytes(values.as<u8>() + data_bytes, data, size);
    data_bytes += static_cast<int64_t>(size);
    value_offsets.as<int32_t>()[++value_count] = static_cast<int32_t>(data_bytes);
  }
  void close_list_row();

  // From scalar to list, on the way: null slots are compacted away.
  void become_list();
  // Takes back the rows from `row` on, and what they said.
  void truncate(int64_t row);
  // The layout that was promised (or found), then memory no larger than needed.
  void finish(int64_t total_rows);
  // Empty again; the next batch starts with the room that this one took.
  void reset();

  int64_t scalar_start(int64_t row) const { return value_offsets.as<int32_t>()[row]; }

  // The plan.
  Kind plan_kind;
  Layout plan_layout;
  Text text;
  bool required;

  // The rows. For kBytes `value_count` counts slots of value_offsets, else items of values; scalar: = rows.
  Kind kind = Kind::kNone;
  Layout layout = Layout::kAny;
  bool has_validity = false;
  int64_t rows = 0;
  int64_t null_count = 0;
  int64_t value_count = 0;
  int64_t data_bytes = 0;
  int64_t first_row = -1;
  int64_t list_row = -1;
  int64_t binary_row = -1;
  Buffer validity, offsets, value_offsets, values;
  std::unique_ptr<Column> steps;  // of a feature list: one row a step; `offsets` count them

 private:
  int64_t begin_scalar(size_t width) {
    int64_t row = rows++;
    value_count = rows;
    values.reserve(static_cast<size_t>(rows) * width, static_cast<size_t>(row) * width);
    if (has_validity) set_valid(row);
    return row;
  }
  void set_valid(int64_t row) {
    size_t byte = static_cast<size_t>(row >> 3);
    validity.reserve(byte + 1, byte);
    u8* bits = validity.as<u8>() + byte;
    if ((row & 7) == 0) *bits = 0;
    *bits |= static_cast<u8>(1u << (row & 7));
  }
  void make_validity();
  void append_null_slots(int64_t count);
  void drop_kind();
  void become_scalar();
  size_t width() const { return kind == Kind::kInt64 ? 8 : kind == Kind::kFloat ? 4 : 1; }

  size_t last_values_ = 0, last_offsets_ = 0, last_value_offsets_ = 0;  // bytes of the batch before
};

}  // namespace tfr
