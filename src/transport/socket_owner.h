// SPDX-License-Identifier: Apache-2.0
//
// Which user owns the other end of a TCP connection inside this host, as the kernel reports it.
//
// Thread: any.
#pragma once

#include <sys/types.h>

#include <optional>

#include "transport/address.h"

namespace tc::transport {

// The user that owns the socket connected from `from` to `to`. Nothing when that socket is not in this network
// namespace, or when it was closed: then the kernel would name root.
std::optional<uid_t> owner_of(const SocketAddress& from, const SocketAddress& to);

}  // namespace tc::transport
