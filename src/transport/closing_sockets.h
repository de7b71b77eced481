// SPDX-License-Identifier: Apache-2.0
//
// The end of a connection: how long a peer may take for its last bytes, and the sockets that still send them.
//
// Thread: the node's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "transport/poller.h"
#include "transport/transport.h"

namespace tc::transport {

// How long to wait for a peer to take what it was sent before the end: as long as it takes something within each second,
// and ten seconds at most. So a slow peer gets everything, and one that has stopped holds nobody up.
//
// Thread: any; one object is used by one thread.
class ClosingTime {
 public:
  static constexpr uint64_t idle_ns = 1'000'000'000, longest_ns = 10 * idle_ns;

  ClosingTime() = default;
  // `left`: how much the peer has not taken yet.
  ClosingTime(uint64_t now, size_t left) noexcept : left_(left), end_ns_(now + idle_ns), limit_ns_(now + longest_ns) {}

  // Is it over? `count_left` is asked at the end of a second only.
  template <class CountLeft>
  bool is_over(uint64_t now, CountLeft&& count_left) noexcept {
    if (now < end_ns_) return false;
    const size_t left = count_left();
    if (left >= left_ || now >= limit_ns_) return true;
    left_ = left;
    end_ns_ = std::min(now + idle_ns, limit_ns_);
    return false;
  }
  // When to ask again.
  uint64_t end_ns() const noexcept { return end_ns_; }

 private:
  size_t left_ = 0;
  uint64_t end_ns_ = 0, limit_ns_ = 0;
};

// For Events::on_warning(), when it is over before the peer has taken everything.
inline std::string lost_bytes_warning(size_t bytes, const std::string& peer) {
  return fmt::format("{} bytes of messages to {} may be lost: it had not read them when the connection ended", bytes,
                     peer);
}

// The sockets of closed connections, until their peers have read everything. Each one sends what is left, shuts down
// its sending side, and waits for the peer to end the other side. Closing a TCP socket at once would lose data: when
// bytes of the peer are still coming in, the kernel sends a reset, which discards what was sent before.
class ClosingSockets {
 public:
  // `events` hears of bytes that were lost.
  ClosingSockets(Poller& poller, Events& events) noexcept : poller_(poller), events_(events) {}

  // Takes over the socket of a connection to `peer`, which the poller no longer watches. When there are too many, the
  // oldest one is closed at once.
  void add(Fd socket, Bytes unsent, std::string peer) {
    take(std::move(socket), std::move(unsent), std::move(peer), false);
  }
  // The same for a peer that was refused and has been sent the reason. Fewer of these are kept.
  void add_refused(Fd socket, Bytes unsent = {}) { take(std::move(socket), std::move(unsent), {}, true); }
  // Closes the oldest socket of a refused peer; false: there is none.
  bool close_oldest_refused() noexcept;
  // Closes sockets that are done or took too long. Returns when to call it again; 0: there are none left.
  uint64_t sweep(uint64_t now) noexcept;
  bool empty() const noexcept { return all_.empty(); }
  // Would bytes be lost if the sockets were closed now? Not those that the peers' kernels have, although the peers did not
  // read them: what peers that are gone have sent is read to the end (TcpConnection).
  bool has_unfinished() const noexcept;

 private:
  struct Closing final : Watcher {
    Fd socket;
    Bytes unsent;
    size_t sent = 0;
    std::string peer;
    ClosingTime time;
    bool is_refused = false;
    bool ended = false;
    ClosingSockets* owner = nullptr;

    void on_ready(uint32_t events) noexcept override;
    void send() noexcept;
    void read() noexcept;
    void end(size_t lost_bytes) noexcept { owner->end(*this, lost_bytes); }
    size_t unsent_bytes() const noexcept { return unsent.size() - sent; }
    size_t left() const noexcept;
  };

  void take(Fd socket, Bytes unsent, std::string peer, bool is_refused);
  Closing* oldest(bool is_refused, size_t least) noexcept;
  void end(Closing& closing, size_t lost_bytes) noexcept;

  Poller& poller_;
  Events& events_;
  std::list<Closing> all_;  // oldest first
};

}  // namespace tc::transport
