// Runs of items: copied from one array to places in another, and packed into bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wire.h"

namespace tfr {

// Memory of which runs are a part.
struct Items {
  const u8* data;
  size_t count;
};

// Copies lengths[i] items of `item` bytes from number begins[i] of values[owners[i]] to out[places[i]], for each of
// `count` runs; without `owners`, all are of the first. Returns the first run that is not within its values and
// `out_count` items, before which all are copied; `count` if there is none.
size_t copy_runs(const std::vector<Items>& values, const int64_t* owners, const int64_t* begins, const int64_t* lengths,
                 size_t count, size_t item, u8* out, size_t out_count, const int64_t* places);

// Copies row i, the items [offsets[i], offsets[i + 1]) of `values`, to the i-th `length` items of `out`, and sets those
// that are left to the item `fill`. Returns the first row that is longer, or not within `value_count` items, before
// which all are done; `rows` if there is none.
size_t pad_rows(const u8* values, size_t value_count, const int64_t* offsets, size_t rows, size_t item, const u8* fill,
                u8* out, size_t length);

// Assigns rows, in order, to the first of `bins` bins that has room for them, in every of `columns` columns: row i has
// lengths[i * columns + k] items of column k, at most capacity[k]. A row for which no bin has room begins a new group
// of empty bins. Sets the bin of each row; returns the rows that begin a group, without the first.
std::vector<int64_t> first_fit(const int64_t* lengths, size_t rows, size_t columns, const int64_t* capacity,
                               size_t bins, int64_t* bin_of_row);

}  // namespace tfr
