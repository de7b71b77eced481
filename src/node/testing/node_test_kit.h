// SPDX-License-Identifier: Apache-2.0
//
// For tests: nodes of one process on a simulated network, and a client's usual steps.
//
// Thread: the test's, which drives the nodes itself or has each driven by a thread of its own (Background).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stop_token>
#include <thread>

#include "base/file.h"
#include "base/testing/run_until.h"
#include "node/node.h"
#include "transport/testing/simulated/simulated.h"

namespace tc::node::test {

inline Bundle load_bundle(const std::string& name) {
  auto bytes = read_file(std::string(TC_TEST_IFUNCS) + "/" + name + ".ifunc", 1 << 24);
  EXPECT_TRUE(bytes) << "is the ifunc " << name << " built?";
  auto bundle = Bundle::read(bytes.value());
  EXPECT_TRUE(bundle) << bundle.error().message;
  return std::move(*bundle);
}

// The same code under another name.
inline Bundle renamed(const Bundle& bundle, std::string name) {
  auto manifest = bundle.manifest();
  manifest.name = std::move(name);
  std::vector<Bytes> stored;
  for (size_t i = 0; i < manifest.slices.size(); ++i)
    stored.emplace_back(bundle.stored(i).begin(), bundle.stored(i).end());
  return Bundle::pack(std::move(manifest), std::move(stored)).value();
}

// Drives a node on a thread of its own until destroyed or paused. While it does, the test keeps its hands off.
class Background {
 public:
  explicit Background(Node& node) : node_(node), thread_([this](const std::stop_token& stop) { run(stop); }) {}
  ~Background() {
    thread_.request_stop();
    node_.wake();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) node_.wait(Deadline::after_ms(20));
  }
  Node& node_;
  std::jthread thread_;
};

class Net {
 public:
  using Adjust = std::function<void(Config&)>;

  // Keys of whoever runs the tests play no part.
  Net() { ::setenv("THREECHAINS_HOME", home.path().c_str(), 1); }

  // A node that listens as "n<id>".
  std::unique_ptr<Node> make(uint32_t id, const Adjust& adjust = {}) {
    auto config = Config::defaults();
    config.name = "test" + std::to_string(id);
    config.id = id;
    config.listen = "n" + std::to_string(id);
    config.log = "off";
    config.code.use_bitcode = false;
    if (adjust) adjust(config);
    auto node = Node::create(std::move(config), [this](const Config&, transport::Events& events) {
      return Result<std::unique_ptr<transport::Transport>>(network.join(events));
    });
    EXPECT_TRUE(node) << node.error().message;
    return std::move(*node);
  }

  TemporaryDirectory home = TemporaryDirectory::create().value();
  transport::SimulatedNetwork network;
};

// The clock of node_test is the machine's, and what was let pass: then deadlines pass and keys expire, and no test waits for
// that, nor fails because a busy machine came too late. Not while a thread reads the clock twice to compare what it read.
void let_pass(std::chrono::milliseconds time) noexcept;  // in testing/clock.cc
// While it lives, no time passes but by let_pass(): for deadlines that end at an exact moment. What waits for a time by itself
// would wait for ever, as run_until() does for what never holds.
struct StoppedClock {
  StoppedClock() noexcept;
  ~StoppedClock();
  StoppedClock(const StoppedClock&) = delete;
  StoppedClock& operator=(const StoppedClock&) = delete;
};

// Nodes with the numbers 0, 1, 2 and so on, of which each knows the addresses of all.
class Cluster {
 public:
  Cluster() = default;
  explicit Cluster(uint32_t size, const Net::Adjust& adjust = {}) { make_nodes(size, adjust); }
  void make_nodes(uint32_t size, const Net::Adjust& adjust = {}) {
    for (uint32_t id = 0; id < size; ++id)
      nodes.push_back(net.make(id, [&](Config& config) {
        for (uint32_t other = 0; other < size; ++other) config.cluster.push_back("n" + std::to_string(other));
        if (adjust) adjust(config);
      }));
  }
  void start() {
    for (auto& node : nodes) running.push_back(std::make_unique<Background>(*node));
  }
  void stop() { running.clear(); }

  Net net;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Background>> running;
};

// Drives these nodes until `done`. False when that takes too long.
inline bool run_until(std::initializer_list<Node*> nodes, const std::function<bool()>& done, uint64_t ms = 60'000) {
  return tc::test::run_until(
      done,
      [&] {
        for (Node* node : nodes) {
          node->poll();
          node->expire();
        }
      },
      ms);
}

inline bool all_ready(const std::vector<std::shared_ptr<Future>>& futures) {
  return std::ranges::all_of(futures, [](const auto& future) { return future->ready.load(); });
}

// A client's usual steps.
inline Link* connect(Node& from, const std::string& address) {
  auto link = from.connect(address, Deadline::after_ms(20'000));
  EXPECT_TRUE(link) << link.error().message;
  return link.value();
}

inline std::unique_ptr<source::Message> message(Node& node, Bundle bundle, std::string_view payload = "x") {
  auto registered = node.register_bundle(std::move(bundle));
  EXPECT_TRUE(registered) << registered.error().message;
  std::string copy(payload);
  return source::Message::create(*registered, copy.data(), copy.size(), 1u << 30).value();
}
inline std::unique_ptr<source::Message> message(Node& node, const std::string& ifunc, std::string_view payload) {
  return message(node, load_bundle(ifunc), payload);
}

inline std::string text_of(const Future& future) { return std::string(as_text(future.bytes)); }

// Calls and waits for the answer.
inline std::shared_ptr<Future> call(Node& node, Link& link, const source::Message& message,
                                    uint32_t deadline_ms = 20'000) {
  auto future = node.call(link, message, deadline_ms, Deadline::after_ms(20'000));
  EXPECT_TRUE(future) << future.error().message;
  node.poll_until(Deadline::after_ms(deadline_ms + 20'000), [&] { return (*future)->ready.load(); });
  EXPECT_TRUE((*future)->ready.load()) << "every call ends";
  return *future;
}

// ---- The ifunc `travel` (tests/ifuncs), which goes from node to node of a cluster

struct Travel {
  uint32_t hops_to_go = 0;
  uint32_t visited = 0;
  uint32_t nodes[64] = {};
};

inline std::string travel_payload(uint32_t hops) {
  Travel payload;
  payload.hops_to_go = hops;
  return {reinterpret_cast<const char*>(&payload), sizeof payload};
}

inline std::unique_ptr<source::Message> travel(Node& client, Bundle bundle, uint32_t hops) {
  return message(client, std::move(bundle), travel_payload(hops));
}
inline std::unique_ptr<source::Message> travel(Node& client, uint32_t hops) {
  return travel(client, load_bundle("travel"), hops);
}

inline Travel result_of(const Future& future) {
  Travel payload;
  if (future.bytes.size() == sizeof payload) std::memcpy(&payload, future.bytes.data(), sizeof payload);
  return payload;
}

}  // namespace tc::node::test
