// The columns of one batch, taken from a decoder: they do not change, and each user of a buffer keeps it alive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "column.h"
#include "decoder.h"

namespace tfr {

using SharedBuffer = std::shared_ptr<const Buffer>;

// The fields of ColumnBuffers (bytes/engine/contract.py); nullptr for a buffer that the column does not have.
struct TakenColumn {
  Kind kind;
  Layout layout;
  bool text;
  int64_t rows, null_count, value_count, data_bytes, first_row, list_row, binary_row;
  SharedBuffer validity, offsets, value_offsets, values;
  std::shared_ptr<const TakenColumn> steps;
  std::vector<TakenColumn> others;  // the rows with values of other kinds
};

struct TakenColumns {
  std::vector<TakenColumn> columns;  // in the order of the decoder's slots
};

// Completes the columns of a decoder, moves them out and empties it.
TakenColumns take_columns(Decoder& decoder);

}  // namespace tfr
