#include "frame.h"

namespace tfr {

FrameList scan(const u8* data, size_t size, size_t begin, int64_t max_records, bool check_crc, int64_t max_record_bytes, bool last) {
  FrameList found;
  size_t at = begin;
  while (at < size && (max_records < 0 || static_cast<int64_t>(found.starts.size()) < max_records)) {
    FrameHeader header = read_frame(data + at, size - at, max_record_bytes, last);
    if (header.code == Code::kOk && !header.whole) break;
    if (header.code == Code::kOk && check_crc) check_payload(data + at + kHeaderBytes, header);
    if (header.code != Code::kOk) {
      found.fault.code = header.code;
      found.fault.record = static_cast<int64_t>(found.starts.size());
      found.fault.offset = static_cast<int64_t>(at);
      found.fault.byte = header.byte;
      found.fault.expected = header.expected;
      found.fault.got = header.got;
      break;
    }
    found.starts.push_back(static_cast<int64_t>(at + kHeaderBytes));
    found.lengths.push_back(header.length);
    at += static_cast<size_t>(header.length) + kFrameBytes;
  }
  found.consumed = static_cast<int64_t>(at - begin);
  return found;
}

}  // namespace tfr
