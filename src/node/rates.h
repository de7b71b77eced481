// SPDX-License-Identifier: Apache-2.0
//
// Limits on how often something happens: messages of a key, lines of the log, and attempts to connect.
//
// Thread: the node's; Rate and BusyRetries: any, one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "trust/key_pair.h"

namespace tc::node {

// A token bucket. It limits how many messages a key may send in a second, over all its links (rate=NUMBER in the keyring): what
// is too much is not read yet, so that flow control slows the sender, and nothing is lost as long as the sender stays. And it
// limits how many lines a call may log (call_log.h).
class Rate {
 public:
  // A tenth of a second's messages may come at once, at least one; or `at_once` of them.
  Rate(uint32_t a_second, uint64_t now_ns, uint32_t at_once = 0) noexcept { set(a_second, now_ns, at_once); }
  void set(uint32_t a_second, uint64_t now_ns, uint32_t at_once = 0) noexcept {
    gap_ns_ = second_ns / std::max<uint32_t>(a_second, 1);
    burst_ns_ = at_once != 0 ? at_once * gap_ns_ : std::max(gap_ns_, second_ns / 10);
    spent_until_ns_ = std::max(spent_until_ns_, now_ns - std::min(now_ns, burst_ns_));
  }

  // How many messages may be read now.
  uint64_t allowed(uint64_t now_ns) noexcept {
    spent_until_ns_ = std::max(spent_until_ns_, now_ns - std::min(now_ns, burst_ns_));
    return now_ns > spent_until_ns_ ? (now_ns - spent_until_ns_) / gap_ns_ : 0;
  }
  void spend(uint64_t messages) noexcept { spent_until_ns_ += messages * gap_ns_; }
  // Nothing was spent for so long that all of `at_once` may come.
  bool is_unused(uint64_t now_ns) const noexcept { return spent_until_ns_ + burst_ns_ <= now_ns; }
  // When the next message may be read.
  uint64_t next_ns() const noexcept { return spent_until_ns_ + gap_ns_; }

 private:
  static constexpr uint64_t second_ns = 1'000'000'000;
  uint64_t gap_ns_ = 0;          // that a message takes
  uint64_t burst_ns_ = 0;        // that may be saved up
  uint64_t spent_until_ns_ = 0;  // the messages of the time before are spent
};

// One for each key that has a link: they share it.
class Rates {
 public:
  std::shared_ptr<Rate> of(const trust::PublicKey& key, uint32_t a_second, uint64_t now_ns) {
    std::erase_if(rates_, [](const auto& entry) { return entry.second.expired(); });
    auto& known = rates_[key];
    if (auto rate = known.lock()) {
      rate->set(a_second, now_ns);
      return rate;
    }
    auto rate = std::make_shared<Rate>(a_second, now_ns);
    known = rate;
    return rate;
  }

 private:
  std::map<trust::PublicKey, std::weak_ptr<Rate>> rates_;
};

// How long to wait before one connects again to a node that had no room. The pauses are random, so that peers that were
// refused together do not come back together, and grow, so that they do not become the flood that they wait for.
class BusyRetries {
 public:
  static constexpr uint64_t first_ns = 10'000'000, most_ns = 200'000'000;

  // `random`: any number, which makes the choice.
  uint64_t next_pause_ns(uint64_t random) noexcept {
    const uint64_t most = longest_ns_;
    longest_ns_ = std::min(longest_ns_ * 2, most_ns);
    return random % most + 1;
  }

 private:
  uint64_t longest_ns_ = first_ns;
};

}  // namespace tc::node
