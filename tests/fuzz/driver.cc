// A mutation fuzzer inside one process, guided by the edges of the kernel's code that an input reaches (GCC's
// -fsanitize-coverage=trace-pc). With -DFUZZ_LIBFUZZER it is the entry for clang's libFuzzer instead.
#ifndef _WIN32
#include <sys/time.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "targets.h"

#ifdef FUZZ_LIBFUZZER

// All targets run on each input, as one corpus serves all.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const fuzz::Target& target : fuzz::kTargets) target.run(data, size);
  return 0;
}

#else

#ifndef _WIN32
extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));
#endif

extern "C" const char* __asan_default_options() {
  return "handle_abort=1:allocator_may_return_null=1:max_allocation_size_mb=4096";
}

namespace {

using fuzz::Bytes;
using fuzz::Target;
using fuzz::u8;

constexpr size_t kMapSize = size_t{1} << 15;
u8 counts[kMapSize];  // how often each edge was taken in this run
uint32_t touched[kMapSize];
size_t touched_count = 0;
uintptr_t last_place = 0;

Bytes current;
std::string artifact = "crash";

void keep_input() {
  std::ofstream(artifact, std::ios::binary)
      .write(reinterpret_cast<const char*>(current.data()), static_cast<std::streamsize>(current.size()));
  std::fprintf(stderr, "the input is in %s\n", artifact.c_str());
}

constexpr uint64_t kTimedRuns = 256;

void on_end(int) {
  keep_input();
  std::_Exit(1);
}

void keep_input_at_end() {
  std::signal(SIGABRT, on_end);
  std::signal(SIGSEGV, on_end);
}

#ifdef _WIN32  // has neither these timers nor the sanitizers
void start_timer() {}
void watch() { keep_input_at_end(); }
#else
void on_timer(int) {
  keep_input();
  std::fprintf(stderr, "the input, or %d before it, take ten seconds of processor time\n",
               static_cast<int>(kTimedRuns));
  _exit(1);
}

void start_timer() {
  itimerval ten = {{0, 0}, {10, 0}};
  setitimer(ITIMER_VIRTUAL, &ten, nullptr);
}

// Keeps the input when the process ends by a check or a sanitizer, or takes too long.
void watch() {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(keep_input);
  } else {
    keep_input_at_end();
  }
  std::signal(SIGVTALRM, on_timer);
}
#endif

struct Settings {
  double seconds = 1e9;
  uint64_t runs = UINT64_MAX;
  uint32_t seed = 1;
  std::string target, seeds, dictionary, inputs, artifacts = ".";
};

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

std::vector<Bytes> read_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> all;
  for (const auto& path : paths) all.push_back(read_file(path));
  return all;
}

// A dictionary in libFuzzer's format: one "..." a line, with \xNN.
std::vector<Bytes> read_dictionary(const std::string& path) {
  std::vector<Bytes> words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    size_t from = line.find('"'), to = line.rfind('"');
    if (line.empty() || line[0] == '#' || from == std::string::npos || to <= from) continue;
    Bytes word;
    for (size_t i = from + 1; i < to; ++i) {
      if (line[i] == '\\' && line[i + 1] == 'x') {
        word.push_back(static_cast<u8>(std::stoi(line.substr(i + 2, 2), nullptr, 16)));
        i += 3;
      } else {
        if (line[i] == '\\') ++i;
        word.push_back(static_cast<u8>(line[i]));
      }
    }
    words.push_back(word);
  }
  return words;
}

class Fuzzer {
 public:
  Fuzzer(const Target& target, const Settings& settings, std::vector<Bytes> words)
      : target_(target), words_(std::move(words)), random_(settings.seed), seen_(kMapSize, 0) {
    corpus_ = read_folder(std::filesystem::path(settings.seeds) / target.name);
    if (corpus_.empty()) corpus_.push_back({});
    for (size_t i = 0; i < corpus_.size(); ++i) run(corpus_[i]);
  }

  void step() {
    Bytes input = pick(corpus_);
    for (uint32_t left = 1u << random_() % 5; left > 0; --left) mutate(input);
    if (input.size() > kMost) input.resize(kMost);
    if (run(input)) corpus_.push_back(std::move(input));
  }

  uint64_t runs() const { return runs_; }
  size_t corpus() const { return corpus_.size(); }
  size_t edges() const {
    return static_cast<size_t>(std::count_if(seen_.begin(), seen_.end(), [](u8 bits) { return bits != 0; }));
  }

 private:
  static constexpr size_t kMost = 1500;

  // Whether the input reached an edge, or a number of times on one, that no input before it did.
  bool run(const Bytes& input) {
    current = input;
    if (++runs_ % kTimedRuns == 0) start_timer();
    last_place = 0;
    target_.run(current.data(), current.size());
    bool is_new = false;
    for (size_t i = 0; i < touched_count; ++i) {
      u8 count = counts[touched[i]], bit = static_cast<u8>(1u << std::min(7, 31 - __builtin_clz(count)));
      if ((seen_[touched[i]] & bit) == 0) is_new = true;
      seen_[touched[i]] |= bit;
      counts[touched[i]] = 0;
    }
    touched_count = 0;
    return is_new;
  }

