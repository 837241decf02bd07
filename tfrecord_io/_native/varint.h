// Packed runs of varints.
#pragma once

#include <cstddef>

#include "fault.h"

namespace tfr {

// Decodes [p, end) into `out`, which has room for end − p values. Gives how many, −1 where the run is malformed.
using DecodeRun = int64_t (*)(const u8* p, const u8* end, int64_t* out);

extern const DecodeRun decode_run;  // the fastest this machine runs

int64_t decode_run_portable(const u8* p, const u8* end, int64_t* out);
DecodeRun decode_run_x86();  // nullptr where the machine has no AVX2 and BMI2

}  // namespace tfr
