#include "wire.h"

namespace tfr {
namespace {

const u8* skip_plain(const u8* p, const u8* end, uint32_t tag, WireError& error) {
  uint64_t ignored;
  size_t size;
  switch (tag & 7) {
    case kVarint:
      return read_varint(p, end, &ignored, error);
    case kFixed64:
      return end - p >= 8 ? p + 8 : error.set(Code::kFixedTruncated, p);
    case kFixed32:
      return end - p >= 4 ? p + 4 : error.set(Code::kFixedTruncated, p);
    case kLen:
      p = read_size(p, end, &size, error);
      return p == nullptr ? nullptr : p + size;
    case kGroupEnd:
      return error.set(Code::kGroupEndUnexpected, p);
    default:
      return error.set(Code::kBadWireType, p, 0, tag & 7);
  }
}

}  // namespace

const u8* skip_field(const u8* p, const u8* end, uint32_t tag, int depth, WireError& error) {
  if ((tag & 7) != kGroupStart) return skip_plain(p, end, tag, error);
  uint32_t open[kDepthLimit];  // field numbers of the groups that are open
  int level = 0;
  if (depth <= 0) return error.set(Code::kGroupTooDeep, p);
  open[level++] = tag >> 3;
  while (level > 0) {
    const u8* start = p;
    if (p == end) return error.set(Code::kGroupUnclosed, p);
    p = read_tag(p, end, &tag, error);
    if (p == nullptr) return nullptr;
    if ((tag & 7) == kGroupStart) {
      if (level == depth) return error.set(Code::kGroupTooDeep, start);
      open[level++] = tag >> 3;
    } else if ((tag & 7) == kGroupEnd) {
      if (open[--level] != tag >> 3) return error.set(Code::kGroupEndUnexpected, start);
    } else {
      p = skip_plain(p, end, tag, error);
      if (p == nullptr) return nullptr;
    }
  }
  return p;
}

}  // namespace tfr
