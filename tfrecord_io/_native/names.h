// Feature names → columns: the order of the previous record is tried first, then a hash table.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "column.h"
#include "fault.h"
#include "wire.h"

namespace tfr {

// The bytes of a map entry with a single value, up to that value: 0A Le 0A Lk key 12 Lv tag Ll 0A n. The three outer
// lengths follow from n as long as each has one byte, so one comparison checks name, kind and all lengths.
class Shape {
 public:
  static constexpr size_t kMost = 64;
  static constexpr size_t kReach = kMost + 32;  // bytes from the start of the entry that a comparison may load

  size_t head() const { return head_; }
  static constexpr size_t kMaxShort = 117;  // up to here all lengths of the entry have one byte, for any name that fits
  // Size of the value that starts at `value`.
  size_t value_size(const u8* value) const { return fixed_ != 0 ? fixed_ : value[-1]; }
  uint64_t after_head() const { return after_head_; }
  // A long value: its lengths have more than one byte, so the shape matches this value size only.
  void learn_long(const u8* entry, const u8* value, const u8* end, Kind kind) {
    size_t head = static_cast<size_t>(value - entry), size = static_cast<size_t>(end - value);
    if (head > kMost) return;
    *this = Shape();
    kind_ = kind;
    std::memcpy(base_, entry, head);
    head_ = head;
    fixed_ = size;
    after_head_ = head == 64 ? 0 : ~uint64_t{0} << head;
  }

  bool is_long() const { return fixed_ != 0; }
  size_t fixed() const { return fixed_; }
  const u8* base() const { return base_; }
  const u8* varies() const { return varies_; }
  Kind kind() const { return kind_; }

  void learn(const std::string& key, Kind kind) {
    *this = Shape();
    kind_ = kind;
    size_t k = key.size(), head = k + 10;
    if (head > kMost) return;
    const u8 fixed[] = {make_tag(1, kLen), static_cast<u8>(k + 8), make_tag(1, kLen), static_cast<u8>(k)};
    const u8 rest[] = {make_tag(2, kLen), 4, static_cast<u8>(make_tag(static_cast<uint32_t>(kind), kLen)), 2, make_tag(1, kLen), 0};
    std::memcpy(base_, fixed, 4);
    std::memcpy(base_ + 4, key.data(), k);
    std::memcpy(base_ + 4 + k, rest, 6);
    for (size_t at : {size_t{1}, k + 5, k + 7, k + 9}) varies_[at] = 0xff;
    head_ = head;
    after_head_ = head == 64 ? 0 : ~uint64_t{0} << head;
  }

 private:
  alignas(32) u8 base_[kMost] = {};    // the bytes for n = 0
  alignas(32) u8 varies_[kMost] = {};  // 0xff where n is added
  size_t head_ = 1;  // bytes before the value; 1 with an empty base matches nothing
  size_t fixed_ = 0;     // size of the value if it is fixed (long values), else 0
  uint64_t after_head_ = 0;  // mask of the bytes after the head
  Kind kind_ = Kind::kNone;
};

struct Name {
  std::string text;
  int32_t column = -1;       // −1: not read
  Column* target = nullptr;  // that column
  int learn_count = 0;            // how often its Shape was learned; limited, as lengths that keep changing are not worth it
  Shape shape;

  bool is(const u8* data, size_t size) const {
    return text.size() == size && same_bytes(reinterpret_cast<const u8*>(text.data()), data, size);
  }
};

class Names {
 public:
  Names() : slots_(16, -1) {}

  Name* find(const u8* data, size_t size) {
    for (size_t i = hash(data, size) & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      int32_t at = slots_[i];
      if (at < 0) return nullptr;
      if (names_[static_cast<size_t>(at)].is(data, size)) return &names_[static_cast<size_t>(at)];
    }
  }

  void add(std::string text, int32_t column, Column* target) {
    names_.push_back({std::move(text), column, target, 0, {}});
    if (names_.size() * 2 > slots_.size()) {
      slots_.assign(slots_.size() * 2, -1);
      for (size_t n = 0; n < names_.size(); ++n) place(static_cast<int32_t>(n));
    } else {
      place(static_cast<int32_t>(names_.size() - 1));
    }
  }

  // Removes all but the first `count` names.
  void keep(size_t count) {
    order.clear();
    names_.resize(count);
    slots_.assign(slots_.size(), -1);
    for (size_t n = 0; n < count; ++n) place(static_cast<int32_t>(n));
  }

  size_t size() const { return names_.size(); }

  // The names of the previous record, in its order.
  std::vector<Name*> order;

 private:
  void place(int32_t n) {
    const std::string& text = names_[static_cast<size_t>(n)].text;
    size_t i = hash(reinterpret_cast<const u8*>(text.data()), text.size()) & (slots_.size() - 1);
    while (slots_[i] >= 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = n;
  }

  static size_t hash(const u8* data, size_t size) {
    uint64_t h = size * 0x9e3779b97f4a7c15u;
    for (; size >= 8; data += 8, size -= 8) h = mix(h ^ load64(data));
    uint64_t rest = 0;
    if (size != 0) std::memcpy(&rest, data, size);
    h = mix(h ^ rest);
    return static_cast<size_t>(h ^ h >> 29);
  }
  static uint64_t mix(uint64_t h) {
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
  }

  std::deque<Name> names_;  // a deque, so that addresses stay valid
  std::vector<int32_t> slots_;
};

}  // namespace tfr
