#include "encoder.h"

#include <algorithm>

#include "frame.h"
#include "varint.h"

namespace tfr {
namespace {

constexpr size_t kMaxPayload = 0x7fffffff;
static_assert(Shape::kLoaded >= kRunSlack);  // what is reserved after a record
constexpr u8 kItem = make_tag(1, kLen);

inline u8* put_header(u8* out, u8 tag, size_t size) {
  *out++ = tag;
  return put_varint(out, size);
}

inline u8* put_bytes(u8* out, const u8* data, size_t size) {
  if (size != 0) std::memcpy(out, data, size);
  return out + size;
}

// A length-delimited field: tag, length, content.
inline size_t field_size(size_t content) { return 1 + varint_size(content) + content; }

inline bool is_null(const Source& source, int64_t row) {
  return source.kind == Kind::kNone || (source.validity != nullptr && !(source.validity[row >> 3] >> (row & 7) & 1));
}

struct Range {
  int64_t begin, end;
};

inline Range values_of(const Source& source, int64_t row) {
  if (source.layout == Layout::kList) return {source.offsets[row], source.offsets[row + 1]};
  return {row, row + 1};
}

// Size of the list's content without the packed header; for kBytes of all its fields.
size_t content_size(const Source& source, Range range) {
  size_t size = 0;
  if (source.kind == Kind::kFloat) return static_cast<size_t>(range.end - range.begin) * 4;
  if (source.kind == Kind::kInt64) {
    const uint64_t* values = reinterpret_cast<const uint64_t*>(source.values);
    return encode_run.size(values + range.begin, static_cast<size_t>(range.end - range.begin));
  }
  for (int64_t i = range.begin; i < range.end; ++i)
    size += field_size(static_cast<size_t>(source.value_offsets[i + 1] - source.value_offsets[i]));
  return size;
}

// Sizes of the messages around a cell's values, from the inside out; of a short entry only `content`, with feature = 0.
struct CellSize {
  size_t content = 0;  // packed run, or the fields of a BytesList
  size_t list = 0;     // BytesList, FloatList or Int64List
  size_t feature = 0;
};

inline CellSize measure_cell(const Source& source, int64_t row) {
  CellSize size;
  if (is_null(source, row)) return size;
  size.content = content_size(source, values_of(source, row));
  bool packed = source.kind != Kind::kBytes && size.content != 0;
  size.list = packed ? field_size(size.content) : size.content;
  size.feature = field_size(size.list);
  return size;
}

u8* put_cell(u8* out, const Source& source, int64_t row, const CellSize& size) {
  if (is_null(source, row)) return out;
  out = put_header(out, make_tag(static_cast<uint32_t>(source.kind), kLen), size.list);
  Range range = values_of(source, row);
  if (source.kind == Kind::kBytes) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      size_t length = static_cast<size_t>(source.value_offsets[i + 1] - source.value_offsets[i]);
      out = put_bytes(put_header(out, kItem, length), source.values + source.value_offsets[i], length);
    }
    return out;
  }
  if (size.content == 0) return out;
  out = put_header(out, kItem, size.content);
  if (source.kind == Kind::kFloat) return put_bytes(out, source.values + range.begin * 4, size.content);
  const uint64_t* values = reinterpret_cast<const uint64_t*>(source.values);
  if (source.layout == Layout::kScalar) return put_varint(out, values[row]);
  return encode_run.put(out, values + range.begin, static_cast<size_t>(range.end - range.begin));
}

constexpr size_t kShortEntry = 129;  // tag, length and up to 127 bytes: every length has one byte
constexpr size_t kLong = kShortEntry;

// Size of the value of a scalar cell.
inline size_t value_size(const Source& source, int64_t row) {
  if (source.kind == Kind::kFloat) return 4;
  if (source.kind == Kind::kInt64) return varint_size(reinterpret_cast<const uint64_t*>(source.values)[row]);
  return static_cast<size_t>(source.value_offsets[row + 1] - source.value_offsets[row]);
}

