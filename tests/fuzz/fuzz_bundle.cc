// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a bundle: refused, or a bundle that packs into the same bytes again.
#include <algorithm>
#include <cstdlib>

#include "wire/bundle.h"

namespace {

void expect(bool truth) {
  if (!truth) std::abort();
}

void check(const tc::Bundle& bundle, tc::ByteView bytes) {
  expect(std::ranges::equal(bundle.bytes(), bytes));
  for (size_t i = 0; i < bundle.manifest().slices.size(); ++i)
    if (const auto code = bundle.unpack(i)) expect(code->size() == bundle.manifest().slices[i].unpacked_size);
  (void)bundle.useful_for(tc::TargetTriple::host());
  for (const auto& slice : bundle.manifest().slices)
    if (slice.role == tc::SliceRole::bundled) (void)bundle.bundled(slice.cpu);
  (void)bundle.find(tc::SliceRole::target, tc::SliceForm::object, tc::TargetTriple::host());
  const auto part = tc::Bundle::read_carried(bundle.bytes_for(1), 1, bundle.id());
  expect(part.has_value() && part->id() == bundle.id());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tc::ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto bundle = tc::Bundle::read(bytes)) check(*bundle, bytes);
  // The hash of a slice stops a mutation early: without slices, the manifest alone is fuzzed.
  (void)tc::Bundle::read_carried(bytes, 0, {});
  return 0;
}
