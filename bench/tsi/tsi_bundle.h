// SPDX-License-Identifier: Apache-2.0
//
// The TSI ifunc (examples/01-increment/tsi.c), built with this program and carried inside it. Threads: any.
#pragma once

#include "wire/bundle.h"

namespace tc::bench {

// Both ISAs, bitcode and objects.
Result<Bundle> tsi_bundle();

// The same code in one form only. `label` goes into the manifest, so that each label has a content id of its own: a
// target that holds the one has never seen the other.
Result<Bundle> tsi_variant(SliceForm form, const std::string& label);

// The object slices of ten_symbols.c, labelled in the same way.
Result<Bundle> ten_symbols_variant(const std::string& label);

}  // namespace tc::bench
