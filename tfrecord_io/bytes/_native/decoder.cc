#include "decoder.h"

#include <algorithm>

#include "crc32c.h"
#include "frame.h"
#include "text.h"

namespace tfr {
namespace {

constexpr int64_t kMaxBytes = 0x7fffffff;  // every value has at least one byte, so 32-bit offsets never overflow

}  // namespace

Decoder::Decoder(DecoderPlan plan) : record_type(plan.record_type), plan_(std::move(plan)) {
  for (const ColumnPlan& column : plan_.columns) {
    slots.push_back({column.name, column.steps, Column(column, &arena)});
    (column.steps ? lists_ : features_).add(column.name, static_cast<int32_t>(slots.size()) - 1, &slots.back().column);
    if (column.required) required_.push_back(slots.size() - 1);
  }
}

void Decoder::add_name(const std::string& text, bool steps, bool wanted, bool provisional) {
  if (provisional && !provisional_) {
    provisional_ = true;
    provisional_slots_ = slots.size();
    provisional_features_ = features_.size();
    provisional_lists_ = lists_.size();
  }
  Names& names = steps ? lists_ : features_;
  if (names.find(reinterpret_cast<const u8*>(text.data()), text.size()) != nullptr) return;  // a column of the plan
  if (!wanted) {
    names.add(text, -1, nullptr);
    return;
  }
  ColumnPlan column;
  column.name = text;
  column.text = plan_.text;
  column.steps = steps;
  column.splits = plan_.splits;
  column.typed_empties = plan_.typed_empties;
  slots.push_back({text, steps, Column(column, &arena)});
  names.add(text, static_cast<int32_t>(slots.size()) - 1, &slots.back().column);
}

void Decoder::leave_out(const std::string& text, bool steps) {
  Names& names = steps ? lists_ : features_;
  size_t known = names.size();
  add_name(text, steps, false, false);
  left_out_ += names.size() - known;
}

void Decoder::drop_provisional() {
  if (!provisional_) return;
  provisional_ = false;
  while (slots.size() > provisional_slots_) slots.pop_back();
  features_.keep(provisional_features_);
  lists_.keep(provisional_lists_);
}

Progress Decoder::feed(const u8* data, size_t size, size_t begin, int64_t max_records, int64_t max_bytes, bool last) {
  if (max_bytes < 0 || max_bytes > kMaxBytes) max_bytes = kMaxBytes;
  checks_crc_ = plan_.check_crc;
  usual_ = false;
  return feed_records(data, size, begin, max_records, max_bytes, last);
}

Progress Decoder::feed_kept(const u8* data, size_t size, size_t begin, const uint32_t* lengths, const bool* kept,
                            size_t count) {
  Progress done;
  size_t at = begin, row = 0;
  checks_crc_ = usual_ = false;
  while (row < count && at <= size) {
    if (!kept[row]) {
      at += lengths[row++] + kFrameBytes;
      continue;
    }
    int64_t run = std::find(kept + row, kept + count, false) - (kept + row);
    Progress part = feed_records(data, size, at, run, kMaxBytes, false);
    row += static_cast<size_t>(part.records);
    at += static_cast<size_t>(part.consumed);
    done.fault = part.fault;
    done.full = part.full;
    if (part.records < run) break;
  }
  done.fault.record = done.records = static_cast<int64_t>(row);
  done.consumed = static_cast<int64_t>(at - begin);
  return done;
}

Progress Decoder::feed_records(const u8* data, size_t size, size_t begin, int64_t max_records, int64_t max_bytes,
                               bool last) {
  Progress done;
  readable_end_ = data + size;
  size_t at = begin;
  while (at < size && (max_records < 0 || done.records < max_records)) {
    int64_t room = row_limit(slots.size()) - rows;
    if (rows != 0 && room <= 0) {
      done.full = true;
      break;
    }
    if (usual_) {
      int64_t left = max_records < 0 ? room : std::min(room, max_records - done.records);
      int64_t before = done.records;
      at += decode_run_of_records(data + at, size - at, left, max_bytes - value_bytes, done.records);
      usual_ = done.records - before == left;
      continue;
    }
    FrameHeader header = read_frame(data + at, size - at, plan_.max_record_bytes, last, checks_crc_);
    if (header.code == Code::kOk && !header.whole) break;
    if (header.code == Code::kOk && rows != 0 && value_bytes + header.length > max_bytes) break;
    const u8* payload = data + at + kHeaderBytes;
    if (header.code == Code::kOk && checks_crc_) check_payload(payload, header);
    Fault& fault = done.fault;
    if (header.code != Code::kOk) {
      fault.code = header.code;
      fault.byte = header.byte;
      fault.expected = header.expected;
      fault.got = header.got;
    } else if (parse(payload, payload + header.length, fault)) {
      if (plan_.keeps_lengths) lengths.push_back(static_cast<uint32_t>(header.length));
      at += static_cast<size_t>(header.length) + kFrameBytes;
      ++done.records;
      ++rows;
      value_bytes += header.length;
      arena.done = value_bytes;
      continue;
    }
    if (fault.code == Code::kStopFull) {
      fault = Fault();
      done.full = true;
      break;
    }
    fault.record = done.records;
    fault.offset = static_cast<int64_t>(at);
    break;
  }
  done.consumed = static_cast<int64_t>(at - begin);
  return done;
}

// Decodes the records that look like the previous one; returns how many bytes they have.
size_t Decoder::decode_run_of_records(const u8* p, size_t size, int64_t records_left, int64_t bytes_left,
                                      int64_t& records) {
  Run run{features_,    readable_end_ - Shape::kReach,
          checks_crc_,  plan_.max_record_bytes,
          records_left, bytes_left,
          rows,         0,
          &arena,       plan_.keeps_lengths ? &lengths : nullptr};
  int64_t before = arena.done;
  const u8* next = runs.records(run, p, p + size);
  rows = run.row;
  seen += run.records;
  records += run.records;
  value_bytes += arena.done - before;
  return static_cast<size_t>(next - p);
}

bool Decoder::parse(const u8* p, const u8* end, Fault& fault) {
  if (!provisional_ && parse_fast(p, end)) {
    if (has_entries_) ++seen;
    return true;
  }
  roll_back();
  bool good = parse_slow(p, end, fault);
  if (good) provisional_ = false;
  if (good || fault.code < Code::kStopNewNames) is_example_ = false;
  if (!good && fault.code < Code::kStopNewNames) drop_provisional();
  if (good) embedded_accepted_ = false;
  return good;
}

// How many rows the batch may have with this many columns: a cell of eight bytes is assumed, whether it has a value or
// not. It grows with the payloads; see base/options/limits.py.
int64_t Decoder::row_limit(size_t columns) const {
  constexpr int64_t kRatio = 512, kCell = 8;
  if (plan_.max_expansion < 0 || columns == 0) return INT64_MAX;
  return (plan_.max_expansion + kRatio * value_bytes) / (kCell * static_cast<int64_t>(columns));
}

bool Decoder::lacks_required() const {
  for (size_t column : required_)
    if (slots[column].column.rows != rows + 1) return true;
  return false;
}

bool Decoder::parse_fast(const u8* p, const u8* end) {
  features_.met_count = lists_.met_count = 0;
  has_entries_ = false;
  usual_ = required_.empty();
  const u8* begin = p;
  WireError error;
  while (p < end) {
    u8 tag = *p;
    bool lists = tag == make_tag(2, kLen) && record_type == RecordType::kSequence;
    if (tag != make_tag(1, kLen) && !lists) return false;
    usual_ &= p == begin && !lists;
    size_t size = 0;
    if ((p = read_size(p + 1, end, &size, error)) == nullptr) return false;
    if (!(lists ? lists_fast(p, p + size) : features_fast(p, p + size))) return false;
    p += size;
  }
  return !lacks_required();
}

// True if an entry of an unknown name may be skipped. The name is learned, to be skipped faster next time.
bool Decoder::skip_unknown(const FastEntry& entry, bool steps) {
  constexpr size_t kMostKnown = 4096;  // bounds the memory where each record has other names
  if (plan_.unknown != Unknown::kSkip || !is_utf8(entry.key, entry.key_size)) return false;
  if (entry.key_size < Shape::kMost && (steps ? lists_ : features_).size() < kMostKnown)
    add_name(std::string(reinterpret_cast<const char*>(entry.key), entry.key_size), steps, false, false);
  return true;
}

bool Decoder::features_fast(const u8* p, const u8* end) {
  const u8* last = readable_end_ - Shape::kReach;
  has_entries_ |= p < end;
  while (p < end) {
    if (p < last) {  // an entry near the end of the data is parsed, as the fast path may load bytes after it
      p = runs.entries(features_, p, end < last ? end : last, end, rows);
      if (p == nullptr) return false;
      if (p >= end) break;
    }
    const u8* next = append_usual(features_, p, end, rows);
    if (next == p) {
      usual_ = false;
      FastEntry entry;
      if (!read_entry(p, end, entry) || !skip_unknown(entry, false)) return false;
      next = entry.end;
    }
    if (next == nullptr) return false;
    p = next;
  }
  return true;
}

bool Decoder::lists_fast(const u8* p, const u8* end) {
  has_entries_ |= p < end;
  while (p < end) {
    FastEntry entry;
    bool full = false;
    if (!read_entry(p, end, entry)) return false;
    Name* name = look_up(lists_, entry, &full);
    if (full) return false;
    if (name == nullptr && !skip_unknown(entry, true)) return false;
    if (name != nullptr && name->column >= 0 && !steps_fast(*name->target, entry.value, entry.end)) return false;
    p = entry.end;
  }
  return true;
}

bool Decoder::steps_fast(Column& column, const u8* p, const u8* end) {
  if (column.rows > rows) return false;
  column.fill_nulls(rows);
  Column& steps = *column.steps;
  WireError error;
  while (p < end) {
    size_t size = 0;
    if (*p != make_tag(1, kLen) || (p = read_size(p + 1, end, &size, error)) == nullptr) return false;
    FastResult done = append_fast(steps, steps.rows, p, p + size);
    if (done == FastResult::kReject) return false;
    if (done == FastResult::kEmpty) steps.fill_nulls(steps.rows + 1);
    p += size;
  }
  if (column.first_row < 0 && steps.has_values()) column.first_row = rows;
  column.close_list_row();
  return true;
}

// Removes what the fast path appended of the current record: rows of the names it met.
void Decoder::roll_back() {
  for (const Names* names : {&features_, &lists_})
    for (size_t i = 0; i < names->met_count; ++i)
      if (names->met[i]->target != nullptr) names->met[i]->target->truncate(rows);
}

void Decoder::finish() {
  for (Slot& slot : slots) slot.column.finish(rows);
}

void Decoder::complete() {
  for (Slot& slot : slots) slot.column.complete(rows);
}

bool Decoder::append(const Decoder& part, int64_t begin, int64_t end, int64_t payload_bytes) {
  bool whole = begin == 0 && end == part.rows, alike = part.foreign == 0 && (part.seen == 0 || part.seen == part.rows);
  if (slots.size() != part.slots.size() || record_type != part.record_type || (!whole && !alike)) return false;
  if (rows + end - begin > row_limit(slots.size())) return false;
  for (size_t i = 0; i < slots.size(); ++i)
    if (!slots[i].column.can_append(part.slots[i].column)) return false;
  for (size_t i = 0; i < slots.size(); ++i) slots[i].column.append(part.slots[i].column, begin, end, rows);
  if (plan_.keeps_lengths && part.plan_.keeps_lengths)
    lengths.insert(lengths.end(), part.lengths.begin() + begin, part.lengths.begin() + end);
  rows += end - begin;
  value_bytes += payload_bytes;
  arena.done = value_bytes;
  seen += whole ? part.seen : std::min(part.seen, end - begin);
  foreign += part.foreign;
  nested += part.nested;
  return true;
}

int64_t Decoder::integer_bytes() const {
  int64_t values = 0;
  for (const Slot& slot : slots) {
    const Column* column = slot.column.steps ? slot.column.steps.get() : &slot.column;
    for (; column != nullptr; column = column->other.get())
      if (column->kind == Kind::kInt64 && column->has_lists()) values += column->value_count;
  }
  return values * 8;
}

int64_t Decoder::column_bytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots) {
    const Column* column = slot.column.steps ? slot.column.steps.get() : &slot.column;
    for (; column != nullptr; column = column->other.get()) {
      int64_t count = column->layout == Layout::kList ? column->value_count : column->rows;
      bytes += column->data_bytes + count * (column->kind == Kind::kInt64 ? 8 : 4);
    }
  }
  return bytes;
}

void Decoder::clear() {
  for (Slot& slot : slots) slot.column.clear();
  lengths.clear();
  rows = value_bytes = seen = foreign = nested = 0;
}

void Decoder::reset() {
  arena.close();
  arena.done = 0;
  for (Slot& slot : slots) slot.column.reset();
  lengths.clear();
  rows = value_bytes = 0;
}

}  // namespace tfr
