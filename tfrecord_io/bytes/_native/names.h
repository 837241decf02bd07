// Feature names → columns. The name that last followed the one before is tried first, then a table that is indexed by a
// few bytes of the name, then a hash table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "column.h"
#include "fault.h"
#include "name_hash.h"
#include "wire.h"

namespace tfr {

// The bytes of a map entry with a single value, or with packed ones, up to that value: 0A Le 0A Lk key 12 Lv tag Ll 0A
// n. The three outer lengths follow from n as long as each has one byte, so one comparison checks name, kind and all
// lengths. Of a column of lists: 0A Le 0A Lk key 12 Lv tag n, where n is the size of the list with its field, and 0 of
// an empty one. Of a name that is not read: 0A Le 0A Lk key 12 n, where n is the size of the Feature.
class Shape {
 public:
  static constexpr size_t kMost = 88;              // bytes before the value
  static constexpr size_t kLoaded = 96;            // bytes that a comparison loads: of the entry, base() and varies()
  static constexpr size_t kReach = kLoaded + 128;  // bytes from the start of the entry that may be loaded

  // Matches no entry until it is learned.
  Shape() {
    base_[0] = 1;
    vary(0);
  }

  size_t head() const { return head_; }
  static constexpr size_t kMaxShort = 117;  // up to here all lengths of the entry have one byte, for any name that fits
  // Masks of the bytes after the head, and of those where n is added: of the first 64 bytes, and of the others.
  uint64_t after_head() const { return after_head_; }
  uint32_t high_after_head() const { return high_after_head_; }
  uint64_t varying() const { return varying_; }
  uint32_t high_varying() const { return high_varying_; }
  const u8* base() const { return base_; }
  const u8* varies() const { return varies_; }
  // The form of the columns for which it was learned.
  u8 form() const { return form_; }
  // Bytes of the key with its length, and the tags before and after it.
  size_t key_field() const { return base_[3] + size_t{3}; }

  void learn(const std::string& key, u8 form) {
    u8 tag = make_tag(form & ~uint32_t{kListForm}, kLen);
    if (form & kListForm) {
      learn(key, {make_tag(2, kLen), 2, tag, 0});
    } else {
      learn(key, {make_tag(2, kLen), 4, tag, 2, make_tag(1, kLen), 0});
    }
    form_ = form;
  }

  // The shape of a name that is not read.
  void learn_skipped(const std::string& key) { learn(key, {make_tag(2, kLen), 0}); }

 private:
  // `after_key`: the bytes between the key and the value, of which every second one is a size.
  void learn(const std::string& key, std::initializer_list<u8> after_key) {
    *this = Shape();
    size_t k = key.size(), head = 4 + k + after_key.size();
    if (head > kMost) return;
    varies_[0] = 0;
    varying_ = 0;
    const u8 fixed[] = {make_tag(1, kLen), static_cast<u8>(head - 2), make_tag(1, kLen), static_cast<u8>(k)};
    std::memcpy(base_, fixed, 4);
    std::memcpy(base_ + 4, key.data(), k);
    std::memcpy(base_ + 4 + k, after_key.begin(), after_key.size());
    vary(1);
    for (size_t at = k + 5; at < head; at += 2) vary(at);
    set_head(head);
  }

  void vary(size_t at) {
    varies_[at] = 0xff;
    if (at < 64) {
      varying_ |= uint64_t{1} << at;
    } else {
      high_varying_ |= uint32_t{1} << (at - 64);
    }
  }

  void set_head(size_t head) {
    head_ = static_cast<u8>(head);
    after_head_ = head < 64 ? ~uint64_t{0} << head : 0;
    high_after_head_ = head <= 64 ? ~uint32_t{0} : head < 96 ? ~uint32_t{0} << (head - 64) : 0;
  }

  // Most comparisons need the last two cache lines only, which Name::target and Name::next share.
  u8 varies_[kLoaded] = {};  // 0xff where n is added
  uint32_t high_varying_ = 0, high_after_head_ = 0;
  [[maybe_unused]] u8 unused_[24] = {};
  u8 base_[kMost] = {};  // the bytes for n = 0
  u8 head_ = 1;          // bytes before the value
  u8 form_ = 0;
  uint64_t varying_ = 0;
  uint64_t after_head_ = 0;
};

struct Name {
  alignas(64) Shape shape;
  Column* target = nullptr;  // the column; nullptr: not read
  Name* next = nullptr;      // the name that followed it last
  std::string text;
  int32_t column = -1;  // the number of the column; −1: not read

