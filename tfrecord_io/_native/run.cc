#include "run.h"

#include "cpu.h"
#include "feature.h"

namespace tfr {
namespace {

inline bool looks_like(const Shape& shape, const u8* p, size_t n) {
  for (size_t i = 0; i < shape.head(); ++i)
    if (p[i] != static_cast<u8>(shape.base()[i] + (shape.varies()[i] & n))) return false;
  return true;
}

inline bool exact_number(const u8* p, size_t n, uint64_t* out) {
  WireError error;
  return n != 0 && read_varint(p, p + n, out, error) == p + n;
}

inline bool surely_text(const u8*, size_t) { return false; }

#include "run_loop.inc"

AppendRun choose() {
  if (!use_fast_paths()) return append_run_portable;
  if (AppendRun fast = append_run_x86()) return fast;
  return append_run_portable;
}

}  // namespace

const AppendRun append_run = choose();

const u8* append_run_portable(Name**& hint, Name** hints_end, const u8* p, const u8* limit, const u8* end, int64_t row) {
  return run(hint, hints_end, p, limit, end, row);
}

}  // namespace tfr
