// SPDX-License-Identifier: Apache-2.0
//
// The socket that the page of metrics listens at.
//
// Threads: any.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace tc::metrics {

struct Listener {
  Fd socket;
  std::string address;  // "127.0.0.1:9090", "[::1]:9090": with the port that the system chose
};

// Listens at the first address of `host` at which it can. TC_ERR_INVALID: there is no such host. TC_ERR_IO: nobody can listen
// there, as when the port is used.
Result<Listener> listen_at(const std::string& host, uint16_t port);

}  // namespace tc::metrics
