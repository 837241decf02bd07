#include "runs.h"

#include <cstring>

#include "cpu.h"

namespace tfr {

namespace {

bool is_within(int64_t begin, int64_t length, size_t count) {
  return begin >= 0 && length >= 0 && static_cast<uint64_t>(begin) + static_cast<uint64_t>(length) <= count;
}

constexpr size_t kAhead = 16;  // rows whose items are fetched into the cache before their turn

// The processor follows rows by itself, but slowly where they begin, and only to the end of a page. A row that is much
// longer than a page is not worth more than its first line.
constexpr size_t kLine = 64, kFetched = 8192;

void fetch_row(const u8* data, size_t bytes) {
  const u8* end = data + (bytes <= kFetched ? bytes : 1);
  for (const u8* at = data - reinterpret_cast<uintptr_t>(data) % kLine; at < end; at += kLine) prefetch_bytes(at);
}

// The items [begin, end) of a chosen row, and the array that they are in; nullptr if it is not within the arrays.
const RunArray* find(const ChosenRuns& chosen, size_t at, int64_t& begin, int64_t& end) {
  size_t owner = chosen.owners == nullptr ? 0 : static_cast<size_t>(chosen.owners[at]);
  if (owner >= chosen.arrays.size()) return nullptr;
  const RunArray& array = chosen.arrays[owner];
  size_t row = static_cast<size_t>(chosen.rows[at]);
  if (row >= array.rows) return nullptr;
  begin = array.offsets[row];
  end = array.offsets[row + 1];
  return end >= begin && is_within(begin, end - begin, array.items) ? &array : nullptr;
}

}  // namespace

size_t copy_runs(const u8* values, size_t value_count, const int64_t* begins, const int64_t* lengths, size_t count,
                 size_t item, u8* out, size_t out_count, const int64_t* places) {
  for (size_t i = 0; i < count; ++i) {
    if (!is_within(begins[i], lengths[i], value_count) || !is_within(places[i], lengths[i], out_count)) return i;
    if (lengths[i] == 0) continue;  // there may be no memory at all
    std::memcpy(out + static_cast<size_t>(places[i]) * item, values + static_cast<size_t>(begins[i]) * item,
                static_cast<size_t>(lengths[i]) * item);
  }
  return count;
}

size_t chosen_offsets(const ChosenRuns& chosen, int64_t* offsets) {
  int64_t begin, end;
  offsets[0] = 0;
  for (size_t i = 0; i < chosen.count; ++i) {
    if (find(chosen, i, begin, end) == nullptr || end - begin > INT64_MAX - offsets[i]) return i;
    offsets[i + 1] = offsets[i] + end - begin;
  }
  return chosen.count;
}

size_t gather_runs(const ChosenRuns& chosen, const int64_t* offsets, size_t item, u8* out, size_t out_count) {
  struct Found {
    const u8* data;
    int64_t length;  // -1 if the row is not within the arrays
  };
  Found found[kAhead];  // the next rows: row i is at i % kAhead
  int64_t begin = 0, end = 0;
  for (size_t i = 0; i < chosen.count + kAhead; ++i) {
    Found& row = found[i % kAhead];
    if (i >= kAhead) {
      size_t at = i - kAhead;
      int64_t length = row.length;
      if (length < 0 || offsets[at + 1] - offsets[at] != length || !is_within(offsets[at], length, out_count))
        return at;
      if (length != 0)  // else there may be no memory at all
        std::memcpy(out + static_cast<size_t>(offsets[at]) * item, row.data, static_cast<size_t>(length) * item);
    }
    if (i >= chosen.count) continue;
    const RunArray* array = find(chosen, i, begin, end);
    row = array == nullptr ? Found{nullptr, -1} : Found{array->data + static_cast<size_t>(begin) * item, end - begin};
    if (row.length > 0) fetch_row(row.data, static_cast<size_t>(row.length) * item);
  }
  return chosen.count;
}

size_t pad_rows(const u8* values, size_t value_count, const int64_t* offsets, size_t rows, size_t item, const u8* fill,
                u8* out, size_t length) {
  bool is_one_byte = std::memcmp(fill, fill + 1, item - 1) == 0;  // as zeros and −1 are
  for (size_t i = 0; i < rows; ++i, out += length * item) {
    int64_t begin = offsets[i], end = offsets[i + 1];
    if (begin < 0 || end < begin || !is_within(begin, end - begin, value_count)) return i;
    size_t count = static_cast<size_t>(end - begin), left = length - count;
    if (count > length) return i;
    u8* rest = out + count * item;
    if (count != 0) std::memcpy(out, values + static_cast<size_t>(begin) * item, count * item);
    if (is_one_byte) {
      std::memset(rest, *fill, left * item);
    } else {
      for (size_t k = 0; k < left; ++k) std::memcpy(rest + k * item, fill, item);
    }
  }
  return rows;
}

std::vector<int64_t> first_fit(const int64_t* lengths, size_t rows, size_t columns, const int64_t* capacity,
                               size_t bins, int64_t* bin_of_row) {
  std::vector<int64_t> room(bins * columns), begins;
  size_t used = 0;
  auto fits = [&](size_t bin, const int64_t* own) {
    for (size_t k = 0; k < columns; ++k) {
      if (own[k] > room[bin * columns + k]) return false;
    }
    return true;
  };
  for (size_t row = 0; row < rows; ++row) {
    const int64_t* own = lengths + row * columns;
    size_t bin = 0;
    while (bin < used && !fits(bin, own)) ++bin;
    if (bin == bins) {
      begins.push_back(static_cast<int64_t>(row));
      bin = used = 0;
    }
    if (bin == used) {
      std::memcpy(room.data() + bin * columns, capacity, columns * sizeof(int64_t));
      ++used;
    }
    for (size_t k = 0; k < columns; ++k) room[bin * columns + k] -= own[k];
    bin_of_row[row] = static_cast<int64_t>(bin);
  }
  return begins;
}

}  // namespace tfr
