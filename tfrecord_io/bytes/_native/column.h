// One column being filled, in Arrow's layout: scalar until a row has a number of values other than one, then list.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <string>

#include "buffer.h"
#include "fault.h"
#include "text.h"
#include "wire.h"

namespace tfr {

// Same numbers as bytes/format/feature_types.py and bytes/engine/contract.py.
enum class Kind : int { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };
enum class Layout : int { kAny = 0, kNull = 1, kScalar = 2, kList = 3 };
enum class Text : int { kNo = 0, kTrack = 1, kUtf8 = 2, kStrict = 3 };

// A kind, and whether its values are in lists, as one number; 0 without a kind.
constexpr u8 kListForm = 4;
constexpr u8 form_of(Kind kind, bool is_list) {
  return static_cast<u8>(static_cast<int>(kind) | (is_list && kind != Kind::kNone ? kListForm : 0));
}

struct ColumnPlan {
  std::string name;
  Kind kind = Kind::kNone;
  Layout layout = Layout::kAny;
  Text text = Text::kTrack;
  bool required = false;
  bool steps = false;
  bool splits = false;  // see Column::other
  bool typed_empties = false;
};

class alignas(64) Column {
 public:
  // Buffers grow in `arena`, which outlives the column.
  Column(const ColumnPlan& plan, Arena* arena);

  // True if a row of this kind may be appended.
  bool accepts(Kind k) const {
    if (kind == Kind::kNone) return plan_layout != Layout::kNull && (plan_kind == Kind::kNone || plan_kind == k);
    return kind == k;
  }
  // True if rows of kinds that the column does not accept go to columns `other`.
  bool has_others() const { return splits && plan_layout != Layout::kNull; }
  // True if a row of this kind, or an `empty` list of it, is appended here or in one of the columns `other`.
  bool fits(Kind k, bool empty) const {
    if (accepts(k) || has_others()) return true;
    return plan_layout != Layout::kNull && !typed_empties && (empty || is_open());
  }
  // Where a row of kind `*k`, or an `empty` list of it, is appended: here, or in one of the columns `other`, made when
  // it is needed; nullptr if it does not fit. An empty list is one of this column, whose kind `*k` becomes. After a row
  // of another column, fill_nulls() makes it null here.
  Column* column_of(Kind* k, bool empty);
  // True if all rows are empty lists: the kind is then the kind of the first value to come.
  bool is_open() const { return kind != Kind::kNone && plan_kind == Kind::kNone && !has_value(); }
  // True if a row has a value of this kind.
  bool has_value() const { return layout == Layout::kList ? value_count > 0 : first_row >= 0; }
  // True if a row has a value, of any kind.
  bool has_values() const { return first_row >= 0 || (other && other->has_values()); }

  // Sets the kind, at the first row that has one.
  void start(Kind k);

  // Appends nulls until the column has `row` rows.
  void fill_nulls(int64_t row) {
    if (row > rows) add_nulls(row);
  }

  // Append a value as row `row`, which the column does not have yet, to a column of this kind with layout kScalar. The
  // rows before it that the column lacks become null.
  void append_int64(int64_t row, int64_t value) {
    begin_scalar(row);
    values.as<int64_t>()[row] = value;
  }
  void append_float(int64_t row, const u8* bits) {
    begin_scalar(row);
    std::memcpy(values.as<u8>() + row * 4, bits, 4);
  }
  // Either of them, without a branch: the bits of the float, or the integer.
  void append_number(int64_t row, uint64_t bits, Kind k) {
    begin_scalar(row);
    std::memcpy(values.as<u8>() + (k == Kind::kFloat ? row * 4 : row * 8), &bits,
                8);  // the next float is zero until it is set
  }
  // Bytes: reserve room for a value and kCopySlack, copy the value there, then append it, to a scalar column or to the
  // list that is open.
  u8* room_bytes(size_t size) {
    values.reserve(static_cast<size_t>(data_bytes) + size + kCopySlack, static_cast<size_t>(data_bytes));
    return values.as<u8>() + data_bytes;
  }
  void append_copied(int64_t row, size_t size) {
    data_before_ = data_bytes;
    data_bytes += static_cast<int64_t>(size);
    begin_scalar(row);
    value_offsets.as<int32_t>()[row + 1] = static_cast<int32_t>(data_bytes);
  }
  void append_copied_value(size_t size) {
    value_offsets.reserve(static_cast<size_t>(value_count + 2) * 4, static_cast<size_t>(value_count + 1) * 4);
    data_bytes += static_cast<int64_t>(size);
    value_offsets.as<int32_t>()[++value_count] = static_cast<int32_t>(data_bytes);
  }
  void append_bytes(int64_t row, const u8* data, size_t size) {
    copy_bytes(room_bytes(size), data, size);
    append_copied(row, size);
  }

