// Runs of items: copied from one array to positions of another, gathered from several, and packed into bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wire.h"

namespace tfr {

// Copies lengths[i] items of `item` bytes from number begins[i] of `values` to out[places[i]], for each of `count`
// runs. Returns the first run that is not within `value_count` and `out_count` items, before which all are copied;
// `count` if there is none.
size_t copy_runs(const u8* values, size_t value_count, const int64_t* begins, const int64_t* lengths, size_t count,
                 size_t item, u8* out, size_t out_count, const int64_t* places);

// Rows of an array: row i is the items [offsets[i], offsets[i + 1]) of `data`.
struct RunArray {
  const u8* data;
  size_t items;
  const int64_t* offsets;
  size_t rows;
};

// `count` rows of several arrays: number rows[i] of array owners[i], or, without `owners`, of the first one.
struct ChosenRuns {
  const std::vector<RunArray>& arrays;
  const int64_t* owners;
  const int64_t* rows;
  size_t count;
};

// Sets the count + 1 offsets of the chosen rows, laid one after the other. Returns the first row that is not within the
// arrays; `count` if there is none.
size_t chosen_offsets(const ChosenRuns& chosen, int64_t* offsets);

// Copies the chosen rows, of items of `item` bytes, to where these offsets say. Returns the first one that is not
// within the arrays and `out_count` items, or has another length, before which all are copied; `count` if there is
// none.
size_t gather_runs(const ChosenRuns& chosen, const int64_t* offsets, size_t item, u8* out, size_t out_count);

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
