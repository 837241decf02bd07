// Rows of short values and short lists are written in one pass: an entry is copied for a value of no bytes, or an empty
// list, and its lengths follow from those of the value. Where columns have nulls, a bit for each says whether a row has
// it.
#pragma once

#include <bit>
#include <vector>

#include "encoder_source.h"
#include "names.h"
#include "varint.h"

namespace tfr {

class ShortRows {
 public:
  // Adds a feature whose entries have this shape; false if there is none.
  bool add(const Source& source, const Shape& shape);

  // Bytes that put() may write: the last entry may be a run of integers that turns out to be too long.
  size_t most() const { return columns_.size() * kMostEntry + Shape::kLoaded + 10 * kMostEntry + kRunSlack; }

  // For each column, where the values of the rows before `row` end: up to there they are readable.
  std::vector<const u8*> value_ends(int64_t row) const;

  // Writes the map entries of a row; nullptr if one of its values is too long. `present`: see PresentColumns; `ends`:
  // of a later row.
  u8* put(u8* out, int64_t row, const uint64_t* present, const u8* const* ends) const {
    const Column* columns = columns_.data();
    if (present == nullptr) {
      for (size_t c = 0; c < columns_.size() && out != nullptr; ++c) out = put_entry(out, columns[c], row, ends[c]);
      return out;
    }
    for (size_t group = 0; group < groups(); ++group, columns += 64, ends += 64) {
      for (uint64_t bits = present[group]; bits != 0 && out != nullptr; bits &= bits - 1)
        out = put_entry(out, columns[std::countr_zero(bits)], row, ends[std::countr_zero(bits)]);
    }
    return out;
  }

 private:
  static constexpr size_t kMostEntry = 129;  // tag, length and up to 127 bytes: every length has one byte

  struct alignas(64) Column {
    u8 base[Shape::kMost];  // the entry of a value of no bytes, or of an empty list
    const u8* validity;
    const u8* values;
    const int64_t* value_offsets;
    const int64_t* offsets;  // of lists
    uint16_t head;           // bytes before the value, or before the field of a list
    u8 form;                 // see form_of()

    Kind kind() const { return static_cast<Kind>(form & ~kListForm); }
    bool is_list() const { return form & kListForm; }
  };
  static_assert(sizeof(Column) == 128);  // two cache lines

  static u8* put_entry(u8* out, const Column& column, int64_t row, const u8* values_end) {
    std::memcpy(out, column.base, 32);
    if (column.head > 32) std::memcpy(out + 32, column.base + 32, Shape::kMost - 32);
    u8* value = out + column.head;
    if (column.form == form_of(Kind::kFloat, false)) {  // its base has the lengths
      std::memcpy(value, column.values + row * 4, 4);
      return value + 4;
    }
    u8* end;
    if (column.form == form_of(Kind::kInt64, false)) {
      end = put_short_varint(value, reinterpret_cast<const uint64_t*>(column.values)[row]);
    } else if (column.is_list()) {
      return put_list(out, column, row, values_end);
    } else {
      int64_t from = column.value_offsets[row];
      size_t size = static_cast<size_t>(column.value_offsets[row + 1] - from);
      if (size > kMostEntry - column.head) return nullptr;
      copy_within(value, column.values + from, size, values_end);
      end = value + size;
    }
    u8 more = static_cast<u8>(end - value);
    for (size_t at : {size_t{1}, size_t{column.head} - 5, size_t{column.head} - 3, size_t{column.head} - 1})
      out[at] = static_cast<u8>(column.base[at] + more);
    return end;
  }

  // Sizes that cannot be foreseen: without a branch on them where `size` ≤ 32. Overwrites up to 32 bytes; those of
  // `from` are readable up to `end`.
  static void copy_within(u8* to, const u8* from, size_t size, const u8* end) {
    if (end - from < 32) return copy_bytes(to, from, size);
    std::memcpy(to, from, 32);
    if (size > 32) std::memcpy(to + 32, from + 32, size - 32);
  }

  // A list, after the bytes of an empty one.
  static u8* put_list(u8* out, const Column& column, int64_t row, const u8* values_end);

  // A varint of up to eight bytes without a branch on its length; 8 bytes are writable at `out`, or 10 for a longer
  // one.
  static u8* put_short_varint(u8* out, uint64_t value) {
    if (value < 0x80) {
      *out = static_cast<u8>(value);
      return out + 1;
    }
    if (value >> 56) return put_varint(out, value);
    size_t size = varint_size(value);
    value = (value & 0xfffffffu) | (value & 0xfffffff0000000u) << 4;  // 7 bits in each byte, by halves
    value = (value & 0x3fff00003fffu) | (value & 0xfffc0000fffc000u) << 2;
    value = (value & 0x7f007f007f007fu) | (value & 0x3f803f803f803f80u) << 1;
    value |= 0x8080808080808080u & ((uint64_t{1} << (8 * size - 8)) - 1);
    std::memcpy(out, &value, 8);
    return out + size;
  }

  friend class PresentColumns;
  size_t groups() const { return (columns_.size() + 63) / 64; }

  std::vector<Column> columns_;
  bool has_nulls_ = false;
};

// Which columns have a value in a row: a bit for each, in groups of 64. They are found for 64 rows at a time, as a test
// of each cell is a branch that the processor cannot predict.
class PresentColumns {
 public:
  // Presence of columns in the rows before `end`.
  PresentColumns(const ShortRows& rows, int64_t end) : rows_(rows), end_(end) {
    if (rows.has_nulls_) bits_.resize(64 * rows.groups());
  }

  // The groups of a row; nullptr if it has all columns.
  const uint64_t* of(int64_t row) {
    if (bits_.empty()) return nullptr;
    if (row >> 6 != block_) load(row >> 6);
    return bits_.data() + static_cast<size_t>(row & 63) * rows_.groups();
  }

 private:
  void load(int64_t block);
  static void prefetch(const ShortRows::Column& column, int64_t row);

  const ShortRows& rows_;
  int64_t end_, block_ = -1;
  std::vector<uint64_t> bits_;  // of the rows of a block
};

}  // namespace tfr
