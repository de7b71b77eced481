// SPDX-License-Identifier: Apache-2.0
//
// The functions of an ifunc that run at its source and build payloads. There are two forms of them, of the 2021 paper
// and of the 2022 paper; which one an ifunc has stands in its manifest. This folder does not know how code is loaded:
// the caller loads it and gives the addresses.
//
// Thread: the node's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "wire/bundle.h"

namespace tc::source {

// The papers' signatures take `void* source_args`. These take `const void*`, because this node promises not to write to
// them; every calling convention passes both alike.
struct PayloadFunctions {
  using GetMaxSize = size_t (*)(const void* source_args, size_t size);
  using Init2021 = int (*)(void* payload, size_t payload_size, const void* source_args, size_t size);
  using Init2022 = int (*)(const void* source_args, size_t size, void* payload, size_t* payload_size);
  GetMaxSize max_size = nullptr;  // payload_get_max_size, or payload_bound of the 2022 form
  Init2021 init_2021 = nullptr;
  Init2022 init_2022 = nullptr;
  std::shared_ptr<void> keep_alive;  // owns the code
};

bool has_payload_functions(const Manifest& manifest) noexcept;

// Takes the functions out of loaded code. `address_of` finds a function by its name in the slice (wire/abi_names.h),
// null when there is none; `code` owns the loaded code.
PayloadFunctions bind_payload_functions(const Manifest& manifest, std::shared_ptr<void> code,
                                        const std::function<void*(const char* name)>& address_of);

}  // namespace tc::source
