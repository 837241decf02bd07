#include "feature.h"

#include "text.h"
#include "varint.h"

namespace tfr {
namespace {

constexpr u8 kItem = make_tag(1, kLen);  // BytesList.value, and the packed form of the others

inline FastResult int64_list(Column& column, int64_t row, const u8* p, const u8* end) {
  WireError error;
  uint64_t value = 0;
  if (p == end) {
    if (column.layout == Layout::kScalar) return FastResult::kReject;
    column.close_list_row();
    return FastResult::kDone;
  }
  if (*p == make_tag(1, kVarint)) {  // one value, not packed
    if (read_varint(p + 1, end, &value, error) != end) return FastResult::kReject;
  } else {
    if (*p != kItem || (p = read_rest(p + 1, end)) == nullptr) return FastResult::kReject;
    if (column.layout == Layout::kList) {
      int64_t count = decode_run(p, end, column.room_int64(static_cast<size_t>(end - p) + kDecodeSlack));
      if (count < 0) return FastResult::kReject;
      column.value_count += count;
      column.close_list_row();
      return FastResult::kDone;
    }
    if (read_varint(p, end, &value, error) != end) return FastResult::kReject;
  }
  if (column.layout == Layout::kScalar) {
    column.append_int64(row, static_cast<int64_t>(value));
  } else {
    *column.room_int64(1) = static_cast<int64_t>(value);
    column.value_count += 1;
    column.close_list_row();
  }
  return FastResult::kDone;
}

inline FastResult float_list(Column& column, int64_t row, const u8* p, const u8* end) {
  if (p == end) {
    if (column.layout == Layout::kScalar) return FastResult::kReject;
    column.close_list_row();
    return FastResult::kDone;
  }
  if (*p == make_tag(1, kFixed32)) {
    if (end - p != 5) return FastResult::kReject;
    ++p;
  } else if (*p != kItem || (p = read_rest(p + 1, end)) == nullptr || (end - p) % 4 != 0) {
    return FastResult::kReject;
  }
  size_t count = static_cast<size_t>(end - p) / 4;
  if (column.layout == Layout::kScalar) {
    if (count != 1) return FastResult::kReject;
    column.append_float(row, p);
    return FastResult::kDone;
  }
  if (count != 0) std::memcpy(column.room_float(count), p, count * 4);
  column.value_count += static_cast<int64_t>(count);
  column.close_list_row();
  return FastResult::kDone;
}

inline FastResult bytes_list(Column& column, int64_t row, const u8* p, const u8* end) {
  if (column.layout == Layout::kScalar) {
    if (p == end || *p != kItem || (p = read_rest(p + 1, end)) == nullptr) return FastResult::kReject;
    size_t size = static_cast<size_t>(end - p);
    if (!copy_value(column, row, p, size)) return FastResult::kReject;
    column.append_copied(row, size);
    return FastResult::kDone;
  }
  WireError error;
  while (p < end) {
    size_t size;
    if (*p != kItem || (p = read_size(p + 1, end, &size, error)) == nullptr) return FastResult::kReject;
    if (!copy_value(column, row, p, size)) return FastResult::kReject;
    column.append_copied_value(size);
    p += size;
  }
  column.close_list_row();
  return FastResult::kDone;
}

inline FastResult dispatch(Column& column, int64_t row, Kind kind, const u8* p, const u8* end) {
  switch (kind) {
    case Kind::kInt64:
      return int64_list(column, row, p, end);
    case Kind::kFloat:
      return float_list(column, row, p, end);
    default:
      return bytes_list(column, row, p, end);
  }
}

}  // namespace

bool text_fits(Column& column, int64_t row, const u8* p, size_t size) {
  if (column.text == Text::kNo) return true;
  if (column.text == Text::kUtf8) return is_utf8(p, size);
  if (column.binary_row >= 0) return true;
  if (is_text(p, size)) return true;
  if (column.text == Text::kStrict) return false;
  column.binary_row = row;
  return true;
}

namespace {

// Appends the values [p, end) of a list of the kind, which the column accepts.
inline FastResult append_list(Column& column, int64_t row, Kind kind, const u8* p, const u8* end) {
  column.fill_nulls(row);
  if (column.kind == Kind::kNone) [[unlikely]]
    column.start(kind);
  while (true) {
    FastResult done = dispatch(column, row, kind, p, end);
    if (done != FastResult::kReject || column.layout != Layout::kScalar || column.plan_layout != Layout::kAny)
      return done;
    column.become_list();  // the usual reason: not exactly one value
  }
}

FastResult append_other(Column& column, int64_t row, Kind kind, const u8* p, const u8* end) {
  Column* other = column.column_of(&kind, p == end);
  if (other == nullptr) return FastResult::kReject;
  FastResult done = append_list(*other, row, kind, p, end);
  if (other == &column || done == FastResult::kReject) return done;
  column.fill_nulls(row + 1);
  return FastResult::kOther;
}

}  // namespace

FastResult append_fast(Column& column, int64_t row, const u8* p, const u8* end) {
  if (column.rows > row) return FastResult::kReject;  // the name's second entry in this record
  if (p == end) return FastResult::kEmpty;
  u8 tag = *p;
  Kind kind = static_cast<Kind>(tag >> 3);
  if ((tag & 7) != kLen || tag < kItem || kind > Kind::kInt64 || (p = read_rest(p + 1, end)) == nullptr)
    return FastResult::kReject;
  return column.accepts(kind) ? append_list(column, row, kind, p, end) : append_other(column, row, kind, p, end);
}

}  // namespace tfr
