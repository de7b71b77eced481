// SPDX-License-Identifier: Apache-2.0
//
// The page of metrics of `ifunc serve` (--metrics): opens the plug-in that serves it (ifunc-metrics/metrics_plugin.h), and
// passes the node's reports from its thread to that of the server. Without the option it does nothing and opens nothing.
//
// Threads: stated at each function.
#pragma once

#include <threechains/threechains.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "ifunc-metrics/metrics_plugin.h"

namespace tc::command {

class Metrics {
 public:
  struct Node {
    std::function<void()> wake;  // so that it calls answer(). Any thread.
    std::function<std::string()> what_runs;
  };

  explicit Metrics(Node node) : node_(std::move(node)) {}

  // Listens at "ADDRESS:PORT", before there is a node, for requests to that host, to numbers and to `names`. Main thread, once.
  // TC_ERR_INVALID: the plug-in is missing, or there is no such address. TC_ERR_IO: nobody can listen there.
  Status start(const std::string& address, const std::vector<std::string>& names);
  // Where it listens; empty: it does not.
  std::string address() const { return server_ == nullptr ? "" : server_->address(); }

  // The node's thread, between its waits: makes a report when one was asked for.
  void answer(tc_node_t* node);

  // Peers can connect; the node is told to stop. Any thread.
  void set_serving() { set(metrics::State::starting, metrics::State::serving); }
  void set_draining() {
    set(metrics::State::starting, metrics::State::draining);
    set(metrics::State::serving, metrics::State::draining);
  }

 private:
  void set(metrics::State from, metrics::State to);
  // The server's thread.
  metrics::NodeSight look();
  void ask();

  const Node node_;
  std::atomic<bool> is_wanted_{false};
  std::mutex mutex_;
  metrics::NodeSight sight_;
  std::unique_ptr<metrics::Server> server_;
  std::atomic<metrics::Server*> notified_{nullptr};  // server_, once it is there
};

}  // namespace tc::command
