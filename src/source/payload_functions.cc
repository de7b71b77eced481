// SPDX-License-Identifier: Apache-2.0
#include "source/payload_functions.h"

#include <utility>

#include "wire/abi_names.h"

namespace tc::source {

bool has_payload_functions(const Manifest& manifest) noexcept {
  return manifest.has(entry_payload_get_max_size) || manifest.has(entry_payload_init) ||
         manifest.has(entry_payload_bound) || manifest.has(entry_payload_init_2022);
}

PayloadFunctions bind_payload_functions(const Manifest& manifest, std::shared_ptr<void> code,
                                        const std::function<void*(const char* name)>& address_of) {
  PayloadFunctions functions;
  const bool has_bound = manifest.has(entry_payload_bound);
  functions.max_size = reinterpret_cast<PayloadFunctions::GetMaxSize>(
      address_of(has_bound ? abi_names::payload_bound : abi_names::payload_get_max_size));
  void* const init = address_of(abi_names::payload_init);
  if (manifest.has(entry_payload_init_2022))
    functions.init_2022 = reinterpret_cast<PayloadFunctions::Init2022>(init);
  else
    functions.init_2021 = reinterpret_cast<PayloadFunctions::Init2021>(init);
  functions.keep_alive = std::move(code);
  return functions;
}

}  // namespace tc::source
