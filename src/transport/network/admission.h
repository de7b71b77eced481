// SPDX-License-Identifier: Apache-2.0
//
// How many may be at the door. Strangers who connect and say nothing must not keep others out: of one host only so many
// may be half-open at a time, of all hosts together as well, and when there are too many, the one that has said nothing
// for longest goes. A peer that means it has greeted long before. Our own user's processes are counted apart, so that
// strangers cost them nothing.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace tc::transport {

// Each limit stops one who only connects.
struct AdmissionLimits {
  size_t of_one_host = 32;
  size_t of_all_hosts = 256;
  size_t of_our_user = 256;
};

// Which of those at the door has to go so that one more from `host` can come; nothing when there is room. `waiting`: the
// host of each, oldest first; empty for our own user's.
std::optional<size_t> who_must_go(std::span<const std::string_view> waiting, std::string_view host,
                                  const AdmissionLimits& limits) noexcept;

}  // namespace tc::transport
