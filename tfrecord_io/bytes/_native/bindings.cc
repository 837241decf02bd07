// The files that use Python are bindings*: arrays in, arrays and the fields of a Fault out. The GIL is released during
// the work, except where Python objects are made or looked at (bindings_numpy.cc, bindings_objects.cc,
// bindings_rows.cc).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "arrow_export.h"
#include "arrow_import.h"
#include "bindings_arrays.h"
#include "crc32c.h"
#include "decoder.h"
#include "encoder.h"
#include "feed_file.h"
#include "frame.h"
#include "frame_extents.h"
#include "message_fields.h"
#include "pages.h"
#include "record_members.h"
#include "resync.h"
#include "taken.h"
#include "text_numpy.h"
#include "varint.h"

namespace nb = nanobind;
using namespace tfr;
void bind_numpy(nb::module_& m);    // bindings_numpy.cc
void bind_objects(nb::module_& m);  // bindings_objects.cc
void bind_rows(nb::module_& m);     // bindings_rows.cc

namespace {

using Input = nb::ndarray<const u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Scratch = nb::ndarray<u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Lengths = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
nb::object vector_to_array(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(Output<T>(kept->data(), {kept->size()}, owner));
}

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }
std::string to_string(const nb::bytes& bytes) { return std::string(bytes.c_str(), bytes.size()); }

// The UTF-8 of a str.
std::string text_of(const nb::object& object) {
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  return std::string(text, static_cast<size_t>(size));
}

// An attribute of a Python object, which has the name of one of our fields.
template <class T>
T field(nb::handle object, const char* name) {
  return nb::cast<T>(object.attr(name));
}

// The fields of Fault (bytes/engine/faults.py) by name, or None.
nb::object fault_fields(const Fault& fault) {
  if (!fault) return nb::none();
  nb::dict fields;
  fields["code"] = static_cast<int>(fault.code);
  fields["record"] = fault.record;
  fields["offset"] = fault.offset;
  fields["byte"] = fault.byte;
  fields["feature"] = fault.has_feature ? nb::object(to_bytes(fault.feature)) : nb::none();
  fields["expected"] = fault.expected;
  fields["got"] = fault.got;
  return fields;
}

nb::object values_array(const TakenColumn& column) {
  size_t count = static_cast<size_t>(column.value_count);
  if (column.kind == Kind::kInt64) return shared_array<int64_t>(column.values, count);
  if (column.kind == Kind::kFloat) return shared_array<float>(column.values, count);
  return shared_array<u8>(column.values, static_cast<size_t>(column.data_bytes));
}

// The fields of ColumnBuffers (bytes/engine/contract.py) by name, without its own.
nb::dict column_fields(const TakenColumn& column) {
  size_t rows = static_cast<size_t>(column.rows);
  nb::list others;
  for (const TakenColumn& other : column.others) others.append(column_fields(other));
  nb::dict fields;
  fields["kind"] = static_cast<int>(column.kind);
  fields["layout"] = static_cast<int>(column.layout);
  fields["rows"] = column.rows;
  fields["null_count"] = column.null_count;
  fields["validity"] = shared_array<u8>(column.validity, (rows + 7) / 8);
  fields["offsets"] = shared_array<int32_t>(column.offsets, rows + 1);
  fields["value_offsets"] = shared_array<int32_t>(column.value_offsets, static_cast<size_t>(column.value_count) + 1);
  fields["values"] = values_array(column);
  fields["text"] = column.text;
  fields["first_row"] = column.first_row;
  fields["list_row"] = column.list_row;
  fields["binary_row"] = column.binary_row;
  fields["steps"] = column.steps == nullptr ? nb::object(nb::none()) : nb::object(column_fields(*column.steps));
  fields["others"] = others;
  return fields;
}

TakenColumns take(Decoder& decoder) {
  nb::gil_scoped_release release;
  return take_columns(decoder);
}

nb::dict column_at(const TakenColumns& taken, size_t index) { return column_fields(taken.columns.at(index)); }

int64_t has_others(const TakenColumn& column) {
  return !column.others.empty() || (column.steps != nullptr && !column.steps->others.empty());
}