  bool is(const u8* data, size_t size) const {
    return text.size() == size && same_bytes(reinterpret_cast<const u8*>(text.data()), data, size);
  }
};

static_assert(sizeof(Shape) == 240 && offsetof(Name, next) == 248);

class Names {
 public:
  Names() { resize(); }

  // The names of the current record, in its order; there is room for all names.
  std::vector<Name*> met;
  size_t met_count = 0;

  // Where the name that is expected next is kept; it may be nullptr.
  Name** expected() { return met_count == 0 ? &first_ : &met[met_count - 1]->next; }

  // True if a further name may be met: a record with more names than are known has a name twice.
  bool has_room() const { return met_count < names_.size(); }

  // Adds a name to those of the current record.
  void meet(Name* name) {
    *expected() = name;
    met[met_count++] = name;
  }

  // Names that this may be, which the caller compares; most often the first one or none is. nullptr where there is
  // none. 8 bytes are readable at `data`.
  Name* const* candidates(const u8* data, size_t size) const { return &quick_[quick_index(data, size)]; }
  static constexpr size_t kCandidates = 2;

  // True if the expected name is worth a try in this record: not for a while after records with names in a changed
  // order.
  bool in_order() {
    if (unordered_ == 0) return true;
    --unordered_;
    return false;
  }
  void count_misses(size_t misses, size_t entries) {
    if (misses * 4 > entries + 4) unordered_ = 100;
  }

  Name* find(const u8* data, size_t size) {
    for (size_t i = hash_name(data, size) & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      int32_t at = slots_[i];
      if (at < 0) return nullptr;
      if (names_[static_cast<size_t>(at)].is(data, size)) return &names_[static_cast<size_t>(at)];
    }
  }

  void add(std::string text, int32_t column, Column* target) {
    names_.push_back({{}, target, nullptr, std::move(text), column});
    if (target == nullptr) names_.back().shape.learn_skipped(names_.back().text);
    if (names_.size() * 2 > slots_.size()) {
      resize();
    } else {
      place(static_cast<int32_t>(names_.size() - 1));
    }
  }

  // Removes all but the first `count` names.
  void keep(size_t count) {
    names_.resize(count);
    for (Name& name : names_) name.next = nullptr;
    first_ = nullptr;
    met_count = 0;
    resize();
  }

  size_t size() const { return names_.size(); }

 private:
  static constexpr size_t kQuickRatio = 16;  // places for each name, so that few share one

  void resize() {
    size_t size = std::bit_ceil(std::max<size_t>(16, names_.size() * 2));
    slots_.assign(size, -1);
    quick_.assign(size * kQuickRatio / 2 + kCandidates, nullptr);
    quick_shift_ = 64 - std::countr_zero(size * kQuickRatio / 2);
    met.resize(size);
    for (size_t n = 0; n < names_.size(); ++n) place(static_cast<int32_t>(n));
  }

  // Hashes the first, the last and the middle 8 bytes; of a shorter name all bytes, three times, without a branch on
  // the size.
  size_t quick_index(const u8* data, size_t size) const {
    size_t unused = size < 8 ? (64 - 8 * size) & 63 : 0, last = size < 8 ? 0 : size - 8,
           middle = size < 8 ? 0 : size / 2 - 4;
    uint64_t h = load64(data) << unused;
    h ^= std::rotl(load64(data + last) << unused, 23) ^ std::rotl(load64(data + middle) << unused, 43);
    return ((h ^ size) * kHashKey[1]) >> quick_shift_;
  }

  void place(int32_t n) {
    const std::string& text = names_[static_cast<size_t>(n)].text;
    u8 padded[8] = {};
    const u8* data = reinterpret_cast<const u8*>(text.data());
    if (text.size() < 8) data = static_cast<const u8*>(std::memcpy(padded, data, text.size()));
    Name** at = &quick_[quick_index(data, text.size())];
    for (size_t i = 0; i < kCandidates; ++i) {
      if (at[i] != nullptr) continue;
      at[i] = &names_[static_cast<size_t>(n)];
      break;
    }
    size_t i = hash_name(reinterpret_cast<const u8*>(text.data()), text.size()) & (slots_.size() - 1);
    while (slots_[i] >= 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = n;
  }

  std::deque<Name> names_;  // a deque, so that addresses stay valid
  std::vector<int32_t> slots_;
  std::vector<Name*> quick_;
  int quick_shift_ = 64;
  Name* first_ = nullptr;  // of the previous record
  int unordered_ = 0;      // records for which in_order() is false
};

}  // namespace tfr
