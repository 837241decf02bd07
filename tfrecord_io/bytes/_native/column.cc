#include "column.h"

#include <algorithm>

namespace tfr {
namespace {

size_t bitmap_bytes(int64_t rows) { return static_cast<size_t>((rows + 7) / 8); }

// How many of the first `count` bits are set; the others of the last byte are not.
int64_t count_bits(const u8* bits, int64_t count) {
  size_t bytes = bitmap_bytes(count), i = 0;
  int64_t total = 0;
  for (; i + 8 <= bytes; i += 8) total += std::popcount(load64(bits + i));
  for (; i < bytes; ++i) total += std::popcount(bits[i]);
  return total;
}

bool is_valid(const Column& column, int64_t row) {
  return !column.has_validity || (column.validity.as<u8>()[row >> 3] >> (row & 7) & 1);
}

}  // namespace

Column::Column(const ColumnPlan& plan, Arena* arena)
    : plan_kind(plan.kind),
      plan_layout(plan.layout),
      text(plan.text),
      required(plan.required),
      splits(plan.splits),
      typed_empties(plan.typed_empties),
      arena_(arena) {
  if (plan.steps) {
    ColumnPlan step = plan;
    step.steps = false;
    step.required = false;
    steps = std::make_unique<Column>(step, arena);
  }
  reset();
}

void Column::reset() {
  validity = Buffer(arena_);
  offsets = Buffer(arena_);
  value_offsets = Buffer(arena_);
  values = Buffer(arena_);
  if (steps) steps->reset();
  if (other) other->reset();
  clear();
}

void Column::clear() {
  kind = first_kind_ = Kind::kNone;
  has_validity = has_odd_empties_ = false;
  rows = null_count = value_count = data_bytes = data_before_ = 0;
  first_row = list_row = binary_row = -1;
  layout = steps ? Layout::kList : plan_layout == Layout::kList ? Layout::kList : Layout::kScalar;
  room_ = 0;
  update_form();
  if (steps) steps->clear();
  if (other) other->clear();
  if (layout == Layout::kList) {
    offsets.reserve(4, 0);
    offsets.as<int32_t>()[0] = 0;
  }
}

Column* Column::column_of(Kind* k, bool empty) {
  if (accepts(*k)) return this;
  if (plan_layout != Layout::kNull && !typed_empties && (empty || is_open())) {
    has_odd_empties_ = true;
    if (!empty) change_kind(*k);
    *k = kind != Kind::kNone ? kind : plan_kind;
    return this;
  }
  if (!has_others()) return nullptr;
  if (!other) {
    ColumnPlan plan;
    plan.kind = *k;
    plan.layout = plan_layout;
    plan.text = text;
    plan.splits = true;
    plan.typed_empties = typed_empties;
    other = std::make_unique<Column>(plan, arena_);
  }
  return other->column_of(k, empty);
}

void Column::start(Kind k) {
  kind = first_kind_ = k;
  first_row = rows;
  if (k == Kind::kBytes) {
    value_offsets.reserve(4, 0);
    value_offsets.as<int32_t>()[0] = 0;
  }
  if (layout == Layout::kScalar) start_with_nulls();
  room_ = 0;
  update_form();
}

// Changes the kind of a column of lists without any value.
void Column::change_kind(Kind k) {
  kind = k;
  if (k == Kind::kBytes) {
    value_offsets.reserve(4, 0);
    value_offsets.as<int32_t>()[0] = 0;
  }
  update_form();
}

void Column::open_scalar(int64_t row) {
  if (row != rows && !has_validity) make_validity();
  if (row >= room_) grow_scalar(row);
}

// Makes room for the rows up to `row`; in a column with validity, for a few more than that, all zero.
void Column::grow_scalar(int64_t row) {
  constexpr int64_t kAhead = 512;
  size_t old = static_cast<size_t>(rows), need = static_cast<size_t>(row) + 1;
  if (kind == Kind::kBytes) {
    value_offsets.reserve((need + 1) * 4, (old + 1) * 4);
    room_ = static_cast<int64_t>(value_offsets.capacity() / 4) - 1;
  } else {
    values.reserve((need + 1) * width(), old * width());
    room_ = static_cast<int64_t>(values.capacity() / width()) - 1;  // floats are stored in pairs
  }
  if (!has_validity) return;
  size_t whole = bitmap_bytes(rows);
  validity.reserve(bitmap_bytes(row + 1), whole);
  room_ = std::min({room_, static_cast<int64_t>(validity.capacity()) * 8, row + kAhead});
  std::memset(validity.as<u8>() + whole, 0, bitmap_bytes(room_) - whole);
  size_t extra = static_cast<size_t>(room_) - old;
  if (kind == Kind::kBytes) {
    std::memset(value_offsets.as<int32_t>() + old + 1, 0, extra * 4);
  } else {
    std::memset(values.as<u8>() + old * width(), 0, extra * width());
  }
}

// Sets the ends of nulls that were skipped: no end is smaller than the one before it.
void Column::complete_ends() {
  if (kind != Kind::kBytes || layout != Layout::kScalar || !has_validity) return;
  int32_t* ends = value_offsets.as<int32_t>() + 1;
  int32_t end = 0;
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {  // of four, the largest is known early
    int32_t a = ends[i], b = std::max(a, ends[i + 1]), c = std::max(b, ends[i + 2]), d = std::max(c, ends[i + 3]);
    ends[i] = std::max(end, a);
    ends[i + 1] = std::max(end, b);
    ends[i + 2] = std::max(end, c);
    ends[i + 3] = end = std::max(end, d);
  }
  for (; i < rows; ++i) ends[i] = end = std::max(end, ends[i]);
}

void Column::make_validity() {
  size_t whole = bitmap_bytes(rows);
  validity.reserve(whole + 1, 0);
  if (whole != 0) std::memset(validity.as<u8>(), 0xff, whole);
  if (rows & 7) validity.as<u8>()[whole - 1] = static_cast<u8>((1u << (rows & 7)) - 1);
  has_validity = true;
  room_ = 0;
}

// The nulls before the first value.
void Column::start_with_nulls() {
  size_t count = static_cast<size_t>(rows);
  if (kind == Kind::kBytes) {
    value_offsets.reserve((count + 1) * 4, 0);
    std::memset(value_offsets.as<u8>(), 0, (count + 1) * 4);
  } else if (count != 0) {
    values.reserve(count * width(), 0);
    std::memset(values.as<u8>(), 0, count * width());
  }
}

void Column::add_nulls(int64_t row) {
  if (!has_validity) make_validity();
  if (layout == Layout::kScalar && kind != Kind::kNone) {
    if (row > room_) grow_scalar(row - 1);
    if (kind == Kind::kBytes)
      std::fill(value_offsets.as<int32_t>() + rows + 1, value_offsets.as<int32_t>() + row + 1,
                static_cast<int32_t>(data_bytes));
    rows = row;
    data_before_ = data_bytes;
    return;
  }
  size_t have = bitmap_bytes(rows), need = bitmap_bytes(row);
  if (need > have) {
    validity.reserve(need, have);
    std::memset(validity.as<u8>() + have, 0, need - have);
  }
  if (layout == Layout::kList) {
    offsets.reserve(static_cast<size_t>(row + 1) * 4, static_cast<size_t>(rows + 1) * 4);
    int32_t* at = offsets.as<int32_t>();
    std::fill(at + rows + 1, at + row + 1, at[rows]);
  }
  rows = row;
}

void Column::become_list() {
  complete_ends();
  Buffer fresh(arena_);
  fresh.reserve(static_cast<size_t>(rows + 1) * 4 + 4096, 0);
  int32_t* at = fresh.as<int32_t>();
  int32_t count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    at[row] = count;
    if (kind == Kind::kNone || !is_valid(*this, row)) continue;
    if (kind == Kind::kInt64) values.as<int64_t>()[count] = values.as<int64_t>()[row];
    if (kind == Kind::kFloat) values.as<uint32_t>()[count] = values.as<uint32_t>()[row];
    if (kind == Kind::kBytes) value_offsets.as<int32_t>()[count] = value_offsets.as<int32_t>()[row];
    ++count;
  }
  at[rows] = count;
  if (kind == Kind::kBytes) value_offsets.as<int32_t>()[count] = static_cast<int32_t>(data_bytes);
  value_count = count;
  offsets = std::move(fresh);
  layout = Layout::kList;
  update_form();
}

