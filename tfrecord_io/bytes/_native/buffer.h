// Growable memory for one Arrow buffer: 64-byte aligned, handed over without a copy. The medium-sized buffers of a
// batch share a few large allocations in huge pages (Arena), each freed together with the last buffer in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "pages.h"

namespace tfr {

// A large allocation shared by several buffers.
struct Chunk {
  Pages pages;
  std::atomic<int64_t> users{1};

  void release();
};

// Allocates the buffers of one batch and forecasts their final size.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { close(); }

  // Ends the batch: later buffers use new chunks.
  void close();
  // Takes `bytes` of a chunk and counts the caller as its user; nullptr for a small batch, and without huge pages.
  uint8_t* allocate(size_t bytes, Chunk** chunk);
  // Final size of a buffer that has `used` bytes now, by the share of the input that is done; 0 if unknown.
  size_t forecast(size_t used) const;

  int64_t expected = 0;  // payload bytes of the whole batch, if known
  int64_t done = 0;      // payload bytes decoded

 private:
  void close_chunk();

  Chunk* chunk_ = nullptr;
  size_t begin_ = 0;  // offset of the chunk's free space
  size_t used_ = 0;   // bytes of the chunks before it, of the same batch
};

class Buffer {
 public:
  explicit Buffer(Arena* arena = nullptr) : arena_(arena) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(); }

  // Makes room for `bytes`, keeping the first `used`; grows at least twofold. Throws std::bad_alloc.
  void reserve(size_t bytes, size_t used) {
    if (bytes > capacity_) grow(bytes, used);
  }
  // Frees memory after `bytes` if it is worth it. From here on the buffer may outlive its arena.
  void trim(size_t bytes);

  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }
  size_t capacity() const { return capacity_; }

  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(mapped_, other.mapped_);
    std::swap(chunk_, other.chunk_);
    std::swap(arena_, other.arena_);
  }

 private:
  void grow(size_t bytes, size_t used);
  bool grow_in_arena(size_t wanted, size_t used);
  bool grow_mapped(size_t least, size_t wanted, size_t used);
  void replace(uint8_t* fresh, size_t capacity, size_t used, Chunk* chunk);
  void release();

  uint8_t* data_ = nullptr;
  size_t capacity_ = 0;
  bool mapped_ = false;     // memory is from mmap, not shared
  Chunk* chunk_ = nullptr;  // memory is in this chunk; neither: from the heap
  Arena* arena_ = nullptr;
};

}  // namespace tfr
