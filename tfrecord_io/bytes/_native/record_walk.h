// The slow path's walk over one record: its map entries in wire order, with all the checks that protobuf makes.
#pragma once

#include <vector>

#include "feature.h"
#include "names.h"

namespace tfr {

enum class RecordType : int { kExample = 1, kSequence = 2, kDetect = 3 };
// Features whose names are new: ask the caller before the record is checked, skip them, or ask after all other checks.
enum class Unknown : int { kAsk = 0, kSkip = 1, kRefuse = 2 };

constexpr uint32_t kEmbeddedField = 21574;

struct Entry {
  Span key;
  Pieces values;  // protobuf merges several
  Name* name = nullptr;
  bool steps = false;
};

class Walk {
 public:
  // `keeps_unknown`: features whose names are not known are among the entries, of which a record may have 10^5.
  Walk(Names& features, Names& lists, bool keeps_unknown)
      : features_(features), lists_(lists), keeps_unknown_(keeps_unknown) {}

  // False if malformed. kDetect: a SequenceExample if it parses as one and has a feature list, else an Example.
  bool run(const u8* p, const u8* end, RecordType type);

  std::vector<Entry> entries;  // those of names that are known not to be read are left out
  std::vector<Span> embedded;
  WireError error;
  // The name of the malformed feature.
  const Span* bad_feature() const { return has_bad_feature_ ? &bad_feature_ : nullptr; }
  bool has_feature = false;  // some entry has a key or a value
  bool has_plain = false;    // some entry has a value, or a key that is not itself a map entry
  bool has_unknown = false;
  bool fell_back = false;  // kDetect: did not parse as a SequenceExample and was walked as an Example
  bool has_list = false;   // same, of the feature lists

 private:
  bool record(const u8* p, const u8* end, bool sequence);
  void drop_lists();
  bool map(const u8* p, const u8* end, bool steps);
  bool entry(const u8* p, const u8* end, bool steps);
  const u8* skip(const u8* p, const u8* end, uint32_t tag, int depth) {
    has_unknown = true;
    return skip_field(p, end, tag, depth, error);
  }

  Names& features_;
  Names& lists_;
  bool keeps_unknown_;
  Span bad_feature_{nullptr, nullptr};
  bool has_bad_feature_ = false;
};

// Calls on_step(span) for each Feature of a valid FeatureList.
template <class F>
void for_each_step(const Pieces& pieces, F&& on_step) {
  WireError error;
  for (const Span& piece : pieces) {
    for (const u8* p = piece.begin; p < piece.end;) {
      uint32_t tag = 0;
      size_t size = 0;
      p = read_tag(p, piece.end, &tag, error);
      if (tag == make_tag(1, kLen)) {
        p = read_size(p, piece.end, &size, error);
        on_step(Span{p, p + size});
        p += size;
      } else {
        p = skip_field(p, piece.end, tag, kDepthLimit, error);
      }
    }
  }
}

}  // namespace tfr
