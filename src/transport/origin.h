// SPDX-License-Identifier: Apache-2.0
//
// Where a connection comes from: which host, which user, and whether it must be encrypted.
//
// Thread: any.
#pragma once

#include <sys/socket.h>

#include <span>

#include "base/address_range.h"
#include "base/fd.h"
#include "transport/transport.h"

namespace tc::transport {

// Is the process at the other end of a Unix socket one of our own user? `peer` is what SO_PEERCRED says, so both ends decide
// alike. The uid alone is not enough, for two reasons:
//   - A user namespace gives all users that it does not know one number, the overflow uid. That may be our number, too.
//   - In a container the same number may belong to programs that we would not start ourselves.
// So the uid must be ours and not the overflow uid, and the user namespace must be ours. The answer is also no when the kernel
// does not show us the process or its namespace, as with programs that no debugger of their user may read.
bool is_own_user(const ucred& peer) noexcept;
// Why a process with our own uid is not taken for one of our own user, as the end of a sentence about its number. Empty: it is
// one, or has another uid.
std::string_view why_not_own_user(const ucred& peer) noexcept;

// Where this connected socket comes from. The kernel stores the peer's user with a Unix socket. Of TCP only the address is
// known: a port forwarder makes strangers look like processes of this host.
Origin origin_of(const Fd& socket, std::span<const AddressRange> trusted_networks = {});

// Must connections with it be encrypted?
inline bool needs_encryption(const Origin& origin) noexcept { return !origin.is_local && !origin.on_trusted_network; }

}  // namespace tc::transport
