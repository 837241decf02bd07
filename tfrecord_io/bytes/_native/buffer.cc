#include "buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "pages.h"

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

// Bytes that the last batch of this process used of its chunks: a hint for the next batch.
std::atomic<size_t> used_before{0};

}  // namespace

void Chunk::release() {
  if (users.fetch_sub(1) != 1) return;
  give_pages(pages);
  delete this;
}

void Arena::close_chunk() {
  if (chunk_ != nullptr) {
#ifdef __linux__
    // The last huge page that was touched is resident as a whole, which matters for small batches.
    Pages& pages = chunk_->pages;
    size_t end = std::min(round_up(begin_, kHugePage), pages.touched),
           page_end = std::min(round_up(begin_, kPage), end);
    if (end - page_end > begin_ || !keeps_pages()) end = page_end;
    size_t unused = pages.touched - end;
    if (unused >= kReturnMinimum && (unused > begin_ || !keeps_pages())) untouch_pages(&pages, end);
#endif
    chunk_->release();
  }
  used_ += begin_;
  chunk_ = nullptr;
  begin_ = 0;
}

void Arena::close() {
  close_chunk();
  if (used_ != 0) used_before = used_;
  used_ = 0;
}

uint8_t* Arena::allocate([[maybe_unused]] size_t bytes, [[maybe_unused]] Chunk** chunk) {
#ifdef __linux__
  if (expected > 0 && expected < kSharedMinimum) return nullptr;
  bytes = round_up(bytes, kAlignment);
  if (chunk_ == nullptr || chunk_->pages.bytes - begin_ < bytes) {
    close_chunk();
    auto fresh = std::make_unique<Chunk>();  // first, as this may throw
    size_t before = used_before, more = before > used_ ? before - used_ : bytes;
    fresh->pages = take_pages(kChunk, std::min(more, kChunk));
    if (fresh->pages.data == nullptr) return nullptr;
    chunk_ = fresh.release();
  }
  Pages& pages = chunk_->pages;
  uint8_t* start = pages.data + begin_;
  begin_ += bytes;
  if (begin_ > pages.touched) touch_pages(&pages, round_up(begin_, kHugePage));
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
    give_pages({data_, capacity_, capacity_});
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
  least = round_up(std::max(least, wanted / 4 * 3), kHugePage);  // forecasts are a little too large
  wanted = round_up(wanted, kHugePage);
  uint8_t* fresh = mapped_ ? resize_pages(data_, capacity_, wanted) : nullptr;
  if (fresh != nullptr) {
    data_ = fresh;
    capacity_ = wanted;
    return true;
  }
  Pages pages = take_whole_pages(least, wanted);
  if (pages.data == nullptr) return false;
  replace(pages.data, pages.bytes, used, nullptr);
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
      shrink_pages(data_, capacity_, kept);
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
