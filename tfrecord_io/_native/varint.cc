#include "varint.h"

#include "cpu.h"
#include "wire.h"

namespace tfr {
namespace {

DecodeRun choose() {
  if (!use_fast_paths()) return decode_run_portable;
  if (DecodeRun fast = decode_run_x86()) return fast;
  return decode_run_portable;
}

}  // namespace

const DecodeRun decode_run = choose();

int64_t decode_run_portable(const u8* p, const u8* end, int64_t* out) {
  int64_t* start = out;
  WireError error;
  while (p < end) {
    uint64_t value;
    p = read_varint(p, end, &value, error);
    if (p == nullptr) return -1;
    *out++ = static_cast<int64_t>(value);
  }
  return out - start;
}

}  // namespace tfr
