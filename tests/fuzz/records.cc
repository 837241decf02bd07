// Examples and SequenceExamples: blocks of any size and both paths of the decoder give the same columns and faults.
#include <algorithm>
#include <map>
#include <numeric>

#include "decoding.h"
#include "encoder.h"
#include "frame.h"

namespace fuzz {
namespace {

using namespace tfr;

const char* const kNames[] = {"a", "b", "label", "image/encoded", "x", "", "tokens", "z"};

DecoderPlan draw_plan(Choices& choices, std::initializer_list<RecordType> types) {
  DecoderPlan plan;
  u8 options = choices.byte();
  plan.record_type = types.begin()[options % types.size()];
  plan.unknown = static_cast<Unknown>((options >> 2) % 3);
  plan.text = static_cast<Text>(options >> 6);
  options = choices.byte();
  plan.check_crc = (options & 1) == 0;
  plan.names_in_both = (options & 2) != 0;
  if ((options & 12) == 12) plan.max_features = 2;
  if ((options & 48) == 48) plan.max_record_bytes = 64;
  if ((options & 192) == 192) plan.max_expansion = 16 * choices.byte();
  for (int count = choices.byte() % 4; count > 0; --count) {
    ColumnPlan column;
    column.name = choices.one_of(kNames);
    u8 form = choices.byte();
    column.kind = static_cast<Kind>(form & 3);
    column.layout = static_cast<Layout>(form >> 2 & 3);
    column.text = static_cast<Text>(form >> 4 & 3);
    column.steps = (form & 64) != 0 && plan.record_type != RecordType::kExample;
    column.required = (form & 128) != 0 && !column.steps;
    bool is_new = true;
    for (const ColumnPlan& other : plan.columns)
      is_new = is_new && (other.name != column.name || other.steps != column.steps);
    if (is_new) plan.columns.push_back(column);
  }
  return plan;
}

void check_same(const Fault& a, const Fault& b, int64_t moved) {
  FUZZ_CHECK(a.code == b.code && a.record == b.record && a.expected == b.expected && a.got == b.got);
  FUZZ_CHECK(a.has_feature == b.has_feature && a.feature == b.feature);
  FUZZ_CHECK(a.byte < 0 ? b.byte < 0 : a.byte + moved == b.byte);
}

void check_same(const Outcome& a, const Outcome& b) {
  FUZZ_CHECK(a.records == b.records);
  FUZZ_CHECK(a.names == b.names && a.steps == b.steps);
  FUZZ_CHECK(a.batches.size() == b.batches.size());
  for (size_t i = 0; i < a.batches.size(); ++i) {
    FUZZ_CHECK(a.batches[i].columns.size() == b.batches[i].columns.size());
    for (size_t c = 0; c < a.batches[i].columns.size(); ++c)
      FUZZ_CHECK(checked_text(a.batches[i].columns[c]) == checked_text(b.batches[i].columns[c]));
  }
}

constexpr u8 kUnknownField[] = {make_tag(15, kVarint), 1};

// The records with an unknown field in front of each message, which only the slow path takes; at most `count` of them.
Bytes with_unknown_fields(const Bytes& data, int64_t count) {
  Bytes out;
  FrameList frames = scan(data.data(), data.size(), 0, count, Checks::kNone, 0x7fffffff, true);
  for (size_t i = 0; i < frames.starts.size(); ++i) {
    size_t length = static_cast<size_t>(frames.lengths[i]), at = out.size();
    out.resize(at + length + 2 + kFrameBytes);
    std::memcpy(out.data() + at + kHeaderBytes, kUnknownField, 2);
    std::copy_n(data.begin() + frames.starts[i], length, out.begin() + static_cast<int64_t>(at + kHeaderBytes + 2));
    close_frame(out.data() + at, length + 2);
  }
  return out;
}

// Both paths of the decoder, where no limit depends on the size of the records.
void check_slow_path(DecoderPlan plan, const Bytes& data, const Outcome& whole) {
  bool in_records = whole.fault.code == Code::kOk || whole.fault.code >= Code::kVarintTruncated;
  if (plan.max_expansion >= 0 || plan.max_record_bytes < 0x7fffffff || !in_records) return;
  plan.check_crc = true;
  Outcome slow = decode(plan, with_unknown_fields(data, whole.records + (whole.fault ? 1 : 0)), SIZE_MAX);
  check_same(whole, slow);
  check_same(whole.fault, slow.fault, sizeof(kUnknownField));
}

void run_records(const u8* input, size_t size, std::initializer_list<RecordType> types) {
  static constexpr size_t kBlocks[] = {1, 3, 16, 50, 100, 1000};
  Choices choices(input, size);
  DecoderPlan plan = draw_plan(choices, types);
  Repair mode = choices.byte() % 8 == 7 ? Repair::kHeaders : Repair::kAll;
  size_t block = choices.one_of(kBlocks);
  int64_t max_records = choices.byte() % 8, max_bytes = choices.byte();
  Bytes data = choices.rest();
  repair(data, mode);

  Outcome whole = decode(plan, data, SIZE_MAX);
  Outcome blocks = decode(plan, data, block_for(block, data.size()));
  check_same(whole, blocks);
  check_same(whole.fault, blocks.fault, 0);
  FUZZ_CHECK(whole.fault.offset == blocks.fault.offset && whole.consumed == blocks.consumed);
  FUZZ_CHECK(whole.fault || whole.consumed == data.size());
  Outcome file = decode_file(plan, data, block_for(block, data.size()), static_cast<size_t>(max_bytes));
  check_same(whole, file);
  check_same(whole.fault, file.fault, 0);
  FUZZ_CHECK(whole.fault.offset == file.fault.offset && whole.consumed == file.consumed);
  for (const TakenColumns& batch : whole.batches)
    for (const TakenColumn& column : batch.columns)
      check_exports(column, static_cast<u8>(block ^ static_cast<size_t>(max_bytes)));
  check_slow_path(plan, data, whole);

  Outcome limited = decode(plan, data, SIZE_MAX, max_records, max_bytes);
  FUZZ_CHECK(limited.records <= max_records);
  // Not fewer records; more where they differ in the type of a feature, which is only known within a batch.
  FUZZ_CHECK(limited.records >= std::min(max_records, whole.records) || plan.max_expansion >= 0);
  for (const TakenColumns& batch : limited.batches)
    for (const TakenColumn& column : batch.columns) checked_text(column);
}

// Records of valid frames, by number.
class Frames {
 public:
  explicit Frames(const Bytes& data)
      : data_(data), list_(scan(data.data(), data.size(), 0, -1, Checks::kLengths, 0x7fffffff, true)) {}

