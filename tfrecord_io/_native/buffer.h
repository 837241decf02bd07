// Growable memory for one Arrow buffer: 64-byte aligned, given away without a copy. The middle-sized buffers of a batch
// share a few large allocations in huge pages (Arena), which are freed when the last of their buffers is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tfr {

// A large allocation that several buffers live in.
struct Chunk {
  uint8_t* data;
  size_t size;
  std::atomic<int64_t> users{1};

  void release();
};

// Where the buffers of one batch grow, and how much is still to come.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { close(); }

  // Ends the batch: later buffers share nothing with those before.
  void close();
  // `bytes` of a chunk with a use counted for the caller; nullptr where the machine has no large allocations.
  uint8_t* allocate(size_t bytes, Chunk** chunk);
  // What a buffer with `used` bytes will come to, by the share of the input that is done; 0 if nobody knows.
  size_t forecast(size_t used) const;

  int64_t expected = 0;  // payload bytes of the whole batch, if known
  int64_t done = 0;      // payload bytes decoded

 private:
  Chunk* chunk_ = nullptr;
  size_t begin_ = 0;  // of the free rest of the chunk
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

  // Room for `bytes`, the first `used` kept; grows at least twofold. Throws std::bad_alloc.
  void reserve(size_t bytes, size_t used) {
    if (bytes > capacity_) grow(bytes, used);
  }
  // Gives back what is beyond `bytes`, where that is worth it. The buffer may outlive its arena from here on.
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
  bool grow_mapped(size_t wanted, size_t used);
  void replace(uint8_t* fresh, size_t capacity, size_t used, Chunk* chunk);
  void release();

  uint8_t* data_ = nullptr;
  size_t capacity_ = 0;
  bool mapped_ = false;     // from mmap, by itself
  Chunk* chunk_ = nullptr;  // or inside this; else from the heap
  Arena* arena_ = nullptr;
};

}  // namespace tfr
