// Lets every n-th allocation of the kernel fail in small reads and writes: each ends in std::bad_alloc, or in the
// result where the kernel has another way, and frees all memory. The linker puts the functions below in place of the C
// library's
// (-Wl,--wrap), and operator new is replaced; the production build has none of it.
#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "arrow_import.h"
#include "decoding.h"
#include "encoder.h"
#include "frame.h"
#include "resync.h"

namespace {

bool armed = false;
int64_t allocations = 0, failing = 0;  // the number of the one that fails
bool all_after = false;                // those after it fail too
int64_t mapped = 0;                    // bytes

bool fails() {
  if (!armed) return false;
  ++allocations;
  return failing != 0 && (all_after ? allocations >= failing : allocations == failing);
}

}  // namespace

void* operator new(size_t size) {
  void* data = fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }

extern "C" {

void* __real_aligned_alloc(size_t alignment, size_t size);
void* __real_mmap(void* place, size_t size, int protection, int flags, int file, off_t offset);
void* __real_mremap(void* data, size_t size, size_t wanted, int flags, ...);
int __real_munmap(void* data, size_t size);

void* __wrap_aligned_alloc(size_t alignment, size_t size) {
  return fails() ? nullptr : __real_aligned_alloc(alignment, size);
}

void* __wrap_mmap(void* place, size_t size, int protection, int flags, int file, off_t offset) {
  if (fails()) return MAP_FAILED;
  mapped += static_cast<int64_t>(size);
  return __real_mmap(place, size, protection, flags, file, offset);
}

void* __wrap_mremap(void* data, size_t size, size_t wanted, int flags, ...) {
  if (fails()) return MAP_FAILED;
  mapped += static_cast<int64_t>(wanted) - static_cast<int64_t>(size);
  return __real_mremap(data, size, wanted, flags);
}

int __wrap_munmap(void* data, size_t size) {
  mapped -= static_cast<int64_t>(size);
  return __real_munmap(data, size);
}
}

