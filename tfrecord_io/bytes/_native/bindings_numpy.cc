// Columns as NumPy arrays: numbers, views of lists, runs of items, and Python's `bytes` objects, made while the GIL is
// held and filled without it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "arrow_numbers.h"
#include "bindings_arrays.h"
#include "runs.h"
#include "shuffle.h"
#include "wire.h"

#ifdef __GLIBC__
#include <sys/mman.h>
#endif

namespace nb = nanobind;
using namespace tfr;

namespace {

using Content = nb::ndarray<const u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableOffsets = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Releases the GIL for a copy, unless the copy takes less time than getting the GIL back from another thread.
class ReleaseForCopy {
 public:
  explicit ReleaseForCopy(size_t bytes) {
    if (bytes > kLarge) release_.emplace();
  }

 private:
  static constexpr size_t kLarge = 256 << 10;
  std::optional<nb::gil_scoped_release> release_;
};

// Room for objects that are made next, at the end of the heap, as long as it exists. The first use of a page of 4 KiB
// costs three times as much as the copy of a value into it, so where the C library's heap grows, the kernel is asked
// for huge pages in advance: blocks are allocated that will be the memory of the objects, their pages made, and all but
// the last one freed, behind which nothing is returned to the system.
class HeapRoom {
 public:
  explicit HeapRoom([[maybe_unused]] size_t bytes) {
#ifdef __GLIBC__
    std::vector<char*> blocks;
    for (size_t had = 0; had < bytes; had += kBlock) {
      blocks.push_back(static_cast<char*>(std::malloc(kBlock)));
      if (blocks.back() == nullptr) break;
    }
    bool going = true;
    for (size_t begin = 0, end; begin < blocks.size(); begin = end) {  // runs of adjacent blocks
      for (end = begin + 1;
           end < blocks.size() && blocks[end] - blocks[end - 1] == static_cast<std::ptrdiff_t>(kBlock + kHeader);
           ++end) {
      }
      if (going) going = make_pages(blocks[begin], blocks[end - 1] + kBlock);
    }
    last_ = blocks.back();
    blocks.pop_back();
    for (char* block : blocks) std::free(block);
#endif
  }
  HeapRoom(const HeapRoom&) = delete;
  HeapRoom& operator=(const HeapRoom&) = delete;
  ~HeapRoom() { std::free(last_); }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kHeader = 16;                   // between two blocks
  static constexpr size_t kBlock = (96 << 10) - kHeader;  // the C library maps larger ones on their own
#ifdef __GLIBC__
  static constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1

  static bool make_pages(char* begin, char* end) {
    uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + kHugePage - 1) / kHugePage * kHugePage;
    uintptr_t last = reinterpret_cast<uintptr_t>(end) / kHugePage * kHugePage;
    return first >= last || madvise(reinterpret_cast<void*>(first), last - first, kCollapse) == 0;
  }
#endif

  void* last_ = nullptr;
};

nb::capsule heap_room(size_t bytes) {
  HeapRoom* room;
  {
    nb::gil_scoped_release release;
    room = new HeapRoom(bytes);
  }
  return nb::capsule(room, [](void* p) noexcept { delete static_cast<HeapRoom*>(p); });
}

// Makes the objects of an array, whose items are at the address `place`: slot i has the size of
// data[offsets[i]:offsets[i + 1]], or is None where `valid` is false. Objects of at most one byte are complete, as
// Python shares them; the content of others is undefined until fill().
void make(uintptr_t place, nb::handle valid, const Offsets& offsets, const Content& data) {
  auto* items = reinterpret_cast<PyObject**>(place);
  const bool* mask = items_of<bool>(valid);
  const int64_t* at = offsets.data();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    PyObject* item = Py_None;
    if (mask == nullptr || mask[i]) {
      Py_ssize_t own = static_cast<Py_ssize_t>(at[i + 1] - at[i]);
      item = PyBytes_FromStringAndSize(own > 1 ? nullptr : reinterpret_cast<const char*>(data.data()) + at[i], own);
      if (item == nullptr) throw nb::python_error();
    } else {
      Py_INCREF(item);
    }
    PyObject* before = items[i];
    items[i] = item;
    Py_XDECREF(before);
  }
}

// Copies the content of these objects.
void fill(uintptr_t place, nb::handle valid, const Offsets& offsets, const Content& data) {
  auto* items = reinterpret_cast<u8* const*>(place);
  const bool* mask = items_of<bool>(valid);
  const int64_t* at = offsets.data();
  nb::bytes empty("", 0);
  size_t header = static_cast<size_t>(empty.c_str() - reinterpret_cast<const char*>(empty.ptr()));
  nb::gil_scoped_release release;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (mask != nullptr && !mask[i]) continue;
    size_t own = static_cast<size_t>(at[i + 1] - at[i]);
    if (own > 1) std::memcpy(items[i] + header, data.data() + at[i], own);
  }
}

