#include "encoder_rows.h"

#include <algorithm>

#include "cpu.h"

namespace tfr {
namespace {

// Bit i of word k becomes bit k of word i, by exchanging halves of ever smaller squares.
void transpose(uint64_t* words) {
  uint64_t low = 0xffffffffu;
  for (size_t size = 32; size != 0; size >>= 1, low ^= low << size) {
    for (size_t k = 0; k < 64; k = (k + size + 1) & ~size) {
      uint64_t changed = ((words[k] >> size) ^ words[k + size]) & low;
      words[k] ^= changed << size;
      words[k + size] ^= changed;
    }
  }
}

}  // namespace

// Fetches what the values of 64 rows are read from: no processor foresees it for many columns.
void PresentColumns::prefetch(const ShortRows::Column& column, int64_t row) {
  const u8* items = column.values;
  int64_t width = column.kind() == Kind::kFloat ? 4 : 8;
  if (column.is_list() || column.kind() == Kind::kBytes) {
    items = reinterpret_cast<const u8*>(column.is_list() ? column.offsets : column.value_offsets);
    width = 8;
  }
  for (int64_t at = row * width; at < (row + 64) * width; at += 64) prefetch_bytes(items + at);
}

bool ShortRows::add(const Source& source, const Shape& shape) {
  if (shape.head() <= 1) return false;
  bool is_list = source.layout == Layout::kList;
  Column column{{},
                source.validity,
                source.values,
                source.value_offsets,
                source.offsets,
                static_cast<uint16_t>(shape.head()),
                form_of(source.kind, is_list)};
  std::memcpy(column.base, shape.base(), Shape::kMost);
  if (source.kind == Kind::kFloat && !is_list) {
    for (size_t at : {size_t{1}, shape.head() - 5, shape.head() - 3, shape.head() - 1})
      column.base[at] = static_cast<u8>(column.base[at] + 4);
  }
  columns_.push_back(column);
  has_nulls_ |= source.validity != nullptr;
  return true;
}

u8* ShortRows::put_list(u8* out, const Column& column, int64_t row, const u8* values_end) {
  int64_t from = column.offsets[row];
  size_t count = static_cast<size_t>(column.offsets[row + 1] - from), most = kMostEntry - column.head;
  if (count > most) return nullptr;
  u8 *list = out + column.head, *end = list;
  if (column.kind() == Kind::kBytes) {
    for (const int64_t* at = column.value_offsets + from; at != column.value_offsets + from + count; ++at) {
      size_t size = static_cast<size_t>(at[1] - at[0]);
      if (static_cast<size_t>(end - list) + 2 + size > most) return nullptr;
      *end++ = make_tag(1, kLen);
      *end++ = static_cast<u8>(size);
      copy_bytes(end, column.values + at[0], size);
      end += size;
    }
  } else {
    u8* run = list + 2;
    if (column.kind() == Kind::kInt64) {
      end = encode_run.put(run, reinterpret_cast<const uint64_t*>(column.values) + from, count);
    } else if (count * 4 + 2 <= most) {
      copy_within(run, column.values + from * 4, count * 4, values_end);
      end = run + count * 4;
    } else {
      return nullptr;
    }
    list[0] = make_tag(1, kLen);
    list[1] = static_cast<u8>(end - run);
    end = count == 0 ? list : end;
  }
  size_t size = static_cast<size_t>(end - list);
  for (size_t at : {size_t{1}, size_t{column.head} - 3, size_t{column.head} - 1})
    out[at] = static_cast<u8>(column.base[at] + size);
  return size > most ? nullptr : end;
}

std::vector<const u8*> ShortRows::value_ends(int64_t row) const {
  std::vector<const u8*> ends;
  for (const Column& column : columns_) {
    int64_t end = column.is_list() ? column.offsets[row] : row;
    int64_t width = column.kind() == Kind::kFloat ? 4 : 8;
    if (column.kind() == Kind::kBytes) end = column.value_offsets[end], width = 1;
    ends.push_back(column.values + end * width);
  }
  return ends;
}

void PresentColumns::load(int64_t block) {
  block_ = block;
  size_t bytes = static_cast<size_t>(std::min<int64_t>(8, (end_ + 7) / 8 - block * 8));
  for (size_t group = 0; group < rows_.groups(); ++group) {
    uint64_t words[64] = {};
    for (size_t c = 64 * group; c < std::min(64 * group + 64, rows_.columns_.size()); ++c) {
      const ShortRows::Column& column = rows_.columns_[c];
      const u8* validity = column.validity;
      prefetch(column, 64 * (block + 1));
      words[c % 64] = ~uint64_t{0};
      if (validity == nullptr) continue;
      words[c % 64] = 0;
      std::memcpy(&words[c % 64], validity + block * 8, bytes);
    }
    transpose(words);
    for (size_t row = 0; row < 64; ++row) bits_[row * rows_.groups() + group] = words[row];
  }
}

}  // namespace tfr
