// Single records as dicts of Python's values, and the rows of keys.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <vector>

#include "arrow_export.h"
#include "decoder.h"
#include "key_table.h"

namespace nb = nanobind;
using namespace tfr;

namespace {

using Content = nb::ndarray<const u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// ---- records

// NumPy's functions that copy memory into a new array; their numbers are part of NumPy 2's ABI.
class Numpy {
 public:
  explicit Numpy(nb::capsule api) : owner_(std::move(api)) {
    void* const* table = static_cast<void* const*>(owner_.data());
    type_ = table[2];
    from_descr_ = reinterpret_cast<FromDescr>(table[94]);
    new_copy_ = reinterpret_cast<NewCopy>(table[85]);
  }

  nb::object copy(nb::handle dtype, const void* data, int64_t count) const {
    Py_ssize_t shape = static_cast<Py_ssize_t>(count);
    constexpr int kAligned = 0x100;
    nb::object view = nb::steal(from_descr_(type_, nb::object(nb::borrow(dtype)).release().ptr(), 1, &shape, nullptr,
                                            const_cast<void*>(data), kAligned, nullptr));
    nb::object array = view.is_valid() ? nb::steal(new_copy_(view.ptr(), 0)) : nb::object();
    if (!array.is_valid()) throw nb::python_error();
    return array;
  }

 private:
  using FromDescr = PyObject* (*)(void* type, PyObject* dtype, int dimensions, const Py_ssize_t* shape,
                                  const Py_ssize_t* strides, void* data, int flags, PyObject* base);
  using NewCopy = PyObject* (*)(PyObject* array, int order);

