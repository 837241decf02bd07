#include "record_walk.h"

#include "text.h"

namespace tfr {
namespace {

constexpr uint32_t kFirst = make_tag(1, kLen), kSecond = make_tag(2, kLen);

// How many groups may still be opened inside messages of this depth: protobuf counts both.
constexpr int kRecordDepth = kDepthLimit, kMapDepth = 99, kEntryDepth = 98, kValueDepth = 97;

bool validate_steps(const u8* p, const u8* end, WireError& error) {
  while (p < end) {
    uint32_t tag = 0;
    size_t size = 0;
    if ((p = read_tag(p, end, &tag, error)) == nullptr) return false;
    if (tag != kFirst) {
      if ((p = skip_field(p, end, tag, kValueDepth, error)) == nullptr) return false;
      continue;
    }
    if ((p = read_size(p, end, &size, error)) == nullptr) return false;
    if (!validate_feature(p, p + size, kValueDepth - 1, error)) return false;
    p += size;
  }
  return true;
}

// True if the bytes are a serialized map entry of a text and possibly a message. An Example of an
// ExampleListWithContext, read as Features, has a single entry with such bytes as its key.
bool is_map_entry(Span key) {
  WireError error;
  size_t size = 0;
  const u8* p = key.begin;
  if (p == key.end || *p != kFirst || (p = read_size(p + 1, key.end, &size, error)) == nullptr || !is_utf8(p, size))
    return false;
  p += size;
  if (p == key.end) return true;
  return *p == kSecond && (p = read_size(p + 1, key.end, &size, error)) != nullptr && p + size == key.end;
}

}  // namespace

bool Walk::run(const u8* p, const u8* end, RecordType type) {
  if (record(p, end, type != RecordType::kExample)) {
    if (type == RecordType::kDetect && !has_list) drop_lists();
    return true;
  }
  if (type != RecordType::kDetect) return false;
  entries.clear();
  embedded.clear();
  has_feature = has_plain = has_unknown = has_list = false;
  error = WireError();
  has_bad_feature_ = false;
  fell_back = true;
  return record(p, end, false);  // field 2 is an unknown field of an Example
}

void Walk::drop_lists() {
  std::erase_if(entries, [](const Entry& entry) { return entry.steps; });
}

bool Walk::record(const u8* p, const u8* end, bool sequence) {
  while (p < end) {
    uint32_t tag = 0;
    size_t size = 0;
    if ((p = read_tag(p, end, &tag, error)) == nullptr) return false;
    bool lists = tag == kSecond && sequence;
    bool embeds = tag == (kEmbeddedField << 3 | kLen);
    if (tag != kFirst && !lists && !embeds) {
      if ((p = skip(p, end, tag, kRecordDepth)) == nullptr) return false;
      continue;
    }
    if ((p = read_size(p, end, &size, error)) == nullptr) return false;
    if (embeds) {
      embedded.push_back({p, p + size});
    } else if (!map(p, p + size, lists)) {
      return false;
    }
    p += size;
  }
  return true;
}

bool Walk::map(const u8* p, const u8* end, bool steps) {
  while (p < end) {
    uint32_t tag = 0;
    size_t size = 0;
    if ((p = read_tag(p, end, &tag, error)) == nullptr) return false;
    if (tag != kFirst) {
      if ((p = skip(p, end, tag, kMapDepth)) == nullptr) return false;
      continue;
    }
    if ((p = read_size(p, end, &size, error)) == nullptr) return false;
    if (!entry(p, p + size, steps)) return false;
    p += size;
  }
  return true;
}

bool Walk::entry(const u8* p, const u8* end, bool steps) {
  Entry result;
  result.key = {p, p};
  result.steps = steps;
  bool empty = true;  // neither key nor value
  while (p < end) {
    uint32_t tag = 0;
    size_t size = 0;
    if ((p = read_tag(p, end, &tag, error)) == nullptr) return false;
    if (tag != kFirst && tag != kSecond) {
      if ((p = skip(p, end, tag, kEntryDepth)) == nullptr) return false;
      continue;
    }
    empty = false;
    if ((p = read_size(p, end, &size, error)) == nullptr) return false;
    if (tag == kSecond) {
      result.values.push_back({p, p + size});
    } else if (is_utf8(p, size)) {
      result.key = {p, p + size};
    } else {
      error.set(Code::kKeyNotUtf8, p);
      return false;
    }
    p += size;
  }
  has_feature |= !empty;
  has_plain |= !empty && (!result.values.empty() || !is_map_entry(result.key));
  has_list |= !empty && steps;
  result.name =
      (steps ? lists_ : features_).find(result.key.begin, static_cast<size_t>(result.key.end - result.key.begin));
  bool parsed = result.name != nullptr && result.name->column >= 0;  // features that are not read are not parsed
  for (const Span& value : result.values) {
    if (!parsed) break;
    bool good = steps ? validate_steps(value.begin, value.end, error)
                      : validate_feature(value.begin, value.end, kValueDepth, error);
    if (good) continue;
    bad_feature_ = result.key;
    has_bad_feature_ = true;
    return false;
  }
  if (parsed || (result.name == nullptr && keeps_unknown_)) entries.push_back(std::move(result));
  return true;
}

}  // namespace tfr
