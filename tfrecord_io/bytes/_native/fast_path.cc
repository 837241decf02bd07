#include "fast_path.h"

#include "cpu.h"
#include "feature.h"
#include "frame.h"

namespace tfr {
namespace {

inline bool matches(const Shape& shape, const u8* p, size_t n) {
  for (size_t i = 0; i < shape.head(); ++i)
    if (p[i] != static_cast<u8>(shape.base()[i] + (shape.varies()[i] & n))) return false;
  return true;
}

inline bool read_int64(const u8* p, size_t n, uint64_t* out) {
  WireError error;
  return n != 0 && read_varint(p, p + n, out, error) == p + n;
}

inline bool read_number(const u8* p, size_t n, bool is_float, uint64_t* out) {
  if (!is_float) return read_int64(p, n, out);
  *out = load32(p);
  return n == 4;
}

inline bool copy_text(u8* to, const u8* p, size_t n) { return copy_ascii(to, p, n); }

inline uint32_t checksum(const u8* p, size_t n) { return masked_crc32c(p, n); }

#include "fast_path_loop.inc"

Runs choose() {
  if (!use_fast_paths()) return {run_records, run_entries};
  if (const Runs* fast = use_avx512() ? runs_avx512() : nullptr) return *fast;
  if (const Runs* fast = runs_x86()) return *fast;
  if (const Runs* fast = runs_arm()) return *fast;
  return {run_records, run_entries};
}

// Not inlined, as the others need no aligned stack.
[[gnu::noinline]] void learn_shape(Name& name) { name.shape.learn(name.text, name.target->form); }

}  // namespace

const Runs runs = choose();

const u8* append_usual(Names& names, const u8* p, const u8* end, int64_t row) {
  FastEntry entry;
  bool full = false;
  if (!read_entry(p, end, entry)) return nullptr;
  Name* name = look_up(names, entry, &full);
  if (full) return nullptr;
  if (name == nullptr) return p;
  if (name->target == nullptr) return entry.end;
  FastResult done = append_fast(*name->target, row, entry.value, entry.end);
  if (done == FastResult::kDone && name->target->form != name->shape.form()) learn_shape(*name);
  return done == FastResult::kReject ? nullptr : entry.end;
}

}  // namespace tfr
