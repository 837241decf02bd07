#include "arrow_numbers.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tfr {
namespace {

// For each byte of a bitmap, eight bools that are true where a bit is not set.
constexpr std::array<std::array<u8, 8>, 256> kAbsent = [] {
  std::array<std::array<u8, 8>, 256> table{};
  for (size_t byte = 0; byte < 256; ++byte)
    for (size_t bit = 0; bit < 8; ++bit) table[byte][bit] = (byte >> bit & 1) == 0;
  return table;
}();

// Up to 64 bools from bit `at` on, of which `count` are in the bitmap.
void unpack(const u8* bits, int64_t at, int64_t count, u8* absent) {
  int64_t shift = at & 7, bytes = (shift + count + 7) / 8;
  u8 aligned[9] = {};
  std::memcpy(aligned, bits + (at >> 3), static_cast<size_t>(bytes));
  for (size_t i = 0; i < 8; ++i) {
    unsigned both = aligned[i] | static_cast<unsigned>(aligned[i + 1]) << 8;
    std::memcpy(absent + 8 * i, kAbsent[both >> shift & 255].data(), 8);
  }
}

template <class T>
void copy_present(const u8* from, u8* to, const u8* bits, int64_t first, int64_t count, bool* missing) {
  constexpr int64_t kRun = 64;
  u8 absent[kRun];
  T items[kRun] = {};
  for (int64_t i = 0; i < count; i += kRun) {
    int64_t some = std::min(kRun, count - i);
    size_t at = static_cast<size_t>(i) * sizeof(T), size = static_cast<size_t>(some) * sizeof(T);
    unpack(bits, first + i, some, absent);
    std::memcpy(items, from + at, size);
    T hidden = 0;  // of memory that is only to be changed, most null slots are zero already
    for (int64_t j = 0; j < kRun; ++j) {
      T kept = static_cast<T>(absent[j] - 1);
      hidden |= items[j] & static_cast<T>(~kept);
      items[j] &= kept;
    }
    if (from != to || hidden != 0) std::memcpy(to + at, items, size);
    std::memcpy(missing + i, absent, static_cast<size_t>(some));
  }
}

void join(const ArrowArray& batch, const JoinedNumbers& column, int64_t row) {
  const ArrowArray& child = *batch.children[column.column];
  int64_t first = child.offset + batch.offset, count = batch.length, width = column.width;
  if (count == 0) return;
  const u8* from = static_cast<const u8*>(child.buffers[1]) + first * width;
  const u8* bits = child.null_count == 0 ? nullptr : static_cast<const u8*>(child.buffers[0]);
  u8* to = column.values + row * width;
  bool* missing = column.missing == nullptr ? nullptr : column.missing + row;
  if (bits == nullptr || missing == nullptr) {
    if (from != to) std::memcpy(to, from, static_cast<size_t>(count * width));
    if (missing != nullptr) std::memset(missing, 0, static_cast<size_t>(count));
  } else if (width == 8) {
    copy_present<uint64_t>(from, to, bits, first, count, missing);
  } else if (width == 4) {
    copy_present<uint32_t>(from, to, bits, first, count, missing);
  } else if (width == 2) {
    copy_present<uint16_t>(from, to, bits, first, count, missing);
  } else {
    copy_present<u8>(from, to, bits, first, count, missing);
  }
}

}  // namespace

void join_numbers(const std::vector<const ArrowArray*>& batches, const std::vector<JoinedNumbers>& columns) {
  for (const JoinedNumbers& column : columns) {
    int64_t row = 0;
    for (const ArrowArray* batch : batches) {
      join(*batch, column, row);
      row += batch->length;
    }
  }
}

}  // namespace tfr
