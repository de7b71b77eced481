// SPDX-License-Identifier: Apache-2.0
#include "tsi/tsi_bundle.h"

#include "common/embedded.h"

TC_EMBED(tsi_ifunc, TC_TSI_IFUNC)
TC_EMBED(ten_symbols_ifunc, TC_TEN_SYMBOLS_IFUNC)

namespace tc::bench {

Result<Bundle> tsi_bundle() { return Bundle::read(tsi_ifunc()); }

namespace {

Result<Bundle> variant(const Bundle& whole, SliceForm form, const std::string& label) {
  Manifest manifest = whole.manifest();
  manifest.tool = label;
  std::vector<Bytes> stored;
  for (size_t i = 0; i < whole.manifest().slices.size(); ++i) {
    if (whole.manifest().slices[i].form != form) continue;
    const auto slice = whole.stored(i);
    stored.emplace_back(slice.begin(), slice.end());
  }
  std::erase_if(manifest.slices, [&](const Slice& slice) { return slice.form != form; });
  return Bundle::pack(std::move(manifest), std::move(stored));
}

}  // namespace

Result<Bundle> tsi_variant(SliceForm form, const std::string& label) {
  TC_ASSIGN(const auto whole, tsi_bundle());
  return variant(whole, form, label);
}

Result<Bundle> ten_symbols_variant(const std::string& label) {
  TC_ASSIGN(const auto whole, Bundle::read(ten_symbols_ifunc()));
  return variant(whole, SliceForm::object, label);
}

}  // namespace tc::bench
