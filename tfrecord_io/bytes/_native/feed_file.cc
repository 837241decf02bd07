#include "feed_file.h"

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <io.h>
#include <windows.h>
#else
#include <unistd.h>

#include <cerrno>
#endif

#include <algorithm>

#include "frame.h"

namespace tfr {
namespace {

// How many bytes were read, from byte `at` of the file on: none at its end and on errors. On Windows this moves the
// position of the descriptor, which nothing here depends on.
#ifdef _WIN32
int64_t read_at(int descriptor, u8* to, size_t size, int64_t at) {
  OVERLAPPED place = {};
  place.Offset = static_cast<DWORD>(at);
  place.OffsetHigh = static_cast<DWORD>(at >> 32);
  HANDLE file = reinterpret_cast<HANDLE>(_get_osfhandle(descriptor));
  DWORD got = 0;
  return ReadFile(file, to, static_cast<DWORD>(std::min(size, size_t{1} << 30)), &got, &place) ? got : 0;
}
#else
int64_t read_at(int descriptor, u8* to, size_t size, int64_t at) {
  while (true) {
    ssize_t got = pread(descriptor, to, size, static_cast<off_t>(at));
    if (got >= 0 || errno != EINTR) return got;
  }
}
#endif

}  // namespace

// Memory and file have the same offset in a page: where they nearly have, the system copies at a third of the speed.
const u8* FileWindows::read(int64_t begin, int64_t end) const {
  if (end > end_of_room(begin)) return nullptr;
  int64_t first = kept_from < 0 ? begin : kept_from;
  u8* data = memory + first % static_cast<int64_t>(kPage) + (begin - first);
  size_t size = static_cast<size_t>(end - begin), done = 0;
  while (done < size) {
    int64_t got = read_at(descriptor, data + done, size - done, begin + static_cast<int64_t>(done));
    if (got <= 0) return nullptr;
    done += static_cast<size_t>(got);
  }
  return data;
}

int64_t feed_file(Decoder& decoder, const FileWindows& windows, int64_t begin, int64_t end, int64_t max_records,
                  int64_t max_bytes) {
  int64_t at = begin;
  while (at < end && max_records != 0) {
    int64_t stop = std::min(at + static_cast<int64_t>(windows.window_bytes), end);
    stop = std::min(
        {std::max(stop, at + static_cast<int64_t>(kHeaderBytes)), windows.file_bytes, windows.end_of_room(at)});
    const u8* data = stop > at ? windows.read(at, stop) : nullptr;
    if (data == nullptr) break;
    size_t size = static_cast<size_t>(stop - at);
    FrameHeader header = read_frame(data, size, windows.max_record_bytes, false, decoder.checks_crc());
    if (header.code != Code::kOk || size < kHeaderBytes) break;
    if (!header.whole) {  // the record goes on behind the window
      stop = at + header.length + static_cast<int64_t>(kFrameBytes);
      if (stop - at > windows.most_record_bytes || stop > windows.file_bytes) break;
      data = windows.read(at, stop);
      if (data == nullptr) break;
      size = static_cast<size_t>(stop - at);
    }
    Progress done = decoder.feed(data, size, 0, max_records, max_bytes, stop == windows.file_bytes);
    at += done.consumed;
    if (max_records > 0) max_records -= done.records;
    if (done.fault || done.full || done.consumed == 0) break;
  }
  return at - begin;
}

}  // namespace tfr
