// SPDX-License-Identifier: Apache-2.0
//
// The nodes of a property test that are in this process, and what is done with them. All of it is written into the journal.
//
// One thread performs the steps and polls the nodes in turn, so that a seed does nearly the same again. Only a function
// that waits for another node, such as tc_node_connect(), runs on a second thread; the first one polls the other nodes until
// it returns. With Wanted::threads each node has a progress thread instead.
//
// Thread: one, which made it.
#pragma once

#include <threechains/threechains.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "journal.h"
#include "scenario.h"

namespace tc::property {

// A second thread, for what waits.
class Aside {
 public:
  Aside();
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  // Runs `work` there, and `meanwhile` here again and again until it has returned.
  void run(const std::function<void()>& work, const std::function<void()>& meanwhile);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  bool stops_ = false;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// A node cannot be had on this machine.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Cluster {
 public:
  // `local`: which nodes are driven here. `addresses`: of all.
  Cluster(Journal& journal, Scenario& scenario, const Wanted& wanted, std::vector<std::string> addresses,
          const std::vector<size_t>& local, uint64_t seed);
  ~Cluster();

  void perform(const Step& step);
  // Brings calls to their end and flushes all endpoints, then drives the nodes until `done`, for at most two minutes.
  void settle();
  void drive_until(const std::function<bool()>& done);
  // Ends the nodes.
  void end();
  void poll_once();

 private:
  struct Endpoint {
    tc_endpoint_t* handle;
    uint16_t number;  // in the journal
    uint8_t peer;
    bool lost = false;
  };
  struct Pending {
    tc_future_t* future;
    uint32_t number;
  };
  struct Node {
    size_t number = 0;
    tc_node_t* handle = nullptr;
    uint32_t incarnation = 0;
    uint64_t asleep = 0;  // steps to go
    uint64_t down = 0;    // steps to go
    std::vector<tc_ifunc_t*> ifuncs;
    std::vector<Endpoint> endpoints;
    std::vector<Pending> pending;
    std::vector<std::byte> answer;
  };

  NodeLog& log(const Node& node) noexcept { return journal_.node[node.number]; }
  void begin(Node& node);
  void end(Node& node);
  void register_code(Node& node);
  void aside(Node& node, const std::function<void()>& work);
  void poll_others(const Node* but);
  void wake_all();
  void harvest(Node& node);
  void harvest_one(Node& node, const Pending& pending);
  void look_at_links(Node& node);

  Node* node_of(const Step& step);
  Endpoint* endpoint_of(Node& node, const Step& step);
  Endpoint* connect(Node& node, size_t peer);
  void close(Node& node, Endpoint& endpoint, uint32_t timeout_ms);
  void flush(Node& node, Endpoint& endpoint, uint32_t timeout_ms);
  bool must_end(uint32_t timeout_ms) const noexcept;
  void send(Node& node, Endpoint& endpoint, const Step& step, Way way);
  void send_many(Node& node, Endpoint& endpoint, const Step& step);
  void give_up_call(Node& node, const Step& step);

  // A message that is in the journal, not sent yet. Null: the node does not make one of that size.
  struct Made {
    tc_message_t* message = nullptr;
    uint32_t number = 0;
  };
  std::optional<Made> make(Node& node, const Endpoint& endpoint, const Step& step, uint32_t size, Way way);
  void plan(Node& node, Sent& sent, const Step& step, Way way);

  Journal& journal_;
  Scenario& scenario_;
  const Wanted& wanted_;
  const std::vector<std::string> addresses_;
  Random order_;
  Aside aside_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<unsigned char> payload_;
};

}  // namespace tc::property
