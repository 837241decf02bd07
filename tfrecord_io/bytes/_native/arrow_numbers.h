// Columns of numbers of several Arrow batches as one array each, with zeros instead of nulls.
#pragma once

#include <vector>

#include "arrow_export.h"

namespace tfr {

// Where a column goes: one item of `width` bytes and one bool for each row of all batches.
struct JoinedNumbers {
  int64_t column = 0;
  int64_t width = 0;        // 1, 2, 4 or 8
  u8* values = nullptr;     // may be the memory of the only batch
  bool* missing = nullptr;  // may be null where there are no nulls
};

// Fills the arrays; `batches` are struct arrays. Needs no GIL.
void join_numbers(const std::vector<const ArrowArray*>& batches, const std::vector<JoinedNumbers>& columns);

}  // namespace tfr
