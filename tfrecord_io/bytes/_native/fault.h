// Errors as values: a code and a position. Messages are written in Python (bytes/engine/contract.py has the same
// numbers).
#pragma once

#include <cstdint>
#include <string>

namespace tfr {

using u8 = uint8_t;

enum class Code : int {
  kOk = 0,
  kTruncatedHeader = 1,
  kTruncatedPayload = 2,
  kTruncatedFooter = 3,
  kLengthCrc = 4,
  kPayloadCrc = 5,
  kLengthTooLarge = 6,

  kVarintTruncated = 16,
  kVarintTooLong = 17,
  kLengthPastEnd = 18,
  kBadWireType = 19,
  kFieldZero = 20,
  kGroupEndUnexpected = 21,
  kGroupUnclosed = 22,
  kGroupTooDeep = 23,
  kKeyNotUtf8 = 24,
  kPackedFloatSize = 25,
  kFixedTruncated = 26,
  kTagTooLong = 27,

  kKind = 32,
  kValueCount = 33,
  kNotText = 34,
  kNotUtf8 = 35,
  kUnknownFeature = 36,
  kMissingFeature = 37,
  kTooManyFeatures = 38,
  kNameInBoth = 39,

  // Not faults: the decoder needs an answer from the caller, who then feeds it again from the same record.
  kStopNewNames = 48,
  kStopEmbedded = 49,
  kStopFull = 50,  // the record waits until the columns have been taken
};

struct Fault {
  Code code = Code::kOk;
  int64_t record = 0;   // index among the records of this call
  int64_t offset = 0;   // first byte of the record's header in the call's data
  int64_t byte = -1;    // byte inside the payload
  std::string feature;  // valid if has_feature
  bool has_feature = false;
  int64_t expected = 0;
  int64_t got = 0;

  explicit operator bool() const { return code != Code::kOk; }
};

}  // namespace tfr
