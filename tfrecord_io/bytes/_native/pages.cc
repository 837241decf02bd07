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

struct Region : Pages {
  Clock::time_point since;
};

// The regions that are kept, the oldest first. In a process that was forked while another thread held the mutex, it is
// locked for ever, so it is not waited for: without it, nothing is kept.
std::mutex mutex;
Region kept[kRegions];
size_t count = 0;
size_t sum = 0;  // of the bytes that were touched
std::atomic<size_t> most_kept{0};
std::atomic<size_t> used{0}, peak{0};  // bytes that were touched and are not kept; the most of them

void remove(size_t index) {
  sum -= kept[index].touched;
  --count;
  for (size_t i = index; i < count; ++i) kept[i] = kept[i + 1];
}

void unmap_oldest() {
  munmap(kept[0].data, kept[0].bytes);
  remove(0);
}

void decay(Clock::time_point now) {
  while (count != 0 && now - kept[0].since > kKept) unmap_oldest();
}

// Finds the smallest fully touched region with room for `bytes`, else the largest with room for `least`; `count` if
// none.
size_t best_whole(size_t least, size_t bytes) {
  size_t found = count;
  for (size_t i = 0; i < count; ++i) {
    if (kept[i].touched < kept[i].bytes) continue;
    size_t size = kept[i].bytes, best = found == count ? 0 : kept[found].bytes;
    if (size >= bytes ? best < bytes || size < best : size >= least && size > best) found = i;
  }
  return found;
}

// Finds, among the smallest regions with room for `bytes`, the one whose touched memory is the smallest of at least
// `touched` bytes, else the largest; `count` if there is none.
size_t best_in_part(size_t bytes, size_t touched) {
  size_t found = count;
  for (size_t i = 0; i < count; ++i) {
    if (kept[i].bytes < bytes) continue;
    if (found != count && kept[i].bytes == kept[found].bytes) {
      size_t size = kept[i].touched, best = kept[found].touched;
      if (size >= touched ? best < touched || size < best : size > best) found = i;
    } else if (found == count || kept[i].bytes < kept[found].bytes) {
      found = i;
    }
  }
  return found;
}

// Takes the first `bytes` of a region.
Pages split(size_t index, size_t bytes) {
  Region& region = kept[index];
  Pages taken{region.data, bytes, std::min(bytes, region.touched)};
  if (region.bytes == bytes) {
    remove(index);
  } else {
    region.data += bytes;
    region.bytes -= bytes;
    region.touched -= taken.touched;
    sum -= taken.touched;
  }
  used += taken.touched;
  return taken;
}

Pages map_pages(size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapped = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) return {};
  uint8_t* data = static_cast<uint8_t*>(mapped);
  size_t before = (kHugePage - reinterpret_cast<size_t>(data) % kHugePage) % kHugePage;
  if (before != 0) munmap(data, before);
  munmap(data + before + bytes, kHugePage - before);
  madvise(data + before, bytes, MADV_HUGEPAGE);
  return {data + before, bytes, 0};
}

// Counts `bytes` that are about to be written to for the first time. Kept pages go back to the system in their place,
// where both would be more than this process has used at once before.
void account(size_t bytes) {
  size_t now = used += bytes, most = peak;
  while (now > most && !peak.compare_exchange_weak(most, now)) {
  }
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  while (count != 0 && now + sum > std::max(now, most)) unmap_oldest();
}

}  // namespace

Pages take_whole_pages(size_t least, size_t wanted) {
  if (std::unique_lock<std::mutex> lock(mutex, std::try_to_lock); lock.owns_lock() && count != 0) {
    decay(Clock::now());
    if (size_t index = best_whole(least, wanted); index != count)
      return split(index, std::min(wanted, kept[index].bytes));
  }
  Pages pages = map_pages(wanted);
  if (pages.data != nullptr) touch_pages(&pages, wanted);
  return pages;
}

Pages take_pages(size_t bytes, size_t touched) {
  if (std::unique_lock<std::mutex> lock(mutex, std::try_to_lock); lock.owns_lock() && count != 0) {
    decay(Clock::now());
    if (size_t index = best_in_part(bytes, touched); index != count) return split(index, bytes);
  }
  return map_pages(bytes);
}

void touch_pages(Pages* pages, size_t touched) {
  account(touched - pages->touched);
  pages->touched = touched;
}

uint8_t* resize_pages(uint8_t* data, size_t bytes, size_t wanted) {
  if (std::unique_lock<std::mutex> lock(mutex, std::try_to_lock); lock.owns_lock()) {
    for (size_t i = 0; i < count; ++i) {  // kept behind them, where they were split
      if (kept[i].data == data + bytes && kept[i].bytes >= wanted - bytes && kept[i].touched == kept[i].bytes) {
        split(i, wanted - bytes);
        return data;
      }
    }
  }
  account(wanted - bytes);
  void* moved = mremap(data, bytes, wanted, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) {
    used -= wanted - bytes;
    return nullptr;
  }
  madvise(moved, wanted, MADV_HUGEPAGE);
  return static_cast<uint8_t*>(moved);
}

void shrink_pages(uint8_t* data, size_t bytes, size_t wanted) {
  munmap(data + wanted, bytes - wanted);
  used -= bytes - wanted;
}

void untouch_pages(Pages* pages, size_t touched) {
  madvise(pages->data + touched, pages->touched - touched, MADV_DONTNEED);
  used -= pages->touched - touched;
  pages->touched = touched;
}

void give_pages(Pages pages) {
  used -= pages.touched;
  bool is_aligned = reinterpret_cast<size_t>(pages.data) % kHugePage == 0;  // growth may have moved them
  size_t whole = is_aligned ? pages.bytes / kHugePage * kHugePage : 0;
  if (whole < pages.bytes) munmap(pages.data + whole, pages.bytes - whole);
  if (whole == 0) return;
  size_t touched = std::min(whole, pages.touched);
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock.owns_lock() || touched == 0 || touched > most_kept) {
    munmap(pages.data, whole);
    return;
  }
  Clock::time_point now = Clock::now();
  decay(now);
  while (count == kRegions || sum + touched > most_kept) unmap_oldest();
  kept[count++] = Region{{pages.data, whole, touched}, now};
  sum += touched;
  madvise(pages.data, touched, MADV_FREE);  // the system may take them before, when it needs memory
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

Pages take_whole_pages(size_t, size_t) { return {}; }
Pages take_pages(size_t, size_t) { return {}; }
void touch_pages(Pages*, size_t) {}
uint8_t* resize_pages(uint8_t*, size_t, size_t) { return nullptr; }
void shrink_pages(uint8_t*, size_t, size_t) {}
void untouch_pages(Pages*, size_t) {}
void give_pages(Pages) {}
size_t keep_pages(size_t) { return 0; }
bool keeps_pages() { return false; }

}  // namespace tfr

#endif