// The first row with a value of the column's kind, as `ColumnBuffers.value_row`.
int64_t value_row(const TakenColumn& column) {
  if (column.layout != Layout::kList || column.first_row < 0) return column.first_row;
  const int32_t *ends = column.offsets->as<int32_t>() + 1, *last = ends + column.rows;
  const int32_t* end = std::upper_bound(ends, last, 0);
  return end == last ? -1 : end - ends;
}

// The numbers of `Fact` (bytes/engine/contract.py) of each column, one column after the other.
nb::object facts(const TakenColumns& taken) {
  std::vector<int64_t> all;
  for (const TakenColumn& column : taken.columns)
    for (int64_t fact : {static_cast<int64_t>(column.kind), static_cast<int64_t>(column.layout), int64_t{column.text},
                         column.rows, column.null_count, column.first_row, column.list_row, column.binary_row,
                         int64_t{column.steps != nullptr}, has_others(column), value_row(column)})
      all.push_back(fact);
  return vector_to_array(std::move(all));
}

// The facts but for the numbers of rows: whether all are null, and whether there is such a row.
nb::bytes shown(const TakenColumns& taken) {
  std::string all;
  for (const TakenColumn& column : taken.columns)
    for (int64_t fact :
         {static_cast<int64_t>(column.kind), static_cast<int64_t>(column.layout), int64_t{column.text},
          int64_t{column.null_count == column.rows}, int64_t{column.list_row >= 0}, int64_t{column.binary_row >= 0},
          int64_t{column.steps != nullptr}, has_others(column), int64_t{value_row(column) >= 0}})
      all.push_back(static_cast<char>(fact));
  return to_bytes(all);
}

using FormRows =
    nb::ndarray<const int64_t, nb::shape<-1, sizeof(Form) / sizeof(int64_t)>, nb::c_contig, nb::device::cpu>;
constexpr size_t kMostJoined = 128 << 10;  // memory of a column in a batch that is imported, and freed, as a whole

// Arrays of the columns at `indices` (−1: absent), each in the row of `forms` with the number in `form_of`.
// Returns their owner, the address of a struct array of all of them or, if that is 0, of each array: 0 if it was not
// made.
nb::tuple export_arrays(const TakenColumns& taken, const FormRows& forms, const Numbers& form_of,
                        const Numbers& indices) {
  size_t count = std::min(form_of.size(), indices.size());
  auto arrays = std::make_unique<ArrowArrays>(count);
  uintptr_t batch = 0;
  {
    nb::gil_scoped_release release;
    const Form* all = reinterpret_cast<const Form*>(forms.data());
    bool joins = count > 0;
    for (size_t i = 0; i < count; ++i) {
      int64_t index = indices.data()[i];
      joins = joins && index >= 0;
      if (index < 0) continue;
      const TakenColumn& column = taken.columns.at(static_cast<size_t>(index));
      joins = export_column(column, all[form_of.data()[i]], (*arrays)[i]) && joins && memory_of(column) <= kMostJoined;
    }
    if (joins) batch = reinterpret_cast<uintptr_t>(&arrays->join((*arrays)[0].length));
  }
  nb::list addresses;
  for (size_t i = 0; i < arrays->size(); ++i) {
    ArrowArray& array = (*arrays)[i];
    addresses.append(array.release == nullptr ? 0 : reinterpret_cast<uintptr_t>(&array));
  }
  return nb::make_tuple(nb::cast(std::move(arrays)), batch, addresses);
}

// (name, whether it is a feature list) of each.
template <class Items>
nb::list name_tuples(const Items& items, std::string Items::value_type::* text) {
  nb::list names;
  for (const auto& item : items)
    names.append(nb::make_tuple(nb::str((item.*text).data(), (item.*text).size()), item.steps));
  return names;
}

// Adds the first of the `names`, as many as `wanted` has; all, as wanted, if that is None. Names of None: the new ones.
void add_names(Decoder& decoder, nb::handle names, nb::handle wanted, bool provisional) {
  if (names.is_none()) {
    nb::gil_scoped_release release;
    for (const Decoder::NewName& name : decoder.new_names) decoder.add_name(name.text, name.steps, true, provisional);
    return;
  }
  size_t count = nb::len(wanted.is_none() ? names : wanted);
  for (size_t i = 0; i < count; ++i) {
    nb::object name = names[i];
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(name.ptr(), 0), &size);
    if (text == nullptr) throw nb::python_error();
    bool steps = PyTuple_GetItem(name.ptr(), 1) == Py_True;
    decoder.add_name(std::string(text, static_cast<size_t>(size)), steps, wanted.is_none() || nb::cast<bool>(wanted[i]),
                     provisional);
  }
}

