// Decodes frames into columns in one pass: a record's CRC is checked and its features are parsed while its bytes are in
// the cache.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "fast_path.h"
#include "record_walk.h"

namespace tfr {

struct DecoderPlan {
  std::vector<ColumnPlan> columns;
  Unknown unknown = Unknown::kAsk;
  Text text = Text::kTrack;
  RecordType record_type = RecordType::kExample;
  bool check_crc = true;
  int64_t max_record_bytes = 0x7fffffff;
  int64_t max_features = 100000;
  int64_t max_expansion = -1;  // −1: no limit
  bool names_in_both = false;
  bool splits = false;  // of discovered columns
  bool keeps_lengths = false;
  bool typed_empties = false;  // of discovered columns
};

struct Progress {
  int64_t records = 0;
  int64_t consumed = 0;
  bool full = false;
  Fault fault;
};

class Decoder {
 public:
  explicit Decoder(DecoderPlan plan);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Decodes records until one does not fit; see Decoder.feed in bytes/engine/contract.py.
  Progress feed(const u8* data, size_t size, size_t begin, int64_t max_records, int64_t max_bytes, bool last);
  // Decodes some of `count` records from `begin` on, whose checksums were checked; see Decoder.feed_kept there.
  Progress feed_kept(const u8* data, size_t size, size_t begin, const uint32_t* lengths, const bool* kept,
                     size_t count);

  // The questions of a stop (kStopNewNames, kStopEmbedded) and the calls that answer them.
  struct NewName {
    std::string text;
    bool steps;
  };
  std::vector<NewName> new_names;
  std::vector<Span> embedded;
  // `provisional`: first met in the current record, removed again if that record is faulty.
  void add_name(const std::string& text, bool steps, bool wanted, bool provisional);
  void leave_out(const std::string& text, bool steps);  // not counted for max_features
  // True if the checksums of lengths and payloads are compared.
  bool checks_crc() const { return plan_.check_crc; }
  void accept_embedded() { embedded_accepted_ = true; }

  // finish() completes the columns; reset() empties them after they have been handed over.
  void finish();
  void reset();

  // For a batch that is decoded in parts: complete() completes the columns of a part, append() appends its rows
  // [begin, end), whose payloads have `payload_bytes`, and clear() empties it and keeps its memory. append() returns
  // false, and does nothing, where feed() might have done otherwise.
  void complete();
  bool append(const Decoder& part, int64_t begin, int64_t end, int64_t payload_bytes);
  void clear();

  // Bytes of the integers in list columns.
  int64_t integer_bytes() const;
  // Bytes of the values of all columns, and of nulls where they take as many.
  int64_t column_bytes() const;

  struct Slot {
    std::string name;
    bool steps;
    Column column;
  };
  Arena arena;
  std::deque<Slot> slots;  // a deque, so that addresses stay valid
  int64_t rows = 0;
  int64_t value_bytes = 0;
  std::vector<uint32_t> lengths;  // payload bytes of each row, if the plan keeps them
  int64_t seen = 0;               // this and the next two: see RecordCounts in bytes/engine/faults.py
  int64_t foreign = 0;
  int64_t nested = 0;
  RecordType record_type;

 private:
  Progress feed_records(const u8* data, size_t size, size_t begin, int64_t max_records, int64_t max_bytes, bool last);
  size_t decode_run_of_records(const u8* p, size_t size, int64_t records_left, int64_t bytes_left, int64_t& records);
  bool parse(const u8* p, const u8* end, Fault& fault);
  bool parse_fast(const u8* p, const u8* end);
  bool features_fast(const u8* p, const u8* end);
  bool lists_fast(const u8* p, const u8* end);
  bool skip_unknown(const FastEntry& entry, bool steps);
  bool steps_fast(Column& column, const u8* p, const u8* end);
  bool parse_slow(const u8* p, const u8* end, Fault& fault);
  bool stop_for_embedded(Walk& walk, Fault& fault);
  bool stop_for_names(const Walk& walk, Fault& fault);
  bool check_record(const Walk& walk, Fault& fault);
  Code check_entry(const Slot& slot, const Entry* entry, Fault& fault);
  bool check_names(Fault& fault);
  void append_entry(Slot& slot, const Entry& entry);
  void roll_back();
  void drop_provisional();
  bool lacks_required() const;
  int64_t row_limit(size_t columns) const;

  DecoderPlan plan_;
  Names features_, lists_;
  bool has_entries_ = false;          // the current record
  const u8* readable_end_ = nullptr;  // end of the readable bytes
  std::vector<const Entry*>
      last_entries_;             // by column, valid for those in present_: the entry that counts (the last one)
  std::vector<size_t> present_;  // columns to check in the current record: those it has and the required ones, sorted
  std::vector<size_t> required_;
  bool embedded_accepted_ = false;
  bool checks_crc_ = true;   // in this call
  bool usual_ = false;       // the previous record was one that run_records() takes
  bool is_example_ = false;  // kDetect: the current record is not a SequenceExample
  size_t left_out_ = 0;      // names that are known in advance and do not count towards max_features
  // Sizes before the names that the current record added; these are removed if it turns out to be faulty.
  size_t provisional_slots_ = 0, provisional_features_ = 0, provisional_lists_ = 0;
  bool provisional_ = false;
};

}  // namespace tfr
