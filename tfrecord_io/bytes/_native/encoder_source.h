// A column that an encoder takes.
#pragma once

#include <string>

#include "column.h"

namespace tfr {

// One column's buffers, borrowed from the caller; nullptr if absent.
struct Source {
  std::string name;
  Kind kind = Kind::kNone;
  Layout layout = Layout::kNull;
  const u8* validity = nullptr;
  const int64_t* offsets = nullptr;
  const int64_t* value_offsets = nullptr;
  const u8* values = nullptr;
  int steps = -1;  // of a feature list: the index of the Source that holds its steps
};

}  // namespace tfr
