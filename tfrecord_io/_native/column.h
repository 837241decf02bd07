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
  // Its buffers grow in `arena`, which outlives it.
  Column(const ColumnPlan& plan, Arena* arena);

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
    int64_t row = begin_scalar();
    values.as<int64_t>()[row] = value;
  }
  void append_float(const u8* bits) {
    int64_t row = begin_scalar();
    std::memcpy(values.as<u8>() + row * 4, bits, 4);
  }
  void append_bytes(const u8* data, size_t size) {
    values.reserve(static_cast<size_t>(data_bytes) + size, static_cast<size_t>(data_bytes));
    copy_bytes(values.as<u8>() + data_bytes, data, size);
    end_bytes(size);
  }

  // The same, where 32 bytes are readable at `data` though it may be shorter.
  void append_short_bytes(const u8* data, size_t size) {
    values.reserve(static_cast<size_t>(data_bytes) + size + 32, static_cast<size_t>(data_bytes));
    u8* to = values.as<u8>() + data_bytes;
    std::memcpy(to, data, 32);
    if (size > 32) std::memcpy(to + 32, data + 32, size - 32);
    end_bytes(size);
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
  // Empty again.
  void reset();

  // The plan.
  Kind plan_kind;
  Layout plan_layout;
  Text text;
  bool required;

  // The rows. `value_count` counts the values of a list column; of scalars there is one a row, from finish() on.
  Kind scalar_kind = Kind::kNone;  // the kind while the layout is kScalar
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
  int64_t begin_scalar() {
    if (rows >= room_) grow_scalar();
    int64_t row = rows++;
    if (has_validity) mark_valid(row);
    return row;
  }
  void end_bytes(size_t size) {
    data_bytes += static_cast<int64_t>(size);
    int64_t row = begin_scalar();
    value_offsets.as<int32_t>()[row + 1] = static_cast<int32_t>(data_bytes);
  }
  void grow_scalar();
  // Sets scalar_kind, after a change of kind or layout.
  void settle() { scalar_kind = layout == Layout::kScalar ? kind : Kind::kNone; }
  void mark_valid(int64_t row) {
    u8* bits = validity.as<u8>() + (row >> 3);
    if ((row & 7) == 0) *bits = 0;
    *bits |= static_cast<u8>(1u << (row & 7));
  }
  void set_valid(int64_t row) {
    size_t byte = static_cast<size_t>(row >> 3);
    validity.reserve(byte + 1, byte);
    mark_valid(row);
  }
  void make_validity();
  void append_null_slots(int64_t count, int64_t behind);
  void drop_kind();
  void become_scalar();
  size_t width() const { return kind == Kind::kInt64 ? 8 : kind == Kind::kFloat ? 4 : 1; }

  int64_t room_ = 0;  // scalar rows that fit without growing
  Arena* arena_;
};

}  // namespace tfr
