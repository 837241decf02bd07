// The hash of feature names. Its key is a number that each process draws at random, so that no file can be made of
// colliding names. No result depends on the hash.
#pragma once

#include <cstring>

#include "wire.h"

namespace tfr {

extern const uint64_t kHashKey[2];

// The halves of the 128-bit product, combined: with a secret factor, no difference of the other one is predictable.
inline uint64_t fold_product(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
  __extension__ using Product = unsigned __int128;
  Product product = static_cast<Product>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
  uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffff);
  return a * b ^ (a1 * b1 + (middle >> 32) + (other >> 32));
#endif
}

inline uint64_t hash_name(const u8* data, size_t size) {
  uint64_t h = kHashKey[0] ^ size;
  for (; size > 8; data += 8, size -= 8) h = fold_product(h ^ load64(data), kHashKey[1]);
  uint64_t rest = 0;
  if (size == 8) {
    rest = load64(data);
  } else if (size >= 4) {
    rest = load32(data) | static_cast<uint64_t>(load32(data + size - 4)) << 32;
  } else if (size != 0) {
    rest = data[0] | data[size / 2] << 8 | data[size - 1] << 16;
  }
  return fold_product(h ^ rest, kHashKey[1]);
}

}  // namespace tfr
