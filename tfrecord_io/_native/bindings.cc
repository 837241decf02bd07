// The only file that uses Python: arrays in, arrays and the fields of a Fault out. The GIL is released during the work.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "crc32c.h"
#include "decoder.h"
#include "encoder.h"
#include "frame.h"
#include "resync.h"
#include "varint.h"

namespace nb = nanobind;
using namespace tfr;

namespace {

using Input = nb::ndarray<const u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
nb::object to_array(Buffer&& buffer, size_t count) {
  Buffer* kept = new Buffer(std::move(buffer));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Buffer*>(p); });
  return nb::cast(Output<T>(kept->as<T>(), {count}, owner));
}

template <class T>
nb::object vector_to_array(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(Output<T>(kept->data(), {kept->size()}, owner));
}

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }
std::string to_string(const nb::bytes& bytes) { return std::string(bytes.c_str(), bytes.size()); }

// (code, record, offset, byte, feature or None, expected, got), or None.
nb::object fault_tuple(const Fault& fault) {
  if (!fault) return nb::none();
  nb::object feature = fault.has_feature ? nb::object(to_bytes(fault.feature)) : nb::none();
  return nb::make_tuple(static_cast<int>(fault.code), fault.record, fault.offset, fault.byte, feature, fault.expected, fault.got);
}

nb::object values_array(Column& column) {
  size_t count = static_cast<size_t>(column.value_count);
  if (column.kind == Kind::kInt64) return to_array<int64_t>(std::move(column.values), count);
  if (column.kind == Kind::kFloat) return to_array<float>(std::move(column.values), count);
  return to_array<u8>(std::move(column.values), static_cast<size_t>(column.data_bytes));
}

// The fields of ColumnBuffers (engine/contract.py) after the name, in the same order.
nb::tuple column_tuple(Column& column) {
  nb::object validity = nb::none(), offsets = nb::none(), value_offsets = nb::none(), values = nb::none(), steps = nb::none();
  size_t rows = static_cast<size_t>(column.rows);
  if (column.null_count > 0 && column.layout != Layout::kNull) validity = to_array<u8>(std::move(column.validity), (rows + 7) / 8);
  if (column.layout == Layout::kList) offsets = to_array<int32_t>(std::move(column.offsets), rows + 1);
  bool filled = column.kind != Kind::kNone && !column.steps;
  if (filled) values = values_array(column);
  if (filled && column.kind == Kind::kBytes) value_offsets = to_array<int32_t>(std::move(column.value_offsets), static_cast<size_t>(column.value_count) + 1);
  if (column.steps) steps = column_tuple(*column.steps);
  bool text = !column.steps && column.kind == Kind::kBytes && column.text == Text::kTrack && column.binary_row < 0;
  return nb::make_tuple(static_cast<int>(column.kind), static_cast<int>(column.layout), column.rows, column.null_count, validity, offsets, value_offsets,
                        values, text, column.first_row, column.list_row, column.binary_row, steps);
}

nb::list take(Decoder& decoder) {
  decoder.finish();
  nb::list columns;
  for (Decoder::Slot& slot : decoder.slots)
    columns.append(nb::make_tuple(to_bytes(slot.name), slot.steps, column_tuple(slot.column)));
  decoder.reset();
  return columns;
}

nb::tuple feed(Decoder& decoder, const Input& data, size_t begin, int64_t max_records, int64_t max_bytes, bool last) {
  Progress done;
  {
    nb::gil_scoped_release release;
    done = decoder.feed(data.data(), data.size(), begin, max_records, max_bytes, last);
  }
  return nb::make_tuple(done.records, done.consumed, fault_tuple(done.fault));
}

