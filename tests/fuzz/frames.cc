// Framing: a scan equals a plain reading of the format, whole and in blocks of any size, and so does the search for
// headers.
#include <algorithm>

#include "frame.h"
#include "frame_extents.h"
#include "resync.h"
#include "targets.h"

namespace fuzz {
namespace {

using namespace tfr;

uint32_t masked(const u8* data, size_t size) { return mask_crc(crc32c_portable(0, data, size)); }

struct Record {
  Code code = Code::kOk;
  bool whole = false;
  uint64_t length = 0;
};

// The record at the start of `data`, by the format's description.
Record read_plainly(const u8* data, size_t size, bool check_crc, uint64_t limit) {
  Record record;
  if (size < 12) return {Code::kTruncatedHeader, false, 0};
  for (int i = 7; i >= 0; --i) record.length = record.length << 8 | data[i];
  uint32_t stored = data[8] | data[9] << 8 | data[10] << 16 | static_cast<uint32_t>(data[11]) << 24;
  if (stored != masked(data, 8)) return {Code::kLengthCrc, false, record.length};
  if (record.length > limit) return {Code::kLengthTooLarge, false, record.length};
  if (size - 12 < record.length) return {Code::kTruncatedPayload, false, record.length};
  const u8* end = data + 12 + record.length;
  if (size - 12 - record.length < 4) return {Code::kTruncatedFooter, false, record.length};
  stored = end[0] | end[1] << 8 | end[2] << 16 | static_cast<uint32_t>(end[3]) << 24;
  if (check_crc && stored != masked(data + 12, record.length)) return {Code::kPayloadCrc, true, record.length};
  record.whole = true;
  return record;
}

FrameList scan_plainly(const Bytes& data, size_t begin, bool check_crc, int64_t limit) {
  FrameList frames;
  size_t at = begin;
  while (at < data.size()) {
    Record record = read_plainly(data.data() + at, data.size() - at, check_crc, static_cast<uint64_t>(limit));
    if (record.code != Code::kOk) {
      frames.fault.code = record.code;
      frames.fault.record = static_cast<int64_t>(frames.starts.size());
      frames.fault.offset = static_cast<int64_t>(at);
      break;
    }
    frames.starts.push_back(static_cast<int64_t>(at + 12));
    frames.lengths.push_back(static_cast<int64_t>(record.length));
    at += 16 + record.length;
  }
  frames.consumed = static_cast<int64_t>(at - begin);
  return frames;
}

// The scan of `data` as it becomes known block by block.
FrameList scan_blocks(const Bytes& data, size_t begin, size_t block, bool check_crc, int64_t limit) {
  Checks checks = check_crc ? Checks::kAll : Checks::kLengths;
  FrameList all;
  size_t start = begin, known = begin;
  do {
    known = std::min(data.size(), known + block);
    Exact pending(data.data() + start, known - start);
    FrameList part = scan(pending.data(), pending.size(), 0, -1, checks, limit, known == data.size());
    for (int64_t at : part.starts) all.starts.push_back(at + static_cast<int64_t>(start));
    all.lengths.insert(all.lengths.end(), part.lengths.begin(), part.lengths.end());
    if (part.fault) {
      all.fault = part.fault;
      all.fault.offset += static_cast<int64_t>(start);
      all.fault.record = static_cast<int64_t>(all.starts.size());
    }
    start += static_cast<size_t>(part.consumed);
  } while (!all.fault && known < data.size());
  all.consumed = static_cast<int64_t>(start - begin);
  return all;
}

void check_equal(const FrameList& a, const FrameList& b) {
  FUZZ_CHECK(a.starts == b.starts);
  FUZZ_CHECK(a.lengths == b.lengths);
  FUZZ_CHECK(a.consumed == b.consumed);
  FUZZ_CHECK(a.fault.code == b.fault.code);
  FUZZ_CHECK(!a.fault || (a.fault.offset == b.fault.offset && a.fault.record == b.fault.record));
}

void check_fault(const Bytes& data, const Fault& fault, int64_t limit) {
  if (!fault) return;
  const u8* at = data.data() + fault.offset;
  int64_t left = static_cast<int64_t>(data.size()) - fault.offset;
  int64_t length = left >= 12 ? static_cast<int64_t>(load64(at)) : 0;
  int64_t expected = 0, got = 0, byte = -1;
  if (fault.code == Code::kTruncatedHeader) expected = 12, got = left;
  if (fault.code == Code::kLengthCrc) expected = masked(at, 8), got = load32(at + 8);
  if (fault.code == Code::kLengthTooLarge) expected = limit, got = length;
  if (fault.code == Code::kTruncatedPayload) expected = length, got = left - 12;
  if (fault.code == Code::kTruncatedFooter) expected = 4, got = left - 12 - length;
  if (fault.code == Code::kPayloadCrc)
    expected = masked(at + 12, static_cast<size_t>(length)), got = load32(at + 12 + length), byte = length;
  FUZZ_CHECK(fault.expected == expected);
  FUZZ_CHECK(fault.got == got);
  FUZZ_CHECK(fault.byte == byte);
}

int64_t find_plainly(const Bytes& data, size_t begin, int64_t limit) {
  for (size_t at = begin; at + 12 <= data.size(); ++at) {
    if (load64(data.data() + at) > static_cast<uint64_t>(limit)) continue;
    Record record = read_plainly(data.data() + at, 12, false, static_cast<uint64_t>(limit));
    if (record.code != Code::kLengthCrc && record.code != Code::kLengthTooLarge) return static_cast<int64_t>(at);
  }
  return -1;
}

// Pseudorandom numbers that follow from an input (splitmix64).
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t end) { return next() % end; }

