#include "name_hash.h"

#include <random>

namespace tfr {
namespace {

uint64_t random_word() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

}  // namespace

const uint64_t kHashKey[2] = {random_word(), random_word() | 1};

}  // namespace tfr
