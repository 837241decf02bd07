// Appends rows of a column that another decoder completed, for batches that several threads decode parts of.
#include <algorithm>

#include "column.h"

namespace tfr {
namespace {

bool bit_at(const u8* bits, int64_t at) { return bits[at >> 3] >> (at & 7) & 1; }

// Copies bits [begin, begin + count) to `at`; without `from`, sets them. Those from `at` on are zero in the first byte.
void put_bits(u8* to, int64_t at, const u8* from, int64_t begin, int64_t count) {
  auto next = [&](int64_t i, int64_t n) {  // n ≤ 8 bits from i on
    if (from == nullptr) return static_cast<u8>((1u << n) - 1);
    int64_t first = begin + i;
    uint32_t bits = from[first >> 3];
    if ((first & 7) + n > 8) bits |= static_cast<uint32_t>(from[(first >> 3) + 1]) << 8;
    return static_cast<u8>(bits >> (first & 7) & ((1u << n) - 1));
  };
  int64_t i = 0;
  if ((at & 7) != 0) {
    i = std::min<int64_t>(8 - (at & 7), count);
    to[at >> 3] |= static_cast<u8>(next(0, i) << (at & 7));
  }
  for (; i < count; i += 8) to[(at + i) >> 3] = next(i, std::min<int64_t>(8, count - i));
}

int32_t* put_ends(Buffer& offsets, int64_t have, const int32_t* from, int64_t count, int64_t base) {
  offsets.reserve(static_cast<size_t>(have + count + 1) * 4, static_cast<size_t>(have + 1) * 4);
  int32_t* to = offsets.as<int32_t>() + have;
  int32_t shift = static_cast<int32_t>(base) - from[0];
  for (int64_t i = 1; i <= count; ++i) to[i] = from[i] + shift;
  return to;
}

}  // namespace

bool Column::can_append(const Column& part) const {
  if (steps) return steps->can_append(*part.steps);
  if (part.other && part.other->has_values()) return false;
  if (part.has_odd_empties_) return false;
  if (part.kind == Kind::kNone || part.null_count == part.rows) return true;
  if (!accepts(part.kind) || (text == Text::kTrack && part.kind == Kind::kBytes)) return false;
  return layout == part.layout || kind == Kind::kNone;
}

void Column::append(const Column& part, int64_t begin, int64_t end, int64_t row) {
  if (steps) {
    append_lists(part, begin, end, row);
    if (first_row < 0 && steps->first_row >= 0) {
      const int32_t* ends = offsets.as<int32_t>() + 1;
      first_row = std::upper_bound(ends + row, ends + rows, steps->first_row) - ends;
    }
    return;
  }
  if (part.kind == Kind::kNone || part.null_count == part.rows) return;
  int64_t first = begin;
  if (part.null_count > 0)
    while (first < end && !bit_at(part.validity.as<u8>(), first)) ++first;
  if (first == end) return;
  row += first - begin;
  fill_nulls(row);
  if (kind == Kind::kNone) {
    if (layout != part.layout) become_list();
    start(part.kind);
  }
  layout == Layout::kList ? append_lists(part, first, end, row) : append_scalars(part, first, end, row);
}

void Column::append_scalars(const Column& part, int64_t begin, int64_t end, int64_t row) {
  int64_t count = end - begin, last = row + count;
  if (part.null_count > 0 && !has_validity) make_validity();
  if (last > room_) grow_scalar(last - 1);
  if (kind == Kind::kBytes) {
    append_data(part, begin, row, count);
    data_before_ = data_bytes;
  } else {
    size_t from = static_cast<size_t>(begin) * width(), at = static_cast<size_t>(row) * width();
    std::memcpy(values.as<u8>() + at, part.values.as<u8>() + from, static_cast<size_t>(count) * width());
  }
  if (has_validity)
    put_bits(validity.as<u8>(), row, part.null_count > 0 ? part.validity.as<u8>() : nullptr, begin, count);
  rows = last;
}

// Bytes values [begin, begin + count), after the `have` values of this column.
void Column::append_data(const Column& part, int64_t begin, int64_t have, int64_t count) {
  const int32_t* from = part.value_offsets.as<int32_t>() + begin;
  size_t size = static_cast<size_t>(from[count] - from[0]), used = static_cast<size_t>(data_bytes);
  values.reserve(used + size, used);
  if (size != 0) std::memcpy(values.as<u8>() + used, part.values.as<u8>() + from[0], size);
  put_ends(value_offsets, have, from, count, data_bytes);
  data_bytes += static_cast<int64_t>(size);
}

void Column::append_lists(const Column& part, int64_t begin, int64_t end, int64_t row) {
  fill_nulls(row);
  const int32_t* from = part.offsets.as<int32_t>() + begin;
  int64_t count = end - begin, last = row + count, added = from[count] - from[0];
  int64_t base = steps ? steps->rows : value_count;
  const u8* valid = part.null_count > 0 ? part.validity.as<u8>() : nullptr;
  if (valid != nullptr && !has_validity) make_validity();
  int32_t* to = put_ends(offsets, row, from, count, base);
  for (int64_t i = 0; list_row < 0 && i < count; ++i)
    if (to[i + 1] - to[i] != 1 && (valid == nullptr || bit_at(valid, begin + i))) list_row = row + i;
  if (has_validity) {
    validity.reserve(static_cast<size_t>(last + 7) / 8, static_cast<size_t>(row + 7) / 8);
    put_bits(validity.as<u8>(), row, valid, begin, count);
  }
  rows = last;
  if (steps) {
    steps->append(*part.steps, from[0], from[count], base);
    steps->fill_nulls(base + added);
    return;
  }
  if (kind == Kind::kBytes) {
    append_data(part, from[0], value_count, added);
  } else if (added != 0) {
    size_t at = static_cast<size_t>(value_count) * width(), size = static_cast<size_t>(added) * width();
    values.reserve(at + size, at);
    std::memcpy(values.as<u8>() + at, part.values.as<u8>() + static_cast<size_t>(from[0]) * width(), size);
  }
  value_count += added;
}

}  // namespace tfr
