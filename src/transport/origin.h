// SPDX-License-Identifier: Apache-2.0
//
// Where a connection comes from, as the kernel reports it.
//
// The kernel stores the peer's user with a Unix socket. For TCP we query the kernel for the socket at the other end. If
// that is in our own network namespace, the peer is a process of this host, and the socket has an owner.
//
// Thread: any.
#pragma once

#include "base/fd.h"
#include "transport/transport.h"

namespace tc::transport {

// `socket` is connected.
Origin origin_of(const Fd& socket);

}  // namespace tc::transport
