// Memory in huge pages. What was given back can be kept for a short time and used again: to zero a new page takes
// longer than to decode into it. By default nothing is kept; see dev/decisions/kept-memory.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfr {

constexpr size_t kHugePage = size_t{2} << 20;

// Maps `*bytes`, or the lesser number that is kept, down to `least`: multiples of kHugePage, aligned to it. What is in
// them is arbitrary. nullptr: none are left.
uint8_t* take_pages(size_t least, size_t* bytes);
// Resizes pages, which may move; what is in them stays. nullptr: the system cannot, and the pages are as they were.
uint8_t* resize_pages(uint8_t* data, size_t bytes, size_t wanted);
// Gives back pages; `data` is aligned to kHugePage, `bytes` to the page size.
void give_pages(uint8_t* data, size_t bytes);
// Gives back pages to the system.
void drop_pages(uint8_t* data, size_t bytes);
// Sets how many bytes are kept at most, and gives the others back to the system; returns the number before.
size_t keep_pages(size_t most);
// Whether any are kept.
bool keeps_pages();

}  // namespace tfr