// Back from list to scalar, if every row has one value: the rows that had more or fewer were removed again.
void Column::become_scalar() {
  int64_t source = value_count;
  if (kind == Kind::kBytes)
    value_offsets.reserve(static_cast<size_t>(rows + 1) * 4, static_cast<size_t>(value_count + 1) * 4);
  if (kind != Kind::kBytes)
    values.reserve(static_cast<size_t>(rows) * width(), static_cast<size_t>(value_count) * width());
  if (kind == Kind::kBytes) value_offsets.as<int32_t>()[rows] = static_cast<int32_t>(data_bytes);
  for (int64_t row = rows - 1; row >= 0; --row) {
    bool valid = is_valid(*this, row);
    if (valid) --source;
    if (kind == Kind::kInt64) values.as<int64_t>()[row] = valid ? values.as<int64_t>()[source] : 0;
    if (kind == Kind::kFloat) values.as<uint32_t>()[row] = valid ? values.as<uint32_t>()[source] : 0;
    if (kind == Kind::kBytes)
      value_offsets.as<int32_t>()[row] =
          valid ? value_offsets.as<int32_t>()[source] : value_offsets.as<int32_t>()[row + 1];
  }
  layout = Layout::kScalar;
  update_form();
}

void Column::drop_kind() {
  kind = Kind::kNone;
  first_row = -1;
  value_count = data_bytes = 0;
  if (plan_layout != Layout::kList && !steps) layout = Layout::kScalar;
  room_ = 0;
  update_form();
}

