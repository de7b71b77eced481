// SPDX-License-Identifier: Apache-2.0
//
// For tests: resolves host names as the test says, and is silent about all others until it is destroyed. So a test that
// waited for a silent name would never end.
//
// Threads: any.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transport/network/named_connection.h"

namespace tc::transport {

class NameServer {
 public:
  ~NameServer() {
    {
      const std::scoped_lock lock(state_->mutex);
      state_->has_ended = true;
    }
    state_->changed.notify_all();
  }

  void answer(const std::string& host, NameLookups::Found found) {
    {
      const std::scoped_lock lock(state_->mutex);
      state_->answers.insert_or_assign(host, std::move(found));
    }
    state_->changed.notify_all();
  }
  // How often it was asked for that name.
  unsigned asked(const std::string& host) const {
    const std::scoped_lock lock(state_->mutex);
    return state_->asked[host];
  }

  // May outlive the server.
  NameLookups::Resolve resolver() const {
    return [state = state_](const std::string& host) -> NameLookups::Found {
      std::unique_lock lock(state->mutex);
      ++state->asked[host];
      state->changed.wait(lock, [&] { return state->has_ended || state->answers.contains(host); });
      if (const auto found = state->answers.find(host); found != state->answers.end()) return found->second;
      return fail(TC_ERR_IO, "the name server ended");
    };
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, NameLookups::Found> answers;
    std::map<std::string, unsigned> asked;
    bool has_ended = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace tc::transport