// Makes the views of an array of objects, whose items are at the address `place`: slot i is values[offsets[i]:offsets[i
// + 1]], or None where `valid` is false. `values` is one-dimensional and contiguous, `data` the address of its items.
// `api` is the table in NumPy's capsule _ARRAY_API; its numbers are part of NumPy 2's ABI.
void views(const nb::capsule& api, uintptr_t place, nb::handle values, nb::handle dtype, uintptr_t data,
           int64_t item_size, bool writable, nb::handle valid, const Offsets& offsets) {
  using NewFromDescr = PyObject* (*)(void* type, PyObject* dtype, int dimensions, const Py_ssize_t* shape,
                                     const Py_ssize_t* strides, void* data, int flags, PyObject* base);
  using SetBaseObject = int (*)(PyObject* array, PyObject* base);
  constexpr int kArrayType = 2, kNewFromDescr = 94, kSetBaseObject = 282, kAligned = 0x100, kWritable = 0x400;
  void* const* table = static_cast<void* const*>(api.data());
  auto make = reinterpret_cast<NewFromDescr>(table[kNewFromDescr]);
  auto set_base = reinterpret_cast<SetBaseObject>(table[kSetBaseObject]);
  auto* items = reinterpret_cast<PyObject**>(place);
  const bool* mask = items_of<bool>(valid);
  const int64_t* at = offsets.data();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (mask != nullptr && !mask[i]) continue;  // the array has None already
    Py_ssize_t count = static_cast<Py_ssize_t>(at[i + 1] - at[i]);
    void* begin = reinterpret_cast<void*>(data + static_cast<uintptr_t>(at[i] * item_size));
    Py_INCREF(dtype.ptr());  // each call takes over a reference
    PyObject* view =
        make(table[kArrayType], dtype.ptr(), 1, &count, nullptr, begin, kAligned | (writable ? kWritable : 0), nullptr);
    if (view == nullptr) throw nb::python_error();
    PyObject* before = items[i];
    items[i] = view;
    Py_XDECREF(before);
    Py_INCREF(values.ptr());
    if (set_base(view, values.ptr()) < 0) throw nb::python_error();
  }
}

// Joins columns of batches: `batches` are capsules with a struct array of the Arrow C data interface, `columns` have
// the fields of JoinedNumbers, with addresses.
void join(const std::vector<nb::capsule>& batches,
          const nb::ndarray<const int64_t, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>& columns) {
  std::vector<const ArrowArray*> arrays;
  for (const nb::capsule& batch : batches) arrays.push_back(static_cast<const ArrowArray*>(batch.data()));
  std::vector<JoinedNumbers> joined;
  for (size_t i = 0; i < columns.shape(0); ++i) {
    const int64_t* fields = columns.data() + 4 * i;
    joined.push_back({fields[0], fields[1], reinterpret_cast<u8*>(fields[2]), reinterpret_cast<bool*>(fields[3])});
  }
  nb::gil_scoped_release release;
  join_numbers(arrays, joined);
}

// Copies runs of items of `item_size` bytes, whose numbers are those of the items.
void copy(const Content& values, const Offsets& begins, const Offsets& lengths, size_t item_size, const Writable& out,
          const Offsets& places) {
  size_t count = lengths.size();
  if (item_size == 0 || begins.size() != count || places.size() != count) {
    throw nb::value_error("runs need a begin, a length and a place each");
  }
  size_t copied;
  {
    ReleaseForCopy release(out.size());
    copied = copy_runs(values.data(), values.size() / item_size, begins.data(), lengths.data(), count, item_size,
                       out.data(), out.size() / item_size, places.data());
  }
  if (copied < count) throw nb::index_error("a run is not within the arrays");
}

std::vector<RunArray> run_arrays(const std::vector<Content>& values, const std::vector<Offsets>& offsets,
                                 size_t item_size) {
  if (item_size == 0 || values.size() != offsets.size()) throw nb::value_error("arrays need values and offsets each");
  std::vector<RunArray> arrays;
  for (size_t i = 0; i < values.size(); ++i) {
    size_t rows = offsets[i].size() == 0 ? 0 : offsets[i].size() - 1;
    arrays.push_back({values[i].data(), values[i].size() / item_size, offsets[i].data(), rows});
  }
  return arrays;
}

// The offsets of rows of several arrays, one after the other; see chosen_offsets.
void offsets_of_rows(const std::vector<Content>& values, const std::vector<Offsets>& offsets, size_t item_size,
                     nb::handle owners, const Offsets& rows, const WritableOffsets& out) {
  std::vector<RunArray> arrays = run_arrays(values, offsets, item_size);
  ChosenRuns chosen{arrays, items_of<int64_t>(owners), rows.data(), rows.size()};
  if (out.size() != rows.size() + 1) throw nb::value_error("each row needs an offset, and there is one more");
  size_t known;
  {
    nb::gil_scoped_release release;
    known = chosen_offsets(chosen, out.data());
  }
  if (known < chosen.count) throw nb::index_error("a row is not within the arrays");
}