// Removes the rows from `row` on, which leaves zeros. Of a feature's column that is one value at most.
void Column::truncate_scalars(int64_t row) {
  size_t from = static_cast<size_t>(row), count = static_cast<size_t>(rows - row);
  if (kind != Kind::kBytes) {
    if (count != 0) std::memset(values.as<u8>() + from * width(), 0, count * width());
    return;
  }
  int32_t* ends = value_offsets.as<int32_t>() + from;
  if (count == 1) data_bytes = data_before_;
  if (count > 1) data_bytes = ends[0];  // the steps of a feature list, none of which was skipped
  std::fill(ends + 1, ends + 1 + count, 0);
  ends[0] = static_cast<int32_t>(data_bytes);
}

void Column::truncate(int64_t row) {
  if (other) other->truncate(row);
  if (row > rows) row = rows;  // a row that was started but not closed is removed too
  if (first_row >= row && !steps) drop_kind();
  if (list_row >= row) list_row = -1;
  if (binary_row >= row) binary_row = -1;
  for (int64_t i = row; has_validity && i < rows; ++i) validity.as<u8>()[i >> 3] &= static_cast<u8>(~(1u << (i & 7)));
  if (layout == Layout::kList) {
    int64_t kept = offsets.capacity() == 0 ? 0 : offsets.as<int32_t>()[row];
    if (steps) {
      steps->truncate(kept);
      if (first_row >= row) first_row = -1;
    } else {
      value_count = kept;
      if (kind == Kind::kBytes) data_bytes = value_offsets.as<int32_t>()[kept];
      if (is_open() && kind != first_kind_) change_kind(first_kind_);
    }
  } else if (kind != Kind::kNone) {
    truncate_scalars(row);
  }
  rows = row;
}

void Column::complete(int64_t total_rows) {
  fill_nulls(total_rows);
  if (other) other->complete(total_rows);
  if (steps) {
    steps->complete(steps->rows);
    kind = steps->kind;
  } else if (kind == Kind::kNone) {
    if (plan_layout == Layout::kAny || plan_layout == Layout::kNull) {
      layout = Layout::kNull;
    } else if (plan_kind != Kind::kNone) {  // all null, in the planned layout
      start(plan_kind);
      first_row = -1;
    }
  } else if (layout == Layout::kList && !has_lists()) {
    become_scalar();
  }
  complete_ends();
  null_count = has_validity ? rows - count_bits(validity.as<u8>(), rows) : 0;
  if (layout == Layout::kScalar) value_count = rows;
}

void Column::finish(int64_t total_rows) {
  complete(total_rows);
  trim();
}

void Column::trim() {
  if (steps) steps->trim();
  if (other) other->trim();
  size_t value_bytes =
      kind == Kind::kBytes ? static_cast<size_t>(data_bytes) : static_cast<size_t>(value_count) * width();
  offsets.trim(layout == Layout::kList ? static_cast<size_t>(rows + 1) * 4 : 0);
  value_offsets.trim(kind == Kind::kBytes ? static_cast<size_t>(value_count + 1) * 4 : 0);
  values.trim(kind == Kind::kNone ? 0 : value_bytes);
  validity.trim(bitmap_bytes(rows));
}

}  // namespace tfr