 private:
  uint64_t state_;
};

// Bytes among which a search has much to refuse: zeros, halves of lengths, or anything.
Bytes misleading_bytes(Numbers& numbers) {
  Bytes bytes(numbers.below(120));
  uint64_t kind = numbers.below(4), shift = numbers.below(8);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bool is_zero = kind == 0 || (kind == 1 && numbers.below(8) != 0) || (kind == 2 && (i + shift) % 8 >= 4);
    bytes[i] = is_zero ? u8{0} : static_cast<u8>(numbers.next());
  }
  return bytes;
}

// The search for a header of any length, at any offset, with limits near its length and near 2^32.
void check_search(uint64_t seed) {
  Numbers numbers(seed);
  for (int round = 0; round < 4; ++round) {
    Bytes bytes = misleading_bytes(numbers);
    uint64_t length = numbers.next() >> (1 + numbers.below(63));
    uint64_t special = numbers.below(8);
    if (special == 0) length = 0;
    if (special == 1) length = (uint64_t{1} << 32) - 2 + numbers.below(4);
    u8 header[12];
    std::memcpy(header, &length, 8);
    uint32_t crc = masked(header, 8);
    std::memcpy(header + 8, &crc, 4);
    for (uint64_t headers = numbers.below(3); headers > 0 && !bytes.empty(); --headers) {
      size_t at = numbers.below(bytes.size());
      std::copy_n(header, std::min(bytes.size() - at, sizeof header), bytes.begin() + static_cast<int64_t>(at));
    }
    const uint64_t limits[] = {length,     length + 1,  length == 0 ? 0 : length - 1,
                               0xffffffff, 0x100000000, 0x7fffffffffffffff};
    int64_t limit = static_cast<int64_t>(std::min(limits[numbers.below(6)], uint64_t{0x7fffffffffffffff}));
    size_t begin = numbers.below(2) == 0 ? 0 : numbers.below(bytes.size() + 1);
    Exact exact(bytes);
    FUZZ_CHECK(find_header(exact.data(), exact.size(), begin, limit) == find_plainly(bytes, begin, limit));
  }
}

// The payloads, framed again, are the bytes that were consumed.
void check_framing(const Bytes& data, size_t begin, const FrameList& frames) {
  size_t at = begin;
  for (size_t i = 0; i < frames.starts.size(); ++i) {
    size_t length = static_cast<size_t>(frames.lengths[i]);
    Bytes frame(length + kFrameBytes);
    std::copy_n(data.begin() + frames.starts[i], length, frame.begin() + kHeaderBytes);
    close_frame(frame.data(), length);
    FUZZ_CHECK(std::equal(frame.begin(), frame.end(), data.begin() + static_cast<int64_t>(at)));
    at += frame.size();
  }
}

