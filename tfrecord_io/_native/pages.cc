#include "pages.h"

#ifdef __linux__
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

namespace tfr {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRegions = 64;
constexpr auto kKept = std::chrono::seconds(1);  // then they go back to the system with the next call

struct Region {
  uint8_t* data;
  size_t bytes;
  Clock::time_point since;
};

// The regions that are kept, the oldest first. In a process that was forked while another thread held the mutex, it is
// locked for ever, so nobody waits for it: without it, nothing is kept.
std::mutex mutex;
Region kept[kRegions];
size_t count = 0;
size_t sum = 0;
std::atomic<size_t> most_kept{0};

void remove(size_t index) {
  sum -= kept[index].bytes;
  --count;
  for (size_t i = index; i < count; ++i) kept[i] = kept[i + 1];
}

void unmap_oldest() {
  munmap(kept[0].data, kept[0].bytes);
  remove(0);
}

// Makes room for `bytes` of new memory, so that what is kept never adds to the peak of what is used.
void make_room(size_t bytes) {
  size_t least = sum > bytes ? sum - bytes : 0;
  while (sum > least) unmap_oldest();
}

void decay(Clock::time_point now) {
  while (count != 0 && now - kept[0].since > kKept) unmap_oldest();
}

// The smallest region that has room for `bytes`, or else the largest with room for `least`; `count` if there is none.
size_t best(size_t bytes, size_t least) {
  size_t found = count;
  for (size_t i = 0; i < count; ++i) {
    size_t own = kept[i].bytes, other = found == count ? 0 : kept[found].bytes;
    if (own >= bytes ? other < bytes || own < other : own >= least && own > other) found = i;
  }
  return found;
}

// Takes the first `bytes` of a region.
uint8_t* split(size_t index, size_t bytes) {
  uint8_t* data = kept[index].data;
  if (kept[index].bytes == bytes) {
    remove(index);
  } else {
    kept[index].data += bytes;
    kept[index].bytes -= bytes;
    sum -= bytes;
  }
  return data;
}

uint8_t* map_pages(size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapped = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  uint8_t* data = static_cast<uint8_t*>(mapped);
  size_t before = (kHugePage - reinterpret_cast<size_t>(data) % kHugePage) % kHugePage;
  if (before != 0) munmap(data, before);
  munmap(data + before + bytes, kHugePage - before);
  madvise(data + before, bytes, MADV_HUGEPAGE);
  return data + before;
}

}  // namespace

uint8_t* take_pages(size_t least, size_t* bytes) {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) return map_pages(*bytes);
  if (count != 0) decay(Clock::now());
  size_t index = best(*bytes, least);
  if (index != count) {
    *bytes = std::min(*bytes, kept[index].bytes);
    return split(index, *bytes);
  }
  make_room(*bytes);
  return map_pages(*bytes);
}

uint8_t* resize_pages(uint8_t* data, size_t bytes, size_t wanted) {
  if (std::unique_lock<std::mutex> lock(mutex, std::try_to_lock); lock.owns_lock()) {
    for (size_t i = 0; i < count; ++i) {  // kept behind them, where they were split
      if (kept[i].data == data + bytes && kept[i].bytes >= wanted - bytes) {
        split(i, wanted - bytes);
        return data;
      }
    }
    make_room(wanted - bytes);
  }
  void* moved = mremap(data, bytes, wanted, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) return nullptr;
  madvise(moved, wanted, MADV_HUGEPAGE);
  return static_cast<uint8_t*>(moved);
}

void give_pages(uint8_t* data, size_t bytes) {
  bool is_aligned = reinterpret_cast<size_t>(data) % kHugePage == 0;  // growth may have moved them
  size_t whole = is_aligned ? bytes / kHugePage * kHugePage : 0;
  if (whole < bytes) munmap(data + whole, bytes - whole);
  if (whole == 0) return;
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock.owns_lock() || whole > most_kept) {
    munmap(data, whole);
    return;
  }
  Clock::time_point now = Clock::now();
  decay(now);
  while (count == kRegions || sum + whole > most_kept) unmap_oldest();
  kept[count++] = Region{data, whole, now};
  sum += whole;
  madvise(data, whole, MADV_FREE);  // the system may take them before, when it needs memory
}

void drop_pages(uint8_t* data, size_t bytes) {
  if (bytes != 0) munmap(data, bytes);
}

size_t keep_pages(size_t most) {
  std::lock_guard<std::mutex> lock(mutex);
  size_t before = most_kept.exchange(most);
  while (sum > most) unmap_oldest();
  return before;
}

bool keeps_pages() { return most_kept != 0; }

}  // namespace tfr

#else

namespace tfr {

uint8_t* take_pages(size_t, size_t*) { return nullptr; }
uint8_t* resize_pages(uint8_t*, size_t, size_t) { return nullptr; }
void give_pages(uint8_t*, size_t) {}
void drop_pages(uint8_t*, size_t) {}
size_t keep_pages(size_t) { return 0; }
bool keeps_pages() { return false; }

}  // namespace tfr

#endif
