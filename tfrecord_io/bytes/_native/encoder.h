// Encodes columns into framed records. A row of short values and lists is written in one pass; of any other row, the
// sizes are computed first, and then it is written once.
#pragma once

#include <string>
#include <vector>

#include "buffer.h"
#include "encoder_rows.h"
#include "encoder_source.h"
#include "names.h"

namespace tfr {

struct Encoded {
  size_t size = 0;
  int64_t rows = 0;  // fewer than requested only if the next record would exceed protobuf's limit
};

// Encodes rows of columns; any number of threads may do so at a time.
class Encoder {
 public:
  struct Feature {
    int source;
    std::string key;  // the key field of the map entry
    Shape shape;      // of an entry with one short value
  };

  // `columns`: indices of the Sources that are features.
  Encoder(std::vector<Source> sources, const std::vector<int>& columns, bool sequence);

  // Encodes rows [begin, end) to the start of `out`; `prefix` is put in front of the first record's message.
  Encoded encode(int64_t begin, int64_t end, const std::string& prefix, Buffer& out) const;

  const std::vector<Feature>& columns() const { return columns_; }
  const Source& source(int index) const { return sources_[static_cast<size_t>(index)]; }
  bool sequence() const { return sequence_; }

 private:
  std::vector<Source> sources_;
  std::vector<Feature> columns_;
  bool sequence_;
  ShortRows short_rows_;
  bool has_short_rows_ = true;  // rows may be short: no feature is a feature list, or has a very long name
};

}  // namespace tfr