  const Bytes& pick(const std::vector<Bytes>& from) { return from[random_() % from.size()]; }
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void mutate(Bytes& data) {
    static constexpr u8 kBytes[] = {0, 1, 2, 4, 7, 8, 10, 11, 12, 13, 16, 18, 26, 0x7f, 0x80, 0xfe, 0xff};
    static constexpr uint64_t kNumbers[] = {0,
                                            1,
                                            0x7f,
                                            0x80,
                                            0xff,
                                            0x3fff,
                                            0x4000,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            0x7fffffffffffffff,
                                            0x8000000000000000,
                                            ~uint64_t{0}};
    size_t at = below(data.size() + 1);
    bool inside = at < data.size();
    auto place = [&](size_t i) { return data.begin() + static_cast<int64_t>(i); };
    switch (random_() % 10) {
      case 0:
        if (inside) data[at] ^= static_cast<u8>(1u << random_() % 8);
        break;
      case 1:
        if (inside) data[at] = random_() % 2 != 0 ? kBytes[below(std::size(kBytes))] : static_cast<u8>(random_());
        break;
      case 2:
        if (inside) data[at] = static_cast<u8>(data[at] + random_() % 33 - 16);
        break;
      case 3: {  // a number
        uint64_t number = kNumbers[below(std::size(kNumbers))];
        if (inside)
          std::memcpy(data.data() + at, &number, std::min<size_t>(size_t{1} << random_() % 4, data.size() - at));
        break;
      }
      case 4:
        data.erase(place(at), place(std::min(data.size(), at + 1 + below(random_() % 8 == 0 ? data.size() : 8))));
        break;
      case 5: {  // a part twice
        Bytes part(place(at), place(std::min(data.size(), at + 1 + below(random_() % 8 == 0 ? 256 : 16))));
        data.insert(place(below(data.size() + 1)), part.begin(), part.end());
        break;
      }
      case 6: {
        const Bytes& word = words_.empty() ? pick(corpus_) : pick(words_);
        data.insert(place(at), word.begin(), word.end());
        break;
      }
      case 7: {
        const Bytes& word = words_.empty() ? pick(corpus_) : pick(words_);
        if (word.size() <= data.size() - at) std::copy(word.begin(), word.end(), place(at));
        break;
      }
      case 8: {  // the start of one and the end of another
        const Bytes& other = pick(corpus_);
        size_t from = below(other.size() + 1);
        data.erase(place(at), data.end());
        data.insert(data.end(), other.begin() + static_cast<int64_t>(from), other.end());
        break;
      }
      default:
        data.insert(place(at), 1 + below(8), static_cast<u8>(random_()));
    }
  }

  const Target& target_;
  std::vector<Bytes> words_, corpus_;
  std::mt19937 random_;
  std::vector<u8> seen_;
  uint64_t runs_ = 0;
};

Settings parse(int count, char** arguments) {
  Settings settings;
  for (int i = 1; i + 1 < count; i += 2) {
    std::string name = arguments[i], value = arguments[i + 1];
    if (name == "--seconds") settings.seconds = std::stod(value);
    if (name == "--runs") settings.runs = std::stoull(value);
    if (name == "--seed") settings.seed = static_cast<uint32_t>(std::stoul(value));
    if (name == "--target") settings.target = value;
    if (name == "--seeds") settings.seeds = value;
    if (name == "--dictionary") settings.dictionary = value;
    if (name == "--input") settings.inputs = value;
    if (name == "--artifacts") settings.artifacts = value;
  }
  return settings;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

extern "C" __attribute__((no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc() {
  uintptr_t place = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) >> 1;
  uint32_t edge = static_cast<uint32_t>((place ^ last_place) % kMapSize);
  last_place = (place >> 2) ^ (place << 3);
  if (counts[edge] == 0) touched[touched_count++] = edge;
  if (counts[edge] != 255) ++counts[edge];
}

// Runs each target for its share of the time or of the runs; with --input, that file alone.
int main(int count, char** arguments) {
  Settings settings = parse(count, arguments);
  watch();
  std::vector<Bytes> words = read_dictionary(settings.dictionary);
  uint64_t total = 0;
  size_t chosen = settings.target.empty() ? std::size(fuzz::kTargets) : 1;
  for (const Target& target : fuzz::kTargets) {
    if (!settings.target.empty() && settings.target != target.name) continue;
    artifact = settings.artifacts + "/crash-" + target.name;
    if (!settings.inputs.empty()) {
      current = read_file(settings.inputs);
      target.run(current.data(), current.size());
      continue;
    }
    double end = now() + settings.seconds / static_cast<double>(chosen);
    Fuzzer fuzzer(target, settings, words);
    while (fuzzer.runs() < settings.runs && (fuzzer.runs() % 256 != 0 || now() < end)) fuzzer.step();
    std::printf("%-12s %10llu runs, %5zu inputs, %5zu edges\n", target.name,
                static_cast<unsigned long long>(fuzzer.runs()), fuzzer.corpus(), fuzzer.edges());
    std::fflush(stdout);
    total += fuzzer.runs();
  }
  std::printf("%llu runs\n", static_cast<unsigned long long>(total));
  return 0;
}

#endif
