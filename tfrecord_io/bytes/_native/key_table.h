// Finds the row of a key among many: buckets of rows by the hash of their keys, 5 to 6 bytes for each key besides the
// keys themselves.
#pragma once

#include <vector>

#include "feature.h"
#include "name_hash.h"

namespace tfr {

// Keys one after the other, with 32-bit or 64-bit offsets, or of 8 bytes each. The memory is the caller's.
struct Keys {
  const u8* data = nullptr;
  const int32_t* short_offsets = nullptr;
  const int64_t* long_offsets = nullptr;
  const bool* valid = nullptr;  // rows with a key; nullptr: all
  size_t rows = 0;

  bool has(size_t row) const { return valid == nullptr || valid[row]; }
  Span at(size_t row) const {
    if (short_offsets != nullptr) return {data + short_offsets[row], data + short_offsets[row + 1]};
    if (long_offsets != nullptr) return {data + long_offsets[row], data + long_offsets[row + 1]};
    return {data + 8 * row, data + 8 * row + 8};
  }
};

class KeyTable {
 public:
  // Among equal keys the first row is kept. There are fewer than 2**32 rows.
  explicit KeyTable(const Keys& keys);

  // The row of a key; −1 if no row has it.
  int64_t find(const Span& key) const;

  size_t bytes() const { return 4 * (rows_.capacity() + ends_.capacity()); }

  struct Repeated {
    uint32_t first, row;  // the row that is kept, and a later one with the same key
  };
  int64_t repeated = 0;            // later rows with a key of an earlier one
  std::vector<Repeated> examples;  // the first few of them, in order of the rows

 private:
  struct Entry {
    uint32_t hash;  // the upper half, whose first bits are the bucket
    uint32_t row;
  };

  size_t bucket(uint64_t upper_hash) const { return static_cast<size_t>(upper_hash >> shift_); }
  void add_buckets(const Entry* begin, const Entry* end, size_t buckets);
  void note(const Repeated& found);

  Keys keys_;
  int shift_ = 32;
  std::vector<uint32_t> ends_;  // of each bucket in `rows_`, after a 0
  std::vector<uint32_t> rows_;
};

}  // namespace tfr
