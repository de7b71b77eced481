// SPDX-License-Identifier: Apache-2.0
#include "common/loaded_code.h"

namespace tc::bench {

namespace {
constexpr uint64_t tuning_deadline_ms = 60'000;
}

Result<LoadedCode> LoadedCode::load(const char* label, ByteView bundle, SliceForm form) {
  LoadedCode loaded;
  target::CodeStoreOptions options;
  options.use_objects = form == SliceForm::object;
  options.use_bitcode = form == SliceForm::bitcode;
  TC_ASSIGN(loaded.store_, target::CodeStore::create(options, *loaded.policy_, nullptr));
  TC_ASSIGN(auto read, Bundle::read(bundle));
  TC_ASSIGN(auto* const code, loaded.store_->load(std::move(read)));
  loaded.store_->housekeeping();  // starts the background's work
  if (!loaded.store_->wait_until_tuned(tuning_deadline_ms))
    return fail(TC_ERR_TIMEOUT, "{} was not tuned within {} ms", label, tuning_deadline_ms);
  if (form == SliceForm::bitcode && code->tier.load() != target::Tier::tuned)
    return fail(TC_ERR_INTERNAL, "the bitcode of {} was not tuned; the node's log says why", label);
  loaded.entry_ = code->entry.load();
  return loaded;
}

}  // namespace tc::bench
