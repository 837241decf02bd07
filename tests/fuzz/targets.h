// What the fuzzer runs: one function for each kind of input, which checks what must hold and ends the process
// otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "fault.h"

namespace fuzz {

using tfr::u8;
using Bytes = std::vector<u8>;

// Ends the process with a message; the driver keeps the input.
[[noreturn]] inline void fail(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
  std::abort();
}
#define FUZZ_CHECK(condition) \
  if (!(condition)) fuzz::fail(#condition, __FILE__, __LINE__)

// The first bytes of an input choose options; 0 after its end.
class Choices {
 public:
  Choices(const u8* data, size_t size) : at_(data), end_(data + size) {}

  u8 byte() { return at_ == end_ ? u8{0} : *at_++; }
  bool flag() { return (byte() & 1) != 0; }
  template <class T, size_t N>
  T one_of(const T (&values)[N]) {
    return values[byte() % N];
  }
  Bytes rest() const { return Bytes(at_, end_); }

 private:
  const u8* at_;
  const u8* end_;
};

// A copy in memory of exactly its size, so that the sanitizer finds a read past it.
class Exact {
 public:
  Exact(const u8* data, size_t size) : data_(new u8[size]), size_(size) {
    if (size != 0) std::memcpy(data_.get(), data, size);
  }
  explicit Exact(const Bytes& bytes) : Exact(bytes.data(), bytes.size()) {}

  const u8* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<u8[]> data_;
  size_t size_;
};

// Blocks of a few bytes take long where an input is large.
inline size_t block_for(size_t block, size_t size) { return size <= 400 || block >= 16 ? block : 16; }

// Which checksums of an input are corrected before it is used: a mutated one would be refused at its first record.
enum class Repair : int { kNone = 0, kHeaders = 1, kAll = 2 };

// Corrects lengths that reach beyond the end, and checksums. Bytes that are too few for a frame stay as they are.
void repair(Bytes& data, Repair mode);

struct Target {
  const char* name;
  void (*run)(const u8* data, size_t size);
};

void run_frames(const u8* data, size_t size);
void run_example(const u8* data, size_t size);
void run_sequence(const u8* data, size_t size);
void run_append(const u8* data, size_t size);
void run_encoder(const u8* data, size_t size);
void run_primitives(const u8* data, size_t size);

constexpr Target kTargets[] = {
    {"frames", run_frames}, {"example", run_example}, {"sequence", run_sequence},
    {"append", run_append}, {"encoder", run_encoder}, {"primitives", run_primitives},
};

}  // namespace fuzz
