#include "decoding.h"

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <limits>

#include "feed_file.h"

namespace fuzz {
namespace {

using namespace tfr;

// Answers the question at which the decoder stopped; false if it did not stop with one.
bool answer(Decoder& decoder, const Fault& fault) {
  if (fault.code == Code::kStopEmbedded) {
    size_t bytes = 0;
    for (const Span& span : decoder.embedded)
      for (const u8* p = span.begin; p < span.end; ++p) bytes += *p;
    FUZZ_CHECK(bytes + 1 != 0);
    decoder.accept_embedded();
    return true;
  }
  if (fault.code != Code::kStopNewNames) return false;
  FUZZ_CHECK(!decoder.new_names.empty());
  for (const Decoder::NewName& name : decoder.new_names)
    decoder.add_name(name.text, name.steps, name.text.size() % 3 != 2, true);
  return true;
}

void take(Decoder& decoder, Outcome& outcome) {
  outcome.batches.push_back(take_columns(decoder));
  outcome.names.clear();
  outcome.steps.clear();
  for (const Decoder::Slot& slot : decoder.slots) {
    outcome.names.push_back(slot.name);
    outcome.steps.push_back(slot.steps);
  }
}

// Feeds the bytes until the decoder needs more of them, has a fault, or reaches a limit.
size_t feed(Decoder& decoder, const Bytes& data, size_t start, size_t known, int64_t max_records, int64_t max_bytes,
            Outcome& outcome) {
  Exact pending(data.data() + start, known - start);
  size_t at = 0;
  bool last = known == data.size();
  while (true) {
    int64_t left = max_records < 0 ? -1 : max_records - outcome.records;
    Progress step = decoder.feed(pending.data(), pending.size(), at, left, max_bytes, last);
    FUZZ_CHECK(step.records >= 0 && step.consumed >= 0 && at + static_cast<size_t>(step.consumed) <= pending.size());
    int64_t before = outcome.records;
    outcome.records += step.records;
    at += static_cast<size_t>(step.consumed);
    if (answer(decoder, step.fault)) continue;
    if (step.fault) {
      outcome.fault = step.fault;
      outcome.fault.record += before;
      outcome.fault.offset += static_cast<int64_t>(start);
      return at;
    }
    bool waits = step.full ||
                 (decoder.rows > 0 && max_bytes >= 0 && last && at < pending.size() && outcome.records != max_records);
    if (!waits) return at;
    take(decoder, outcome);
  }
}

void put(std::string& out, const void* data, size_t size) {
  if (size != 0) out.append(static_cast<const char*>(data), size);
}

void put_number(std::string& out, int64_t number) { put(out, &number, 8); }

void put_buffer(std::string& out, const SharedBuffer& buffer, size_t bytes) {
  out.push_back(buffer == nullptr ? '-' : '+');
  if (buffer == nullptr) return;
  FUZZ_CHECK(buffer->capacity() >= bytes);
  put(out, buffer->as<u8>(), bytes);
}

bool valid_at(const TakenColumn& column, int64_t row) {
  return column.validity == nullptr || (column.validity->as<u8>()[row >> 3] >> (row & 7) & 1) != 0;
}

void check_offsets(const SharedBuffer& buffer, int64_t count, int64_t total) {
  const int32_t* offsets = buffer->as<int32_t>();
  FUZZ_CHECK(offsets[0] == 0 && offsets[count] == total);
  for (int64_t i = 0; i < count; ++i) FUZZ_CHECK(offsets[i] <= offsets[i + 1]);
}

// Null rows are empty, or zero.
void check_nulls(const TakenColumn& column) {
  if (column.layout == Layout::kNull) return;
  int64_t nulls = 0;
  for (int64_t row = 0; row < column.rows; ++row) {
    if (valid_at(column, row)) continue;
    ++nulls;
    if (column.layout == Layout::kList) {
      FUZZ_CHECK(column.offsets->as<int32_t>()[row] == column.offsets->as<int32_t>()[row + 1]);
    } else if (column.kind == Kind::kBytes) {
      FUZZ_CHECK(column.value_offsets->as<int32_t>()[row] == column.value_offsets->as<int32_t>()[row + 1]);
    } else if (column.kind == Kind::kInt64) {
      FUZZ_CHECK(column.values->as<int64_t>()[row] == 0);
    } else if (column.kind == Kind::kFloat) {
      FUZZ_CHECK(column.values->as<uint32_t>()[row] == 0);
    }
  }
  FUZZ_CHECK(nulls == column.null_count);
}

int64_t sum_of(const ArrowArray& array) {
  int64_t sum = 0;
  for (int64_t i = 0; i < array.n_children; ++i) sum += sum_of(*array.children[i]);
  return sum + array.length;
}

// A file that exists as long as its descriptor.
int open_temporary() {
#ifdef _WIN32
  std::unique_ptr<char, void (*)(void*)> name(_tempnam(nullptr, "tfr"), std::free);
  return _open(name.get(), _O_RDWR | _O_BINARY | _O_CREAT | _O_TEMPORARY, _S_IREAD | _S_IWRITE);
#else
  return memfd_create("records", 0);
#endif
}

}  // namespace

Outcome decode(const DecoderPlan& plan, const Bytes& data, size_t block, int64_t max_records, int64_t max_bytes) {
  Outcome outcome;
  Decoder decoder(plan);
  size_t start = 0, known = 0;
  decoder.arena.expected = static_cast<int64_t>(data.size());
  do {
    known = data.size() - known < block ? data.size() : known + block;
    start += feed(decoder, data, start, known, max_records, max_bytes, outcome);
  } while (!outcome.fault && known < data.size());
  outcome.consumed = start;
  take(decoder, outcome);
  return outcome;
}

Outcome decode_file(const DecoderPlan& plan, const Bytes& data, size_t window, size_t most) {
  Outcome outcome;
  Decoder decoder(plan);
  int file = open_temporary();
  FUZZ_CHECK(file >= 0 &&
             static_cast<size_t>(write(file, data.data(), static_cast<unsigned>(data.size()))) == data.size());
  size_t room = FileWindows::kPage + std::max(window, most), at = 0;
  std::unique_ptr<u8[]> memory(new u8[room]);
  int64_t size = static_cast<int64_t>(data.size());
  FileWindows windows{file, size, memory.get(), room, window, plan.max_record_bytes, static_cast<int64_t>(most)};
  while (!outcome.fault && at < data.size()) {
    int64_t before = decoder.rows, consumed = feed_file(decoder, windows, static_cast<int64_t>(at), size, -1, -1);
    FUZZ_CHECK(consumed >= 0 && at + static_cast<size_t>(consumed) <= data.size());
    outcome.records += decoder.rows - before;
    at += static_cast<size_t>(consumed);
    if (at < data.size()) at += feed(decoder, data, at, data.size(), outcome.records + 1, -1, outcome);
  }
  close(file);
  outcome.consumed = at;
  take(decoder, outcome);
  return outcome;
}

Fault feed_all(Decoder& decoder, const Bytes& data) {
  Exact exact(data);
  size_t at = 0;
  while (true) {
    Progress step = decoder.feed(exact.data(), exact.size(), at, -1, -1, true);
    at += static_cast<size_t>(step.consumed);
    if (answer(decoder, step.fault)) continue;
    FUZZ_CHECK(step.fault || at == exact.size());
    return step.fault;
  }
}

std::string checked_text(const TakenColumn& column) {
  std::string out;
  for (int64_t number : {static_cast<int64_t>(column.kind), static_cast<int64_t>(column.layout),
                         static_cast<int64_t>(column.text), column.rows, column.null_count, column.value_count,
                         column.data_bytes, column.first_row, column.list_row, column.binary_row})
    put_number(out, number);
  size_t rows = static_cast<size_t>(column.rows), values = static_cast<size_t>(column.value_count);
  put_buffer(out, column.validity, (rows + 7) / 8);
  put_buffer(out, column.offsets, (rows + 1) * 4);
  put_buffer(out, column.value_offsets, (values + 1) * 4);
  size_t width = column.kind == Kind::kInt64 ? 8 : column.kind == Kind::kFloat ? 4 : 0;
  put_buffer(out, column.values, column.kind == Kind::kBytes ? static_cast<size_t>(column.data_bytes) : values * width);
  check_nulls(column);
  if (column.value_offsets != nullptr) check_offsets(column.value_offsets, column.value_count, column.data_bytes);
  if (column.layout == Layout::kScalar && column.kind != Kind::kNone) FUZZ_CHECK(column.value_count == column.rows);
  if (column.offsets != nullptr)
    check_offsets(column.offsets, column.rows, column.steps ? column.steps->rows : column.value_count);
  if (column.steps != nullptr) out += checked_text(*column.steps);
  return out;
}

void check_exports(const TakenColumn& column, u8 choice) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  static constexpr struct {
    Value value;
    int64_t bits, low, high;
  } kTypes[] = {{Value::kInt, 64, kLeast, kMost}, {Value::kInt, 32, -2147483648, 2147483647},
                {Value::kInt, 16, 0, 65535},      {Value::kInt, 8, -128, 127},
                {Value::kBool, 1, 0, 1},          {Value::kFloat, 32, 0, 0},
                {Value::kDouble, 64, 0, 0},       {Value::kBytes, 0, 0, 0},
                {Value::kText, 0, 0, 0},          {Value::kNull, 0, 0, 0},
                {Value::kOther, 0, 0, 0}};
  for (const auto& type : kTypes) {
    int64_t nesting = choice >> 5 & 3;
    Form form{static_cast<int64_t>(type.value),
              nesting,
              choice % 4,
              choice >> 2 & 1,
              type.bits,
              type.low,
              type.high,
              choice >> 3 & 1,
              choice >> 4 & 1};
    if (type.value == Value::kBool || type.bits == 0)
      form.spreads = 0;  // as columns/arrow/decode/batch_builder.py asks for it
    ArrowArrays arrays(1);
    if (!export_column(column, form, arrays[0])) continue;
    FUZZ_CHECK(arrays[0].length == column.rows &&
               arrays[0].null_count == (column.layout == Layout::kNull ? column.rows : column.null_count));
    FUZZ_CHECK(sum_of(arrays[0]) >= column.rows);
  }
}

}  // namespace fuzz
