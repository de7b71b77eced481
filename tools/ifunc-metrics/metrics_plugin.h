// SPDX-License-Identifier: Apache-2.0
//
// The page of metrics of a node, by HTTP: what `ifunc serve --metrics` opens as libthreechains_metrics.so, the only part that
// knows libmicrohttpd and prometheus-cpp.
//
//     GET /metrics   for Prometheus: what the node says of itself, at most 100 ms old where the node answers
//     GET /healthz   200 while the node's thread answers, else 503 with the reason
//     GET /readyz    200 while peers can connect, else 503 with the reason
//
// A server has one thread of its own and none of the node. The node's thread makes a report when it is asked for one:
//
//     the server's thread            the node's thread
//     ask()               ------>    wakes, makes a report
//     look()              <------    Server::notify()
//
// Threads: stated at each function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::metrics {

// What tc_node_report() gave.
struct Report {
  std::string text;
  uint64_t made_ns = 0;  // now_ns()
};

enum class State : uint8_t { starting, serving, draining };

struct NodeSight {
  State state = State::starting;
  std::shared_ptr<const Report> report;  // the last one; null: there is none yet
  uint64_t unanswered_since_ns = 0;      // when the node was asked for a report that it has not made; 0: it owes none
};

// The server's thread calls these. None may wait for the node.
struct Callbacks {
  std::function<NodeSight()> look;
  std::function<void()> ask;               // for a report; once more while the node owes one changes nothing
  std::function<std::string()> what_runs;  // "the running ifunc 'sum'"; empty: none runs
};

struct Settings {
  std::string host;  // a number, or a name
  uint16_t port = 0;
  std::vector<std::string> names;  // by which others ask for the page, besides `host`, numbers and localhost
  // Who connects and sends nothing takes one of these. The oldest goes when they are short, so that a scrape gets through.
  unsigned most_connections = 64;
  // A connection on which nothing moves ends.
  unsigned timeout_s = 5;
};

class Server {
 public:
  // Ends all connections and the thread.
  virtual ~Server() = default;
  // Where it listens: "127.0.0.1:9090". Any thread.
  virtual const std::string& address() const noexcept = 0;
  // What look() tells has changed. Any thread; never waits.
  virtual void notify() noexcept = 0;
};

// The plug-in exports a function of this type under `factory_name`. It returns null when the version differs, or when `error`
// has the reason: TC_ERR_IO, nobody can listen there; TC_ERR_INVALID, there is no such host.
inline constexpr uint32_t plugin_version = 2;
inline constexpr const char* plugin_name = "libthreechains_metrics.so";
inline constexpr const char* factory_name = "threechains_serve_metrics";
using Factory = Server* (*)(uint32_t version, const Settings& settings, Callbacks callbacks, Error& error);

}  // namespace tc::metrics
