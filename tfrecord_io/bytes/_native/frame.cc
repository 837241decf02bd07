#include "frame.h"

namespace tfr {

FrameList scan(const u8* data, size_t size, size_t begin, int64_t max_records, Checks checks, int64_t max_record_bytes,
               bool last) {
  FrameList frames;
  size_t at = begin;
  while (at < size && (max_records < 0 || static_cast<int64_t>(frames.starts.size()) < max_records)) {
    FrameHeader header = read_frame(data + at, size - at, max_record_bytes, last, checks != Checks::kNone);
    if (header.code == Code::kOk && !header.whole) break;
    if (header.code == Code::kOk && checks == Checks::kAll) check_payload(data + at + kHeaderBytes, header);
    if (header.code != Code::kOk) {
      frames.fault.code = header.code;
      frames.fault.record = static_cast<int64_t>(frames.starts.size());
      frames.fault.offset = static_cast<int64_t>(at);
      frames.fault.byte = header.byte;
      frames.fault.expected = header.expected;
      frames.fault.got = header.got;
      break;
    }
    frames.starts.push_back(static_cast<int64_t>(at + kHeaderBytes));
    frames.lengths.push_back(header.length);
    at += static_cast<size_t>(header.length) + kFrameBytes;
  }
  frames.consumed = static_cast<int64_t>(at - begin);
  return frames;
}

}  // namespace tfr
