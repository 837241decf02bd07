// Memory of the kernel as NumPy arrays, and that of NumPy arrays in the kernel, for the files that use Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <utility>

#include "buffer.h"

namespace tfr {

template <class T>
using Output = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

// The items of an array whose memory is borrowed: it is not converted, as the copy would be gone. nullptr of None.
template <class T>
const T* items_of(nanobind::handle array) {
  if (array.is_none()) return nullptr;
  nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu> own;
  if (!nanobind::try_cast(array, own, false))
    throw nanobind::type_error("the array has another dtype than expected, or is not contiguous");
  return own.data();
}

template <class T>
nanobind::object shared_array(const std::shared_ptr<const Buffer>& buffer, size_t count) {
  if (buffer == nullptr) return nanobind::none();
  using Shared = std::shared_ptr<const Buffer>;
  auto* kept = new Shared(buffer);
  nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<Shared*>(p); });
  return nanobind::cast(Output<T>(const_cast<T*>(buffer->as<T>()), {count}, owner));
}

template <class T>
nanobind::object to_array(Buffer&& buffer, size_t count) {
  return shared_array<T>(std::make_shared<const Buffer>(std::move(buffer)), count);
}

}  // namespace tfr
