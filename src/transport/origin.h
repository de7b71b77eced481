// SPDX-License-Identifier: Apache-2.0
//
// Where a connection comes from, as the kernel knows it.
//
// A Unix socket has its peer's user. For TCP the kernel is asked for the socket at the other end: when that is in our own
// network namespace, the peer is a process of this host, and the socket has an owner.
//
// Thread: any.
#pragma once

#include "base/fd.h"
#include "transport/transport.h"

namespace tc::transport {

// `socket` is connected.
Origin origin_of(const Fd& socket);

}  // namespace tc::transport