void make_decoder(Decoder* place, const nb::list& columns, int unknown, int text, int record_type, bool check_crc, int64_t max_record_bytes,
                  int64_t max_features) {
  DecoderPlan plan;
  for (nb::handle item : columns) {
    nb::tuple column = nb::cast<nb::tuple>(item);
    plan.columns.push_back({to_string(nb::cast<nb::bytes>(column[0])), static_cast<Kind>(nb::cast<int>(column[1])),
                            static_cast<Layout>(nb::cast<int>(column[2])), static_cast<Text>(nb::cast<int>(column[3])), nb::cast<bool>(column[4]),
                            nb::cast<bool>(column[5])});
  }
  plan.unknown = static_cast<Unknown>(unknown);
  plan.text = static_cast<Text>(text);
  plan.record_type = static_cast<RecordType>(record_type);
  plan.check_crc = check_crc;
  plan.max_record_bytes = max_record_bytes;
  plan.max_features = max_features;
  new (place) Decoder(std::move(plan));
}

nb::tuple scan_block(const Input& data, size_t begin, int64_t max_records, bool check_crc, int64_t max_record_bytes, bool last) {
  FrameList frames;
  {
    nb::gil_scoped_release release;
    frames = scan(data.data(), data.size(), begin, max_records, check_crc, max_record_bytes, last);
  }
  return nb::make_tuple(vector_to_array(std::move(frames.starts)), vector_to_array(std::move(frames.lengths)), frames.consumed, fault_tuple(frames.fault));
}

int64_t header_from(const Input& data, size_t begin, int64_t max_record_bytes) {
  nb::gil_scoped_release release;
  return find_header(data.data(), data.size(), begin, max_record_bytes);
}

using Numbers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object gather_payloads(const Input& data, const Numbers& starts, const Numbers& lengths) {
  Buffer out;
  size_t at = 0;
  {
    nb::gil_scoped_release release;
    out.reserve(data.size(), 0);
    for (size_t i = 0; i < starts.size(); ++i) {
      size_t length = static_cast<size_t>(lengths.data()[i]);
      if (length != 0) std::memcpy(out.as<u8>() + at, data.data() + starts.data()[i], length);
      at += length;
    }
    out.trim(at);
  }
  return to_array<u8>(std::move(out), at);
}

// `lengths` of the payloads, which are contiguous in `data`.
nb::object frame_payloads(const Input& data, const Numbers& lengths) {
  Buffer out;
  size_t at = 0, from = 0;
  {
    nb::gil_scoped_release release;
    out.reserve(data.size() + lengths.size() * kFrameBytes, 0);
    for (size_t i = 0; i < lengths.size(); ++i) {
      size_t length = static_cast<size_t>(lengths.data()[i]);
      if (length != 0) std::memcpy(out.as<u8>() + at + kHeaderBytes, data.data() + from, length);
      close_frame(out.as<u8>() + at, length);
      at += length + kFrameBytes;
      from += length;
    }
  }
  return to_array<u8>(std::move(out), at);
}

template <class T>
const T* pointer(nb::handle array) {
  if (array.is_none()) return nullptr;
  return nb::cast<nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(array).data();
}

int add_source(std::vector<Source>& sources, const nb::tuple& column) {
  Source source;
  source.name = to_string(nb::cast<nb::bytes>(column[0]));
  source.kind = static_cast<Kind>(nb::cast<int>(column[1]));
  source.layout = static_cast<Layout>(nb::cast<int>(column[2]));
  source.validity = pointer<u8>(column[3]);
  source.offsets = pointer<int64_t>(column[4]);
  source.value_offsets = pointer<int64_t>(column[5]);
  if (source.kind == Kind::kInt64) source.values = reinterpret_cast<const u8*>(pointer<int64_t>(column[6]));
  if (source.kind == Kind::kFloat) source.values = reinterpret_cast<const u8*>(pointer<float>(column[6]));
  if (source.kind == Kind::kBytes) source.values = pointer<u8>(column[6]);
  if (!column[7].is_none()) source.steps = add_source(sources, nb::cast<nb::tuple>(column[7]));
  sources.push_back(std::move(source));
  return static_cast<int>(sources.size()) - 1;
}

// `columns`: (name, kind, layout, validity, offsets, value_offsets, values, steps); the caller keeps the arrays alive.
nb::tuple encode_rows(const nb::list& columns, int64_t begin, int64_t end, const nb::bytes& prefix, bool sequence) {
  std::vector<Source> sources;
  std::vector<int> indices;
  for (nb::handle column : columns) indices.push_back(add_source(sources, nb::cast<nb::tuple>(column)));
  std::string front = to_string(prefix);
  Encoded done;
  {
    nb::gil_scoped_release release;
    done = encode(sources, indices, begin, end, front, sequence);
  }
  return nb::make_tuple(to_array<u8>(std::move(done.buffer), done.size), done.rows);
}

