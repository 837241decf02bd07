// Checksums, varints and text checks: each fast implementation equals a plain one. Fields of any bytes are inside them.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "crc32c.h"
#include "frame.h"
#include "frame_extents.h"
#include "key_table.h"
#include "message_fields.h"
#include "name_hash.h"
#include "record_members.h"
#include "runs.h"
#include "shuffle.h"
#include "targets.h"
#include "text.h"
#include "varint.h"
#include "wire.h"

namespace fuzz {
namespace {

using namespace tfr;

uint32_t crc_plainly(uint32_t value, const Bytes& data) {
  uint32_t crc = ~value;
  for (u8 byte : data) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

void check_crc(const Bytes& data, uint32_t value, size_t cut) {
  Exact exact(data);
  uint32_t expected = crc_plainly(value, data);
  FUZZ_CHECK(crc32c(value, exact.data(), exact.size()) == expected);
  FUZZ_CHECK(crc32c_portable(value, exact.data(), exact.size()) == expected);
  for (Crc32cFunction function : {crc32c_x86(), crc32c_avx512(), crc32c_arm(), crc32c_arm_single()})
    if (function != nullptr) FUZZ_CHECK(function(value, exact.data(), exact.size()) == expected);
  cut = std::min(cut, data.size());
  uint32_t first = crc32c(value, exact.data(), cut), second = crc32c(0, exact.data() + cut, data.size() - cut);
  FUZZ_CHECK(crc32c_combine(first, second, data.size() - cut) == expected);
}

// The code point of the sequence at `at`, which is moved behind it; −1 if malformed.
int64_t next_point(const Bytes& data, size_t& at) {
  u8 lead = data[at++];
  if (lead < 0x80) return lead;
  int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  if (lead < 0xc0 || lead > 0xf7) return -1;
  int64_t point = lead & (0x3f >> more);
  for (int i = 0; i < more; ++i) {
    if (at == data.size() || (data[at] & 0xc0) != 0x80) return -1;
    point = point << 6 | (data[at++] & 0x3f);
  }
  static constexpr int64_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  bool valid = point >= kLeast[more] && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
  return valid ? point : -1;
}

void check_text(const Bytes& data) {
  bool utf8 = true, text = true;
  for (size_t at = 0; at < data.size() && utf8;) {
    int64_t point = next_point(data, at);
    utf8 = point >= 0;
    bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    if (control && point != '\t' && point != '\n' && point != '\r') text = false;
  }
  Exact exact(data);
  FUZZ_CHECK(is_utf8(exact.data(), exact.size()) == utf8);
  FUZZ_CHECK(is_text(exact.data(), exact.size()) == (utf8 && text));
  bool printable = std::all_of(data.begin(), data.end(), [](u8 byte) { return byte >= 0x20 && byte < 0x7f; });
  for (CopyAscii copy : {copy_ascii_portable, copy_ascii_x86(), copy_ascii_avx512(), copy_ascii_arm()}) {
    if (copy == nullptr) continue;
    Bytes copied(data.size() + kCopySlack);
    FUZZ_CHECK(copy(copied.data(), exact.data(), data.size()) == printable);
    FUZZ_CHECK(std::equal(data.begin(), data.end(), copied.begin()));
  }
}

bool decode_plainly(const Bytes& data, std::vector<int64_t>& values) {
  for (size_t at = 0; at < data.size();) {
    uint64_t value = 0;
    int shift = 0;
    for (;; shift += 7) {
      if (at == data.size() || shift == 70) return false;
      u8 byte = data[at++];
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    values.push_back(static_cast<int64_t>(value));
  }
  return true;
}

void check_decoding(const Bytes& data) {
  std::vector<int64_t> expected;
  bool valid = decode_plainly(data, expected);
  Exact exact(data);
  for (const RunPath& path : run_paths()) {
    std::unique_ptr<int64_t[]> out(new int64_t[data.size() + kDecodeSlack]);
    int64_t count = path.decode(exact.data(), exact.data() + exact.size(), out.get());
    FUZZ_CHECK((count >= 0) == valid);
    if (valid) FUZZ_CHECK(std::vector<int64_t>(out.get(), out.get() + count) == expected);
  }
}

void check_encoding(const Bytes& data, unsigned bits) {
  std::vector<uint64_t> values(data.size() / 8);
  if (!values.empty()) std::memcpy(values.data(), data.data(), values.size() * 8);
  for (uint64_t& value : values) value >>= bits;
  for (const RunPath& path : run_paths()) {
    size_t size = path.encode.size(values.data(), values.size());
    std::unique_ptr<u8[]> out(new u8[size + kRunSlack]);
    FUZZ_CHECK(path.encode.put(out.get(), values.data(), values.size()) == out.get() + size);
    std::vector<int64_t> back;
    FUZZ_CHECK(decode_plainly(Bytes(out.get(), out.get() + size), back));
    FUZZ_CHECK(std::equal(back.begin(), back.end(), values.begin(), values.end(),
                          [](int64_t a, uint64_t b) { return static_cast<uint64_t>(a) == b; }));
  }
}

// Reading and skipping a field stays inside the bytes, whatever they are.
void check_fields(const Bytes& data, int depth) {
  Exact exact(data);
  const u8 *begin = exact.data(), *end = begin + exact.size();
  WireError error;
  for (const u8* p = begin; p != nullptr && p < end;) {
    uint32_t tag = 0;
    const u8* next = read_tag(p, end, &tag, error);
    if (next != nullptr) next = skip_field(next, end, tag, depth, error);
    FUZZ_CHECK(next == nullptr ? error.code != Code::kOk && error.at >= begin && error.at <= end
                               : next > p && next <= end);
    p = next;
  }
}

// The members of two messages, which share the bytes, are inside of them; their frames hold what is there.
void check_members(const Bytes& data, size_t cut) {
  Exact exact(data);
  cut = std::min(cut, data.size());
  int64_t starts[] = {0, static_cast<int64_t>(cut)};
  int64_t sizes[] = {starts[1], static_cast<int64_t>(data.size() - cut)};
  Members found = find_members(exact.data(), starts, sizes, 2, 2);
  size_t count = found.fields.size();
  FUZZ_CHECK(found.records.size() == count && found.starts.size() == count && found.lengths.size() == count);
  for (size_t i = 0; i < count; ++i) {
    int64_t record = found.records[i], begin = found.starts[i], end = begin + found.lengths[i];
    FUZZ_CHECK(found.fields[i] == 1 || found.fields[i] == 2);
    FUZZ_CHECK((record == 0 || record == 1) && (i == 0 || record >= found.records[i - 1]) &&
               (!found.fault || record < found.fault.record));
    FUZZ_CHECK(found.lengths[i] >= 0 && begin > starts[record] && end <= starts[record] + sizes[record]);
  }
  if (found.fault) FUZZ_CHECK(found.fault.byte >= 0 && found.fault.byte <= sizes[found.fault.record]);
  Buffer framed, joined;
  size_t framed_size = frame_extents(exact.data(), found.starts.data(), found.lengths.data(), count, 1, framed);
  size_t joined_size = join_extents(exact.data(), found.starts.data(), found.lengths.data(), count, joined);
  FUZZ_CHECK(framed_size == joined_size + count * kFrameBytes);
  FrameList frames = scan(framed.as<u8>(), framed_size, 0, -1, Checks::kAll, INT32_MAX, true);
  FUZZ_CHECK(!frames.fault && frames.lengths == found.lengths);
  for (size_t i = 0, at = 0; i < count; at += static_cast<size_t>(found.lengths[i++]))
    FUZZ_CHECK(
        same_bytes(framed.as<u8>() + frames.starts[i], joined.as<u8>() + at, static_cast<size_t>(found.lengths[i])));
}

// The fields of two messages, whose forms are made of a number: values are inside of the bytes, in the order of the
// rows, and one of a row where the field has but one; the first message that is not valid is that of a plain walk.
void check_messages(const Bytes& data, size_t cut, uint32_t choice) {
  constexpr uint32_t kTypes[] = {kVarint, kFixed64, kLen, kGroupStart, kFixed32};
  std::vector<FieldForm> forms;
  for (uint32_t number : {1u, 2u, 3u, 4u, 5u, 15u, 63u, 64u, 1000u}) {
    bool repeated = (choice >> number % 31 & 1) != 0;
    int oneof = !repeated && (choice >> (number + 7) % 31 & 1) != 0 ? static_cast<int>(number % 2) : -1;
    bool wanted = (choice >> (number + 13) % 31 & 3) != 0;
    forms.push_back({number, kTypes[(choice + number) % 5], repeated, wanted, oneof, false});
  }
  Exact exact(data);
  cut = std::min(cut, data.size());
  int64_t starts[] = {0, static_cast<int64_t>(cut)};
  int64_t sizes[] = {starts[1], static_cast<int64_t>(data.size() - cut)};
  int32_t rows[] = {0, 1};
  MessageFields found = find_fields(exact.data(), starts, sizes, rows, 2, forms);
  FUZZ_CHECK(found.fields.size() == forms.size());
  for (size_t i = 0; i < forms.size(); ++i) {
    const FieldValues& values = found.fields[i];
    bool is_content = forms[i].type == kLen || forms[i].type == kGroupStart;
    FUZZ_CHECK(values.values.size() == values.rows.size());
    FUZZ_CHECK(values.lengths.size() == (is_content ? values.rows.size() : 0));
    FUZZ_CHECK(forms[i].wanted || values.rows.empty());
    for (size_t j = 0; j < values.rows.size(); ++j) {
      int32_t row = values.rows[j];
      FUZZ_CHECK((row == 0 || row == 1) && (!found.fault || row <= found.fault.record));
      FUZZ_CHECK(j == 0 || row > values.rows[j - 1] ||
                 (row == values.rows[j - 1] && (forms[i].repeated || is_content)));
      if (!is_content) continue;
      FUZZ_CHECK(values.lengths[j] >= 0 && values.values[j] > starts[row] &&
                 values.values[j] + values.lengths[j] <= starts[row] + sizes[row]);
    }
  }
  for (size_t i = 0; i < 2; ++i) {  // what a plain walk refuses is refused; packed numbers may be invalid beyond that
    const u8 *p = exact.data() + starts[i], *end = p + sizes[i];
    WireError error;
    while (p != nullptr && p < end) {
      uint32_t tag = 0;
      p = read_tag(p, end, &tag, error);
      if (p != nullptr) p = skip_field(p, end, tag, kDepthLimit, error);
    }
    if (p == nullptr && sizes[i] != 0) FUZZ_CHECK(found.fault && found.fault.record <= static_cast<int64_t>(i));
  }
  if (found.fault) FUZZ_CHECK(found.fault.byte >= 0 && found.fault.byte <= sizes[found.fault.record]);
}

// The table of keys of up to three bytes, some of them without one, finds the first row of each.
void check_keys(const Bytes& data) {
  std::vector<int64_t> offsets = {0};
  std::unique_ptr<bool[]> valid(new bool[data.size() + 1]);
  std::map<std::string, int64_t> first;
  int64_t repeated = 0;
  while (offsets.back() < static_cast<int64_t>(data.size())) {
    size_t at = static_cast<size_t>(offsets.back()), size = std::min<size_t>(data[at] % 4, data.size() - at);
    int64_t row = static_cast<int64_t>(offsets.size()) - 1;
    if (size == 0 && row >= static_cast<int64_t>(data.size())) break;
    valid[static_cast<size_t>(row)] = data[at] % 32 != 7;
    std::string key(data.begin() + offsets.back(), data.begin() + offsets.back() + static_cast<int64_t>(size));
    if (valid[static_cast<size_t>(row)] && !first.emplace(key, row).second) ++repeated;
    offsets.push_back(offsets.back() + static_cast<int64_t>(size));
    if (size == 0) break;
  }
  Exact exact(data);
  Keys keys;
  keys.data = exact.data();
  keys.long_offsets = offsets.data();
  keys.valid = valid.get();
  keys.rows = offsets.size() - 1;
  KeyTable table(keys);
  FUZZ_CHECK(table.repeated == repeated);
  for (const auto& [key, row] : first) {
    const u8* begin = reinterpret_cast<const u8*>(key.data());
    FUZZ_CHECK(table.find({begin, begin + key.size()}) == row);
  }
}

// Runs of which some are not within the arrays: those before the first such one are copied.
void check_runs(const Bytes& data, size_t item) {
  constexpr size_t kNumbers = 3;
  size_t count = data.size() / kNumbers, items = data.size() / item;
  std::vector<int64_t> numbers;
  for (u8 byte : data) numbers.push_back(byte < 250 ? byte % 16 : byte < 253 ? -1 : INT64_MAX - byte % 3);
  const int64_t *begins = numbers.data(), *lengths = begins + count, *places = lengths + count;
  Exact from(data), to(Bytes(items * item));
  Bytes expected(items * item);
  size_t good = 0;
  for (; good < count; ++good) {
    int64_t begin = begins[good], length = lengths[good], place = places[good], most = static_cast<int64_t>(items);
    if (begin < 0 || length < 0 || place < 0 || length > most || begin > most - length || place > most - length) break;
    int64_t size = static_cast<int64_t>(item);
    std::copy_n(data.begin() + begin * size, length * size, expected.begin() + place * size);
  }
  u8* out = const_cast<u8*>(to.data());
  FUZZ_CHECK(copy_runs(from.data(), items, begins, lengths, count, item, out, items, places) == good);
  FUZZ_CHECK(std::equal(expected.begin(), expected.end(), out));
}

// Rows of two arrays, of which some are not within them: those before the first such one are gathered.
void check_gathering(const Bytes& data, size_t item) {
  size_t third = data.size() / 3, items = data.size() / item;
  std::vector<int64_t> offsets, owners, rows, expected{0};
  for (size_t i = 0; i < third; ++i) {
    u8 byte = data[i];
    offsets.push_back((offsets.empty() ? 0 : offsets.back()) + (byte < 250 ? byte % 4 : 249 - byte));
    owners.push_back(data[third + i] < 250 ? data[third + i] % 2 : data[third + i] - 252);
    rows.push_back(data[2 * third + i] < 250 ? data[2 * third + i] % 16 : 252 - data[2 * third + i]);
  }
  Exact from(data);
  std::vector<RunArray> arrays(2, RunArray{from.data(), items, offsets.data(), third == 0 ? 0 : third - 1});
  arrays[1].rows /= 2;
  ChosenRuns chosen{arrays, owners.data(), rows.data(), third};
  Bytes whole;
  size_t good = 0;
  for (; good < third; ++good) {
    if (owners[good] < 0 || owners[good] > 1 || rows[good] < 0) break;
    if (static_cast<size_t>(rows[good]) >= arrays[static_cast<size_t>(owners[good])].rows) break;
    int64_t begin = offsets[static_cast<size_t>(rows[good])], end = offsets[static_cast<size_t>(rows[good]) + 1];
    if (begin < 0 || end < begin || end > static_cast<int64_t>(items)) break;
    int64_t size = static_cast<int64_t>(item);
    whole.insert(whole.end(), data.begin() + begin * size, data.begin() + end * size);
    expected.push_back(expected.back() + end - begin);
  }
  std::vector<int64_t> found(third + 1);
  FUZZ_CHECK(chosen_offsets(chosen, found.data()) == good);
  FUZZ_CHECK(std::equal(expected.begin(), expected.end(), found.begin()));
  Exact to(Bytes(whole.size()));
  u8* out = const_cast<u8*>(to.data());
  FUZZ_CHECK(gather_runs(chosen, found.data(), item, out, whole.size() / item) == good);
  FUZZ_CHECK(std::equal(whole.begin(), whole.end(), out));
}

// Rows of which some are too long, or not within the values: those before the first such one are padded.
void check_padding(const Bytes& data, size_t item, size_t length) {
  size_t rows = data.empty() ? 0 : data.size() - 1, items = data.size() / item;
  std::vector<int64_t> offsets;
  for (u8 byte : data) offsets.push_back((offsets.empty() ? 0 : offsets.back()) + (byte < 250 ? byte % 4 : 249 - byte));
  if (offsets.empty()) return;
  Exact from(data), to(Bytes(rows * length * item)),
      fill(Bytes(data.begin(), data.begin() + std::min(item, data.size())));
  if (fill.size() < item) return;
  Bytes expected(rows * length * item);
  size_t good = 0;
  for (; good < rows; ++good) {
    int64_t begin = offsets[good], end = offsets[good + 1];
    if (begin < 0 || end < begin || end > static_cast<int64_t>(items) || end - begin > static_cast<int64_t>(length))
      break;
    auto at = expected.begin() + static_cast<int64_t>(good * length * item);
    for (size_t k = 0; k < length; ++k) std::copy_n(data.begin(), item, at + static_cast<int64_t>(k * item));
    std::copy_n(data.begin() + begin * static_cast<int64_t>(item), (end - begin) * static_cast<int64_t>(item), at);
  }
  u8* out = const_cast<u8*>(to.data());
  FUZZ_CHECK(pad_rows(from.data(), items, offsets.data(), rows, item, fill.data(), out, length) == good);
  FUZZ_CHECK(std::equal(expected.begin(), expected.end(), out));
}

// Draws from two buffers, of which some are not within [0, 1): those before the first such one are made.
void check_draws(const Bytes& data, size_t size) {
  std::vector<double> numbers;
  for (u8 byte : data) numbers.push_back(byte / 254.0);
  size_t half = numbers.size() / 2, good = 0;
  std::vector<BufferDraws> buffers{{numbers.data(), half, size}, {numbers.data() + half, numbers.size() - half, 1}};
  std::vector<int64_t> expected(size + 1), drawn(numbers.size()), slots(size + 1);
  std::iota(expected.begin(), expected.end(), int64_t{0});
  size_t made = exchange(buffers, drawn.data(), slots.data());
  for (; good < numbers.size(); ++good) {
    if (numbers[good] >= 1 || (good < half && size == 0)) break;
    size_t slot = good < half ? static_cast<size_t>(numbers[good] * static_cast<double>(size)) : size;
    FUZZ_CHECK(drawn[good] == expected[slot]);
    expected[slot] = static_cast<int64_t>(size + 1 + good);
  }
  FUZZ_CHECK(made == good && slots == expected);
}

}  // namespace

void run_primitives(const u8* input, size_t size) {
  Choices choices(input, size);
  unsigned bits = choices.byte() % 64;
  int depth = choices.byte() % 4;
  size_t cut = choices.byte();
  uint32_t value = choices.flag() ? 0x12345678u : 0;
  Bytes data = choices.rest();
  check_crc(data, value, cut);
  check_text(data);
  check_decoding(data);
  check_encoding(data, bits);
  check_fields(data, depth == 3 ? kDepthLimit : depth);
  check_members(data, cut);
  check_messages(data, cut, static_cast<uint32_t>(bits) * 0x9e3779b9u + static_cast<uint32_t>(cut));
  check_keys(data);
  check_runs(data, cut % 4 + 1);
  check_gathering(data, cut % 4 + 1);
  check_padding(data, cut % 4 + 1, cut / 4 % 4 + 1);
  check_draws(data, cut % 8);
  Exact exact(data);
  FUZZ_CHECK(hash_name(exact.data(), exact.size()) == hash_name(data.data(), data.size()));
}

}  // namespace fuzz
