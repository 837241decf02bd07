#include "buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "pages.h"

#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef _WIN32
#include <malloc.h>
#endif

namespace tfr {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;
constexpr size_t kChunk = size_t{16} << 20;
constexpr size_t kShareMinimum = size_t{64} << 10;    // smaller buffers come from the heap, as they may grow,
constexpr size_t kForecastShareMinimum = 4096;        // unless their final size is known
constexpr size_t kMapMinimum = size_t{4} << 20;       // larger buffers get huge pages of their own
constexpr size_t kReturnMinimum = size_t{256} << 10;  // unused memory of a huge page that is worth a system call
constexpr int64_t kSharedMinimum = int64_t{512}
                                   << 10;  // batches of fewer payload bytes would waste most of a huge page
constexpr int64_t kForecastMinimum = int64_t{1} << 18;  // no forecast before this many payload bytes

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Windows' C library has no std::aligned_alloc, as its std::free cannot release such memory.
#ifdef _WIN32
void* allocate_aligned(size_t bytes) { return _aligned_malloc(bytes, kAlignment); }
void free_aligned(void* data) { _aligned_free(data); }
#else
void* allocate_aligned(size_t bytes) { return std::aligned_alloc(kAlignment, bytes); }
void free_aligned(void* data) { std::free(data); }
#endif

}  // namespace

void Chunk::release() {
  if (users.fetch_sub(1) != 1) return;
  if (is_split) {
    drop_pages(data, size);  // a page of which parts were given back would be zeroed in small ones
  } else {
    give_pages(data, size);
  }
  delete this;
}

void Arena::close() {
  if (chunk_ != nullptr) {
#ifdef __linux__
    // The last huge page that was touched is resident as a whole, which matters for small batches.
    size_t end = round_up(begin_, kPage), resident = std::min(round_up(begin_, kHugePage), chunk_->size);
    size_t unused = resident - end;
    if (unused >= kReturnMinimum && (unused > begin_ || !keeps_pages())) {
      madvise(chunk_->data + end, unused, MADV_DONTNEED);
      chunk_->is_split = true;
    }
#endif
    chunk_->release();
  }
  chunk_ = nullptr;
  begin_ = 0;
}

uint8_t* Arena::allocate([[maybe_unused]] size_t bytes, [[maybe_unused]] Chunk** chunk) {
#ifdef __linux__
  if (expected > 0 && expected < kSharedMinimum) return nullptr;
  bytes = round_up(bytes, kAlignment);
  if (chunk_ == nullptr || chunk_->size - begin_ < bytes) {
    close();
    auto fresh = std::unique_ptr<Chunk>(new Chunk{nullptr, kChunk});  // first, as this may throw
    fresh->data = take_pages(kChunk, &fresh->size);
    if (fresh->data == nullptr) return nullptr;
    chunk_ = fresh.release();
  }
  uint8_t* start = chunk_->data + begin_;
  begin_ += bytes;
  chunk_->users.fetch_add(1);
  *chunk = chunk_;
  return start;
#else
  return nullptr;
#endif
}

size_t Arena::forecast(size_t used) const {
  if (done < kForecastMinimum || expected <= done) return 0;
  return static_cast<size_t>(static_cast<double>(used) * static_cast<double>(expected) / static_cast<double>(done) *
                             1.05) +
         64;
}

void Buffer::release() {
  if (chunk_ != nullptr) {
    chunk_->release();
  } else if (mapped_) {
    give_pages(data_, capacity_);
  } else {
    free_aligned(data_);
  }
}

void Buffer::replace(uint8_t* fresh, size_t capacity, size_t used, Chunk* chunk) {
  if (used != 0) std::memcpy(fresh, data_, used);
  release();
  data_ = fresh;
  capacity_ = capacity;
  chunk_ = chunk;
  mapped_ = false;
}

bool Buffer::grow_in_arena(size_t wanted, size_t used) {
  Chunk* chunk = nullptr;
  uint8_t* fresh = arena_->allocate(wanted, &chunk);
  if (fresh == nullptr) return false;
  replace(fresh, wanted, used, chunk);
  return true;
}

bool Buffer::grow_mapped(size_t least, size_t wanted, size_t used) {
  wanted = round_up(wanted, kHugePage);
  uint8_t* fresh = mapped_ ? resize_pages(data_, capacity_, wanted) : nullptr;
  if (fresh != nullptr) {
    data_ = fresh;
    capacity_ = wanted;
    return true;
  }
  least = round_up(std::max(least, wanted / 4 * 3), kHugePage);  // forecasts are a little too large
  fresh = take_pages(least, &wanted);
  if (fresh == nullptr) return false;
  replace(fresh, wanted, used, nullptr);
  mapped_ = true;
  return true;
}

void Buffer::grow(size_t bytes, size_t used) {
  size_t wanted = std::max({bytes, capacity_ * 2, size_t{256}});
  size_t forecast = arena_ != nullptr ? arena_->forecast(used) : 0;
  wanted = std::max(wanted, forecast);
  if (wanted >= kMapMinimum && grow_mapped(bytes, wanted, used)) return;
  size_t share_minimum = wanted == forecast ? kForecastShareMinimum : kShareMinimum;
  if (wanted >= share_minimum && wanted < kMapMinimum && arena_ != nullptr && grow_in_arena(wanted, used)) return;
  if (mapped_) throw std::bad_alloc();
  wanted = round_up(wanted, kAlignment);
  void* fresh = allocate_aligned(wanted);
  if (fresh == nullptr) throw std::bad_alloc();
  replace(static_cast<uint8_t*>(fresh), wanted, used, nullptr);
}

void Buffer::trim(size_t bytes) {
  arena_ = nullptr;
  if (chunk_ != nullptr) return;  // the untouched rest costs no memory
#ifdef __linux__
  if (mapped_) {
    size_t kept = round_up(std::max(bytes, size_t{1}), kHugePage);  // whole pages can be used again
    if (kept > bytes + bytes / 4 || !keeps_pages()) kept = round_up(std::max(bytes, size_t{1}), kPage);
    if (kept < capacity_) {
      munmap(data_ + kept, capacity_ - kept);
      capacity_ = kept;
    }
    return;
  }
#endif
  if (capacity_ > kPage && bytes < capacity_ / 2) {
    size_t kept = round_up(std::max(bytes, size_t{1}), kAlignment);
    void* smaller = allocate_aligned(kept);
    if (smaller != nullptr) replace(static_cast<uint8_t*>(smaller), kept, bytes, nullptr);
  }
}

}  // namespace tfr
