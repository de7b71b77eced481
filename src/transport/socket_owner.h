// SPDX-License-Identifier: Apache-2.0
//
// Which user holds the other end of a TCP connection inside this host, as the kernel knows it.
//
// Thread: any.
#pragma once

#include <sys/types.h>

#include <optional>

#include "transport/address.h"

namespace tc::transport {

// The user that owns the socket which goes from `from` to `to`. Nothing when that socket is not in this network
// namespace, or when nobody holds it any more: the kernel would call it root's.
std::optional<uid_t> owner_of(const SocketAddress& from, const SocketAddress& to);

}  // namespace tc::transport
