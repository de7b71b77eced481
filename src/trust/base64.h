// SPDX-License-Identifier: Apache-2.0
//
// Keys as text: URL-safe base64 without padding. Its time does not depend on the bytes.
//
// Thread: any.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace tc::trust {

std::string to_base64(ByteView bytes);
// False unless `text` is exactly the text of so many bytes.
bool from_base64(std::string_view text, std::span<std::byte> bytes) noexcept;

}  // namespace tc::trust
