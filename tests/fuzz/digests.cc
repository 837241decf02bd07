// Prints a digest of what the decoder makes of each record in a file that tests/fuzz/corpus.py wrote: columns, names,
// and the fault. Those of two processors are compared.
#include <cinttypes>
#include <string>

#include "decoding.h"

namespace fuzz {
namespace {

using namespace tfr;

class Digest {
 public:
  void add(const std::string& text) {
    for (char c : text) add_byte(static_cast<u8>(c));
    add(static_cast<int64_t>(text.size()));
  }
  void add(int64_t number) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<u8>(static_cast<uint64_t>(number) >> (8 * i)));
  }
  uint64_t value() const { return value_; }

 private:
  void add_byte(u8 byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }  // FNV-1a
  uint64_t value_ = 0xcbf29ce484222325u;
};

void add(Digest& digest, const Outcome& outcome) {
  const Fault& fault = outcome.fault;
  for (int64_t number : {outcome.records, static_cast<int64_t>(outcome.consumed), static_cast<int64_t>(fault.code),
                         fault.record, fault.offset, fault.byte, fault.expected, fault.got})
    digest.add(number);
  for (size_t i = 0; i < outcome.names.size(); ++i) {
    digest.add(outcome.names[i]);
    digest.add(static_cast<int64_t>(outcome.steps[i]));
  }
  for (const TakenColumns& batch : outcome.batches)
    for (const TakenColumn& column : batch.columns) digest.add(checked_text(column));
}

uint64_t digest_of(const Bytes& data) {
  Digest digest;
  for (RecordType type : {RecordType::kExample, RecordType::kSequence, RecordType::kDetect}) {
    for (bool splits : {false, true}) {
      DecoderPlan plan;
      plan.record_type = type;
      plan.splits = splits;
      add(digest, decode(plan, data, data.size() + 1));
    }
  }
  return digest.value();
}

int print_digests(std::FILE* file) {
  Bytes data;
  u8 size[4];
  for (size_t count = 0;; ++count) {
    if (std::fread(size, 1, 4, file) != 4) return count == 0;
    data.resize(load32(size));
    if (std::fread(data.data(), 1, data.size(), file) != data.size()) return 1;
    std::printf("%zu %016" PRIx64 "\n", count, digest_of(data));
  }
}

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv) {
  std::FILE* file = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
  if (file == nullptr) {
    std::fprintf(stderr, "usage: digests FILE\n");
    return 2;
  }
  int failed = fuzz::print_digests(file);
  std::fclose(file);
  return failed;
}