// Writes an entry of one value of n bytes by its shape; Shape::kLoaded bytes at `out` are writable.
inline u8* put_short(u8* out, const Shape& shape, const Source& source, int64_t row, size_t n) {
  std::memcpy(out, shape.base(), Shape::kMost);
  u8 more = static_cast<u8>(n);
  size_t head = shape.head();
  for (size_t at : {size_t{1}, head - 5, head - 3, head - 1}) out[at] = static_cast<u8>(out[at] + more);
  out += head;
  if (source.kind == Kind::kInt64) return put_varint(out, reinterpret_cast<const uint64_t*>(source.values)[row]);
  if (source.kind == Kind::kFloat) {
    std::memcpy(out, source.values + row * 4, 4);
  } else {
    copy_bytes(out, source.values + source.value_offsets[row], n);
  }
  return out + n;
}

// Encodes one row at a time: its sizes are measured, then it is written.
class RowEncoder {
 public:
  explicit RowEncoder(const Encoder& plan)
      : plan_(plan), entry_sizes_(plan.columns().size()), cells_(plan.columns().size()) {}

  // Size of the record's message.
  size_t measure(int64_t row) {
    context_ = lists_ = 0;
    has_lists_ = false;
    for (size_t c = 0; c < plan_.columns().size(); ++c) {
      const Source& source = this->source(c);
      entry_sizes_[c] = 0;
      size_t value;
      if (source.steps >= 0) {
        has_lists_ = true;
        if (source.validity != nullptr && !(source.validity[row >> 3] >> (row & 7) & 1)) continue;
        value = measure_steps(source, row);
      } else {
        if (is_null(source, row)) continue;
        size_t head = plan_.columns()[c].shape.head(), one = head > 1 ? value_size(source, row) : kLong;
        if (head + one <= kShortEntry) {
          cells_[c] = {one, 0, 0};
          entry_sizes_[c] = head - 2 + one;
          context_ += head + one;
          continue;
        }
        cells_[c] = measure_cell(source, row);
        value = cells_[c].feature;
      }
      entry_sizes_[c] = plan_.columns()[c].key.size() + field_size(value);
      (source.steps >= 0 ? lists_ : context_) += field_size(entry_sizes_[c]);
    }
    return field_size(context_) + (plan_.sequence() && has_lists_ ? field_size(lists_) : 0);
  }

  // Writes the message that measure() was last called for.
  u8* put(u8* out, int64_t row) {
    out = put_header(out, kItem, context_);
    for (size_t c = 0; c < plan_.columns().size(); ++c) {
      if (entry_sizes_[c] == 0 || source(c).steps >= 0) continue;
      if (cells_[c].feature == 0) {
        out = put_short(out, plan_.columns()[c].shape, source(c), row, cells_[c].content);
        continue;
      }
      out = put_cell(put_entry(out, c, cells_[c].feature), source(c), row, cells_[c]);
    }
    if (!plan_.sequence() || !has_lists_) return out;
    out = put_header(out, make_tag(2, kLen), lists_);
    for (size_t c = 0; c < plan_.columns().size(); ++c) {
      const Source& source = this->source(c);
      if (entry_sizes_[c] == 0 || source.steps < 0) continue;
      out = put_steps(put_entry(out, c, measure_steps(source, row)), source, row);
    }
    return out;
  }

 private:
  const Source& source(size_t c) const { return plan_.source(plan_.columns()[c].source); }

  u8* put_entry(u8* out, size_t c, size_t value) {
    out = put_header(out, kItem, entry_sizes_[c]);
    const std::string& key = plan_.columns()[c].key;
    out = put_bytes(out, reinterpret_cast<const u8*>(key.data()), key.size());
    return put_header(out, make_tag(2, kLen), value);
  }

  size_t measure_steps(const Source& source, int64_t row) {
    const Source& steps = plan_.source(source.steps);
    size_t size = 0;
    for (int64_t step = source.offsets[row]; step < source.offsets[row + 1]; ++step)
      size += field_size(measure_cell(steps, step).feature);
    return size;
  }

