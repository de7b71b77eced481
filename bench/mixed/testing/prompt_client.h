// SPDX-License-Identifier: Apache-2.0
//
// A client of `ifunc bench mixed` without a target: each poll answers its oldest call. Thread: the one that tests.
#pragma once

#include <algorithm>

#include "mixed/client.h"

namespace tc::bench {

class PromptClient final : public MixedClient {
 public:
  void poll() override {
    if (fails_)
      keep(fail(TC_ERR_IFUNC, "the call failed"));
    else if (in_flight() > 0)
      answered();
  }
  void wait(uint32_t) override { poll(); }
  // No call is answered any more.
  void fail_all() noexcept { fails_ = true; }
  uint64_t most_in_flight() const noexcept { return most_in_flight_; }

 private:
  void send_long() override { sent(); }
  void send_small() override { sent(); }
  void sent() noexcept { most_in_flight_ = std::max(most_in_flight_, in_flight()); }

  bool fails_ = false;
  uint64_t most_in_flight_ = 0;
};

}  // namespace tc::bench
