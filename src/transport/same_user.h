// SPDX-License-Identifier: Apache-2.0
//
// Is a process on the other end of a Unix socket one of our own user? The same number is not enough: in a user namespace all
// users that it does not know have one number, the overflow uid, and so may we. And whoever may start containers has our number in
// each of them, where programs run that we would not start ourselves.
//
// Thread: any.
#pragma once

#include <sys/socket.h>

namespace tc::transport {

// `peer`: as SO_PEERCRED tells, so that both ends decide alike. True: the same number, which is not the overflow uid, and the
// same user namespace. False also for a process that we cannot see, and one whose namespace the kernel does not show us, as it is
// with programs that no debugger of its user may read.
bool is_own_user(const ucred& peer) noexcept;

}  // namespace tc::transport
