// The run of entries that look as those of the record before did: no parsing, no branch on lengths.
#pragma once

#include "names.h"

namespace tfr {

// Appends the entries from p on to row `row`, each as long as it has the Shape that its `hint` has learnt. `hint` moves
// along and stops at `hints_end`; an entry starts before `limit`, from where Shape::kReach bytes are readable, and ends by
// `end`. Gives the first byte that was not taken.
using AppendRun = const u8* (*)(Name**& hint, Name** hints_end, const u8* p, const u8* limit, const u8* end, int64_t row);

extern const AppendRun append_run;  // the fastest this machine runs

const u8* append_run_portable(Name**& hint, Name** hints_end, const u8* p, const u8* limit, const u8* end, int64_t row);
AppendRun append_run_x86();  // nullptr where the machine has no AVX2 and BMI2

}  // namespace tfr
