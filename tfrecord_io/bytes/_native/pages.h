// Memory in huge pages. What was given back can be kept for a short time and used again: to zero a new page takes
// longer than to decode into it. By default up to 256 MiB are kept; see dev/decisions/kept-memory.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfr {

constexpr size_t kHugePage = size_t{2} << 20;

// Pages of which the first `touched` bytes were written to. The others have no memory yet: the system gives it to them
// when they are written to for the first time.
struct Pages {
  uint8_t* data = nullptr;
  size_t bytes = 0;  // a multiple of kHugePage, to which `data` is aligned
  size_t touched = 0;
};

// Pages that are kept or new; what is in them is arbitrary. `data` is nullptr if none are left. The first: `wanted`
// bytes, or the lesser number that is kept, down to `least`; all count as touched. The second: those of which about
// `touched` bytes will be written to.
Pages take_whole_pages(size_t least, size_t wanted);
Pages take_pages(size_t bytes, size_t touched);
// Says that the first `touched` bytes, more than before, are about to be written to.
void touch_pages(Pages* pages, size_t touched);
// Resizes pages, which may move, and of which all count as touched; what is in them stays. nullptr: the system cannot,
// and the pages are as they were.
uint8_t* resize_pages(uint8_t* data, size_t bytes, size_t wanted);
// Gives the pages behind `wanted` bytes, a multiple of the page size, back to the system.
void shrink_pages(uint8_t* data, size_t bytes, size_t wanted);
// Gives the memory behind the first `touched` bytes, but not the addresses, back to the system.
void untouch_pages(Pages* pages, size_t touched);
// Keeps the pages, or gives them back to the system; after growth, `data` and `bytes` are multiples of the page size
// only.
void give_pages(Pages pages);
// Sets how many bytes are kept at most, and gives the others back to the system; returns the number before.
size_t keep_pages(size_t most);
// True if any pages are kept.
bool keeps_pages();

}  // namespace tfr
