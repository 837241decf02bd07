// Growable memory for one Arrow buffer: 64-byte aligned, huge pages when large, given away without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tfr {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // Room for `bytes`, the first `used` kept; grows by doubling. Throws std::bad_alloc.
  void reserve(size_t bytes, size_t used) {
    if (bytes > capacity_) grow(bytes, used);
  }
  // Gives back what is beyond `bytes`, where that is worth it.
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
  }

 private:
  void grow(size_t bytes, size_t used);
  void release();

  uint8_t* data_ = nullptr;
  size_t capacity_ = 0;
  bool mapped_ = false;  // from mmap, not from the heap
};

}  // namespace tfr
