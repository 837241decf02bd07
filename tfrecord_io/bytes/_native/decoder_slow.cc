// The slow path of a record: walk it completely, check it, then append. Taken by records that the fast path rejects.
#include <algorithm>
#include <new>
#include <unordered_set>

#include "decoder.h"
#include "text.h"

namespace tfr {
namespace {

constexpr size_t kMaxCells =
    size_t{1} << 29;  // rows × columns of one batch; 64 MiB of dense records have an eighth of it

std::string text_of(const Span& span) {
  return std::string(reinterpret_cast<const char*>(span.begin), static_cast<size_t>(span.end - span.begin));
}

void set_feature(Fault& fault, Code code, const std::string& feature) {
  fault.code = code;
  fault.feature = feature;
  fault.has_feature = true;
}

}  // namespace

bool Decoder::parse_slow(const u8* p, const u8* end, Fault& fault) {
  Walk walk(features_, lists_, plan_.unknown != Unknown::kSkip);
  bool walked = walk.run(p, end, is_example_ ? RecordType::kExample : record_type);
  if (walk.fell_back && provisional_) {  // it looked like a SequenceExample until the names of its lists were known
    is_example_ = true;
    drop_provisional();
    return parse_slow(p, end, fault);
  }
  if (!walked) {
    fault.code = walk.error.code;
    if (const Span* name = walk.bad_feature()) set_feature(fault, fault.code, text_of(*name));
    fault.byte = walk.error.at - p;
    fault.expected = walk.error.expected;
    fault.got = walk.error.got;
    return false;
  }
  if (!stop_for_embedded(walk, fault)) return false;
  if (plan_.unknown == Unknown::kAsk && !stop_for_names(walk, fault)) return false;
  if (!check_record(walk, fault)) return false;
  if (plan_.unknown == Unknown::kRefuse && !stop_for_names(walk, fault)) return false;
  if (record_type == RecordType::kDetect && walk.has_list && !walk.fell_back) record_type = RecordType::kSequence;
  for (size_t column : present_)
    if (last_entries_[column] != nullptr) append_entry(slots[column], *last_entries_[column]);
  bool is_nested = walk.has_feature && !walk.has_plain;
  if (walk.has_feature || walk.has_unknown) ++seen;
  if (is_nested || (walk.has_unknown && !walk.has_feature)) ++foreign;
  if (is_nested) ++nested;
  return true;
}

// Stops for the caller to check the embedded schemas of this record.
bool Decoder::stop_for_embedded(Walk& walk, Fault& fault) {
  if (walk.embedded.empty() || embedded_accepted_) return true;
  embedded = walk.embedded;
  fault.code = Code::kStopEmbedded;
  return false;
}

// Stops for the caller to decide which of the new features to read, unless there are too many.
bool Decoder::stop_for_names(const Walk& walk, Fault& fault) {
  std::vector<NewName> names;
  auto hash = [](const std::string& name) { return hash_name(reinterpret_cast<const u8*>(name.data()), name.size()); };
  std::unordered_set<std::string, decltype(hash)> asked[2];
  for (const Entry& entry : walk.entries) {
    if (entry.name != nullptr) continue;
    std::string name = text_of(entry.key);
    if (asked[entry.steps].insert(name).second) names.push_back({name, entry.steps});
  }
  if (names.empty()) return true;
  if (rows >= row_limit(slots.size() + names.size()) && rows != 0) {
    fault.code = Code::kStopFull;
    return false;
  }
  size_t total = features_.size() + lists_.size() + names.size() - left_out_;
  if (total > static_cast<size_t>(plan_.max_features)) {
    set_feature(fault, Code::kTooManyFeatures, names.back().text);
    fault.expected = plan_.max_features;
    fault.got = static_cast<int64_t>(total);
    return false;
  }
  // Without such a limit, dense columns of records that each have names of their own would take all memory.
  if (plan_.max_expansion < 0 && static_cast<size_t>(rows + 1) * (slots.size() + names.size()) > kMaxCells)
    throw std::bad_alloc();
  new_names = std::move(names);
  fault.code = Code::kStopNewNames;
  return false;
}

bool Decoder::check_record(const Walk& walk, Fault& fault) {
  if (last_entries_.size() < slots.size()) last_entries_.resize(slots.size());
  present_ = required_;
  for (size_t column : present_) last_entries_[column] = nullptr;
  for (const Entry& entry : walk.entries) {
    if (entry.name == nullptr) continue;
    present_.push_back(static_cast<size_t>(entry.name->column));
    last_entries_[present_.back()] = &entry;
  }
  std::sort(present_.begin(), present_.end());
  present_.erase(std::unique(present_.begin(), present_.end()), present_.end());
  for (size_t column : present_) {
    Code code = check_entry(slots[column], last_entries_[column], fault);
    if (code == Code::kOk) continue;
    if (code != Code::kKind && code != Code::kValueCount) fault.expected = fault.got = 0;  // those of another feature
    set_feature(fault, code, slots[column].name);
    return false;
  }
  return check_names(fault);
}

Code Decoder::check_entry(const Slot& slot, const Entry* entry, Fault& fault) {
  const Column& column = slot.column;
  if (entry == nullptr) return column.required ? Code::kMissingFeature : Code::kOk;
  const Column& cells = slot.steps ? *column.steps : column;
  bool is_open = cells.kind == Kind::kNone || (cells.is_open() && !cells.typed_empties);
  Kind running = is_open ? cells.plan_kind : cells.kind;
  Code code = Code::kOk;
  auto check_cell = [&](const Pieces& pieces) {
    if (code != Code::kOk) return;
    Measure measured = measure(pieces);
    code = check_feature(cells, pieces, measured);
    bool has_kind = measured.kind != Kind::kNone && (measured.count != 0 || cells.typed_empties);
    if (code == Code::kOk && !cells.splits && has_kind && running != Kind::kNone && running != measured.kind)
      code = Code::kKind;
    fault.expected = static_cast<int64_t>(running);
    fault.got = static_cast<int64_t>(measured.kind);
    if (code == Code::kValueCount) {
      fault.expected = 1;
      fault.got = measured.count;
    }
    if (running == Kind::kNone && has_kind) running = measured.kind;
  };
  if (slot.steps) {
    for_each_step(entry->values, [&](Span step) { check_cell(Pieces{step}); });
  } else {
    check_cell(entry->values);
  }
  return code;
}

// Checks the names that this record added: none is used by both context and feature lists.
bool Decoder::check_names(Fault& fault) {
  if (!provisional_) return true;
  for (size_t i = provisional_slots_; i < slots.size() && !plan_.names_in_both; ++i) {
    const std::string& name = slots[i].name;
    Name* other = (slots[i].steps ? features_ : lists_).find(reinterpret_cast<const u8*>(name.data()), name.size());
    if (other == nullptr || other->column < 0) continue;
    set_feature(fault, Code::kNameInBoth, name);
    return false;
  }
  return true;
}

void Decoder::append_entry(Slot& slot, const Entry& entry) {
  if (!slot.steps) {
    append_slow(slot.column, rows, entry.values, measure(entry.values));
    return;
  }
  Column& column = slot.column;
  Column& steps = *column.steps;
  column.fill_nulls(rows);
  for_each_step(entry.values, [&](Span step) {
    Pieces pieces{step};
    int64_t row = steps.rows;
    append_slow(steps, row, pieces, measure(pieces));
    steps.fill_nulls(row + 1);
  });
  if (column.first_row < 0 && steps.has_values()) column.first_row = rows;
  column.close_list_row();
}

}  // namespace tfr
