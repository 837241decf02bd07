#include "buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tfr {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;
constexpr size_t kMapFrom = size_t{1} << 20;   // below, the heap is cheaper than a system call
constexpr size_t kHugeFrom = size_t{4} << 20;  // below, a huge page wastes more than it saves

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

uint8_t* allocate(size_t bytes) {
  void* data = std::aligned_alloc(kAlignment, round_up(bytes, kAlignment));
  if (data == nullptr) throw std::bad_alloc();
  return static_cast<uint8_t*>(data);
}

}  // namespace

Buffer::~Buffer() { release(); }

void Buffer::release() {
  if (data_ == nullptr) return;
#ifdef __linux__
  if (mapped_) {
    munmap(data_, capacity_);
    return;
  }
#endif
  std::free(data_);
}

void Buffer::grow(size_t bytes, size_t used) {
  size_t wanted = bytes < 256 ? 256 : bytes;
  if (wanted < capacity_ * 2) wanted = capacity_ * 2;
#ifdef __linux__
  if (wanted >= kMapFrom) {
    wanted = round_up(wanted, kPage);
    void* fresh;
    if (mapped_) {
      fresh = mremap(data_, capacity_, wanted, MREMAP_MAYMOVE);
    } else {
      fresh = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (fresh == MAP_FAILED) throw std::bad_alloc();
    if (wanted >= kHugeFrom) madvise(fresh, wanted, MADV_HUGEPAGE);
    if (!mapped_) {
      if (used != 0) std::memcpy(fresh, data_, used);
      std::free(data_);
    }
    data_ = static_cast<uint8_t*>(fresh);
    capacity_ = wanted;
    mapped_ = true;
    return;
  }
#endif
  uint8_t* fresh = allocate(wanted);
  if (used != 0) std::memcpy(fresh, data_, used);
  std::free(data_);
  data_ = fresh;
  capacity_ = round_up(wanted, kAlignment);
}

void Buffer::trim(size_t bytes) {
#ifdef __linux__
  if (mapped_) {
    size_t kept = round_up(bytes == 0 ? 1 : bytes, kPage);
    if (kept < capacity_) {
      munmap(data_ + kept, capacity_ - kept);
      capacity_ = kept;
    }
    return;
  }
#endif
  if (capacity_ > 4096 && bytes < capacity_ / 2) {
    Buffer smaller;
    smaller.grow(bytes, 0);
    if (bytes != 0) std::memcpy(smaller.data_, data_, bytes);
    swap(smaller);
  }
}

}  // namespace tfr
