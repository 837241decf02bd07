// Columns as arrays of the Arrow C data interface, for the types whose values are those of a feature, or a cast of
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "taken.h"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
// https://arrow.apache.org/docs/format/CDataInterface.html
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
#endif

namespace tfr {

// Same numbers as columns/arrow/decode/batch_builder.py; kOther: a column that is left to the caller.
enum class Value : int { kOther = -1, kNull = 0, kInt = 1, kBool = 2, kFloat = 3, kDouble = 4, kBytes = 5, kText = 6 };
enum class Nesting : int { kNone = 0, kList = 1, kLargeList = 2, kFixedSizeList = 3 };

// An Arrow type, in as far as the layout of its arrays depends on it; int64 numbers, as they are passed.
struct Form {
  int64_t value;        // Value
  int64_t nesting;      // Nesting
  int64_t list_size;    // of kFixedSizeList
  int64_t large;        // kBytes, kText: offsets of 64 bits
  int64_t bits;         // of a number
  int64_t low, high;    // kInt, kBool: the least and the greatest value
  int64_t spreads;      // kFixedSizeList: a null row has zeros; 0: a column with nulls is left to the caller
  int64_t takes_nulls;  // 0: a column with nulls is left to the caller
};

// Arrays to be imported, one by one or as a batch; arrays that were not imported are released with this owner.
class ArrowArrays {
 public:
  explicit ArrowArrays(size_t count) : arrays_(count) {}
  ArrowArrays(const ArrowArrays&) = delete;
  ArrowArrays& operator=(const ArrowArrays&) = delete;
  ~ArrowArrays() {
    for (ArrowArray& array : arrays_)
      if (array.release != nullptr) array.release(&array);
    if (batch_.release != nullptr) batch_.release(&batch_);
  }

  size_t size() const { return arrays_.size(); }
  ArrowArray& operator[](size_t i) { return arrays_[i]; }

  // Moves all arrays, none of which is missing, into a struct array of `rows` rows.
  ArrowArray& join(int64_t rows);

 private:
  std::vector<ArrowArray> arrays_;
  ArrowArray batch_ = {};
};

// Makes the array of a column; false, with `out` as it was, if its rows are not plainly of this form: nulls where none
// may be, a value out of range, another feature type or layout. Throws std::bad_alloc.
bool export_column(const TakenColumn& column, const Form& form, ArrowArray& out);

// The bytes of memory that the buffers of a column take.
size_t memory_of(const TakenColumn& column);

}  // namespace tfr