// A window of the payloads, framed again, is that part of the frames, but for the CRCs of payloads.
void check_window(const Bytes& data, const FrameList& frames, size_t skip, size_t room) {
  Bytes framed;
  for (size_t i = 0; i < frames.starts.size(); ++i) {
    auto payload = data.begin() + frames.starts[i];
    u8 header[kHeaderBytes];
    write_header(header, static_cast<uint64_t>(frames.lengths[i]));
    framed.insert(framed.end(), header, header + kHeaderBytes);
    framed.insert(framed.end(), payload, payload + frames.lengths[i]);
    framed.resize(framed.size() + kFooterBytes);
  }
  skip = std::min(skip, framed.size());
  Exact exact(data);
  std::unique_ptr<u8[]> out(new u8[room]);
  size_t size = frame_window(exact.data(), frames.starts.data(), frames.lengths.data(), frames.starts.size(), skip,
                             out.get(), room);
  FUZZ_CHECK(size == std::min(room, framed.size() - skip));
  FUZZ_CHECK(std::equal(out.get(), out.get() + size, framed.begin() + static_cast<int64_t>(skip)));
}

}  // namespace

void repair(Bytes& data, Repair mode) {
  if (mode == Repair::kNone) return;
  for (size_t at = 0; data.size() - at >= kFrameBytes;) {
    u8* frame = data.data() + at;
    size_t left = data.size() - at - kFrameBytes;
    uint64_t length = load64(frame);
    if (length > left) length = length % 4096 <= left ? length % 4096 : left;
    std::memcpy(frame, &length, 8);
    uint32_t crc = masked(frame, 8);
    std::memcpy(frame + 8, &crc, 4);
    if (mode == Repair::kAll) {
      crc = masked(frame + kHeaderBytes, length);
      std::memcpy(frame + kHeaderBytes + length, &crc, 4);
    }
    at += kFrameBytes + length;
  }
}

void run_frames(const u8* input, size_t size) {
  static constexpr int64_t kLimits[] = {0x7fffffff, 0x7fffffff, 100, 16, 0};
  static constexpr size_t kBlocks[] = {1, 2, 3, 7, 11, 12, 13, 16, 17, 64, 4096};
  Choices choices(input, size);
  Repair mode = static_cast<Repair>(choices.byte() % 3);
  bool check_crc = !choices.flag();
  Checks checks = check_crc ? Checks::kAll : Checks::kLengths;
  int64_t limit = choices.one_of(kLimits);
  size_t block = choices.one_of(kBlocks), begin = choices.byte();
  int64_t most = choices.byte() % 4;
  Bytes data = choices.rest();
  repair(data, mode);
  begin = begin < 200 ? 0 : std::min(begin - 200, data.size());

  Exact exact(data);
  FrameList whole = scan(exact.data(), exact.size(), begin, -1, checks, limit, true);
  check_equal(whole, scan_plainly(data, begin, check_crc, limit));
  check_fault(data, whole.fault, limit);
  check_equal(whole, scan_blocks(data, begin, block_for(block, data.size()), check_crc, limit));
  if (check_crc) check_framing(data, begin, whole);
  check_window(data, whole, block, block_for(block, data.size()) + static_cast<size_t>(most));

  FrameList few = scan(exact.data(), exact.size(), begin, most, checks, limit, true);
  FUZZ_CHECK(few.starts.size() == std::min(static_cast<size_t>(most), whole.starts.size()));
  FrameList open = scan(exact.data(), exact.size(), begin, -1, checks, limit, false);
  FUZZ_CHECK(open.starts == whole.starts && open.consumed == whole.consumed);
  FUZZ_CHECK(!open.fault || open.fault.code == whole.fault.code);
  FUZZ_CHECK(open.fault || !whole.fault || whole.fault.code <= Code::kTruncatedFooter);

  check_search(crc32c_portable(0, input, size));
  for (size_t at : {begin, begin + 1})
    FUZZ_CHECK(find_header(exact.data(), exact.size(), at, limit) == find_plainly(data, at, limit));
}

}  // namespace fuzz
