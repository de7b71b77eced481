// SPDX-License-Identifier: Apache-2.0
//
// Where a connection comes from. The kernel stores the peer's user with a Unix socket. Of TCP only the address is known:
// a port forwarder makes strangers look like processes of this host.
//
// Thread: any.
#pragma once

#include <span>

#include "base/address_range.h"
#include "base/fd.h"
#include "transport/transport.h"

namespace tc::transport {

// `socket` is connected.
Origin origin_of(const Fd& socket, std::span<const AddressRange> trusted_networks = {});

// Must connections with it be encrypted?
inline bool needs_encryption(const Origin& origin) noexcept { return !origin.is_local && !origin.on_trusted_network; }

}  // namespace tc::transport
