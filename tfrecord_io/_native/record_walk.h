// The exact walk over one record: its map entries in wire order, everything checked that protobuf checks.
#pragma once

#include <vector>

#include "feature.h"
#include "names.h"

namespace tfr {

enum class RecordType : int { kExample = 1, kSequence = 2, kDetect = 3 };
// Features that have no name yet: asked for before the record is judged, left out, or told behind all else.
enum class Unknown : int { kAsk = 0, kSkip = 1, kRefuse = 2 };

constexpr uint32_t kEmbeddedField = 21574;

struct Entry {
  Span key;
  Pieces values;  // protobuf joins several
  Name* name = nullptr;
  bool steps = false;
};

class Walk {
 public:
  Walk(Names& features, Names& lists) : features_(features), lists_(lists) {}

  // False: malformed. kDetect: a SequenceExample where it parses as one and holds a feature list, else an Example.
  bool run(const u8* p, const u8* end, RecordType type);

  std::vector<Entry> entries;
  std::vector<Span> embedded;
  WireError error;
  const Span* culprit() const { return has_culprit_ ? &culprit_ : nullptr; }  // name of the feature that is malformed
  bool has_feature = false;  // some entry has a key or a value
  bool has_unknown = false;
  bool fell_back = false;  // kDetect: what did not parse as a SequenceExample was walked as an Example
  bool has_list = false;  // some entry of the feature lists has a key or a value

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
  Span culprit_{nullptr, nullptr};
  bool has_culprit_ = false;
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
