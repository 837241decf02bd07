// Preloaded before Python (LD_PRELOAD), lets one allocation of the compiled engine fail: those of all other code
// succeed. A test calls tfr_fail_at(n) before the call under test, and tfr_allocations() after it.
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> failing{-1}, allocations{0};  // −1: allocations are not counted

bool fails(void* caller) {
  if (failing < 0) return false;
  Dl_info info;
  if (dladdr(caller, &info) == 0 || std::strstr(info.dli_fname, "_kernel") == nullptr) return false;
  return ++allocations == failing;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" void tfr_fail_at(long number) {
  allocations = 0;
  failing = number;
}

extern "C" long tfr_allocations() { return allocations; }

void* operator new(size_t size) {
  void* data = fails(__builtin_return_address(0)) ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }

extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  static const auto real = next<void* (*)(size_t, size_t)>("aligned_alloc");
  return fails(__builtin_return_address(0)) ? nullptr : real(alignment, size);
}

extern "C" void* mmap(void* place, size_t size, int protection, int flags, int file, off_t offset) {
  static const auto real = next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  return fails(__builtin_return_address(0)) ? MAP_FAILED : real(place, size, protection, flags, file, offset);
}
