// Packed runs of varints.
#pragma once

#include <cstddef>

#include "fault.h"

namespace tfr {

// Decodes [p, end) into `out`, which has room for end − p values. Returns the number of values, −1 if malformed.
using DecodeRun = int64_t (*)(const u8* p, const u8* end, int64_t* out);

extern const DecodeRun decode_run;  // the fastest implementation this CPU supports

int64_t decode_run_portable(const u8* p, const u8* end, int64_t* out);
DecodeRun decode_run_x86();  // nullptr if the CPU lacks AVX2 or BMI2

}  // namespace tfr
