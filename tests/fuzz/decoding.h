// Runs a decoder as its users do: blocks of any size, answers to its questions, columns taken when it is full.
#pragma once

#include <string>

#include "arrow_export.h"
#include "decoder.h"
#include "targets.h"

namespace fuzz {

struct Outcome {
  int64_t records = 0;
  size_t consumed = 0;
  tfr::Fault fault;  // its record and offset are those in the whole data
  std::vector<std::string> names;
  std::vector<bool> steps;
  std::vector<tfr::TakenColumns> batches;
};

// Decodes `data`, of which each call sees `block` more bytes.
Outcome decode(const tfr::DecoderPlan& plan, const Bytes& data, size_t block, int64_t max_records = -1,
               int64_t max_bytes = -1);

// Decodes a file of `data` by windows of `window` bytes, and frames of at most `most`; one record at a time where that
// stops.
Outcome decode_file(const tfr::DecoderPlan& plan, const Bytes& data, size_t window, size_t most);

// Decodes all of `data` into a decoder that has no limits.
tfr::Fault feed_all(tfr::Decoder& decoder, const Bytes& data);

// All that a column says, after a check that it is a valid Arrow column.
std::string checked_text(const tfr::TakenColumn& column);

// Converts a column to Arrow arrays of several types, and checks these.
void check_exports(const tfr::TakenColumn& column, u8 choice);

}  // namespace fuzz
