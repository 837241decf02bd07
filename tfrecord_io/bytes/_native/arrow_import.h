// Columns of an Arrow batch as Sources of an encoder, for the types whose values are those of a feature, or widen to
// them.
#pragma once

#include <string>
#include <vector>

#include "arrow_export.h"
#include "encoder.h"

namespace tfr {

// How the array of a column is laid out.
struct PlainForm {
  std::string name;  // of the feature
  Value value = Value::kOther;
  int bits = 0;  // of an integer
  bool is_signed = false;
  bool large = false;  // kBytes, kText: offsets of 64 bits
};

// Bytes of the values of the columns that have a form; `batch` is a struct array.
int64_t value_bytes(const ArrowArray& batch, const std::vector<PlainForm>& forms);

// A batch, released at the end, and the Sources that borrow from it.
class ArrowColumns {
 public:
  // Takes the columns that have a form; `batch` is a struct array and is left without content.
  ArrowColumns(ArrowArray& batch, const std::vector<PlainForm>& forms);
  ArrowColumns(const ArrowColumns&) = delete;
  ArrowColumns& operator=(const ArrowColumns&) = delete;
  ~ArrowColumns() {
    if (batch_.release != nullptr) batch_.release(&batch_);
  }

  std::vector<Source> sources;  // by column
  std::vector<bool> taken;      // false: not of its form, or text that is not UTF-8; left to the caller

 private:
  bool take(const ArrowArray& array, const PlainForm& form, Source& out);
  bool take_bytes(const ArrowArray& array, const PlainForm& form, Source& out);
  Buffer& own(size_t bytes);

  ArrowArray batch_;
  std::vector<Buffer> owned_;
};

}  // namespace tfr