  nb::capsule owner_;
  void* type_;
  FromDescr from_descr_;
  NewCopy new_copy_;
};

struct RowColumn {
  nb::object name;
  size_t slot;  // of the decoder
  Form form;
  nb::object dtype;  // of the array that a list of numbers becomes
};

struct RowForms {
  std::vector<RowColumn> columns;
  Numpy numpy;
};

// `columns`: a `ObjectForm` (bytes/engine/contract.py) of each; `api`: NumPy's capsule _ARRAY_API.
void make_row_forms(RowForms* place, const nb::list& columns, const nb::capsule& api) {
  new (place) RowForms{{}, Numpy(api)};
  for (nb::handle item : columns) {
    RowColumn column{nb::borrow(item.attr("name")), nb::cast<size_t>(item.attr("slot")), Form{}, item.attr("dtype")};
    auto form = nb::cast<Array<int64_t>>(item.attr("form"));
    if (form.size() * sizeof(int64_t) != sizeof(Form)) throw nb::value_error("a form has other fields");
    std::memcpy(&column.form, form.data(), sizeof(Form));
    place->columns.push_back(std::move(column));
  }
}

Value value_of(const Form& form) { return static_cast<Value>(form.value); }
Nesting nesting_of(const Form& form) { return static_cast<Nesting>(form.nesting); }

// One value of a column; not valid if it is not plainly of the form.
nb::object value_at(const Column& column, const Form& form, int64_t i) {
  switch (value_of(form)) {
    case Value::kInt:
    case Value::kBool: {
      int64_t number = column.values.as<int64_t>()[i];
      if (number < form.low || number > form.high) return {};
      return value_of(form) == Value::kBool ? nb::bool_(number != 0) : nb::object(nb::int_(number));
    }
    case Value::kFloat:
    case Value::kDouble:
      return nb::float_(static_cast<double>(column.values.as<float>()[i]));
    default: {
      const int32_t* offsets = column.value_offsets.as<int32_t>();
      const char* data = column.values.as<char>() + offsets[i];
      Py_ssize_t size = offsets[i + 1] - offsets[i];
      if (size == 0) data = "";
      if (value_of(form) == Value::kBytes) return nb::steal(PyBytes_FromStringAndSize(data, size));
      return nb::steal(PyUnicode_DecodeUTF8(data, size, nullptr));
    }
  }
}

template <class To, class From>
nb::object cast_copy(const Numpy& numpy, nb::handle dtype, const From* from, int64_t count) {
  std::vector<To> to(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) to[static_cast<size_t>(i)] = static_cast<To>(from[i]);
  return numpy.copy(dtype, to.data(), count);
}

nb::object array_of(const Column& column, const RowColumn& row, const Numpy& numpy) {
  const Form& form = row.form;
  int64_t count = column.value_count;
  static const u8 none[8] = {};
  if (count == 0) return numpy.copy(row.dtype, none, 0);
  const float* floats = column.values.as<float>();
  if (value_of(form) == Value::kFloat) return numpy.copy(row.dtype, floats, count);
  if (value_of(form) == Value::kDouble) return cast_copy<double>(numpy, row.dtype, floats, count);
  const int64_t* integers = column.values.as<int64_t>();
  for (int64_t i = 0; i < count; ++i)
    if (integers[i] < form.low || integers[i] > form.high) return {};
  switch (form.bits) {
    case 32:
      return cast_copy<uint32_t>(numpy, row.dtype, integers, count);
    case 16:
      return cast_copy<uint16_t>(numpy, row.dtype, integers, count);
    case 8:
    case 1:
      return cast_copy<u8>(numpy, row.dtype, integers, count);
    default:
      return numpy.copy(row.dtype, integers, count);
  }
}

Kind kind_of(Value value) {
  if (value == Value::kInt || value == Value::kBool) return Kind::kInt64;
  return value == Value::kFloat || value == Value::kDouble ? Kind::kFloat : Kind::kBytes;
}

// The only row of a completed column; not valid if it is not plainly of the form: see export_column().
nb::object row_value(const Column& column, const RowColumn& row, const Numpy& numpy) {
  const Form& form = row.form;
  Nesting nesting = nesting_of(form);
  if (column.steps || (column.other && column.other->has_values()) || (column.null_count > 0 && form.takes_nulls == 0))
    return {};
  if (column.layout == Layout::kNull && form.takes_nulls != 0) return nb::none();
  if (column.kind != kind_of(value_of(form)) || (value_of(form) == Value::kText && column.binary_row >= 0)) return {};
  if (column.layout != (nesting == Nesting::kNone ? Layout::kScalar : Layout::kList)) return {};
  if (column.null_count > 0) {
    return nesting == Nesting::kFixedSizeList && form.spreads == 0 ? nb::object() : nb::object(nb::none());
  }
  if (nesting == Nesting::kNone) return value_at(column, form, 0);
  if (nesting == Nesting::kFixedSizeList && column.value_count != form.list_size) return {};
  if (!row.dtype.is_none()) return array_of(column, row, numpy);
  nb::list values;
  for (int64_t i = 0; i < column.value_count; ++i) {
    nb::object value = value_at(column, form, i);
    if (!value.is_valid()) return {};
    values.append(value);
  }
  return values;
}

constexpr size_t kShort = 64 << 10;  // bytes that are decoded in less time than others can use the GIL for

// The record that `data` consists of as a dict by the names of the columns; else the number of a Code: why decoding
// stopped, or 0 if a value is not plainly of its form. The decoder is empty then.
nb::object decode_row(Decoder& decoder, const Content& data, const RowForms& forms) {
  Progress done;
  if (data.size() > kShort) {
    nb::gil_scoped_release release;
    done = decoder.feed(data.data(), data.size(), 0, 1, -1, true);
  } else {
    done = decoder.feed(data.data(), data.size(), 0, 1, -1, true);
  }
  nb::object result = nb::int_(static_cast<int>(done.fault.code));
  if (done.records == 1 && done.consumed == static_cast<int64_t>(data.size())) {
    decoder.complete();
    nb::dict row;
    bool made = true;
    for (const RowColumn& column : forms.columns) {
      nb::object value = row_value(decoder.slots.at(column.slot).column, column, forms.numpy);
      made = value.is_valid();
      if (!made) break;
      row[column.name] = value;
    }
    if (made) result = row;
  }
  PyErr_Clear();  // of text that is not UTF-8
  decoder.clear();
  return result;
}

// ---- keys

struct HeldKeys {
  Content data;
  nb::object offsets, valid;  // kept alive
  KeyTable table;
};

// The arrays are not converted, as the table borrows their memory.
Keys keys_of(const Content& data, nb::handle offsets, nb::handle valid) {
  Keys keys;
  keys.data = data.data();
  size_t bounds = data.size() / 8 + 1;
  Array<int32_t> narrow;
  if (nb::try_cast(offsets, narrow, false)) {
    keys.short_offsets = narrow.data();
    bounds = narrow.size();
  } else if (!offsets.is_none()) {
    auto wide = nb::cast<Array<int64_t>>(offsets, false);
    keys.long_offsets = wide.data();
    bounds = wide.size();
  }
  if (bounds == 0) throw nb::value_error("n keys have n + 1 offsets");
  keys.rows = bounds - 1;
  if (!valid.is_none()) {
    auto mask = nb::cast<Array<bool>>(valid, false);
    if (mask.size() != keys.rows) throw nb::value_error("each key is valid or not");
    keys.valid = mask.data();
  }
  return keys;
}

void make_key_table(HeldKeys* place, const Content& data, const nb::object& offsets, const nb::object& valid) {
  Keys keys = keys_of(data, offsets, valid);
  nb::gil_scoped_release release;
  KeyTable table(keys);
  nb::gil_scoped_acquire acquire;
  new (place) HeldKeys{data, offsets, valid, std::move(table)};
}

Span span_of(const nb::bytes& key) {
  const u8* data = reinterpret_cast<const u8*>(key.c_str());
  return {data, data + key.size()};
}

nb::list examples(const HeldKeys& held) {
  nb::list pairs;
  for (const KeyTable::Repeated& one : held.table.examples) pairs.append(nb::make_tuple(one.first, one.row));
  return pairs;
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<RowForms>(m, "RowForms").def("__init__", &make_row_forms, nb::arg("columns"), nb::arg("api"));
  m.def("decode_row", &decode_row, nb::arg("decoder"), nb::arg("data"), nb::arg("forms"));
  nb::class_<HeldKeys>(m, "KeyTable")
      .def("__init__", &make_key_table, nb::arg("data"), nb::arg("offsets").none(), nb::arg("valid").none())
      .def(
          "find", [](const HeldKeys& held, const nb::bytes& key) { return held.table.find(span_of(key)); },
          nb::arg("key"))
      .def("examples", &examples)
      .def_prop_ro("repeated", [](const HeldKeys& held) { return held.table.repeated; })
      .def_prop_ro("nbytes", [](const HeldKeys& held) { return held.table.bytes(); });
}
