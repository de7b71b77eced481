// SPDX-License-Identifier: Apache-2.0
//
// Socket activation: systemd, or who does as it does, listens for a service and starts it with the socket
// (sd_listen_fds(3)). It needs no library for that.
//
// Threads: one, before there are others, as it changes the environment.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace tc::command {

// The descriptor that $LISTEN_FDS gives this process; nothing: none. Programs that are started later get neither it nor the
// variables. Whether it is a socket that listens is for who takes it to say. TC_ERR_INVALID: there are several, or the
// variables make no sense.
Result<std::optional<int>> take_given_socket();

// For the program that this process is about to start, to which it hands the socket on.
Status keep_for_children(int socket);

// Where it listens: "127.0.0.1:7001"; empty when that cannot be said.
std::string address_of(int socket);

}  // namespace tc::command
