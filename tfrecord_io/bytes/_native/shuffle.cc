#include "shuffle.h"

#include <algorithm>
#include <numeric>

namespace tfr {

size_t exchange(const std::vector<BufferDraws>& buffers, int64_t* drawn, int64_t* slots) {
  size_t made = 0, all = 0;
  for (const BufferDraws& buffer : buffers) all += buffer.size;
  std::iota(slots, slots + all, int64_t{0});
  auto next = static_cast<int64_t>(all);
  for (const BufferDraws& buffer : buffers) {
    for (size_t i = 0; i < buffer.count; ++i) {
      double number = buffer.numbers[i];
      if (!(number >= 0 && number < 1) || buffer.size == 0) return made;
      // The product may be rounded up to the size.
      size_t slot = std::min(static_cast<size_t>(number * static_cast<double>(buffer.size)), buffer.size - 1);
      drawn[made++] = slots[slot];
      slots[slot] = next++;
    }
    slots += buffer.size;
  }
  return made;
}

}  // namespace tfr
