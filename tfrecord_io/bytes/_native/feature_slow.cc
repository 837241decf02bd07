// The slow path: all of protobuf's wire forms, for records that the fast path rejects.
#include "feature.h"
#include "text.h"

namespace tfr {
namespace {

// Calls on_list(kind, begin, end) for each BytesList, FloatList and Int64List of a valid Feature in pieces.
template <class F>
void for_each_list(const Pieces& pieces, F&& on_list) {
  WireError error;
  for (const Span& piece : pieces) {
    for (const u8* p = piece.begin; p < piece.end;) {
      uint32_t tag = 0;
      p = read_tag(p, piece.end, &tag, error);
      if ((tag & 7) == kLen && (tag >> 3) >= 1 && (tag >> 3) <= 3) {
        size_t size = 0;
        p = read_size(p, piece.end, &size, error);
        on_list(static_cast<Kind>(tag >> 3), p, p + size);
        p += size;
      } else {
        p = skip_field(p, piece.end, tag, kDepthLimit, error);
      }
    }
  }
}

// Calls on_value(begin, end) for each value of a valid list: a float's 4 bytes, a varint, or the bytes themselves.
template <class F>
void for_each_value(Kind kind, const u8* p, const u8* end, F&& on_value) {
  WireError error;
  uint64_t ignored;
  size_t size = 0;
  while (p < end) {
    uint32_t tag = 0;
    p = read_tag(p, end, &tag, error);
    bool is_value = tag >> 3 == 1;
    if (is_value && (tag & 7) == kLen) {
      p = read_size(p, end, &size, error);
      const u8* stop = p + size;
      if (kind == Kind::kBytes) on_value(p, stop);
      if (kind == Kind::kFloat)
        for (const u8* q = p; q < stop; q += 4) on_value(q, q + 4);
      if (kind == Kind::kInt64)
        for (const u8* q = p; q < stop;) {
          const u8* next = read_varint(q, stop, &ignored, error);
          on_value(q, next);
          q = next;
        }
      p = stop;
    } else if (is_value && kind == Kind::kInt64 && (tag & 7) == kVarint) {
      const u8* next = read_varint(p, end, &ignored, error);
      on_value(p, next);
      p = next;
    } else if (is_value && kind == Kind::kFloat && (tag & 7) == kFixed32) {
      on_value(p, p + 4);
      p += 4;
    } else {
      p = skip_field(p, end, tag, kDepthLimit, error);
    }
  }
}

// Calls on_value for the values that count: those of the last unbroken run of lists of one feature type.
template <class F>
void for_each_kept(const Pieces& pieces, const Measure& measured, F&& on_value) {
  int switches = 0;
  Kind before = Kind::kNone;
  for_each_list(pieces, [&](Kind kind, const u8* p, const u8* end) {
    if (before != Kind::kNone && kind != before) ++switches;
    before = kind;
    if (switches == measured.switches) for_each_value(kind, p, end, on_value);
  });
}

bool validate_list(Kind kind, const u8* p, const u8* end, int depth, WireError& error) {
  uint64_t ignored;
  size_t size = 0;
  while (p < end) {
    uint32_t tag = 0;
    p = read_tag(p, end, &tag, error);
    if (p == nullptr) return false;
    if (tag != make_tag(1, kLen)) {
      if ((p = skip_field(p, end, tag, depth, error)) == nullptr) return false;
      continue;
    }
    if ((p = read_size(p, end, &size, error)) == nullptr) return false;
    const u8* stop = p + size;
    if (kind == Kind::kFloat && size % 4 != 0) {
      error.set(Code::kPackedFloatSize, p, 4, static_cast<int64_t>(size));
      return false;
    }
    while (kind == Kind::kInt64 && p < stop)
      if ((p = read_varint(p, stop, &ignored, error)) == nullptr) return false;
    p = stop;
  }
  return true;
}

}  // namespace

bool validate_feature(const u8* p, const u8* end, int depth, WireError& error) {
  while (p < end) {
    uint32_t tag = 0;
    p = read_tag(p, end, &tag, error);
    if (p == nullptr) return false;
    if ((tag & 7) == kLen && (tag >> 3) >= 1 && (tag >> 3) <= 3) {
      size_t size = 0;
      if ((p = read_size(p, end, &size, error)) == nullptr) return false;
      if (!validate_list(static_cast<Kind>(tag >> 3), p, p + size, depth - 1, error)) return false;
      p += size;
    } else if ((p = skip_field(p, end, tag, depth, error)) == nullptr) {
      return false;
    }
  }
  return true;
}

Measure measure(const Pieces& pieces) {
  Measure measured;
  for_each_list(pieces, [&](Kind kind, const u8* p, const u8* end) {
    if (measured.kind != Kind::kNone && kind != measured.kind) {
      ++measured.switches;
      measured.count = 0;
    }
    measured.kind = kind;
    for_each_value(kind, p, end, [&](const u8*, const u8*) { ++measured.count; });
  });
  return measured;
}

Code check_feature(const Column& column, const Pieces& pieces, const Measure& measured) {
  if (measured.kind == Kind::kNone) return column.required ? Code::kMissingFeature : Code::kOk;
  if (!column.fits(measured.kind, measured.count == 0)) return Code::kKind;
  if (column.plan_layout == Layout::kScalar && measured.count != 1) return Code::kValueCount;
  if (measured.kind != Kind::kBytes || column.text == Text::kNo || column.text == Text::kTrack) return Code::kOk;
  Code code = Code::kOk;
  for_each_kept(pieces, measured, [&](const u8* p, const u8* end) {
    size_t size = static_cast<size_t>(end - p);
    if (column.text == Text::kUtf8 && !is_utf8(p, size)) code = Code::kNotUtf8;
    if (column.text == Text::kStrict && !is_text(p, size)) code = Code::kNotText;
  });
  return code;
}

void append_slow(Column& target, int64_t row, const Pieces& pieces, const Measure& measured) {
  if (measured.kind == Kind::kNone) return;
  Kind kind = measured.kind;
  Column& column = *target.column_of(&kind, measured.count == 0);
  column.fill_nulls(row);
  if (column.kind == Kind::kNone) column.start(kind);
  if (column.layout == Layout::kScalar && measured.count != 1) column.become_list();
  bool scalar = column.layout == Layout::kScalar;
  WireError error;
  for_each_kept(pieces, measured, [&](const u8* p, const u8* end) {
    if (measured.kind == Kind::kInt64) {
      uint64_t value = 0;
      read_varint(p, end, &value, error);
      if (scalar) return column.append_int64(row, static_cast<int64_t>(value));
      *column.room_int64(1) = static_cast<int64_t>(value);
      ++column.value_count;
    } else if (measured.kind == Kind::kFloat) {
      if (scalar) return column.append_float(row, p);
      std::memcpy(column.room_float(1), p, 4);
      ++column.value_count;
    } else {
      size_t size = static_cast<size_t>(end - p);
      if (column.text == Text::kTrack && column.binary_row < 0 && !is_text(p, size)) column.binary_row = row;
      if (scalar) return column.append_bytes(row, p, size);
      column.append_value(p, size);
    }
  });
  if (!scalar) column.close_list_row();
  target.fill_nulls(row + 1);
}

}  // namespace tfr