namespace {

using namespace tfr;
using fuzz::Bytes;

void put_field(std::string& out, uint32_t field, const std::string& content) {
  u8 head[20];
  u8* end = put_varint(put_varint(head, field << 3 | kLen), content.size());
  out.append(reinterpret_cast<char*>(head), static_cast<size_t>(end - head));
  out += content;
}

std::string field(uint32_t number, const std::string& content) {
  std::string out;
  put_field(out, number, content);
  return out;
}

std::string entry(const std::string& name, const std::string& value) {
  return field(1, field(1, name) + field(2, value));
}

std::string int64_list(size_t count) { return field(3, field(1, std::string(count, '\5'))); }
std::string float_list(size_t count) { return field(2, field(1, std::string(count * 4, '\1'))); }
std::string bytes_list(size_t count, size_t size) {
  std::string list;
  for (size_t i = 0; i < count; ++i) put_field(list, 1, std::string(size, i % 2 != 0 ? '\xff' : 'x'));
  return field(1, list);
}

void put_record(Bytes& file, const std::string& payload) {
  size_t at = file.size();
  file.resize(at + payload.size() + kFrameBytes);
  std::memcpy(file.data() + at + kHeaderBytes, payload.data(), payload.size());
  close_frame(file.data() + at, payload.size());
}

// Examples whose columns have values, nulls, one value and several, and grow.
Bytes examples(size_t rows, size_t values) {
  Bytes file;
  for (size_t row = 0; row < rows; ++row) {
    std::string features = entry("i", int64_list(1));
    if (row % 3 != 0) features += entry("b", bytes_list(1, 40)) + entry("f", float_list(1));
    if (row % 2 != 0)
      features += entry("n", int64_list(values)) + entry("l", bytes_list(3, values)) + entry("g", float_list(values));
    if (row == rows / 2)
      features +=
          entry("a name that is not kept inside of a string's object", bytes_list(2, 300)) + std::string("\x78\x01");
    put_record(file, field(1, features));
  }
  return file;
}

// Columns that need memory of every kind: shared by several, and mapped, and then remapped as they grow.
Bytes large_examples() {
  Bytes file;
  for (size_t row = 1; row <= 3; ++row)
    put_record(file, field(1, entry("n", int64_list(20000)) + entry("l", bytes_list(row, 1500000))));
  return file;
}

Bytes sequences() {
  Bytes file;
  for (int row = 0; row < 8; ++row) {
    std::string lists = entry("tokens", field(1, int64_list(2)) + field(1, int64_list(0))) +
                        entry("words", field(1, bytes_list(2, 30)));
    put_record(file, field(1, entry("i", int64_list(1))) + field(2, row % 2 == 0 ? lists : entry("words", "")) +
                         field(21574, "TFRA"));
  }
  return file;
}

// Decodes, takes and exports all records.
int64_t read(const Bytes& file, RecordType type, std::initializer_list<u8> choices) {
  DecoderPlan plan;
  plan.record_type = type;
  plan.columns.push_back(
      {"a column with a name that is long", Kind::kInt64, Layout::kList, Text::kTrack, false, false});
  Decoder decoder(plan);
  decoder.arena.expected = static_cast<int64_t>(file.size());
  size_t at = 0;
  int64_t records = 0;
  while (true) {
    Progress step = decoder.feed(file.data(), file.size(), at, -1, -1, true);
    at += static_cast<size_t>(step.consumed);
    records += step.records;
    if (step.fault.code == Code::kStopNewNames) {
      for (const Decoder::NewName& name : decoder.new_names) decoder.add_name(name.text, name.steps, true, true);
    } else if (step.fault.code == Code::kStopEmbedded) {
      decoder.accept_embedded();
    } else {
      FUZZ_CHECK(!step.fault);
      break;
    }
  }
  TakenColumns taken = take_columns(decoder);
  for (const TakenColumn& column : taken.columns)
    for (u8 choice : choices) fuzz::check_exports(column, choice);
  return records;
}

int64_t scan_frames(const Bytes& file) {
  return static_cast<int64_t>(scan(file.data(), file.size(), 0, -1, Checks::kAll, 0x7fffffff, true).starts.size());
}

int64_t find(const Bytes& file) { return find_header(file.data(), file.size(), 1, 0x7fffffff); }

int64_t write_columns() {
  constexpr int64_t kRows = 4000;
  static int64_t numbers[kRows + 1];
  static u8 text[kRows * 2];
  std::vector<Source> sources(3);
  for (int64_t i = 0; i <= kRows; ++i) numbers[i] = i;
  sources[0] = {"numbers, under a name that is long", Kind::kInt64, Layout::kScalar, nullptr, nullptr, nullptr,
                reinterpret_cast<const u8*>(numbers)};
  sources[1] = {"text", Kind::kBytes, Layout::kScalar, nullptr, nullptr, numbers, text};
  sources[2] = {"list", Kind::kBytes, Layout::kList, nullptr, numbers, numbers, text};
  Encoder encoder(std::move(sources), {0, 1, 2}, false);
  Buffer out;
  Encoded done = encoder.encode(0, kRows, "\x78\x01", out);
  out.trim(done.size);
  return done.rows;
}

void keep(ArrowArray* array) { array->release = nullptr; }

int64_t write_arrow() {
  static const u8 bits[] = {0xff, 0x0f};
  static const int32_t offsets[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  static const u8 text[] = "some text";
  const void* text_buffers[] = {bits, offsets, text};
  const void* int_buffers[] = {bits, text};
  ArrowArray children[] = {{8, 1, 1, 3, 0, text_buffers, nullptr, nullptr, keep, nullptr},
                           {8, 1, 1, 2, 0, int_buffers, nullptr, nullptr, keep, nullptr}};
  ArrowArray* pointers[] = {&children[0], &children[1]};
  ArrowArray batch{8, 0, 0, 1, 2, int_buffers, pointers, nullptr, keep, nullptr};
  ArrowColumns columns(batch, {{"text", Value::kText, 0, false, false}, {"numbers", Value::kInt, 8, true, false}});
  Encoder encoder(columns.sources, {0, 1}, true);
  Buffer out;
  return encoder.encode(0, 8, "", out).rows;
}

template <class F>
void check(const char* name, F&& scenario) {
  failing = 0;
  allocations = 0;
  armed = true;
  int64_t expected = scenario();
  armed = false;
  int64_t count = allocations, refused = 0;
  FUZZ_CHECK(count > 0 || name == std::string("find"));
  FUZZ_CHECK(mapped == 0);
  for (bool all : {false, true}) {
    for (int64_t number = 1; number <= count; number += all ? 7 : 1) {
      failing = number;
      all_after = all;
      allocations = 0;
      try {
        armed = true;
        int64_t result = scenario();
        armed = false;
        FUZZ_CHECK(result == expected);
      } catch (const std::bad_alloc&) {
        armed = false;
        ++refused;
      }
      FUZZ_CHECK(mapped == 0);
    }
  }
  std::printf("%-10s %5lld allocations, %lld times bad_alloc\n", name, static_cast<long long>(count),
              static_cast<long long>(refused));
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {}  // the objects are those of the fuzzer

extern "C" const char* __asan_default_options() { return "detect_leaks=1:handle_abort=1"; }

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Bytes small = examples(12, 20), large = large_examples(), lists = sequences();
  check("read", [&] { return read(small, RecordType::kExample, {0x1f, 0x3d, 0x5d, 0x79}); });
  check("read large", [&] { return read(large, RecordType::kExample, {0x3d}); });
  check("sequence", [&] { return read(lists, RecordType::kDetect, {0x1f, 0x3d}); });
  check("scan", [&] { return scan_frames(small); });
  check("find", [&] { return find(small); });
  check("write", write_columns);
  check("arrow", write_arrow);
  return 0;
}
