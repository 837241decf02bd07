// The kernel on several threads at a time, for the thread sanitizer: decoders of their own, and what threads share,
// which is an encoder and the columns that a decoder gave.
#include <thread>

#include "crc32c.h"
#include "decoding.h"
#include "encoder.h"
#include "frame.h"

namespace {

using namespace tfr;
using fuzz::Bytes;

constexpr int kThreads = 4, kRounds = 20;

template <class F>
void on_threads(F&& work) {
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) threads.emplace_back([&, number] { work(number); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
  constexpr int64_t kRows = 3000;
  std::vector<int64_t> numbers(kRows + 1), offsets(kRows + 1);
  std::vector<u8> text(kRows * 40, 'x'), validity(kRows / 8 + 1, 0xb7);
  for (int64_t i = 0; i <= kRows; ++i) {
    numbers[static_cast<size_t>(i)] = i * i * i;
    offsets[static_cast<size_t>(i)] = i * 40;
  }
  std::vector<Source> sources(2);
  sources[0] = {"number",
                Kind::kInt64,
                Layout::kScalar,
                validity.data(),
                nullptr,
                nullptr,
                reinterpret_cast<const u8*>(numbers.data())};
  sources[1] = {"text", Kind::kBytes, Layout::kScalar, nullptr, nullptr, offsets.data(), text.data()};
  const Encoder encoder(sources, {0, 1}, false);

  Buffer expected;
  size_t size = encoder.encode(0, kRows, "", expected).size;
  const Bytes file(expected.as<u8>(), expected.as<u8>() + size);
  on_threads([&](int number) {  // one encoder, each thread with memory of its own that it uses again
    Buffer memory;
    for (int round = 0; round < kRounds; ++round) {
      int64_t begin = number * 100 + round;
      Encoded done = encoder.encode(begin, kRows, "", memory);
      FUZZ_CHECK(done.rows == kRows - begin);
      FUZZ_CHECK(
          std::equal(memory.as<u8>(), memory.as<u8>() + done.size, file.end() - static_cast<int64_t>(done.size)));
    }
  });
  on_threads([&](int number) {  // decoders over the same bytes
    for (int round = 0; round < kRounds; ++round) {
      fuzz::Outcome outcome = fuzz::decode(DecoderPlan(), file, static_cast<size_t>(5000 + 777 * number));
      FUZZ_CHECK(outcome.records == kRows && !outcome.fault);
      FUZZ_CHECK(crc32c(0, file.data(), file.size()) == crc32c_portable(0, file.data(), file.size()));
    }
  });
  for (int round = 0; round < kRounds;
       ++round) {  // columns that share memory are exported and released on other threads
    auto outcome = std::make_shared<fuzz::Outcome>(fuzz::decode(DecoderPlan(), file, SIZE_MAX));
    std::vector<std::shared_ptr<fuzz::Outcome>> shares(kThreads, outcome);
    outcome.reset();
    on_threads([&](int number) {
      std::shared_ptr<fuzz::Outcome> share = std::move(shares[static_cast<size_t>(number)]);
      for (const TakenColumns& batch : share->batches)
        for (const TakenColumn& column : batch.columns) {
          fuzz::check_exports(column, static_cast<u8>(0x1c + number));
          FUZZ_CHECK(!fuzz::checked_text(column).empty());
        }
    });
  }
  std::puts("the threads agree");
  return 0;
}
