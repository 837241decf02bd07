#include "message_fields.h"

#include <algorithm>

#include "wire.h"

namespace tfr {
namespace {

constexpr uint32_t kTable = 64;  // field numbers below are looked up in a table

class Finder {
 public:
  Finder(const u8* data, const std::vector<FieldForm>& forms) : data_(data), forms_(forms) {
    found.fields.resize(forms.size());
    std::fill(std::begin(table_), std::end(table_), -1);
    for (size_t i = 0; i < forms.size(); ++i) {
      if (forms[i].number < kTable) table_[forms[i].number] = static_cast<int>(i);
      slots_[forms[i].number] = static_cast<int>(i);
      if (forms[i].oneof >= 0) set_.resize(std::max(set_.size(), static_cast<size_t>(forms[i].oneof) + 1), {-1, -1});
    }
  }

  // Returns nullptr with `error` set where the message is not valid.
  const u8* message(const u8* p, const u8* end, int32_t row) {
    while (p < end) {
      uint32_t tag;
      p = read_tag(p, end, &tag, error);
      if (p == nullptr) return nullptr;
      p = field(p, end, tag, row);
      if (p == nullptr) return nullptr;
    }
    return p;
  }

  MessageFields found;
  WireError error;

 private:
  int slot_of(uint32_t number) const {
    if (number < kTable) return table_[number];
    auto at = slots_.find(number);
    return at == slots_.end() ? -1 : at->second;
  }

  const u8* field(const u8* p, const u8* end, uint32_t tag, int32_t row) {
    uint32_t type = tag & 7;
    int slot = slot_of(tag >> 3);
    bool packed = false;
    if (slot >= 0) {
      const FieldForm& form = forms_[static_cast<size_t>(slot)];
      packed = form.repeated && type == kLen && form.type != kLen && form.type != kGroupStart;
      if (type != form.type && !packed) slot = -1;
    }
    if (slot < 0) {
      const u8* next = skip_field(p, end, tag, kDepthLimit, error);
      if (next != nullptr) ++found.unknown[tag >> 3];
      return next;
    }
    const FieldForm& form = forms_[static_cast<size_t>(slot)];
    if (form.oneof >= 0) choose(form.oneof, slot, row);
    FieldValues& values = found.fields[static_cast<size_t>(slot)];
    if (!form.wanted) return skip_field(p, end, tag, kDepthLimit, error);
    if (type == kGroupStart) return group(p, end, tag, row, values);
    if (type != kLen) return number(p, end, form, row, values);
    size_t size;
    p = read_size(p, end, &size, error);
    if (p == nullptr) return nullptr;
    if (!packed) {
      content(values, p, p + size, row);
      return p + size;
    }
    const u8* last = p + size;
    while (p < last) {
      p = number(p, last, form, row, values);
      if (p == nullptr) return nullptr;
    }
    return p;
  }

  const u8* group(const u8* p, const u8* end, uint32_t opened, int32_t row, FieldValues& values) {
    for (const u8* at = p; at < end;) {
      const u8* begin = at;
      uint32_t tag;
      at = read_tag(at, end, &tag, error);
      if (at == nullptr) return nullptr;
      if ((tag & 7) == kGroupEnd) {
        if (tag >> 3 != opened >> 3) return error.set(Code::kGroupEndUnexpected, begin);
        content(values, p, begin, row);
        return at;
      }
      at = skip_field(at, end, tag, kDepthLimit - 1, error);
      if (at == nullptr) return nullptr;
    }
    return error.set(Code::kGroupUnclosed, end);
  }

  const u8* number(const u8* p, const u8* end, const FieldForm& form, int32_t row, FieldValues& values) {
    uint64_t value;
    if (form.type == kVarint) {
      p = read_varint(p, end, &value, error);
      if (p == nullptr) return nullptr;
    } else {
      int64_t size = form.type == kFixed64 ? 8 : 4;
      if (end - p < size) return error.set(Code::kFixedTruncated, p);
      value = size == 8 ? load64(p) : load32(p);
      p += size;
    }
    if (!form.repeated && !form.all && !values.rows.empty() && values.rows.back() == row) {
      values.values.back() = static_cast<int64_t>(value);
    } else {
      values.rows.push_back(row);
      values.values.push_back(static_cast<int64_t>(value));
    }
    return p;
  }

  void content(FieldValues& values, const u8* begin, const u8* end, int32_t row) {
    values.rows.push_back(row);
    values.values.push_back(begin - data_);
    values.lengths.push_back(end - begin);
  }

  // A field of a oneof is set: another one that the message has is not any more.
  void choose(int oneof, int slot, int32_t row) {
    auto& [last_slot, last_row] = set_[static_cast<size_t>(oneof)];
    if (last_row == row && last_slot != slot) {
      FieldValues& others = found.fields[static_cast<size_t>(last_slot)];
      while (!others.rows.empty() && others.rows.back() == row) {
        others.rows.pop_back();
        others.values.pop_back();
        if (!others.lengths.empty()) others.lengths.pop_back();
      }
    }
    last_slot = slot;
    last_row = row;
  }

  const u8* data_;
  const std::vector<FieldForm>& forms_;
  int table_[kTable];
  std::map<uint32_t, int> slots_;
  std::vector<std::pair<int, int32_t>> set_;  // of each oneof: the field that was set last, and the row
};

}  // namespace

MessageFields find_fields(const u8* data, const int64_t* starts, const int64_t* lengths, const int32_t* rows,
                          size_t count, const std::vector<FieldForm>& forms) {
  Finder finder(data, forms);
  for (size_t i = 0; i < count; ++i) {
    const u8* begin = data + starts[i];
    if (finder.message(begin, begin + lengths[i], rows[i]) != nullptr || lengths[i] == 0) continue;
    const WireError& error = finder.error;
    Fault& fault = finder.found.fault;
    fault.code = error.code;
    fault.record = static_cast<int64_t>(i);
    fault.byte = error.at - begin;
    fault.expected = error.expected;
    fault.got = error.got;
    break;
  }
  return std::move(finder.found);
}

}  // namespace tfr