nb::tuple feed(Decoder& decoder, const Input& data, size_t begin, int64_t max_records, int64_t max_bytes, bool last) {
  Progress done;
  {
    nb::gil_scoped_release release;
    done = decoder.feed(data.data(), data.size(), begin, max_records, max_bytes, last);
  }
  return nb::make_tuple(done.records, done.consumed, done.full, fault_fields(done.fault));
}

nb::tuple feed_kept(Decoder& decoder, const Input& data, size_t begin, const Lengths& lengths, const Mask& kept) {
  Progress done;
  {
    nb::gil_scoped_release release;
    size_t count = std::min(lengths.size(), kept.size());
    done = decoder.feed_kept(data.data(), data.size(), begin, lengths.data(), kept.data(), count);
  }
  return nb::make_tuple(done.records, done.consumed, done.full, fault_fields(done.fault));
}

// The payload bytes of the rows from `begin` on.
nb::object lengths_of(const Decoder& decoder, size_t begin) {
  auto first = decoder.lengths.begin() + static_cast<ptrdiff_t>(std::min(begin, decoder.lengths.size()));
  return vector_to_array(std::vector<uint32_t>(first, decoder.lengths.end()));
}

// `columns`: those of `Plan` (bytes/engine/faults.py).
void make_decoder(Decoder* place, const nb::list& columns, int unknown, int text, int record_type, bool check_crc,
                  int64_t max_record_bytes, int64_t max_features, int64_t max_expansion, bool names_in_both,
                  bool splits, bool keeps_lengths, bool typed_empties) {
  DecoderPlan plan;
  for (nb::handle item : columns) {
    plan.columns.push_back({text_of(item.attr("name")), static_cast<Kind>(field<int>(item, "kind")),
                            static_cast<Layout>(field<int>(item, "layout")),
                            static_cast<Text>(field<int>(item, "text")), field<bool>(item, "required"),
                            field<bool>(item, "steps"), field<bool>(item, "splits"), typed_empties});
  }
  plan.unknown = static_cast<Unknown>(unknown);
  plan.text = static_cast<Text>(text);
  plan.record_type = static_cast<RecordType>(record_type);
  plan.check_crc = check_crc;
  plan.max_record_bytes = max_record_bytes;
  plan.max_features = max_features;
  plan.max_expansion = max_expansion;
  plan.names_in_both = names_in_both;
  plan.splits = splits;
  plan.keeps_lengths = keeps_lengths;
  plan.typed_empties = typed_empties;
  new (place) Decoder(std::move(plan));
}

// Feeds the records of a file in windows, which `memory` has room for, and where all windows stay if it `keeps` them; a
// frame of more than `most_record_bytes` is left to the caller.
int64_t feed_windows(Decoder& decoder, int descriptor, int64_t file_bytes, const Scratch& memory, size_t window_bytes,
                     int64_t max_record_bytes, int64_t most_record_bytes, int64_t begin, int64_t end,
                     int64_t max_records, int64_t max_bytes, bool keeps) {
  nb::gil_scoped_release release;
  FileWindows windows{descriptor,   file_bytes,       memory.data(),     memory.size(),
                      window_bytes, max_record_bytes, most_record_bytes, keeps ? begin : -1};
  return feed_file(decoder, windows, begin, end, max_records, max_bytes);
}

nb::tuple scan_block(const Input& data, size_t begin, int64_t max_records, int checks, int64_t max_record_bytes,
                     bool last) {
  FrameList frames;
  {
    nb::gil_scoped_release release;
    frames = scan(data.data(), data.size(), begin, max_records, static_cast<Checks>(checks), max_record_bytes, last);
  }
  return nb::make_tuple(vector_to_array(std::move(frames.starts)), vector_to_array(std::move(frames.lengths)),
                        frames.consumed, fault_fields(frames.fault));
}

