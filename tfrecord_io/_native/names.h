// Feature names → columns: the order of the record before is tried first, then a hash.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "fault.h"
#include "wire.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tfr {

// How the last one-value Feature of a name looked on the wire up to its value: where the next one starts with
// the same bytes, its name, kind and length are known without parsing.
struct Shape {
  static constexpr size_t kMost = 48;
  alignas(16) u8 bytes[kMost] = {};
  uint32_t size = 0;  // 0: none known
  uint32_t value_size = 0;
  int kind = 0;     // of the column when it was learnt
  int strikes = 0;  // how often in a row it changed: a name whose length varies is not worth learning

  void learn(const u8* from, size_t length, size_t value, int its_kind) {
    size = 0;
    if (length > kMost || ++strikes > 32) return;
    std::memcpy(bytes, from, length);
    size = static_cast<uint32_t>(length);
    value_size = static_cast<uint32_t>(value);
    kind = its_kind;
  }

  // kMost bytes must be readable at p.
  bool matches(const u8* p) const {
#if defined(__SSE2__)
    uint64_t equal = 0;
    for (int i = 0; i < 3; ++i) {
      __m128i mine = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
      __m128i theirs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
      equal |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(mine, theirs)))) << (16 * i);
    }
    return size != 0 && (~equal & ((uint64_t{1} << size) - 1)) == 0;
#else
    return size != 0 && std::memcmp(bytes, p, size) == 0;
#endif
  }
};

struct Name {
  std::string text;
  int32_t column = -1;  // −1: left out
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

  void add(std::string text, int32_t column) {
    names_.push_back({std::move(text), column, {}});
    if (names_.size() * 2 > slots_.size()) {
      slots_.assign(slots_.size() * 2, -1);
      for (size_t n = 0; n < names_.size(); ++n) place(static_cast<int32_t>(n));
    } else {
      place(static_cast<int32_t>(names_.size() - 1));
    }
  }

  // Forgets all but the first `count` names.
  void keep(size_t count) {
    order.clear();
    names_.resize(count);
    slots_.assign(slots_.size(), -1);
    for (size_t n = 0; n < count; ++n) place(static_cast<int32_t>(n));
  }

  size_t size() const { return names_.size(); }

  // The name that stood at this place of the record before.
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

  std::deque<Name> names_;  // places stay
  std::vector<int32_t> slots_;
};

}  // namespace tfr
