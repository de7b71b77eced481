// SPDX-License-Identifier: Apache-2.0
//
// The object slice of a bundle as an image that can be loaded, without a copy when it is stored uncompressed.
//
// Thread: any.
#pragma once

#include "target/elf_image.h"
#include "wire/bundle.h"

namespace tc::target {

// Calls `use` with the slice's image, which is valid during the call. Errors of reading it, or those of `use`.
template <class F>
Status with_object(const Bundle& bundle, size_t slice, Arch arch, F use) {
  Bytes unpacked;
  ByteView bytes = bundle.stored(slice);
  if (bundle.manifest().slices[slice].compressed) {
    TC_ASSIGN(unpacked, bundle.unpack(slice));
    bytes = unpacked;
  }
  TC_ASSIGN(const auto image, ElfImage::read(bytes, arch));
  return use(image);
}

}  // namespace tc::target
