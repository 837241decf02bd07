// Packed runs of varints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fault.h"

namespace tfr {

constexpr size_t kDecodeSlack = 16;  // values after the decoded ones that may be overwritten

// Decodes [p, end) into `out`, which has room for end − p + kDecodeSlack values. Returns the number of values, −1 if
// malformed.
using DecodeRun = int64_t (*)(const u8* p, const u8* end, int64_t* out);

extern const DecodeRun decode_run;  // the fastest implementation this CPU supports

int64_t decode_run_portable(const u8* p, const u8* end, int64_t* out);
DecodeRun decode_run_x86();     // nullptr if the CPU lacks AVX2, BMI, LZCNT or POPCNT
DecodeRun decode_run_avx512();  // nullptr if it lacks AVX-512 VBMI or VBMI2

constexpr size_t kRunSlack = 64;  // bytes after the run that encoding may overwrite

// How a run is encoded: `size` is the number of bytes of `count` values, `put` writes them and returns the end.
struct EncodeRun {
  size_t (*size)(const uint64_t* values, size_t count);
  u8* (*put)(u8* out, const uint64_t* values, size_t count);
};

extern const EncodeRun encode_run;
extern const EncodeRun encode_run_portable;
EncodeRun encode_run_x86();     // {nullptr, nullptr} if the CPU lacks AVX2, BMI2 or LZCNT
EncodeRun encode_run_avx512();  // {nullptr, nullptr} if it lacks AVX-512 VBMI or VBMI2

// An implementation that this CPU supports, for tests that compare implementations.
struct RunPath {
  const char* name;
  DecodeRun decode;
  EncodeRun encode;
};

std::vector<RunPath> run_paths();

}  // namespace tfr
