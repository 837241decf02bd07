#include "key_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "buffer.h"

namespace tfr {
namespace {

constexpr size_t kBucketRows = 4;  // at most, on average
constexpr int kPartitionBits = 9;
constexpr size_t kMostExamples = 5;

size_t size_of(const Span& key) { return static_cast<size_t>(key.end - key.begin); }

bool equal(const Span& a, const Span& b) {
  return size_of(a) == size_of(b) && (a.begin == a.end || std::memcmp(a.begin, b.begin, size_of(a)) == 0);
}

uint64_t upper_hash(const Span& key) { return hash_name(key.begin, size_of(key)) >> 32; }

}  // namespace

// Two passes in which the memory that is written next is in the cache: by the first bits of the hashes to partitions,
// and each of these by more bits to buckets.
KeyTable::KeyTable(const Keys& keys) : keys_(keys) {
  int bits = 0;
  while ((size_t{1} << bits) * kBucketRows < keys.rows) ++bits;
  shift_ = 32 - bits;
  int partition_shift = 32 - std::min(bits, kPartitionBits);
  std::vector<size_t> ends(size_t{1} << (32 - partition_shift));  // of each partition
  for (size_t row = 0; row < keys.rows; ++row)
    if (keys.has(row)) ++ends[upper_hash(keys.at(row)) >> partition_shift];
  size_t count = 0;
  for (size_t& end : ends) count += std::exchange(end, count);
  Buffer memory;
  memory.reserve((count + 1) * sizeof(Entry), 0);
  Entry* entries = memory.as<Entry>();
  for (size_t row = 0; row < keys.rows; ++row) {
    if (!keys.has(row)) continue;
    uint64_t hash = upper_hash(keys.at(row));
    entries[ends[hash >> partition_shift]++] = {static_cast<uint32_t>(hash), static_cast<uint32_t>(row)};
  }
  rows_.reserve(count);
  ends_.reserve((size_t{1} << bits) + 1);
  ends_.push_back(0);
  size_t begin = 0;
  for (size_t end : ends) {
    add_buckets(entries + begin, entries + end, (size_t{1} << bits) / ends.size());
    begin = end;
  }
  if (repeated != 0) rows_.shrink_to_fit();
}

// Adds the buckets of a partition, without the rows whose key an earlier row has.
void KeyTable::add_buckets(const Entry* begin, const Entry* end, size_t buckets) {
  std::vector<uint32_t> ends(buckets);
  for (const Entry* entry = begin; entry < end; ++entry) ++ends[bucket(entry->hash) % buckets];
  uint32_t count = 0;
  for (uint32_t& at : ends) count += std::exchange(at, count);
  std::vector<Entry> sorted(count);
  for (const Entry* entry = begin; entry < end; ++entry) sorted[ends[bucket(entry->hash) % buckets]++] = *entry;
  std::vector<uint32_t> kept;  // the hashes of the rows of a bucket
  const Entry* entry = sorted.data();
  for (uint32_t last : ends) {
    kept.clear();
    const size_t first = rows_.size();
    for (; entry < sorted.data() + last; ++entry) {
      size_t same = 0;
      while (same < kept.size() &&
             !(kept[same] == entry->hash && equal(keys_.at(entry->row), keys_.at(rows_[first + same]))))
        ++same;
      if (same == kept.size()) {
        kept.push_back(entry->hash);
        rows_.push_back(entry->row);
      } else {
        note({rows_[first + same], entry->row});
      }
    }
    ends_.push_back(static_cast<uint32_t>(rows_.size()));
  }
}

void KeyTable::note(const Repeated& found) {
  ++repeated;
  auto before = [](const Repeated& a, const Repeated& b) { return a.row < b.row; };
  if (examples.size() == kMostExamples && !before(found, examples.back())) return;
  examples.insert(std::upper_bound(examples.begin(), examples.end(), found, before), found);
  if (examples.size() > kMostExamples) examples.pop_back();
}

int64_t KeyTable::find(const Span& key) const {
  size_t at = bucket(upper_hash(key));
  for (uint32_t i = ends_[at]; i < ends_[at + 1]; ++i)
    if (equal(keys_.at(rows_[i]), key)) return rows_[i];
  return -1;
}

}  // namespace tfr
