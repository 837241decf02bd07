#include "arrow_export.h"

#include <cstring>
#include <limits>
#include <utility>

namespace tfr {
namespace {

alignas(64) const u8 kZeros[64] = {};  // instead of a buffer without memory, which has no items, or one offset

Value value_of(const Form& form) { return static_cast<Value>(form.value); }
Nesting nesting_of(const Form& form) { return static_cast<Nesting>(form.nesting); }

// Owner of the memory of an exported array.
struct Owned {
  SharedBuffer kept[3];
  const void* buffers[3] = {};
  ArrowArray child = {};
  ArrowArray* children[1] = {};
};

void release_array(ArrowArray* array) {
  for (int64_t i = 0; i < array->n_children; ++i)
    if (array->children[i]->release != nullptr) array->children[i]->release(array->children[i]);
  delete static_cast<Owned*>(array->private_data);
  array->release = nullptr;
}

// Owner of the memory of an exported struct array.
struct OwnedStruct {
  const void* buffers[1] = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> addresses;
};

void release_struct(ArrowArray* array) {
  auto* owned = static_cast<OwnedStruct*>(array->private_data);
  for (ArrowArray& child : owned->children)
    if (child.release != nullptr) child.release(&child);
  delete owned;
  array->release = nullptr;
}

// Values of one feature type; `offsets` of kBytes.
struct Values {
  Kind kind;
  int64_t count;
  int64_t nulls;
  SharedBuffer validity, offsets, values;
};

// An array of these buffers; the first is the validity, nullptr if there are no nulls.
ArrowArray make_array(int64_t length, int64_t nulls, int64_t n_buffers, SharedBuffer validity,
                      SharedBuffer second = nullptr, SharedBuffer third = nullptr) {
  auto owned = std::make_unique<Owned>();
  owned->kept[0] = std::move(validity);
  owned->kept[1] = std::move(second);
  owned->kept[2] = std::move(third);
  for (int64_t i = 0; i < n_buffers; ++i) {
    const Buffer* buffer = owned->kept[i].get();
    const u8* data = buffer == nullptr ? nullptr : buffer->as<u8>();
    owned->buffers[i] = data == nullptr && i > 0 ? kZeros : data;
  }
  ArrowArray array = {};
  array.length = length;
  array.null_count = nulls;
  array.n_buffers = n_buffers;
  array.buffers = owned->buffers;
  array.release = release_array;
  array.private_data = owned.release();
  return array;
}

void move_child(ArrowArray& array, ArrowArray& child) {
  Owned* owned = static_cast<Owned*>(array.private_data);
  owned->child = child;
  child.release = nullptr;
  owned->children[0] = &owned->child;
  array.n_children = 1;
  array.children = owned->children;
}

template <class T>
std::pair<SharedBuffer, T*> allocate(int64_t count) {
  Buffer buffer;
  size_t bytes = static_cast<size_t>(count) * sizeof(T);
  buffer.reserve(bytes, 0);
  buffer.trim(bytes);
  T* data = buffer.as<T>();
  return {std::make_shared<const Buffer>(std::move(buffer)), data};
}

template <class To, class From>
SharedBuffer convert_numbers(const Buffer& source, int64_t count) {
  auto [buffer, to] = allocate<To>(count);
  const From* from = source.as<From>();
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
  return buffer;
}

SharedBuffer pack_bits(const Buffer& source, int64_t count) {
  auto [buffer, to] = allocate<u8>((count + 7) / 8);
  const int64_t* from = source.as<int64_t>();
  for (int64_t i = 0; i < count; i += 8) {
    int bits = 0;
    for (int64_t bit = 0; bit < 8 && i + bit < count; ++bit) bits |= static_cast<int>(from[i + bit]) << bit;
    to[i / 8] = static_cast<u8>(bits);
  }
  return buffer;
}

bool is_in_range(const Buffer& source, int64_t count, int64_t low, int64_t high) {
  if (low == std::numeric_limits<int64_t>::min() && high == std::numeric_limits<int64_t>::max()) return true;
  const int64_t* values = source.as<int64_t>();
  bool good = true;
  for (int64_t i = 0; i < count; ++i) good &= values[i] >= low && values[i] <= high;
  return good;
}

// The values in the width of the form, which share the memory where it is the same; nullptr if one is out of range.
SharedBuffer cast_numbers(const Values& run, const Form& form) {
  if (value_of(form) == Value::kFloat) return run.values;
  if (value_of(form) == Value::kDouble) return convert_numbers<double, float>(*run.values, run.count);
  if (!is_in_range(*run.values, run.count, form.low, form.high)) return nullptr;
  if (value_of(form) == Value::kBool) return pack_bits(*run.values, run.count);
  if (form.bits == 32) return convert_numbers<uint32_t, int64_t>(*run.values, run.count);
  if (form.bits == 16) return convert_numbers<uint16_t, int64_t>(*run.values, run.count);
  if (form.bits == 8) return convert_numbers<u8, int64_t>(*run.values, run.count);
  return run.values;
}

Kind kind_of(Value value) {
  if (value == Value::kInt || value == Value::kBool) return Kind::kInt64;
  return value == Value::kFloat || value == Value::kDouble ? Kind::kFloat : Kind::kBytes;
}

bool export_values(const Values& run, const Form& form, ArrowArray& out) {
  if (run.kind == Kind::kBytes) {
    SharedBuffer offsets =
        form.large != 0 ? convert_numbers<int64_t, int32_t>(*run.offsets, run.count + 1) : run.offsets;
    out = make_array(run.count, run.nulls, 3, run.validity, std::move(offsets), run.values);
    return true;
  }
  SharedBuffer values = cast_numbers(run, form);
  if (values == nullptr) return false;
  out = make_array(run.count, run.nulls, 2, run.validity, std::move(values));
  return true;
}

// True if each row has `size` values, or is null and has none.
bool has_sizes(const TakenColumn& column, int64_t size) {
  const int32_t* offsets = column.offsets->as<int32_t>();
  const u8* bits = column.validity == nullptr ? nullptr : column.validity->as<u8>();
  bool good = true;
  for (int64_t row = 0; row < column.rows; ++row) {
    bool valid = bits == nullptr || (bits[row >> 3] >> (row & 7) & 1);
    good &= offsets[row + 1] - offsets[row] == (valid ? size : 0);
  }
  return good;
}

// The values of a fixed-size list column with zeros for its null rows.
SharedBuffer spread_rows(const TakenColumn& column, const Buffer& values, size_t row_bytes) {
  auto [buffer, to] = allocate<u8>(column.rows * static_cast<int64_t>(row_bytes));
  if (row_bytes == 0) return buffer;
  const u8* from = values.as<u8>();
  const u8* bits = column.validity->as<u8>();
  for (int64_t row = 0; row < column.rows; ++row, to += row_bytes) {
    if (bits[row >> 3] >> (row & 7) & 1) {
      std::memcpy(to, from, row_bytes);
      from += row_bytes;
    } else {
      std::memset(to, 0, row_bytes);
    }
  }
  return buffer;
}

bool export_fixed(const TakenColumn& column, const Values& run, const Form& form, ArrowArray& out) {
  if (!has_sizes(column, form.list_size)) return false;
  ArrowArrays child(1);
  if (column.null_count == 0) {
    if (!export_values(run, form, child[0])) return false;
  } else {
    SharedBuffer values = form.spreads != 0 ? cast_numbers(run, form) : nullptr;
    if (values == nullptr) return false;
    values = spread_rows(column, *values, static_cast<size_t>(form.list_size * form.bits / 8));
    child[0] = make_array(column.rows * form.list_size, 0, 2, nullptr, std::move(values));
  }
  out = make_array(column.rows, column.null_count, 1, column.validity);
  move_child(out, child[0]);
  return true;
}

bool export_list(const TakenColumn& column, const Form& form, ArrowArray& out) {
  Values run{column.kind, column.value_count, 0, nullptr, column.value_offsets, column.values};
  if (nesting_of(form) == Nesting::kFixedSizeList) return export_fixed(column, run, form, out);
  ArrowArrays child(1);
  if (!export_values(run, form, child[0])) return false;
  bool large = nesting_of(form) == Nesting::kLargeList;
  SharedBuffer offsets = large ? convert_numbers<int64_t, int32_t>(*column.offsets, column.rows + 1) : column.offsets;
  out = make_array(column.rows, column.null_count, 2, column.validity, std::move(offsets));
  move_child(out, child[0]);
  return true;
}

}  // namespace

bool export_column(const TakenColumn& column, const Form& form, ArrowArray& out) {
  if (value_of(form) == Value::kOther || column.steps != nullptr || !column.others.empty() ||
      (column.null_count > 0 && form.takes_nulls == 0))
    return false;
  if (value_of(form) == Value::kNull) {
    if (column.layout != Layout::kNull) return false;
    out = make_array(column.rows, column.rows, 0, nullptr);
    return true;
  }
  if (column.kind != kind_of(value_of(form))) return false;
  if (value_of(form) == Value::kText && column.binary_row >= 0) return false;
  Layout layout = nesting_of(form) == Nesting::kNone ? Layout::kScalar : Layout::kList;
  if (column.layout != layout) return false;
  if (layout == Layout::kList) return export_list(column, form, out);
  return export_values(
      {column.kind, column.rows, column.null_count, column.validity, column.value_offsets, column.values}, form, out);
}

ArrowArray& ArrowArrays::join(int64_t rows) {
  auto owned = std::make_unique<OwnedStruct>();
  owned->children.swap(arrays_);
  for (ArrowArray& child : owned->children) owned->addresses.push_back(&child);
  batch_.length = rows;
  batch_.n_buffers = 1;
  batch_.buffers = owned->buffers;
  batch_.n_children = static_cast<int64_t>(owned->children.size());
  batch_.children = owned->addresses.data();
  batch_.release = release_struct;
  batch_.private_data = owned.release();
  return batch_;
}

size_t memory_of(const TakenColumn& column) {
  size_t bytes = 0;
  for (const SharedBuffer* buffer : {&column.validity, &column.offsets, &column.value_offsets, &column.values})
    if (*buffer != nullptr) bytes += (*buffer)->capacity();
  return bytes;
}

}  // namespace tfr
