// SPDX-License-Identifier: Apache-2.0
//
// Writes those lines of a node's log that peers can cause at will: what calls say (tc_log()), what the node says of what calls
// ask for, and of what a peer does. Each ifunc of each peer may write 100 lines at once, and 10 a second; so may the node about
// each peer; each peer ten times as many in all. The rest is counted, and a later line says how many were left out. Without
// that, one call can fill the disk of the log.
//
// Threads: any, unless a comment says otherwise.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/content_id.h"
#include "node/rates.h"

namespace spdlog {
class logger;
}

namespace tc::target {
class Code;
struct Call;
}  // namespace tc::target

namespace tc::node {

class Channel;

class CallLog {
 public:
  static constexpr uint32_t lines_at_once = 100, lines_a_second = 10, times_for_a_peer = 10;
  // A longer line counts as several.
  static constexpr size_t line_bytes = 256;
  // Of what a call says; the rest is cut off.
  static constexpr size_t longest_line = 4096;

  explicit CallLog(spdlog::logger& log) noexcept : log_(log) {}

  // A line of the running call itself, at a level from 0 (debug) to 3 (error). The thread that runs the call.
  void write(const target::Call& call, int level, std::string_view message) noexcept;
  // One of the node about that call.
  void warn(const target::Call& call, std::string_view sentence) noexcept;

  // One of the node about that peer.
  void warn(const Channel& channel, std::string_view sentence) noexcept;
  // One of the node about what many may cause, whose name `what` is.
  void warn(std::string_view what, std::string_view sentence) noexcept;

  // When tell_left_out() has something to tell; UINT64_MAX: nothing was left out.
  uint64_t due_ns() const noexcept { return due_ns_.load(std::memory_order_relaxed); }
  // Says how many lines were left out, of each peer, and counts from 0 again.
  void tell_left_out() noexcept;

 private:
  struct Ifunc {
    Rate rate;
    uint64_t left_out = 0;
    std::string name{};  // "ifunc 'echo'"; empty: lines of the node about the peer
  };
  struct Peer {
    Rate rate;
    uint64_t left_out = 0;  // of all its ifuncs
    int level = 0;          // the highest of what was left out
    std::string label{};
    std::map<ContentId, Ifunc> ifuncs{};
  };

  struct Source {
    std::string peer;   // its key, by however many links it comes; its label where it has none
    std::string label;  // for messages
    const target::Code* code = nullptr;
  };
  static Source source_of(const target::Call& call);
  static Source source_of(const Channel& channel);
  bool may_write(const Source& source, int level, size_t bytes);
  static bool is_forgotten(const Ifunc& ifunc, uint64_t now_ns) noexcept;
  static bool is_forgotten(const Peer& peer, uint64_t now_ns) noexcept;
  Peer& peer_of(const Source& source, uint64_t now_ns);
  static Ifunc& ifunc_of(Peer& peer, const target::Code* code, uint64_t now_ns);
  struct Told {
    int level;
    std::string peer, sentence;
  };
  static Told tell(Peer& peer);

  spdlog::logger& log_;
  std::mutex mutex_;  // of what follows
  std::map<std::string, Peer> peers_;
  std::atomic<uint64_t> due_ns_{UINT64_MAX};
};

}  // namespace tc::node