int64_t header_from(const Input& data, size_t begin, int64_t max_record_bytes) {
  nb::gil_scoped_release release;
  return find_header(data.data(), data.size(), begin, max_record_bytes);
}

nb::object gather_payloads(const Input& data, const Numbers& starts, const Numbers& lengths) {
  Buffer out;
  size_t size;
  {
    nb::gil_scoped_release release;
    size = join_extents(data.data(), starts.data(), lengths.data(), std::min(starts.size(), lengths.size()), out);
  }
  return to_array<u8>(std::move(out), size);
}

nb::tuple members_of(const Input& data, const Numbers& starts, const Numbers& lengths, uint32_t most) {
  Members found;
  {
    nb::gil_scoped_release release;
    found = find_members(data.data(), starts.data(), lengths.data(), std::min(starts.size(), lengths.size()), most);
  }
  return nb::make_tuple(vector_to_array(std::move(found.fields)), vector_to_array(std::move(found.records)),
                        vector_to_array(std::move(found.starts)), vector_to_array(std::move(found.lengths)),
                        fault_fields(found.fault));
}

// `forms`: six numbers for each field, those of `FieldForm`.
nb::tuple fields_of(const Input& data, const Numbers& starts, const Numbers& lengths, const Rows& rows,
                    const Numbers& forms) {
  std::vector<FieldForm> own;
  for (size_t i = 0; i + 6 <= forms.size(); i += 6) {
    const int64_t* form = forms.data() + i;
    own.push_back({static_cast<uint32_t>(form[0]), static_cast<uint32_t>(form[1]), form[2] != 0, form[3] != 0,
                   static_cast<int>(form[4]), form[5] != 0});
  }
  MessageFields found;
  {
    nb::gil_scoped_release release;
    size_t count = std::min({starts.size(), lengths.size(), rows.size()});
    found = find_fields(data.data(), starts.data(), lengths.data(), rows.data(), count, own);
  }
  nb::list fields;
  for (FieldValues& values : found.fields)
    fields.append(nb::make_tuple(vector_to_array(std::move(values.rows)), vector_to_array(std::move(values.values)),
                                 vector_to_array(std::move(values.lengths))));
  nb::dict unknown;
  for (auto [number, times] : found.unknown) unknown[nb::int_(number)] = times;
  return nb::make_tuple(fields, unknown, fault_fields(found.fault));
}

nb::object frame_parts(const Input& data, const Numbers& starts, const Numbers& lengths, size_t parts) {
  Buffer out;
  size_t size;
  {
    nb::gil_scoped_release release;
    size =
        frame_extents(data.data(), starts.data(), lengths.data(), std::min(starts.size(), lengths.size()), parts, out);
  }
  return to_array<u8>(std::move(out), size);
}

size_t frame_window_of(const Input& data, const Numbers& starts, const Numbers& lengths, size_t skip,
                       const Scratch& out) {
  nb::gil_scoped_release release;
  return frame_window(data.data(), starts.data(), lengths.data(), std::min(starts.size(), lengths.size()), skip,
                      out.data(), out.size());
}

int add_source(std::vector<Source>& sources, nb::handle column) {
  Source source;
  source.name = text_of(column.attr("name"));
  source.kind = static_cast<Kind>(field<int>(column, "kind"));
  source.layout = static_cast<Layout>(field<int>(column, "layout"));
  source.validity = items_of<u8>(column.attr("validity"));
  source.offsets = items_of<int64_t>(column.attr("offsets"));
  source.value_offsets = items_of<int64_t>(column.attr("value_offsets"));
  nb::object values = column.attr("values"), steps = column.attr("steps");
  if (source.kind == Kind::kInt64) source.values = reinterpret_cast<const u8*>(items_of<int64_t>(values));
  if (source.kind == Kind::kFloat) source.values = reinterpret_cast<const u8*>(items_of<float>(values));
  if (source.kind == Kind::kBytes) source.values = items_of<u8>(values);
  if (!steps.is_none()) source.steps = add_source(sources, steps);
  sources.push_back(std::move(source));
  return static_cast<int>(sources.size()) - 1;
}

struct PlainForms {
  std::vector<PlainForm> columns;
};

