// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an object slice, for every ISA: refused with a message, or placed and relocated. Nothing runs.
#include <cstdlib>
#include <memory>

#include "target/elf_image.h"
#include "target/loader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tc;
  using namespace tc::target;
  static const auto arena = std::move(*memory::Arena::create(memory::Arena::Kind::shared));
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const auto arch : {Arch::x86_64, Arch::aarch64, Arch::riscv64}) {
    const auto image = ElfImage::read(bytes, arch);
    if (!image) {
      if (image.error().message.empty()) std::abort();
      continue;
    }
    // A claim of 64 MiB of zeroes is allowed, and would make every input slow.
    if (image->text().size + image->data().size > (size_t{1} << 20)) continue;
    if (const auto entry = image->find_code("ifunc_main"); entry && *entry >= image->text().size) std::abort();
    const auto loaded = load_image(*image, *arena, [](const std::string& symbol) -> Result<void*> {
      if (symbol.size() % 2 == 0) return fail(TC_ERR_UNRESOLVED, "{}", symbol);
      return nullptr;
    });
    if (!loaded && loaded.error().message.empty()) std::abort();
  }
  if (arena->used_bytes() != 0) std::abort();
  return 0;
}
