#include "record_members.h"

#include "frame.h"
#include "wire.h"

namespace tfr {

Members find_members(const u8* data, const int64_t* starts, const int64_t* lengths, size_t count, uint32_t most) {
  Members found;
  WireError error;
  for (size_t i = 0; i < count; ++i) {
    size_t before = found.fields.size();
    const u8 *begin = data + starts[i], *p = begin, *end = begin + lengths[i];
    while (p != nullptr && p < end) {
      uint32_t tag;
      p = read_tag(p, end, &tag, error);
      if (p == nullptr) break;
      if ((tag & 7) != kLen || tag >> 3 > most) {
        p = skip_field(p, end, tag, kDepthLimit, error);
        continue;
      }
      size_t size;
      p = read_size(p, end, &size, error);
      if (p == nullptr) break;
      found.fields.push_back(tag >> 3);
      found.records.push_back(static_cast<int64_t>(i));
      found.starts.push_back(p - data);
      found.lengths.push_back(static_cast<int64_t>(size));
      p += size;
    }
    if (p != nullptr) continue;
    for (auto* numbers : {&found.fields, &found.records, &found.starts, &found.lengths}) numbers->resize(before);
    found.fault.code = error.code;
    found.fault.record = static_cast<int64_t>(i);
    found.fault.offset = starts[i] - static_cast<int64_t>(kHeaderBytes);
    found.fault.byte = error.at - begin;
    found.fault.expected = error.expected;
    found.fault.got = error.got;
    break;
  }
  return found;
}

}  // namespace tfr
