// SPDX-License-Identifier: Apache-2.0
//
// How many connections may be pending: accepted, but not greeted yet. Peers that connect and send nothing must not keep
// others out. So pending connections are limited for each host and for all hosts together. When there are too many, one
// of the host with most of them is closed, chosen at random. Under a flood each connection then has the same chance to
// last as long as its greeting takes, whatever the flood's pace is, and peers try again (node/rates.h). Were it
// the oldest, a flood that is quicker than a greeting would keep out everybody at its address. Processes of our own user
// are counted apart, so that other peers cannot displace them.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tc::transport {

struct PendingLimits {
  size_t of_one_host = 128;  // many processes of a host may connect at once
  size_t of_all_hosts = 256;
  size_t of_our_user = 256;
};

// What a pending connection counts for.
struct PendingCount {
  std::string_view host;  // counted_host(); empty for a process of our own user
  // It has proved its key, which may connect. It goes only when no other one of its host does.
  bool has_proved_its_key = false;
};

// A host as it is counted: an IPv4 address, or the network of 64 bits that an IPv6 address is in, because whoever has one
// address there has all of them.
std::string counted_host(std::string_view address);

// Which pending connection to close so that one more from `host` can be accepted; nothing when there is room. `random`: any
// number, which makes the choice.
std::optional<size_t> pending_to_evict(std::span<const PendingCount> pending, std::string_view host,
                                       const PendingLimits& limits, uint64_t random);

}  // namespace tc::transport