// Copies rows of several arrays to where these offsets say; see gather_runs.
void gather(const std::vector<Content>& values, const std::vector<Offsets>& offsets, size_t item_size,
            nb::handle owners, const Offsets& rows, const Offsets& out_offsets, const Writable& out) {
  std::vector<RunArray> arrays = run_arrays(values, offsets, item_size);
  ChosenRuns chosen{arrays, items_of<int64_t>(owners), rows.data(), rows.size()};
  if (out_offsets.size() != rows.size() + 1) throw nb::value_error("each row needs an offset, and there is one more");
  size_t copied;
  {
    nb::gil_scoped_release release;
    copied = gather_runs(chosen, out_offsets.data(), item_size, out.data(), out.size() / item_size);
  }
  if (copied < chosen.count) throw nb::index_error("a row is not within the arrays");
}

// Rows of items of as many bytes as `fill` has, padded to `length` items each.
void pad(const Content& values, const Offsets& offsets, const Content& fill, const Writable& out, size_t length) {
  size_t item = fill.size(), rows = offsets.size() == 0 ? 0 : offsets.size() - 1;
  if (item == 0 || length == 0 || out.size() / item / length != rows || out.size() != rows * length * item) {
    throw nb::value_error("each row needs room for its items");
  }
  size_t padded;
  {
    ReleaseForCopy release(out.size());
    padded = pad_rows(values.data(), values.size() / item, offsets.data(), rows, item, fill.data(), out.data(), length);
  }
  if (padded < rows) throw nb::index_error("a row is not within the arrays");
}

// The bin of each row is written to `bins_of_rows`; see first_fit.
std::vector<int64_t> pack(const nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& lengths,
                          const Offsets& capacity, size_t bins, const WritableOffsets& bins_of_rows) {
  if (bins == 0 || lengths.shape(1) != capacity.size() || lengths.shape(0) != bins_of_rows.size()) {
    throw nb::value_error("rows need a length for each capacity, and there is at least one bin");
  }
  nb::gil_scoped_release release;
  return first_fit(lengths.data(), lengths.shape(0), lengths.shape(1), capacity.data(), bins, bins_of_rows.data());
}

// See exchange in shuffle.h; `sizes` has the size of the buffer of each array of random numbers.
void draw(const std::vector<Numbers>& draws, const Offsets& sizes, const WritableOffsets& drawn,
          const WritableOffsets& slots) {
  if (draws.size() != sizes.size()) throw nb::value_error("each buffer needs a size");
  std::vector<BufferDraws> buffers;
  size_t count = 0, rows = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    if (sizes.data()[i] < 0) throw nb::value_error("a buffer has less than 0 rows");
    buffers.push_back({draws[i].data(), draws[i].size(), static_cast<size_t>(sizes.data()[i])});
    count += buffers.back().count;
    rows += buffers.back().size;
  }
  if (drawn.size() != count || slots.size() != rows) throw nb::value_error("each draw and each slot needs an item");
  size_t made;
  {
    ReleaseForCopy release(count * sizeof(int64_t));
    made = exchange(buffers, drawn.data(), slots.data());
  }
  if (made < count) throw nb::index_error("a draw is not within its buffer");
}

}  // namespace

void bind_numpy(nb::module_& m) {
  m.def("row_views", &views, nb::arg("api"), nb::arg("items"), nb::arg("values"), nb::arg("dtype"), nb::arg("data"),
        nb::arg("item_size"), nb::arg("writable"), nb::arg("valid").none(), nb::arg("offsets").noconvert());
  m.def("join_numbers", &join, nb::arg("batches"), nb::arg("columns").noconvert());
  m.def("copy_runs", &copy, nb::arg("values"), nb::arg("begins").noconvert(), nb::arg("lengths").noconvert(),
        nb::arg("item_size"), nb::arg("out").noconvert(), nb::arg("places").noconvert());
  m.def("chosen_offsets", &offsets_of_rows, nb::arg("values").noconvert(), nb::arg("offsets").noconvert(),
        nb::arg("item_size"), nb::arg("owners").none(), nb::arg("rows").noconvert(), nb::arg("out").noconvert());
  m.def("gather_runs", &gather, nb::arg("values").noconvert(), nb::arg("offsets").noconvert(), nb::arg("item_size"),
        nb::arg("owners").none(), nb::arg("rows").noconvert(), nb::arg("out_offsets").noconvert(),
        nb::arg("out").noconvert());
  m.def("pad_rows", &pad, nb::arg("values"), nb::arg("offsets").noconvert(), nb::arg("fill"),
        nb::arg("out").noconvert(), nb::arg("length"));
  m.def("first_fit", &pack, nb::arg("lengths").noconvert(), nb::arg("capacity").noconvert(), nb::arg("bins"),
        nb::arg("bins_of_rows").noconvert());
  m.def("exchange", &draw, nb::arg("draws").noconvert(), nb::arg("sizes").noconvert(), nb::arg("drawn").noconvert(),
        nb::arg("slots").noconvert());
  m.def("heap_room", &heap_room, nb::arg("bytes"));
  m.def("make_bytes", &make, nb::arg("items"), nb::arg("valid").none(), nb::arg("offsets").noconvert(),
        nb::arg("data"));
  m.def("fill_bytes", &fill, nb::arg("items"), nb::arg("valid").none(), nb::arg("offsets").noconvert(),
        nb::arg("data"));
}
