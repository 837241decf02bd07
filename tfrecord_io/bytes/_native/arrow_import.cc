#include "arrow_import.h"

#include <cstring>

#include "text.h"

namespace tfr {
namespace {

template <class T>
void widen(const u8* values, int64_t offset, int64_t count, int64_t* out) {
  const T* from = reinterpret_cast<const T*>(values) + offset;
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(from[i]);
}

bool widen_number(const PlainForm& form, const u8* values, int64_t offset, int64_t count, int64_t* out) {
  if (form.bits == 8) return (form.is_signed ? widen<int8_t> : widen<uint8_t>)(values, offset, count, out), true;
  if (form.bits == 16) return (form.is_signed ? widen<int16_t> : widen<uint16_t>)(values, offset, count, out), true;
  if (form.bits == 32) return (form.is_signed ? widen<int32_t> : widen<uint32_t>)(values, offset, count, out), true;
  return false;
}

bool is_aligned(const void* p, size_t bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

bool is_ascii(const u8* data, size_t size) {
  uint64_t bits = 0;
  for (; size >= 8; data += 8, size -= 8) bits |= load64(data);
  for (; size > 0; ++data, --size) bits |= *data;
  return (bits & 0x8080808080808080u) == 0;
}

// True if the values of rows that are not null are UTF-8.
bool are_utf8(const Source& source, int64_t rows) {
  const int64_t* offsets = source.value_offsets;
  if (is_ascii(source.values + offsets[0], static_cast<size_t>(offsets[rows] - offsets[0]))) return true;
  for (int64_t row = 0; row < rows; ++row) {
    bool valid = source.validity == nullptr || (source.validity[row >> 3] >> (row & 7) & 1);
    if (valid && !is_utf8(source.values + offsets[row], static_cast<size_t>(offsets[row + 1] - offsets[row])))
      return false;
  }
  return true;
}

// Bytes between the first and the last offset of an array of variable width.
template <class Offset>
int64_t content_bytes(const ArrowArray& array) {
  if (array.buffers[1] == nullptr) return 0;
  const u8* offsets = static_cast<const u8*>(array.buffers[1]) + array.offset * static_cast<int64_t>(sizeof(Offset));
  Offset first, last;
  std::memcpy(&first, offsets, sizeof(Offset));
  std::memcpy(&last, offsets + array.length * static_cast<int64_t>(sizeof(Offset)), sizeof(Offset));
  return static_cast<int64_t>(last - first);
}

}  // namespace

int64_t value_bytes(const ArrowArray& batch, const std::vector<PlainForm>& forms) {
  int64_t bytes = 0;
  for (size_t i = 0; i < forms.size() && i < static_cast<size_t>(batch.n_children); ++i) {
    const ArrowArray& array = *batch.children[i];
    bool variable = forms[i].value == Value::kBytes || forms[i].value == Value::kText;
    if (variable)
      bytes += forms[i].large ? content_bytes<int64_t>(array) : content_bytes<int32_t>(array);
    else if (forms[i].value != Value::kOther)
      bytes += (array.length * forms[i].bits + 7) / 8;
  }
  return bytes;
}

ArrowColumns::ArrowColumns(ArrowArray& batch, const std::vector<PlainForm>& forms)
    : sources(forms.size()), taken(forms.size(), false), batch_(batch) {
  batch.release = nullptr;
  if (batch_.offset != 0 || static_cast<size_t>(batch_.n_children) != forms.size()) return;
  for (size_t i = 0; i < forms.size(); ++i) {
    const ArrowArray& array = *batch_.children[i];
    if (forms[i].value == Value::kOther || array.length != batch_.length || array.dictionary != nullptr) continue;
    sources[i].name = forms[i].name;
    sources[i].layout = Layout::kScalar;
    taken[i] = take(array, forms[i], sources[i]);
  }
}

Buffer& ArrowColumns::own(size_t bytes) {
  Buffer& buffer = owned_.emplace_back();
  buffer.reserve(bytes, 0);
  return buffer;
}

bool ArrowColumns::take(const ArrowArray& array, const PlainForm& form, Source& out) {
  const u8* bits = static_cast<const u8*>(array.buffers[0]);
  if (array.null_count != 0 && bits != nullptr) {
    out.validity = bits + array.offset / 8;
    if (int shift = array.offset % 8; shift != 0) {
      size_t bytes = static_cast<size_t>((array.length + 7) / 8),
             last = static_cast<size_t>((array.length + shift + 7) / 8) - 1;
      u8* shifted = own(bytes).as<u8>();
      for (size_t i = 0; i < bytes; ++i)
        shifted[i] = static_cast<u8>(out.validity[i] >> shift | (i < last ? out.validity[i + 1] << (8 - shift) : 0));
      out.validity = shifted;
    }
  }
  if (form.value == Value::kBytes || form.value == Value::kText) return take_bytes(array, form, out);
  const u8* values = static_cast<const u8*>(array.buffers[1]);
  if (values == nullptr || !is_aligned(values, form.value == Value::kBool ? 1 : static_cast<size_t>(form.bits / 8)))
    return false;
  if (form.value == Value::kFloat) {
    out.kind = Kind::kFloat;
    out.values = values + array.offset * 4;
    return true;
  }
  out.kind = Kind::kInt64;
  if (form.value == Value::kInt && form.bits == 64) {
    out.values = values + array.offset * 8;
    return true;
  }
  int64_t* wide = own(static_cast<size_t>(array.length) * 8).as<int64_t>();
  out.values = reinterpret_cast<const u8*>(wide);
  if (form.value == Value::kInt) return widen_number(form, values, array.offset, array.length, wide);
  for (int64_t i = 0, at = array.offset; i < array.length; ++i, ++at) wide[i] = values[at >> 3] >> (at & 7) & 1;
  return true;
}

bool ArrowColumns::take_bytes(const ArrowArray& array, const PlainForm& form, Source& out) {
  static constexpr u8 kNothing = 0;
  const u8* offsets = static_cast<const u8*>(array.buffers[1]);
  if (offsets == nullptr || !is_aligned(offsets, form.large ? 8 : 4)) return false;
  out.kind = Kind::kBytes;
  out.values = static_cast<const u8*>(array.buffers[2]);
  if (out.values == nullptr) out.values = &kNothing;
  if (form.large) {
    out.value_offsets = reinterpret_cast<const int64_t*>(offsets) + array.offset;
  } else {
    int64_t* wide = own(static_cast<size_t>(array.length + 1) * 8).as<int64_t>();
    widen<int32_t>(offsets, array.offset, array.length + 1, wide);
    out.value_offsets = wide;
  }
  return form.value == Value::kBytes || are_utf8(out, array.length);
}

}  // namespace tfr
