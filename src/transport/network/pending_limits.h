// SPDX-License-Identifier: Apache-2.0
//
// How many connections may be pending: accepted, but not greeted yet. Peers that connect and send nothing must not keep
// others out. So pending connections are limited for each host and for all hosts together. When there are too many, the
// oldest one is closed: a peer that follows the protocol has greeted long before. Processes of our own user are counted
// apart, so that other peers cannot displace them.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace tc::transport {

struct PendingLimits {
  size_t of_one_host = 128;  // many processes of a host may connect at once
  size_t of_all_hosts = 256;
  size_t of_our_user = 256;
};

// Which pending connection to close so that one more from `host` can be accepted; nothing when there is room.
// `pending`: the host of each, oldest first; empty for processes of our own user.
std::optional<size_t> pending_to_evict(std::span<const std::string_view> pending, std::string_view host,
                                       const PendingLimits& limits) noexcept;

}  // namespace tc::transport