  size_t count() const { return list_.starts.size(); }
  int64_t payload_bytes(size_t begin, size_t end) const {
    return std::accumulate(list_.lengths.begin() + static_cast<int64_t>(begin),
                           list_.lengths.begin() + static_cast<int64_t>(end), int64_t{0});
  }
  Bytes between(size_t begin, size_t end) const {
    return Bytes(data_.begin() + offset(begin), data_.begin() + offset(end));
  }

 private:
  int64_t offset(size_t number) const {
    return number == count() ? list_.consumed : list_.starts[number] - static_cast<int64_t>(kHeaderBytes);
  }

  const Bytes& data_;
  FrameList list_;
};

// A column as an encoder takes it, with offsets of 64 bits.
struct Columns {
  std::vector<Source> sources;
  std::vector<std::unique_ptr<std::vector<int64_t>>> wide;

  const int64_t* widen(const SharedBuffer& offsets, int64_t count) {
    if (offsets == nullptr) return nullptr;
    const int32_t* from = offsets->as<int32_t>();
    wide.push_back(std::make_unique<std::vector<int64_t>>(from, from + count + 1));
    return wide.back()->data();
  }

  int add(const TakenColumn& column, const std::string& name) {
    static constexpr u8 kNothing = 0;
    Source source;
    source.name = name;
    source.kind = column.kind;
    source.layout = column.layout;
    source.validity = column.validity == nullptr ? nullptr : column.validity->as<u8>();
    source.offsets = widen(column.offsets, column.rows);
    source.value_offsets = widen(column.value_offsets, column.value_count);
    source.values =
        column.values == nullptr || column.values->as<u8>() == nullptr ? &kNothing : column.values->as<u8>();
    if (column.steps != nullptr) source.steps = add(*column.steps, name);
    sources.push_back(source);
    return static_cast<int>(sources.size()) - 1;
  }
};

// The columns that the records have, as a schema that is inferred from them plans these.
std::vector<ColumnPlan> observed_columns(const DecoderPlan& plan, const Bytes& data, Text text) {
  std::vector<ColumnPlan> columns;
  Outcome seen = decode(plan, data, SIZE_MAX);
  for (size_t c = 0; c < seen.names.size(); ++c) {
    const TakenColumn& taken = seen.batches.back().columns[c];
    const TakenColumn& values = seen.steps[c] ? *taken.steps : taken;
    columns.push_back({seen.names[c], values.kind, values.layout, text, false, seen.steps[c]});
  }
  return columns;
}

}  // namespace

void run_example(const u8* data, size_t size) { run_records(data, size, {RecordType::kExample}); }

void run_sequence(const u8* data, size_t size) {
  run_records(data, size, {RecordType::kSequence, RecordType::kDetect});
}

// Parts of the records, each decoded by a decoder of its own and then appended, are as if all were decoded by one.
void run_append(const u8* input, size_t size) {
  Choices choices(input, size);
  DecoderPlan plan = draw_plan(choices, {RecordType::kExample, RecordType::kSequence, RecordType::kDetect});
  plan.max_expansion = -1;
  u8 cuts[] = {choices.byte(), choices.byte(), choices.byte()}, middle = choices.byte();
  Text text = static_cast<Text>(choices.byte() % 4);
  Bytes data = choices.rest();
  repair(data, Repair::kAll);
  if (plan.columns.empty() && plan.unknown == Unknown::kAsk) plan.columns = observed_columns(plan, data, text);
  data.resize(decode(plan, data, SIZE_MAX).consumed);  // up to a fault
  Frames frames(data);
  Decoder whole(plan), joined(plan);
  FUZZ_CHECK(!feed_all(whole, data));

  for (u8& cut : cuts) cut = static_cast<u8>(cut % (frames.count() + 1));
  std::sort(std::begin(cuts), std::end(cuts));
  std::unique_ptr<Decoder> part;
  size_t begin = 0;
  for (size_t end : {size_t{cuts[0]}, size_t{cuts[1]}, size_t{cuts[2]}, frames.count()}) {
    if (part == nullptr) part = std::make_unique<Decoder>(plan);
    Fault fault = feed_all(*part, frames.between(begin, end));
    part->complete();
    size_t half = fault ? begin : begin + middle % (end - begin + 1);
    for (auto [from, to] : {std::pair{begin, half}, std::pair{half, end}}) {
      bool is_known = !fault && part->slots.size() == plan.columns.size();  // as bytes/engine/native.py asks for it
      if (is_known && joined.append(*part, static_cast<int64_t>(from - begin), static_cast<int64_t>(to - begin),
                                    frames.payload_bytes(from, to)))
        continue;
      FUZZ_CHECK(!feed_all(joined, frames.between(from, to)));
    }
    part->clear();
    if (fault || part->slots.size() != plan.columns.size() || part->record_type != plan.record_type) part.reset();
    begin = end;
  }
  FUZZ_CHECK(joined.rows == whole.rows && joined.value_bytes == whole.value_bytes &&
             joined.record_type == whole.record_type);
  FUZZ_CHECK(joined.seen == whole.seen && joined.foreign == whole.foreign && joined.nested == whole.nested);
  TakenColumns one = take_columns(whole), other = take_columns(joined);
  FUZZ_CHECK(one.columns.size() == other.columns.size());
  for (size_t c = 0; c < one.columns.size(); ++c) {
    FUZZ_CHECK(whole.slots[c].name == joined.slots[c].name && whole.slots[c].steps == joined.slots[c].steps);
    FUZZ_CHECK(checked_text(one.columns[c]) == checked_text(other.columns[c]));
  }
}

// Columns of decoded records are encoded and decoded again, which gives the same columns.
void run_encoder(const u8* input, size_t size) {
  Choices choices(input, size);
  DecoderPlan plan;
  plan.record_type = static_cast<RecordType>(choices.byte() % 3 + 1);
  size_t cut = choices.byte();
  std::string prefix(choices.byte() % 3 == 0 ? 2 : 0, '\x78');  // an unknown field
  if (!prefix.empty()) prefix[1] = 1;
  Bytes data = choices.rest();
  repair(data, Repair::kAll);
  Outcome first = decode(plan, data, SIZE_MAX);
  if (first.batches.size() != 1 || first.records == 0) return;

  Columns columns;
  std::vector<int> indices;
  bool sequence = false, complete = true;
  int64_t rows = first.records;
  for (size_t c = 0; c < first.names.size(); ++c) {
    const TakenColumn& column = first.batches[0].columns[c];
    indices.push_back(columns.add(column, first.names[c]));
    sequence = sequence || column.steps != nullptr;
    complete = complete && column.layout != Layout::kNull && (column.steps == nullptr || column.kind != Kind::kNone);
  }
  Encoder encoder(columns.sources, indices, sequence);
  Buffer whole, front, back;
  Encoded all = encoder.encode(0, rows, prefix, whole);
  FUZZ_CHECK(all.rows == rows);
  int64_t middle = static_cast<int64_t>(cut) % (rows + 1);
  Encoded a = encoder.encode(0, middle, prefix, front),
          b = encoder.encode(middle, rows, middle == 0 ? prefix : "", back);
  Bytes joined(front.as<u8>(), front.as<u8>() + a.size);
  joined.insert(joined.end(), back.as<u8>(), back.as<u8>() + b.size);
  FUZZ_CHECK(joined == Bytes(whole.as<u8>(), whole.as<u8>() + all.size));

  plan.record_type = sequence ? RecordType::kSequence : RecordType::kExample;
  Outcome second = decode(plan, joined, SIZE_MAX);
  FUZZ_CHECK(second.records == rows && !second.fault);
  if (!complete) return;
  FUZZ_CHECK(second.names.size() == first.names.size());
  std::map<std::pair<std::string, bool>, std::string> found;  // in another order where a first record lacks a feature
  for (size_t c = 0; c < second.names.size(); ++c)
    found[{second.names[c], second.steps[c]}] = checked_text(second.batches[0].columns[c]);
  for (size_t c = 0; c < first.names.size(); ++c)
    FUZZ_CHECK((found[{first.names[c], first.steps[c]}] == checked_text(first.batches[0].columns[c])));
}

}  // namespace fuzz
