// SPDX-License-Identifier: Apache-2.0
//
// Sends eager Active Messages that consist of a header of 16 bytes, also from inside a handler, which must not wait. It
// keeps the headers that UCX still reads because a socket is full. Thread: the one that polls the worker.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <vector>

namespace tc::bench {

class HeaderSender {
 public:
  using Bytes = std::array<std::byte, 16>;

  // The endpoint's error handler reports a failure.
  template <class Header>
  void send(ucp_ep_h endpoint, unsigned id, const Header& header) {
    send_bytes(endpoint, id, std::bit_cast<Bytes>(header));
  }

 private:
  struct Kept {
    Bytes header;
    Kept* next = nullptr;
    HeaderSender* sender = nullptr;
  };
  void send_bytes(ucp_ep_h endpoint, unsigned id, const Bytes& header);
  static void on_sent(void* request, ucs_status_t status, void* kept);
  std::vector<std::unique_ptr<Kept>> all_;
  Kept* free_ = nullptr;
};

}  // namespace tc::bench
