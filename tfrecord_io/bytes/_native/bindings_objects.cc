// A column of Python objects in one pass: whether an array in it needs a closer look, and the values of cells that are
// bytes, arrays of one axis, or lists. The GIL is held, and no code of Python runs, so no object changes between
// counting and copying: only objects whose type is exactly a builtin one or NumPy's array are opened.
#include <nanobind/nanobind.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "bindings_arrays.h"
#include "buffer.h"

namespace nb = nanobind;
using namespace tfr;

namespace {

// The structs behind NumPy's arrays and dtypes; these first fields are part of NumPy 2's ABI.
struct Descr {
  PyObject base;
  PyTypeObject* type;
  char kind, letter, order, flags;
  int number;
};

struct NumpyArray {
  PyObject base;
  char* data;
  int axes;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  PyObject* owner;
  Descr* dtype;
};

// Types of the values of a column: bool, int64, double or bytes, from objects of Python.
enum Leaf : int { kNone, kBool, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF16, kF32, kF64, kBytes, kOther };
constexpr const char* kNames[] = {"", "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "S"};
constexpr size_t kSizes[] = {0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 1};
constexpr int kObjects = 17;  // NumPy's number of the dtype

Leaf leaf_of_dtype(const Descr& dtype) {
  if (dtype.order != '=' && dtype.order != '|') return kOther;
  constexpr bool kLong32 = sizeof(long) == 4;
  constexpr Leaf kNumbers[] = {kBool, kI8,  kU8,  kI16, kU16, kI32, kU32, kLong32 ? kI32 : kI64, kLong32 ? kU32 : kU64,
                               kI64,  kU64, kF32, kF64};
  if (dtype.number >= 0 && dtype.number < static_cast<int>(std::size(kNumbers))) return kNumbers[dtype.number];
  return dtype.number == 23 ? kF16 : kOther;
}

// A borrowed view of the items of a list, a tuple, or an array of objects of one axis.
class Items {
 public:
  Items(PyObject* holder, PyTypeObject* array_type) : holder_(holder) {
    if (Py_TYPE(holder) == array_type) {
      auto* array = reinterpret_cast<NumpyArray*>(holder);
      data_ = array->data, stride_ = array->strides[0], size_ = array->shape[0];
    } else {
      is_list_ = Py_TYPE(holder) == &PyList_Type;
      size_ = is_list_ ? PyList_Size(holder) : PyTuple_Size(holder);
    }
  }
  Items(char* data, Py_ssize_t stride, Py_ssize_t size) : data_(data), stride_(stride), size_(size) {}

  Py_ssize_t size() const { return size_; }
  PyObject* operator[](Py_ssize_t i) const {
    if (data_ == nullptr && size_ != 0) return is_list_ ? PyList_GetItem(holder_, i) : PyTuple_GetItem(holder_, i);
    PyObject* item;
    std::memcpy(&item, data_ + i * stride_, sizeof(item));
    return item == nullptr ? Py_None : item;  // NumPy takes no object for None
  }

 private:
  PyObject* holder_ = nullptr;
  char* data_ = nullptr;
  Py_ssize_t stride_ = 0, size_ = 0;
  bool is_list_ = false;
};

class ObjectColumn {
 public:
  ObjectColumn(const nb::capsule& api, Items cells, bool nan_is_missing)
      : cells_(cells), nan_is_missing_(nan_is_missing) {
    void* const* table = static_cast<void* const*>(api.data());
    array_type_ = static_cast<PyTypeObject*>(table[2]);
    single_type_ = static_cast<PyTypeObject*>(table[10]);
  }

  // False if there is an object in the cells that this code does not know: it may be masked, or a tensor.
  bool scan() {
    for (Py_ssize_t i = 0; i < cells_.size(); ++i) {
      PyObject* cell = cells_[i];
      if (is_missing(cell)) {
        ++missing_;
      } else if (!scan_cell(cell)) {
        return false;
      }
    }
    return true;
  }

  // True if the values of all cells can be copied.
  bool is_uniform() const {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    return uniform_ && leaf_ != kNone && (!has_nan_ || leaf_ == kF64) && values_ <= kMost && bytes_ <= kMost;
  }

  // True if all values are exactly Python's None, bool, int and float, and either str or bytes.
  bool is_simple() const { return simple_ && !(has_text_ && has_bytes_); }

  // Dtype, valid (None: all), offsets (None: a cell is one value), values, and offsets of values (None: of numbers).
  nb::object gather() {
    auto count = static_cast<size_t>(cells_.size()), slots = static_cast<size_t>(values_);
    size_t item = kSizes[leaf_], total = leaf_ == kBytes ? static_cast<size_t>(bytes_) : slots * item;
    Buffer valid, offsets, values, value_offsets;
    values.reserve(total + 1, 0);
    if (missing_ != 0) valid.reserve(count, 0);
    if (holds_lists_) offsets.reserve((count + 1) * sizeof(int32_t), 0);
    if (leaf_ == kBytes) value_offsets.reserve((slots + (holds_lists_ ? 0 : static_cast<size_t>(missing_)) + 1) * 4, 0);
    out_ = values.as<char>();
    ends_ = value_offsets.as<int32_t>();
    if (ends_ != nullptr) *ends_++ = 0;
    int32_t* rows = offsets.as<int32_t>();
    if (holds_lists_) *rows++ = 0;
    for (Py_ssize_t i = 0; i < cells_.size(); ++i) {
      PyObject* cell = cells_[i];
      bool missing = is_missing(cell);
      if (missing_ != 0) valid.as<bool>()[i] = !missing;
      if (!holds_lists_) {
        if (!missing) copy_bytes(cell);
        *ends_++ = static_cast<int32_t>(out_ - values.as<char>());
        continue;
      }
      if (!missing) copy_cell(cell, values.as<char>());
      *rows++ = static_cast<int32_t>(done_);
    }
    size_t slot_count = holds_lists_ ? slots : count;
    return nb::make_tuple(kNames[leaf_], missing_ == 0 ? nb::none() : to_array<bool>(std::move(valid), count),
                          holds_lists_ ? to_array<int32_t>(std::move(offsets), count + 1) : nb::none(),
                          to_array<uint8_t>(std::move(values), total),
                          leaf_ == kBytes ? to_array<int32_t>(std::move(value_offsets), slot_count + 1) : nb::none());
  }

 private:
  bool is_missing(PyObject* cell) const {
    if (cell == Py_None) return true;
    return nan_is_missing_ && Py_TYPE(cell) == &PyFloat_Type && std::isnan(PyFloat_AsDouble(cell));
  }

  bool is_sequence(PyTypeObject* type) const { return type == &PyList_Type || type == &PyTuple_Type; }

  bool scan_cell(PyObject* cell) {
    PyTypeObject* type = Py_TYPE(cell);
    if (type == &PyBytes_Type) {
      add_kind(false);
      add_leaf(kBytes);
      has_bytes_ = true;
      bytes_ += PyBytes_Size(cell);
      ++values_;
      return true;
    }
    if (type == array_type_) {
      simple_ = false;
      auto* array = reinterpret_cast<NumpyArray*>(cell);
      if (array->axes != 1) return false;
      if (array->dtype->number != kObjects) {
        Leaf leaf = leaf_of_dtype(*array->dtype);
        add_kind(true);
        add_leaf(leaf);
        values_ += array->shape[0];
        return leaf != kOther;
      }
    } else if (!is_sequence(type)) {
      uniform_ = false;
      return is_plain(cell, 0);
    }
    add_kind(true);
    Items items(cell, array_type_);
    values_ += items.size();
    for (Py_ssize_t i = 0; i < items.size(); ++i) {
      if (!scan_item(items[i])) return false;
    }
    return true;
  }

  bool scan_item(PyObject* item) {
    PyTypeObject* type = Py_TYPE(item);
    if (type == &PyFloat_Type && is_missing(item)) {
      has_nan_ = true;  // which Arrow takes for a null among other types
    } else if (type == &PyFloat_Type) {
      add_leaf(kF64);
    } else if (type == &PyLong_Type) {
      int overflow = 0;
      PyLong_AsLongLongAndOverflow(item, &overflow);
      add_leaf(overflow == 0 ? kI64 : kOther);
    } else if (type == &PyBytes_Type) {
      add_leaf(kBytes);
      has_bytes_ = true;
      bytes_ += PyBytes_Size(item);
    } else if (type == &PyBool_Type) {
      add_leaf(kBool);
    } else {
      uniform_ = false;
      return is_plain(item, 1);
    }
    return true;
  }

  void add_kind(bool is_list) {
    if (!has_kind_) holds_lists_ = is_list;
    uniform_ = uniform_ && holds_lists_ == is_list;
    has_kind_ = true;
  }

  void add_leaf(Leaf leaf) {
    if (leaf_ == kNone) leaf_ = leaf;
    uniform_ = uniform_ && leaf_ == leaf && leaf != kOther;
  }

  // True if neither the object nor its items are arrays that may be masked; at depth 0, also no value that only tensors
  // hold.
  bool is_plain(PyObject* object, int depth) {
    PyTypeObject* type = Py_TYPE(object);
    has_text_ = has_text_ || type == &PyUnicode_Type;
    has_bytes_ = has_bytes_ || type == &PyBytes_Type;
    if (type == plain_type_ || object == Py_None || type == &PyUnicode_Type || type == &PyFloat_Type ||
        type == &PyLong_Type || type == &PyBytes_Type || type == &PyBool_Type) {
      return true;
    }
    if (depth > kMostDepth) return false;
    if (type == &PyDict_Type) {
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
        if (!is_plain(value, depth + 1)) return false;
      }
      return true;
    }
    bool is_array = type == array_type_;
    simple_ = simple_ && is_sequence(type);
    if (is_array || is_sequence(type)) {
      auto* array = reinterpret_cast<NumpyArray*>(object);
      if (is_array && array->dtype->number != kObjects) return depth != 0;
      if (is_array && array->axes != 1) return false;
      Items items(object, array_type_);
      for (Py_ssize_t i = 0; i < items.size(); ++i) {
        if (!is_plain(items[i], depth + 1)) return false;
      }
      return true;
    }
    constexpr unsigned long kHolders = Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS;
    if ((PyType_GetFlags(type) & kHolders) != 0 || PyType_IsSubtype(type, array_type_)) return false;
    if (PyType_IsSubtype(type, single_type_) || PyType_IsSubtype(type, &PyComplex_Type)) return depth != 0;
    plain_type_ = type;
    return true;
  }

  void copy_cell(PyObject* cell, char* begin) {
    size_t item = kSizes[leaf_];
    if (Py_TYPE(cell) == array_type_) {
      auto* array = reinterpret_cast<NumpyArray*>(cell);
      if (array->dtype->number != kObjects) {
        auto count = static_cast<size_t>(array->shape[0]);
        char* out = begin + static_cast<size_t>(done_) * item;
        if (array->strides[0] == static_cast<Py_ssize_t>(item)) {
          if (count != 0) std::memcpy(out, array->data, count * item);
        } else {
          for (size_t i = 0; i < count; ++i) {
            std::memcpy(out + i * item, array->data + static_cast<Py_ssize_t>(i) * array->strides[0], item);
          }
        }
        done_ += array->shape[0];
        return;
      }
    }
    Items items(cell, array_type_);
    for (Py_ssize_t i = 0; i < items.size(); ++i) copy_item(items[i], begin);
  }

  void copy_item(PyObject* value, char* begin) {
    char* out = begin + static_cast<size_t>(done_) * kSizes[leaf_];
    if (leaf_ == kBytes) {
      copy_bytes(value);
      *ends_++ = static_cast<int32_t>(out_ - begin);
    } else if (leaf_ == kF64) {
      double number = PyFloat_AsDouble(value);
      std::memcpy(out, &number, sizeof(number));
    } else if (leaf_ == kI64) {
      int64_t number = PyLong_AsLongLong(value);
      std::memcpy(out, &number, sizeof(number));
    } else {
      *out = value == Py_True;
    }
    ++done_;
  }

  void copy_bytes(PyObject* value) {
    char* data;
    Py_ssize_t size;
    PyBytes_AsStringAndSize(value, &data, &size);
    std::memcpy(out_, data, static_cast<size_t>(size));
    out_ += size;
  }

  static constexpr int kMostDepth = 50;

  Items cells_;
  bool nan_is_missing_;
  PyTypeObject *array_type_, *single_type_;
  PyTypeObject* plain_type_ = nullptr;  // the last type that holds nothing

  bool uniform_ = true, has_kind_ = false, holds_lists_ = false, has_nan_ = false;
  bool simple_ = true, has_text_ = false, has_bytes_ = false;
  Leaf leaf_ = kNone;
  int64_t missing_ = 0, values_ = 0, bytes_ = 0;  // bytes_: of values that are bytes

  int64_t done_ = 0;  // values copied
  char* out_ = nullptr;
  int32_t* ends_ = nullptr;
};

// `items`: the address of the first cell; `stride`: bytes from one to the next. False: not known; of known values that
// are not uniform None if they are simple, else True; else what ObjectColumn::gather() returns.
nb::object gather_objects(const nb::capsule& api, uintptr_t items, Py_ssize_t stride, Py_ssize_t count,
                          bool nan_is_missing) {
  ObjectColumn column(api, Items(reinterpret_cast<char*>(items), stride, count), nan_is_missing);
  if (!column.scan()) return nb::bool_(false);
  if (column.is_uniform()) return column.gather();
  return column.is_simple() ? nb::object(nb::none()) : nb::object(nb::bool_(true));
}

}  // namespace

void bind_objects(nb::module_& m) {
  m.def("gather_objects", &gather_objects, nb::arg("api"), nb::arg("items"), nb::arg("stride"), nb::arg("count"),
        nb::arg("nan_is_missing"));
}
