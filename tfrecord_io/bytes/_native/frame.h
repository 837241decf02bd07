// TFRecord's framing: u64 length, masked CRC32C of it, payload, masked CRC32C of that, all little-endian
// (tensorflow/core/lib/io/record_writer.h).
#pragma once

#include <vector>

#include "crc32c.h"
#include "fault.h"
#include "wire.h"

namespace tfr {

constexpr size_t kHeaderBytes = 12, kFooterBytes = 4, kFrameBytes = kHeaderBytes + kFooterBytes;

// Which checksums are compared. Same numbers as `Checks` in bytes/engine/contract.py.
enum class Checks : int { kNone = 0, kLengths = 1, kAll = 2 };

struct FrameHeader {
  Code code = Code::kOk;
  bool whole = false;  // payload and footer are complete
  int64_t length = 0;
  int64_t byte = -1;
  int64_t expected = 0;
  int64_t got = 0;

  void fail(Code c, int64_t want, int64_t have) {
    code = c;
    expected = want;
    got = have;
  }
};

// `last`: no data follows, so an incomplete record is a fault.
inline FrameHeader read_frame(const u8* p, size_t left, int64_t max_record_bytes, bool last, bool check_length) {
  FrameHeader header;
  if (left < kHeaderBytes) {
    if (last) header.fail(Code::kTruncatedHeader, kHeaderBytes, static_cast<int64_t>(left));
    return header;
  }
  uint64_t length = load64(p);
  uint32_t stored = load32(p + 8), computed = check_length ? masked_crc32c(p, 8) : stored;
  header.length = static_cast<int64_t>(length);
  if (stored != computed) {
    header.fail(Code::kLengthCrc, computed, stored);
  } else if (length > static_cast<uint64_t>(max_record_bytes)) {
    header.fail(Code::kLengthTooLarge, max_record_bytes, static_cast<int64_t>(length));
  } else if (left - kHeaderBytes < length) {
    if (last) header.fail(Code::kTruncatedPayload, header.length, static_cast<int64_t>(left - kHeaderBytes));
  } else if (left - kHeaderBytes - length < kFooterBytes) {
    if (last) header.fail(Code::kTruncatedFooter, kFooterBytes, static_cast<int64_t>(left - kHeaderBytes - length));
  } else {
    header.whole = true;
  }
  return header;
}

inline void check_payload(const u8* payload, FrameHeader& header) {
  size_t length = static_cast<size_t>(header.length);
  uint32_t stored = load32(payload + length), computed = masked_crc32c(payload, length);
  if (stored == computed) return;
  header.fail(Code::kPayloadCrc, computed, stored);
  header.byte = header.length;
}

// Positions and lengths of the payloads of one call of scan().
struct FrameList {
  std::vector<int64_t> starts, lengths;
  int64_t consumed = 0;
  Fault fault;
};

FrameList scan(const u8* data, size_t size, size_t begin, int64_t max_records, Checks checks, int64_t max_record_bytes,
               bool last);

inline void write_header(u8* out, uint64_t length) {
  std::memcpy(out, &length, 8);
  uint32_t crc = masked_crc32c(out, 8);
  std::memcpy(out + 8, &crc, 4);
}

// Writes header and footer around a payload of `length` bytes that is already at out + kHeaderBytes.
inline void close_frame(u8* out, size_t length) {
  write_header(out, length);
  uint32_t crc = masked_crc32c(out + kHeaderBytes, length);
  std::memcpy(out + kHeaderBytes + length, &crc, 4);
}

}  // namespace tfr
