// Protobuf's wire format, accepting and rejecting what its C++ parser does (protobuf.dev/programming-guides/encoding).
// Every function reads from [p, end) and returns the position after what it read, or nullptr with `error` set.
#pragma once

#include <bit>
#include <cstring>

#include "fault.h"

static_assert(
    std::endian::native == std::endian::little,
    "tfrecord_io's kernel is for little-endian processors: the bytes of TFRecord and of protobuf's numbers are "
    "loaded as they are.");

namespace tfr {

constexpr uint32_t kVarint = 0, kFixed64 = 1, kLen = 2, kGroupStart = 3, kGroupEnd = 4, kFixed32 = 5;
constexpr int kDepthLimit = 100;  // protobuf's recursion limit: messages and groups together

struct WireError {
  Code code = Code::kOk;
  const u8* at = nullptr;
  int64_t expected = 0;
  int64_t got = 0;

  const u8* set(Code c, const u8* where, int64_t want = 0, int64_t have = 0) {
    code = c;
    at = where;
    expected = want;
    got = have;
    return nullptr;
  }
};

constexpr u8 make_tag(uint32_t field, uint32_t type) { return static_cast<u8>(field << 3 | type); }

// Bytes of a varint.
inline size_t varint_size(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) * 9 + 64) / 64; }

// The low seven bits of each byte.
inline uint64_t pack_sevens(uint64_t groups) {
  groups = (groups & 0x007f007f007f007fu) | (groups & 0x7f007f007f007f00u) >> 1;
  groups = (groups & 0x00003fff00003fffu) | (groups & 0x3fff00003fff0000u) >> 2;
  return (groups & 0x0fffffffu) | (groups & 0x0fffffff00000000u) >> 4;
}

inline u8* put_varint(u8* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<u8>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<u8>(value);
  return out;
}

inline const u8* read_varint(const u8* p, const u8* end, uint64_t* out, WireError& error) {
  if (p < end && *p < 0x80) {
    *out = *p;
    return p + 1;
  }
  const u8* start = p;
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (p == end) return error.set(Code::kVarintTruncated, start);
    u8 byte = *p++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;  // the tenth byte's upper bits are dropped, as in protobuf
    if (byte < 0x80) {
      *out = value;
      return p;
    }
  }
  return error.set(Code::kVarintTooLong, start);
}

// A tag has at most five bytes; bits after the 32nd are dropped.
inline const u8* read_tag(const u8* p, const u8* end, uint32_t* tag, WireError& error) {
  const u8* start = p;
  uint32_t value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (p == end) return error.set(Code::kVarintTruncated, start);
    u8 byte = *p++;
    value |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (value >> 3 == 0) return error.set(Code::kFieldZero, start);
      *tag = value;
      return p;
    }
  }
  return error.set(Code::kTagTooLong, start);
}

// A length: at most five bytes, below 2 GiB, and within the remaining bytes.
inline const u8* read_size(const u8* p, const u8* end, size_t* size, WireError& error) {
  const u8* start = p;
  uint64_t value = 0;
  if (end - p >= 2 && (p[0] & p[1] & 0x80) == 0) {  // most have one byte or two
    value = p[0] < 0x80 ? p[0] : (p[0] & 0x7fu) | static_cast<uint64_t>(p[1]) << 7;
    p += p[0] < 0x80 ? 1 : 2;
    if (value > static_cast<uint64_t>(end - p))
      return error.set(Code::kLengthPastEnd, start, end - p, static_cast<int64_t>(value));
    *size = static_cast<size_t>(value);
    return p;
  }
  for (int shift = 0; shift < 35; shift += 7) {
    if (p == end) return error.set(Code::kVarintTruncated, start);
    u8 byte = *p++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (value > static_cast<uint64_t>(end - p))
        return error.set(Code::kLengthPastEnd, start, end - p, static_cast<int64_t>(value));
      *size = static_cast<size_t>(value);
      return p;
    }
  }
  return error.set(Code::kVarintTooLong, start);
}

// A length of all the bytes to `end`; nullptr without an error if it has another value.
inline const u8* read_rest(const u8* p, const u8* end) {
  size_t left = static_cast<size_t>(end - p);
  if (left - 1 < 0x80) return *p == left - 1 ? p + 1 : nullptr;
  if (left - 2 < 0x4000) {
    size_t size = left - 2;
    if (p[0] == ((size & 0x7f) | 0x80) && p[1] == size >> 7) return p + 2;
  }
  WireError error;
  size_t size;
  p = read_size(p, end, &size, error);
  return p != nullptr && p + size == end ? p : nullptr;
}

// Skips the field whose tag was just read. `depth`: how many groups may still be opened.
const u8* skip_field(const u8* p, const u8* end, uint32_t tag, int depth, WireError& error);

inline uint64_t load64(const u8* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

inline uint32_t load32(const u8* p) {
  uint32_t word;
  std::memcpy(&word, p, 4);
  return word;
}

// Compares bytes inline when they are short, as most names and values are.
inline bool same_bytes(const u8* a, const u8* b, size_t size) {
  if (size > 16) return std::memcmp(a, b, size) == 0;
  if (size >= 8) return load64(a) == load64(b) && load64(a + size - 8) == load64(b + size - 8);
  if (size >= 4) return load32(a) == load32(b) && load32(a + size - 4) == load32(b + size - 4);
  for (size_t i = 0; i < size; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

// Copies bytes inline when they are short; the ranges do not overlap.
inline void copy_bytes(u8* to, const u8* from, size_t size) {
  if (size > 16) {
    std::memcpy(to, from, size);
  } else if (size >= 8) {
    std::memcpy(to, from, 8);
    std::memcpy(to + size - 8, from + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(to, from, 4);
    std::memcpy(to + size - 4, from + size - 4, 4);
  } else {
    for (size_t i = 0; i < size; ++i) to[i] = from[i];
  }
}

}  // namespace tfr
