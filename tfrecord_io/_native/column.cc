#include "column.h"

#include <algorithm>

namespace tfr {
namespace {

size_t bitmap_bytes(int64_t rows) { return static_cast<size_t>((rows + 7) / 8); }

bool is_valid(const Column& column, int64_t row) {
  return !column.has_validity || (column.validity.as<u8>()[row >> 3] >> (row & 7) & 1);
}

}  // namespace

Column::Column(const ColumnPlan& plan, Arena* arena)
    : plan_kind(plan.kind), plan_layout(plan.layout), text(plan.text), required(plan.required), arena_(arena) {
  if (plan.steps) {
    ColumnPlan step = plan;
    step.steps = false;
    step.required = false;
    steps = std::make_unique<Column>(step, arena);
  }
  reset();
}

void Column::reset() {
  kind = Kind::kNone;
  has_validity = false;
  rows = null_count = value_count = data_bytes = 0;
  first_row = list_row = binary_row = -1;
  layout = steps ? Layout::kList : plan_layout == Layout::kList ? Layout::kList : Layout::kScalar;
  validity = Buffer(arena_);
  offsets = Buffer(arena_);
  value_offsets = Buffer(arena_);
  values = Buffer(arena_);
  room_ = 0;
  update_scalar_kind();
  if (steps) steps->reset();
  if (layout == Layout::kList) {
    offsets.reserve(4, 0);
    offsets.as<int32_t>()[0] = 0;
  }
}

void Column::start(Kind k) {
  kind = k;
  first_row = rows;
  if (k == Kind::kBytes) {
    value_offsets.reserve(4, 0);
    value_offsets.as<int32_t>()[0] = 0;
  }
  if (layout == Layout::kScalar) append_null_slots(rows, 0);  // the nulls before the first value
  room_ = 0;
  update_scalar_kind();
}

void Column::grow_scalar() {
  size_t old = static_cast<size_t>(rows), need = old + 1;
  if (kind == Kind::kBytes) {
    value_offsets.reserve((need + 1) * 4, (old + 1) * 4);
    room_ = static_cast<int64_t>(value_offsets.capacity() / 4) - 1;
  } else {
    values.reserve(need * width(), old * width());
    room_ = static_cast<int64_t>(values.capacity() / width());
  }
  if (!has_validity) return;
  validity.reserve(bitmap_bytes(rows + 1), bitmap_bytes(rows));
  room_ = std::min(room_, static_cast<int64_t>(validity.capacity()) * 8);
}

void Column::make_validity() {
  size_t whole = bitmap_bytes(rows);
  validity.reserve(whole + 1, 0);
  if (whole != 0) std::memset(validity.as<u8>(), 0xff, whole);
  if (rows & 7) validity.as<u8>()[whole - 1] = static_cast<u8>((1u << (rows & 7)) - 1);
  has_validity = true;
  room_ = 0;
}

void Column::append_null_slots(int64_t count, int64_t behind) {
  size_t old = static_cast<size_t>(behind), extra = static_cast<size_t>(count);
  if (kind == Kind::kBytes) {
    value_offsets.reserve((old + extra + 1) * 4, (old + 1) * 4);
    for (size_t i = 1; i <= extra; ++i) value_offsets.as<int32_t>()[old + i] = static_cast<int32_t>(data_bytes);
  } else {
    values.reserve((old + extra) * width(), old * width());
    if (extra != 0) std::memset(values.as<u8>() + old * width(), 0, extra * width());
  }
}

void Column::fill_nulls(int64_t row) {
  int64_t count = row - rows;
  if (count <= 0) return;
  if (!has_validity) make_validity();
  size_t have = bitmap_bytes(rows), need = bitmap_bytes(row);
  if (need > have) {
    validity.reserve(need, have);
    std::memset(validity.as<u8>() + have, 0, need - have);
  }
  if (layout == Layout::kList) {
    offsets.reserve(static_cast<size_t>(row + 1) * 4, static_cast<size_t>(rows + 1) * 4);
    int32_t at = offsets.as<int32_t>()[rows];
    for (int64_t i = rows + 1; i <= row; ++i) offsets.as<int32_t>()[i] = at;
  } else if (kind != Kind::kNone) {
    append_null_slots(count, rows);
  }
  null_count += count;
  rows = row;
}

void Column::close_list_row() {
  int64_t row = rows++;
  offsets.reserve(static_cast<size_t>(rows + 1) * 4, static_cast<size_t>(rows) * 4);
  int64_t count = steps ? steps->rows : value_count;
  if (list_row < 0 && count - offsets.as<int32_t>()[row] != 1) list_row = row;
  offsets.as<int32_t>()[rows] = static_cast<int32_t>(count);
  if (has_validity) set_valid(row);
}

void Column::become_list() {
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
  update_scalar_kind();
}

// Back from list to scalar, if every row has one value: the rows that had more or fewer were removed again.
void Column::become_scalar() {
  int64_t source = value_count;
  if (kind == Kind::kBytes) value_offsets.reserve(static_cast<size_t>(rows + 1) * 4, static_cast<size_t>(value_count + 1) * 4);
  if (kind != Kind::kBytes) values.reserve(static_cast<size_t>(rows) * width(), static_cast<size_t>(value_count) * width());
  if (kind == Kind::kBytes) value_offsets.as<int32_t>()[rows] = static_cast<int32_t>(data_bytes);
  for (int64_t row = rows - 1; row >= 0; --row) {
    bool valid = is_valid(*this, row);
    if (valid) --source;
    if (kind == Kind::kInt64) values.as<int64_t>()[row] = valid ? values.as<int64_t>()[source] : 0;
    if (kind == Kind::kFloat) values.as<uint32_t>()[row] = valid ? values.as<uint32_t>()[source] : 0;
    if (kind == Kind::kBytes) value_offsets.as<int32_t>()[row] = valid ? value_offsets.as<int32_t>()[source] : value_offsets.as<int32_t>()[row + 1];
  }
  layout = Layout::kScalar;
  update_scalar_kind();
}

void Column::drop_kind() {
  kind = Kind::kNone;
  first_row = -1;
  value_count = data_bytes = 0;
  if (plan_layout != Layout::kList && !steps) layout = Layout::kScalar;
  room_ = 0;
  update_scalar_kind();
}

void Column::truncate(int64_t row) {
  if (row > rows) row = rows;  // a row that was started but not closed is removed too
  if (first_row >= row && !steps) drop_kind();
  if (list_row >= row) list_row = -1;
  if (binary_row >= row) binary_row = -1;
  for (int64_t i = row; has_validity && i < rows; ++i) {
    u8& bits = validity.as<u8>()[i >> 3];
    if (!(bits >> (i & 7) & 1)) --null_count;
    bits &= static_cast<u8>(~(1u << (i & 7)));
  }
  if (layout == Layout::kList) {
    int64_t kept = offsets.capacity() == 0 ? 0 : offsets.as<int32_t>()[row];
    if (steps) {
      steps->truncate(kept);
      if (first_row >= row) first_row = -1;
    } else {
      value_count = kept;
    }
  }
  if (kind == Kind::kBytes) data_bytes = value_offsets.as<int32_t>()[layout == Layout::kList ? value_count : row];
  rows = row;
}

void Column::finish(int64_t total_rows) {
  fill_nulls(total_rows);
  if (steps) {
    steps->finish(steps->rows);
    kind = steps->kind;
  } else if (kind == Kind::kNone) {
    if (plan_layout == Layout::kAny || plan_layout == Layout::kNull) {
      layout = Layout::kNull;
    } else if (plan_kind != Kind::kNone) {  // all null, in the planned layout
      start(plan_kind);
      first_row = -1;
    }
  } else if (plan_layout == Layout::kAny && layout == Layout::kList && list_row < 0) {
    become_scalar();
  }
  if (layout == Layout::kScalar) value_count = rows;
  size_t value_bytes = kind == Kind::kBytes ? static_cast<size_t>(data_bytes) : static_cast<size_t>(value_count) * width();
  offsets.trim(layout == Layout::kList ? static_cast<size_t>(rows + 1) * 4 : 0);
  value_offsets.trim(kind == Kind::kBytes ? static_cast<size_t>(value_count + 1) * 4 : 0);
  values.trim(kind == Kind::kNone ? 0 : value_bytes);
  validity.trim(bitmap_bytes(rows));
}

}  // namespace tfr
