#include "varint.h"

#include "cpu.h"
#include "wire.h"

namespace tfr {
namespace {

constexpr uint64_t kHighBits = 0x8080808080808080u;

// One varint of any length; nullptr if malformed.
inline const u8* put_long(const u8* p, const u8* end, int64_t*& out) {
  WireError error;
  uint64_t value;
  p = read_varint(p, end, &value, error);
  if (p != nullptr) *out++ = static_cast<int64_t>(value);
  return p;
}

DecodeRun choose() {
  if (!use_fast_paths()) return decode_run_portable;
  if (DecodeRun fast = use_avx512() ? decode_run_avx512() : nullptr) return fast;
  if (DecodeRun fast = decode_run_x86()) return fast;
  return decode_run_portable;
}

EncodeRun choose_encoder() {
  if (!use_fast_paths()) return encode_run_portable;
  if (EncodeRun fast = use_avx512() ? encode_run_avx512() : EncodeRun{}; fast.put != nullptr) return fast;
  if (EncodeRun fast = encode_run_x86(); fast.put != nullptr) return fast;
  return encode_run_portable;
}

size_t size_portable(const uint64_t* values, size_t count) {
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += varint_size(values[i]);
  return size;
}

u8* put_portable(u8* out, const uint64_t* values, size_t count) {
  for (size_t i = 0; i < count; ++i) out = put_varint(out, values[i]);
  return out;
}

}  // namespace

const DecodeRun decode_run = choose();
const EncodeRun encode_run_portable = {size_portable, put_portable};
const EncodeRun encode_run = choose_encoder();

int64_t decode_run_portable(const u8* p, const u8* end, int64_t* out) {
  int64_t* start = out;
  if (p != end && end[-1] >= 0x80) return -1;
  while (end - p >= 8) {
    uint64_t word = load64(p), stops = ~word & kHighBits;
    if (stops == kHighBits) {
      for (int i = 0; i < 8; ++i) *out++ = p[i];
      p += 8;
    } else if (stops == 0) {
      if ((p = put_long(p, end, out)) == nullptr) return -1;
    } else {
      *out++ = static_cast<int64_t>(pack_sevens(word & (stops ^ (stops - 1)) & ~kHighBits));
      p += std::countr_zero(stops) / 8 + 1;
    }
  }
  while (p < end)
    if ((p = put_long(p, end, out)) == nullptr) return -1;
  return out - start;
}

std::vector<RunPath> run_paths() {
  std::vector<RunPath> paths = {{"portable", decode_run_portable, encode_run_portable}};
  if (decode_run_x86() != nullptr && encode_run_x86().put != nullptr)
    paths.push_back({"avx2", decode_run_x86(), encode_run_x86()});
  if (decode_run_avx512() != nullptr) paths.push_back({"avx512", decode_run_avx512(), encode_run_avx512()});
  return paths;
}

}  // namespace tfr
