// Frames in, columns out, in one pass: a record's CRC is checked and its features are parsed while its bytes are
// in the cache.
#pragma once

#include <deque>
#include <string>
#include <vector>

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
};

struct Progress {
  int64_t records = 0;
  int64_t consumed = 0;
  Fault fault;
};

// A map entry in its usual form.
struct FastEntry {
  const u8* key = nullptr;
  size_t key_size = 0;
  const u8* value = nullptr;
  const u8* end = nullptr;
};

class Decoder {
 public:
  explicit Decoder(DecoderPlan plan);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Stops before the first record that does not fit; see Decoder.feed in engine/contract.py.
  Progress feed(const u8* data, size_t size, size_t begin, int64_t max_records, int64_t max_bytes, bool last);

  // What a stop asks for, and the answers to it.
  struct NewName {
    std::string text;
    bool steps;
  };
  std::vector<NewName> new_names;
  std::vector<Span> embedded;
  // `provisional`: asked for by the record at hand, forgotten if that record is faulty.
  void add_name(const std::string& text, bool steps, bool wanted, bool provisional);
  void accept_embedded() { embedded_accepted_ = true; }

  // The columns with all their rows; reset() when they have been handed over.
  void finish();
  void reset();

  struct Slot {
    std::string name;
    bool steps;
    Column column;
  };
  Arena arena;
  std::deque<Slot> slots;  // places stay
  int64_t rows = 0;
  int64_t value_bytes = 0;
  int64_t seen = 0;
  int64_t foreign = 0;
  RecordType record_type;

 private:
  size_t take_run(const u8* p, size_t size, int64_t records_left, int64_t bytes_left, int64_t& records);
  bool parse(const u8* p, const u8* end, Fault& fault);
  bool parse_fast(const u8* p, const u8* end);
  bool features_fast(const u8* p, const u8* end);
  bool lists_fast(const u8* p, const u8* end);
  void learn_shape(Name& name, const u8* p, const u8* end);
  bool skips(const FastEntry& entry) const;
  bool steps_fast(Column& column, const u8* p, const u8* end);
  bool parse_slow(const u8* p, const u8* end, Fault& fault);
  bool ask_embedded(Walk& walk, Fault& fault);
  bool ask_names(const Walk& walk, Fault& fault);
  bool judge_record(const Walk& walk, Fault& fault);
  Code judge_entry(const Slot& slot, const Entry* entry, Fault& fault);
  bool judge_names(Fault& fault);
  void append_entry(Slot& slot, const Entry& entry);
  void take_back();
  void drop_provisional();
  bool misses_required() const;

  DecoderPlan plan_;
  Names features_, lists_;
  size_t feature_place_ = 0, list_place_ = 0;  // how many entries of this record were seen
  const u8* readable_end_ = nullptr;           // bytes up to here may be loaded
  std::vector<const Entry*> winners_;          // by column: the entry that counts, for the columns in met_
  std::vector<size_t> met_;                    // columns of the record at hand that there is something to say about, in order
  std::vector<size_t> required_;
  bool embedded_accepted_ = false;
  bool all_shaped_ = false;  // the record before was nothing but entries that look as their Shapes
  bool is_example_ = false;  // kDetect: the record at hand is no SequenceExample
  size_t left_out_ = 0;      // names that are known and not counted as met
  // Names asked for by the record at hand: forgotten if it turns out faulty.
  size_t provisional_slots_ = 0, provisional_features_ = 0, provisional_lists_ = 0;
  bool provisional_ = false;
};

}  // namespace tfr