  u8* put_steps(u8* out, const Source& source, int64_t row) {
    const Source& steps = plan_.source(source.steps);
    for (int64_t step = source.offsets[row]; step < source.offsets[row + 1]; ++step) {
      CellSize size = measure_cell(steps, step);
      out = put_cell(put_header(out, kItem, size.feature), steps, step, size);
    }
    return out;
  }

  const Encoder& plan_;
  bool has_lists_ = false;
  size_t context_ = 0, lists_ = 0;
  std::vector<size_t> entry_sizes_;
  std::vector<CellSize> cells_;
};

constexpr size_t kMostHeader = 11;

// Writes the message of a row, if its values are short, at `out` and returns its size; else 0. `header`
// is the size of the header before the entries of the last record, and probably of this one.
size_t put_short_row(const ShortRows& rows, u8* out, int64_t row, const uint64_t* present, const u8* const* ends,
                     size_t* header) {
  u8* begin = out + *header;
  u8* end = rows.put(begin, row, present, ends);
  if (end == nullptr) return 0;
  size_t content = static_cast<size_t>(end - begin), size = 1 + varint_size(content);
  if (size != *header) {
    std::memmove(out + size, begin, content);
    *header = size;
  }
  put_header(out, kItem, content);
  return size + content;
}

}  // namespace

Encoder::Encoder(std::vector<Source> sources, const std::vector<int>& columns, bool sequence)
    : sources_(std::move(sources)), sequence_(sequence) {
  for (int index : columns) {
    const Source& source = this->source(index);
    std::string key(1, static_cast<char>(kItem));
    u8 length[10];
    key.append(reinterpret_cast<char*>(length), static_cast<size_t>(put_varint(length, source.name.size()) - length));
    columns_.push_back({index, key + source.name, {}});
    if (source.layout == Layout::kScalar && source.steps < 0)
      columns_.back().shape.learn(source.name, form_of(source.kind, false));
    bool is_absent = source.kind == Kind::kNone && source.steps < 0;
    if (is_absent) continue;
    Shape shape;
    shape.learn(source.name, form_of(source.kind, source.layout == Layout::kList));
    if (source.steps >= 0 || !short_rows_.add(source, shape)) has_short_rows_ = false;
  }
}

Encoded Encoder::encode(int64_t begin, int64_t end, const std::string& prefix, Buffer& out) const {
  RowEncoder encoder(*this);
  PresentColumns present(short_rows_, end);
  std::vector<const u8*> ends;
  if (has_short_rows_ && begin < end) ends = short_rows_.value_ends(end);
  Encoded done;
  size_t header = 2;                   // of the features of the last record
  int64_t next_try = begin, wait = 0;  // after rows that are not short, fewer and fewer are tried
  for (int64_t row = begin; row < end; ++row) {
    size_t before = row == begin ? prefix.size() : 0;
    if (has_short_rows_ && before == 0 && row >= next_try) {
      out.reserve(done.size + kFrameBytes + kMostHeader + short_rows_.most(), done.size);
      u8* frame = out.as<u8>() + done.size;
      if (size_t length =
              put_short_row(short_rows_, frame + kHeaderBytes, row, present.of(row), ends.data(), &header)) {
        close_frame(frame, length);
        done.size += kFrameBytes + length;
        ++done.rows;
        wait = 0;
        continue;
      }
      wait = std::min<int64_t>(2 * wait + 1, 63);
      next_try = row + 1 + wait;
    }
    size_t length = before + encoder.measure(row);
    if (length > kMaxPayload) break;
    out.reserve(done.size + kFrameBytes + length + Shape::kLoaded, done.size);
    u8* frame = out.as<u8>() + done.size;
    u8* payload = frame + kHeaderBytes;
    encoder.put(put_bytes(payload, reinterpret_cast<const u8*>(prefix.data()), before), row);
    close_frame(frame, length);
    done.size += kFrameBytes + length;
    ++done.rows;
  }
  return done;
}

}  // namespace tfr