uint32_t crc_of(const Input& data, uint32_t value) {
  nb::gil_scoped_release release;
  return crc32c(value, data.data(), data.size());
}

// For tests that compare each fast path with the portable code.
uint32_t crc_portable(const Input& data, uint32_t value) { return crc32c_portable(value, data.data(), data.size()); }

nb::object run_of(const Input& data, bool portable) {
  Buffer out;
  out.reserve(data.size() * 8 + 8, 0);
  int64_t count = (portable ? decode_run_portable : decode_run)(data.data(), data.data() + data.size(), out.as<int64_t>());
  if (count < 0) return nb::none();
  return to_array<int64_t>(std::move(out), static_cast<size_t>(count));
}

}  // namespace

NB_MODULE(_kernel, m) {
  nb::set_leak_warnings(false);  // decoders still alive at interpreter exit are not worth a warning
  m.doc() = "The compiled engine: buffers in, arrays and faults out. Private: use tfrecord_io.";
  m.def("crc32c", &crc_of, nb::arg("data"), nb::arg("value") = 0);
  m.def("crc32c_portable", &crc_portable, nb::arg("data"), nb::arg("value") = 0);
  m.def("decode_run", &run_of, nb::arg("data"), nb::arg("portable") = false);
  m.def("scan", &scan_block, nb::arg("data"), nb::arg("begin"), nb::arg("max_records"), nb::arg("check_crc"), nb::arg("max_record_bytes"), nb::arg("final"));
  m.def("find_header", &header_from, nb::arg("data"), nb::arg("begin"), nb::arg("max_record_bytes"));
  m.def("payloads", &gather_payloads, nb::arg("data"), nb::arg("starts"), nb::arg("lengths"));
  m.def("frame", &frame_payloads, nb::arg("data"), nb::arg("lengths"));
  m.def("encode", &encode_rows, nb::arg("columns"), nb::arg("begin"), nb::arg("end"), nb::arg("prefix"), nb::arg("sequence"));
  nb::class_<Decoder>(m, "Decoder")
      .def("__init__", &make_decoder, nb::arg("columns"), nb::arg("unknown"), nb::arg("text"), nb::arg("record_type"), nb::arg("check_crc"),
           nb::arg("max_record_bytes"), nb::arg("max_features"))
      .def("feed", &feed, nb::arg("data"), nb::arg("begin"), nb::arg("max_records"), nb::arg("max_bytes"), nb::arg("final"))
      .def("take", &take)
      .def("new_names",
           [](Decoder& decoder) {
             nb::list names;
             for (const Decoder::NewName& name : decoder.new_names) names.append(nb::make_tuple(to_bytes(name.text), name.steps));
             return names;
           })
      .def("add_name", [](Decoder& decoder, const nb::bytes& name, bool steps, bool wanted) { decoder.add_name(to_string(name), steps, wanted, true); })
      .def("leave_out", [](Decoder& decoder, const nb::bytes& name, bool steps) { decoder.add_name(to_string(name), steps, false, false); })
      .def("embedded",
           [](Decoder& decoder) {
             nb::list payloads;
             for (const Span& span : decoder.embedded) payloads.append(nb::bytes(reinterpret_cast<const char*>(span.begin), static_cast<size_t>(span.end - span.begin)));
             return payloads;
           })
      .def("expect", [](Decoder& decoder, int64_t payload_bytes) { decoder.arena.expected = payload_bytes; })
      .def("accept_embedded", &Decoder::accept_embedded)
      .def_ro("rows", &Decoder::rows)
      .def_ro("value_bytes", &Decoder::value_bytes)
      .def_ro("seen", &Decoder::seen)
      .def_ro("foreign", &Decoder::foreign)
      .def_prop_ro("sequence", [](const Decoder& decoder) { return decoder.record_type == RecordType::kSequence; });
}
