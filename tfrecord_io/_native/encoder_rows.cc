#include "encoder_rows.h"

namespace tfr {

bool ShortRows::add(const Source& source, const Shape& shape) {
  if (shape.head() <= 1) return false;
  Column column{{},         source.validity, source.values, source.value_offsets, static_cast<uint32_t>(shape.head()),
                source.kind};
  std::memcpy(column.base, shape.base(), Shape::kMost);
  if (source.kind == Kind::kFloat) {
    for (size_t at : {size_t{1}, shape.head() - 5, shape.head() - 3, shape.head() - 1})
      column.base[at] = static_cast<u8>(column.base[at] + 4);
  }
  columns_.push_back(column);
  return true;
}

}  // namespace tfr
