#include "key_table.h"

#include <algorithm>
#include <cstring>

namespace tfr {
namespace {

constexpr size_t kBucketRows = 4;  // at most, on average
constexpr size_t kMostExamples = 5;

struct Entry {
  uint32_t hash;  // the lower half
  uint32_t row;
};

size_t size_of(const Span& key) { return static_cast<size_t>(key.end - key.begin); }

bool equal(const Span& a, const Span& b) {
  return size_of(a) == size_of(b) && (a.begin == a.end || std::memcmp(a.begin, b.begin, size_of(a)) == 0);
}

uint64_t hash_of(const Span& key) { return hash_name(key.begin, size_of(key)); }

}  // namespace

KeyTable::KeyTable(const Keys& keys) : keys_(keys) {
  size_t buckets = 1;
  for (; buckets * kBucketRows < keys.rows; buckets *= 2) --shift_;
  std::vector<uint32_t> starts(buckets + 1);
  std::vector<uint64_t> hashes(keys.rows);
  size_t count = 0;
  for (size_t row = 0; row < keys.rows; ++row) {
    if (keys.valid != nullptr && !keys.valid[row]) continue;
    hashes[row] = hash_of(keys.at(row));
    ++starts[bucket(hashes[row]) + 1];
    ++count;
  }
  for (size_t i = 0; i < buckets; ++i) starts[i + 1] += starts[i];
  std::vector<Entry> entries(count);
  for (size_t row = 0; row < keys.rows; ++row) {
    if (keys.valid != nullptr && !keys.valid[row]) continue;
    entries[starts[bucket(hashes[row])]++] = {static_cast<uint32_t>(hashes[row]), static_cast<uint32_t>(row)};
  }
  hashes = {};  // each start is the end of its bucket now
  rows_.reserve(count);
  ends_.reserve(buckets + 1);
  ends_.push_back(0);
  std::vector<uint32_t> kept;  // the hashes of the bucket's rows
  size_t at = 0;
  for (size_t i = 0; i < buckets; ++i) {
    kept.clear();
    for (; at < starts[i]; ++at) {
      const Entry& entry = entries[at];
      Span key = keys.at(entry.row);
      size_t same = 0;
      while (same < kept.size() && !(kept[same] == entry.hash && equal(key, keys.at(rows_[ends_[i] + same])))) ++same;
      if (same == kept.size()) {
        kept.push_back(entry.hash);
        rows_.push_back(entry.row);
        continue;
      }
      ++repeated;
      Repeated found{rows_[ends_[i] + same], entry.row};
      auto before = [](const Repeated& a, const Repeated& b) { return a.row < b.row; };
      if (examples.size() == kMostExamples && !before(found, examples.back())) continue;
      examples.insert(std::upper_bound(examples.begin(), examples.end(), found, before), found);
      if (examples.size() > kMostExamples) examples.pop_back();
    }
    ends_.push_back(static_cast<uint32_t>(rows_.size()));
  }
  if (repeated != 0) rows_.shrink_to_fit();
}

int64_t KeyTable::find(const Span& key) const {
  size_t at = bucket(hash_of(key));
  for (uint32_t i = ends_[at]; i < ends_[at + 1]; ++i)
    if (equal(keys_.at(rows_[i]), key)) return rows_[i];
  return -1;
}

}  // namespace tfr
