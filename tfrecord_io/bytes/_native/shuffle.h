// Draws from shuffle buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tfr {

// A full shuffle buffer of `size` rows, and the random numbers in [0, 1) of `count` draws from it.
struct BufferDraws {
  const double* numbers;
  size_t count;
  size_t size;
};

// Draws a row for each number, and puts the next row in its slot. Rows are numbered: those in the buffers, one buffer
// after the other, then the next rows. Sets the row of each draw, and the row in each slot after all draws. Returns the
// first draw whose number is not in [0, 1), or whose buffer is empty, before which all are made; the number of draws if
// there is none.
size_t exchange(const std::vector<BufferDraws>& buffers, int64_t* drawn, int64_t* slots);

}  // namespace tfr