// `forms`: a `PlainForm` (bytes/engine/contract.py) of each column, or None.
void make_forms(PlainForms* place, const nb::list& forms) {
  new (place) PlainForms();
  for (nb::handle item : forms) {
    if (item.is_none()) {
      place->columns.push_back({"", static_cast<Value>(-1), 0, false, false});
    } else {
      place->columns.push_back({text_of(item.attr("name")), static_cast<Value>(field<int>(item, "value")),
                                field<int>(item, "bits"), field<bool>(item, "signed"), field<bool>(item, "large")});
    }
  }
}

// `batch`: a capsule with a struct array of the Arrow C data interface.
void make_arrow_columns(ArrowColumns* place, const nb::capsule& batch, const PlainForms& forms) {
  ArrowArray* array = static_cast<ArrowArray*>(batch.data());
  nb::gil_scoped_release release;
  new (place) ArrowColumns(*array, forms.columns);
}

// `columns`: the fields of ColumnBuffers (bytes/engine/contract.py) that an encoder reads, with offsets of 64 bits, or
// the index of a column in `arrow`; the caller keeps both alive.
void make_encoder(Encoder* place, const nb::list& columns, bool sequence, const ArrowColumns* arrow) {
  std::vector<Source> sources;
  std::vector<int> indices;
  for (nb::handle column : columns) {
    if (nb::isinstance<nb::int_>(column)) {
      indices.push_back(static_cast<int>(sources.size()));
      sources.push_back(arrow->sources.at(nb::cast<size_t>(column)));
    } else {
      indices.push_back(add_source(sources, column));
    }
  }
  new (place) Encoder(std::move(sources), indices, sequence);
}

// Returns the result in `memory`, a Buffer that the caller uses again, or in new memory if `memory` is None.
nb::tuple encode_rows(const Encoder& encoder, int64_t begin, int64_t end, const nb::bytes& prefix, nb::handle memory) {
  std::string front = to_string(prefix);
  Buffer fresh;
  Buffer& out = memory.is_none() ? fresh : nb::cast<Buffer&>(memory);
  Encoded done;
  {
    nb::gil_scoped_release release;
    done = encoder.encode(begin, end, front, out);
    if (&out == &fresh) out.trim(done.size);
  }
  nb::object data = &out == &fresh ? to_array<u8>(std::move(fresh), done.size)
                                   : nb::cast(Output<u8>(out.as<u8>(), {done.size}, memory));
  return nb::make_tuple(data, done.rows);
}

// `items` is the address of the items of a new array of NumPy's StringDType `dtype`; `valid` has a bool for each, or is
// None.
template <class Offset>
void fill_text(const nb::capsule& api, nb::handle dtype, uintptr_t items, nb::handle valid,
               const nb::ndarray<const Offset, nb::ndim<1>, nb::c_contig, nb::device::cpu>& offsets,
               const Input& text) {
  const bool* present = items_of<bool>(valid);
  void* const* table = static_cast<void* const*>(api.data());
  bool done;
  {
    nb::gil_scoped_release release;
    done = fill_strings<Offset>(table, dtype.ptr(), reinterpret_cast<u8*>(items), offsets.size() - 1, present,
                                offsets.data(), text.data());
  }
  if (!done) throw std::bad_alloc();
}

uint32_t crc_of(const Input& data, uint32_t value) {
  nb::gil_scoped_release release;
  return crc32c(value, data.data(), data.size());
}

// For tests that compare each fast path with the portable code.
uint32_t crc_portable(const Input& data, uint32_t value) { return crc32c_portable(value, data.data(), data.size()); }

uint64_t hash_of(const Input& name) { return hash_name(name.data(), name.size()); }

// The implementation of that name, or the one in use.
RunPath run_path(const std::string& name) {
  if (name.empty()) return {"", decode_run, encode_run};
  for (const RunPath& path : run_paths())
    if (path.name == name) return path;
  throw nb::value_error("no such implementation on this processor");
}

std::vector<std::string> names_of_run_paths() {
  std::vector<std::string> names;
  for (const RunPath& path : run_paths()) names.push_back(path.name);
  return names;
}