  // List rows: reserve room after `value_count` values, write there, add to value_count, then close the row.
  int64_t* room_int64(size_t count) {
    values.reserve((static_cast<size_t>(value_count) + count) * 8, static_cast<size_t>(value_count) * 8);
    return values.as<int64_t>() + value_count;
  }
  u8* room_float(size_t count) {
    values.reserve((static_cast<size_t>(value_count) + count) * 4, static_cast<size_t>(value_count) * 4);
    return values.as<u8>() + value_count * 4;
  }
  // Appends one bytes value without closing the row.
  void append_value(const u8* data, size_t size) {
    copy_bytes(room_bytes(size), data, size);
    append_copied_value(size);
  }
  void close_list_row() {
    int64_t row = rows++;
    offsets.reserve(static_cast<size_t>(rows + 1) * 4, static_cast<size_t>(rows) * 4);
    int64_t count = steps ? steps->rows : value_count;
    if (list_row < 0 && count - offsets.as<int32_t>()[row] != 1) list_row = row;
    offsets.as<int32_t>()[rows] = static_cast<int32_t>(count);
    if (has_validity) set_valid(row);
  }

  // Converts the rows so far from scalar to list, removing null slots.
  void become_list();
  // Removes the rows from `row` on, and what was learned from them.
  void truncate(int64_t row);
  // Fills up with nulls and applies the planned (or observed) layout.
  void complete(int64_t total_rows);
  // Completes the column as complete() does, and trims its buffers, which may outlive it.
  void finish(int64_t total_rows);
  // Empties the column.
  void reset();
  // Empties the column, whose memory is used again.
  void clear();

  // True if the column is planned as lists, or a row has not exactly one value.
  bool has_lists() const { return plan_layout == Layout::kList || list_row >= 0; }

  // True if rows of a completed column with the same plan can be appended without changes to the rows so far.
  bool can_append(const Column& part) const;
  // Appends the rows [begin, end) of such a column, from `row` on. Nulls may be left to fill_nulls().
  void append(const Column& part, int64_t begin, int64_t end, int64_t row);

  // The rows. What appending a scalar needs comes first, in two cache lines.
  int64_t rows = 0;

 private:
  // Scalar rows that fit without growing. In a column with validity, their bits, numbers and ends are zero from `rows`
  // on, so that a null needs no work; the end of a null that was skipped stays zero until complete_ends().
  int64_t room_ = 0;
  int64_t data_before_ = 0;  // data_bytes before the last scalar value

 public:
  int64_t data_bytes = 0;
  bool has_validity = false;
  u8 form = 0;  // what the next row has if it is like the last one: see form_of()
  Buffer validity, values, value_offsets, offsets;

  // The plan.
  Kind plan_kind;
  Layout plan_layout;
  Text text;
  bool required;

  // More of the rows. `value_count` counts the values of a list column; a scalar column has one per row, set by
  // finish().
  Kind kind = Kind::kNone;
  Layout layout = Layout::kAny;
  int64_t null_count = 0;  // set by finish()
  int64_t value_count = 0;
  int64_t first_row = -1;
  int64_t list_row = -1;
  int64_t binary_row = -1;
  std::unique_ptr<Column> steps;  // of a feature list: one row per step, `offsets` index them
  // If the plan splits: the rows whose values are of another kind, which are null here; it may have another one in
  // turn.
  std::unique_ptr<Column> other;
  bool splits;
  bool typed_empties;  // an empty list of another kind does not fit

 private:
  void begin_scalar(int64_t row) {
    if (row >= room_ || (row != rows && !has_validity)) [[unlikely]]
      open_scalar(row);
    if (has_validity) validity.as<u8>()[row >> 3] |= static_cast<u8>(1u << (row & 7));
    rows = row + 1;
  }
  void append_scalars(const Column& part, int64_t begin, int64_t end, int64_t row);
  void append_lists(const Column& part, int64_t begin, int64_t end, int64_t row);
  void append_data(const Column& part, int64_t begin, int64_t have, int64_t count);
  void add_nulls(int64_t row);
  void open_scalar(int64_t row);
  void grow_scalar(int64_t row);
  void complete_ends();
  // After a change of kind or layout.
  void update_form() { form = form_of(kind, layout == Layout::kList); }
  void set_valid(int64_t row) {  // of a list column
    size_t byte = static_cast<size_t>(row >> 3);
    validity.reserve(byte + 1, byte);
    u8* bits = validity.as<u8>() + byte;
    if ((row & 7) == 0) *bits = 0;
    *bits |= static_cast<u8>(1u << (row & 7));
  }
  void make_validity();
  void start_with_nulls();
  void truncate_scalars(int64_t row);
  void drop_kind();
  void change_kind(Kind k);
  void become_scalar();
  void trim();
  size_t width() const { return kind == Kind::kInt64 ? 8 : kind == Kind::kFloat ? 4 : 1; }

  Kind first_kind_ = Kind::kNone;  // of the first row
  bool has_odd_empties_ = false;   // some list was empty and of another kind
  Arena* arena_;
};

}  // namespace tfr
