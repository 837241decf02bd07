#include "text_numpy.h"

#include <cstring>

namespace tfr {

namespace {

struct Allocator;  // npy_string_allocator: owns the memory of long strings, and a lock

// Numbers of the functions, as in numpy/__multiarray_api.h.
constexpr int kPack = 314, kPackNull = 315, kAcquire = 316, kRelease = 318;
using Pack = int (*)(Allocator*, void* item, const char* text, size_t size);
using PackNull = int (*)(Allocator*, void* item);
using Acquire = Allocator* (*)(const void* dtype);
using Release = void (*)(Allocator*);

template <class Function>
Function function(void* const* api, int number) {
  return reinterpret_cast<Function>(api[number]);
}

}  // namespace

template <class Offset>
bool fill_strings(void* const* api, const void* dtype, u8* items, size_t count, const bool* valid,
                  const Offset* offsets, const u8* text) {
  Pack pack = function<Pack>(api, kPack);
  PackNull pack_null = function<PackNull>(api, kPackNull);
  Allocator* allocator = function<Acquire>(api, kAcquire)(dtype);
  const u8* missing = nullptr;  // an item that owns no memory, so it may be copied
  bool done = true;
  for (size_t i = 0; i < count && done; ++i, items += kStringBytes) {
    size_t size = static_cast<size_t>(offsets[i + 1] - offsets[i]);
    if (valid != nullptr && !valid[i]) {
      if (missing != nullptr) {
        std::memcpy(items, missing, kStringBytes);
      } else {
        done = pack_null(allocator, items) >= 0;
        missing = items;
      }
    } else if (size != 0) {
      done = pack(allocator, items, reinterpret_cast<const char*>(text) + offsets[i], size) >= 0;
    }
  }
  function<Release>(api, kRelease)(allocator);
  return done;
}

template bool fill_strings<int32_t>(void* const*, const void*, u8*, size_t, const bool*, const int32_t*, const u8*);
template bool fill_strings<int64_t>(void* const*, const void*, u8*, size_t, const bool*, const int64_t*, const u8*);

}  // namespace tfr