nb::object run_of(const Input& data, const std::string& path) {
  Buffer out;
  out.reserve((data.size() + kDecodeSlack) * 8, 0);
  int64_t count = run_path(path).decode(data.data(), data.data() + data.size(), out.as<int64_t>());
  if (count < 0) return nb::none();
  return to_array<int64_t>(std::move(out), static_cast<size_t>(count));
}

// The encoded run; its size must be the one that was computed.
nb::object encoded_run(const nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& values,
                       const std::string& path) {
  EncodeRun encode = run_path(path).encode;
  size_t size = encode.size(values.data(), values.size());
  Buffer out;
  out.reserve(size + kRunSlack, 0);
  u8* end = encode.put(out.as<u8>(), values.data(), values.size());
  if (static_cast<size_t>(end - out.as<u8>()) != size) return nb::none();
  return to_array<u8>(std::move(out), size);
}

// nanobind's table of instances grows where no exception may leave, so that a lack of memory would end the process: it
// gets room for as many as are likely to be alive.
void make_room_for_instances(const nb::module_& m) {
  nb::object memory = m.attr("Memory");
  nb::list instances;
  for (int i = 0; i < 1000; ++i) instances.append(memory());
}

}  // namespace

NB_MODULE(_kernel, m) {
  nb::set_leak_warnings(false);  // decoders still alive at interpreter exit are not worth a warning
  m.doc() = "The compiled engine: buffers in, arrays and faults out. Private: use tfrecord_io.";
  m.def("keep_pages", &keep_pages, nb::arg("most"));
  m.def("crc32c", &crc_of, nb::arg("data"), nb::arg("value") = 0);
  m.def("crc32c_combine", &crc32c_combine, nb::arg("first"), nb::arg("second"), nb::arg("second_size"));
  m.def("crc32c_portable", &crc_portable, nb::arg("data"), nb::arg("value") = 0);
  m.def("run_paths", &names_of_run_paths);
  m.def("decode_run", &run_of, nb::arg("data"), nb::arg("path") = "");
  m.def("encode_run", &encoded_run, nb::arg("values"), nb::arg("path") = "");
  m.def("fill_text", &fill_text<int32_t>, nb::arg("api"), nb::arg("dtype"), nb::arg("items"), nb::arg("valid").none(),
        nb::arg("offsets").noconvert(), nb::arg("text"));
  m.def("fill_text", &fill_text<int64_t>, nb::arg("api"), nb::arg("dtype"), nb::arg("items"), nb::arg("valid").none(),
        nb::arg("offsets").noconvert(), nb::arg("text"));
  bind_numpy(m);
  m.def("hash_name", &hash_of, nb::arg("name"));
  m.def("scan", &scan_block, nb::arg("data"), nb::arg("begin"), nb::arg("max_records"), nb::arg("checks"),
        nb::arg("max_record_bytes"), nb::arg("final"));
  m.def("find_header", &header_from, nb::arg("data"), nb::arg("begin"), nb::arg("max_record_bytes"));
  m.def("payloads", &gather_payloads, nb::arg("data"), nb::arg("starts"), nb::arg("lengths"));
  m.def("members", &members_of, nb::arg("data"), nb::arg("starts"), nb::arg("lengths"), nb::arg("most"));
  m.def("message_fields", &fields_of, nb::arg("data"), nb::arg("starts"), nb::arg("lengths"), nb::arg("rows"),
        nb::arg("forms"));
  m.def("frame_extents", &frame_parts, nb::arg("data"), nb::arg("starts"), nb::arg("lengths"), nb::arg("parts"));
  m.def("frame_window", &frame_window_of, nb::arg("data"), nb::arg("starts"), nb::arg("lengths"), nb::arg("skip"),
        nb::arg("out").noconvert());
  nb::class_<ArrowArrays>(m, "ArrowArrays");
  nb::class_<TakenColumns>(m, "TakenColumns")
      .def("__len__", [](const TakenColumns& taken) { return taken.columns.size(); })
      .def("column", &column_at, nb::arg("index"))
      .def("facts", &facts)
      .def("shown", &shown)
      .def("arrays", &export_arrays, nb::arg("forms"), nb::arg("form_of"), nb::arg("indices"));
  nb::class_<Buffer>(m, "Memory").def(nb::init<>()).def_prop_ro("capacity", &Buffer::capacity);
  nb::class_<PlainForms>(m, "PlainForms")
      .def("__init__", &make_forms, nb::arg("forms"))
      .def("value_bytes", [](const PlainForms& forms, const nb::capsule& batch) {
        return value_bytes(*static_cast<const ArrowArray*>(batch.data()), forms.columns);
      });
  nb::class_<ArrowColumns>(m, "ArrowColumns")
      .def("__init__", &make_arrow_columns, nb::arg("batch"), nb::arg("forms"))
      .def_prop_ro("taken", [](const ArrowColumns& columns) {
        nb::list taken;
        for (bool one : columns.taken) taken.append(one);
        return taken;
      });
  nb::class_<Encoder>(m, "Encoder")
      .def("__init__", &make_encoder, nb::arg("columns"), nb::arg("sequence"), nb::arg("arrow").none())
      .def("encode", &encode_rows, nb::arg("begin"), nb::arg("end"), nb::arg("prefix"), nb::arg("memory").none());
  nb::class_<Decoder>(m, "Decoder")
      .def("__init__", &make_decoder, nb::arg("columns"), nb::arg("unknown"), nb::arg("text"), nb::arg("record_type"),
           nb::arg("check_crc"), nb::arg("max_record_bytes"), nb::arg("max_features"), nb::arg("max_expansion"),
           nb::arg("names_in_both"), nb::arg("splits"), nb::arg("keeps_lengths"), nb::arg("typed_empties"))
      .def("feed", &feed, nb::arg("data"), nb::arg("begin"), nb::arg("max_records"), nb::arg("max_bytes"),
           nb::arg("final"))
      .def("feed_kept", &feed_kept, nb::arg("data"), nb::arg("begin"), nb::arg("lengths"), nb::arg("kept"))
      .def("feed_file", &feed_windows, nb::arg("descriptor"), nb::arg("file_bytes"), nb::arg("memory").noconvert(),
           nb::arg("window_bytes"), nb::arg("max_record_bytes"), nb::arg("most_record_bytes"), nb::arg("begin"),
           nb::arg("end"), nb::arg("max_records"), nb::arg("max_bytes"), nb::arg("keeps"))
      .def("take", &take)
      .def("complete", &Decoder::complete, nb::call_guard<nb::gil_scoped_release>())
      .def("append", &Decoder::append, nb::arg("part"), nb::arg("begin"), nb::arg("end"), nb::arg("payload_bytes"),
           nb::call_guard<nb::gil_scoped_release>())
      .def("clear", &Decoder::clear)
      .def("lengths", &lengths_of, nb::arg("begin"))
      .def("names", [](const Decoder& decoder) { return name_tuples(decoder.slots, &Decoder::Slot::name); })
      .def("new_names", [](const Decoder& decoder) { return name_tuples(decoder.new_names, &Decoder::NewName::text); })
      .def("add_names", &add_names, nb::arg("names").none(), nb::arg("wanted").none(), nb::arg("provisional"))
      .def("leave_out",
           [](Decoder& decoder, const nb::bytes& name, bool steps) { decoder.leave_out(to_string(name), steps); })
      .def("embedded",
           [](Decoder& decoder) {
             nb::list payloads;
             for (const Span& span : decoder.embedded)
               payloads.append(
                   nb::bytes(reinterpret_cast<const char*>(span.begin), static_cast<size_t>(span.end - span.begin)));
             return payloads;
           })
      .def("expect", [](Decoder& decoder, int64_t payload_bytes) { decoder.arena.expected = payload_bytes; })
      .def("accept_embedded", &Decoder::accept_embedded)
      .def_ro("rows", &Decoder::rows)
      .def_ro("value_bytes", &Decoder::value_bytes)
      .def_prop_ro("integer_bytes", &Decoder::integer_bytes)
      .def_prop_ro("column_bytes", &Decoder::column_bytes)
      .def_ro("seen", &Decoder::seen)
      .def_ro("foreign", &Decoder::foreign)
      .def_ro("nested", &Decoder::nested)
      .def_prop_ro("sequence", [](const Decoder& decoder) { return decoder.record_type == RecordType::kSequence; });
  bind_objects(m);
  bind_rows(m);
  make_room_for_instances(m);
}
