#include "frame_extents.h"

#include <algorithm>

#include "frame.h"

namespace tfr {
namespace {

size_t sum_of(const int64_t* lengths, size_t count) {
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) total += static_cast<size_t>(lengths[i]);
  return total;
}

}  // namespace

size_t join_extents(const u8* data, const int64_t* starts, const int64_t* lengths, size_t count, Buffer& out) {
  out.reserve(sum_of(lengths, count), 0);
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t length = static_cast<size_t>(lengths[i]);
    if (length != 0) std::memcpy(out.as<u8>() + at, data + starts[i], length);
    at += length;
  }
  out.trim(at);
  return at;
}

size_t frame_extents(const u8* data, const int64_t* starts, const int64_t* lengths, size_t count, size_t parts,
                     Buffer& out) {
  size_t at = 0, rows = count / parts;
  out.reserve(sum_of(lengths, rows * parts) + rows * kFrameBytes, 0);
  for (size_t row = 0; row < rows; ++row) {
    size_t begin = at + kHeaderBytes, end = begin;
    for (size_t i = row * parts; i < (row + 1) * parts; ++i) {
      size_t length = static_cast<size_t>(lengths[i]);
      if (length != 0) copy_bytes(out.as<u8>() + end, data + starts[i], length);
      end += length;
    }
    close_frame(out.as<u8>() + at, end - begin);
    at = end + kFooterBytes;
  }
  return at;
}

size_t frame_window(const u8* data, const int64_t* starts, const int64_t* lengths, size_t count, size_t skip, u8* out,
                    size_t size) {
  size_t at = 0;
  auto put = [&](const u8* from, size_t n) {
    size_t left_out = std::min(skip, n);
    skip -= left_out;
    n = std::min(n - left_out, size - at);
    if (n != 0) std::memcpy(out + at, from + left_out, n);
    at += n;
  };
  for (size_t i = 0; i < count && at < size; ++i) {
    constexpr u8 kFooter[kFooterBytes] = {};
    u8 header[kHeaderBytes];
    write_header(header, static_cast<uint64_t>(lengths[i]));
    put(header, kHeaderBytes);
    if (lengths[i] != 0) put(data + starts[i], static_cast<size_t>(lengths[i]));
    put(kFooter, kFooterBytes);
  }
  return at;
}

}  // namespace tfr
