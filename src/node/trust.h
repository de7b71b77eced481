// SPDX-License-Identifier: Apache-2.0
//
// Which processes this node lets in and runs code from.
//
// Thread: any.
#pragma once

#include "node/config.h"
#include "transport/transport.h"

namespace tc::node {

inline bool is_trusted(const Config& config, const transport::Origin& origin) noexcept {
  return config.trust == Trust::any || origin.same_user;
}
Error not_trusted(const transport::Origin& origin);

}  // namespace tc::node
