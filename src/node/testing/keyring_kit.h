// SPDX-License-Identifier: Apache-2.0
//
// For tests: nodes that know each other by keys. A target has a keyring, and peers on the simulated network prove their keys.
//
// Thread: the test's; the target runs on another one while `running` is set.
#pragma once

#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"
#include "trust/code_signature.h"

namespace tc::node::test {

// Somebody with a key. The name is that of the keyring's line.
struct Person {
  explicit Person(std::string called) : name(std::move(called)) {}
  std::string name;
  trust::KeyPair key = trust::KeyPair::fresh().value();
  const trust::PublicKey& public_key() const { return key.public_key(); }
  // Her line of the keyring.
  std::string line(const std::string& fields = "") const {
    return name + " " + public_key().text() + " " + fields + "\n";
  }
  Bundle signs(Bundle bundle) const {
    EXPECT_TRUE(trust::sign_bundle(bundle, key));
    return bundle;
  }
};

// The target listens as n1 and has the lines that the test writes. Each peer listens as n2, n3 and so on.
class WithKeyring : public ::testing::Test {
 protected:
  void write_keyring(const std::string& lines) {
    ASSERT_TRUE(write_file_atomically(net.home.path() / "keyring", as_bytes(lines)));
  }
  void start(const std::string& lines, const Net::Adjust& adjust = {}) {
    write_keyring(lines);
    target = net.make(1, [&](Config& config) {
      config.log = "info";
      config.log_sink = [this](int, const char* line) {
        const std::scoped_lock lock(log_mutex);
        log += std::string(line) + "\n";
      };
      if (adjust) adjust(config);
    });
    run();
  }
  void run() { running = std::make_unique<Background>(*target); }
  // Returns when the target has taken the lines over.
  void reload(const std::string& lines) {
    write_keyring(lines);
    running.reset();
    ASSERT_TRUE(target->reload_keys());
    for (int polls = 0; polls < 2000; ++polls) target->poll();  // enough for housekeeping
    run();
  }
  // A node of that person's.
  std::unique_ptr<Node> peer(uint32_t id, const Person& person) {
    net.network.make_foreign("n" + std::to_string(id), person.public_key());
    return net.make(id);
  }
  // A node of our own user's.
  std::unique_ptr<Node> own_peer(uint32_t id) { return net.make(id); }

  // Where rights change while a call waits for a thread, its caller is told to call again.
  std::shared_ptr<Future> call(Node& node, const Bundle& bundle, std::string_view payload = "x") {
    std::shared_ptr<Future> future;
    for (int tries = 0; tries < 10; ++tries) {
      future = test::call(node, *connect(node, "n1"), *message(node, bundle, payload));
      if (future->status != TC_ERR_DENIED || future->message.find("call again") == std::string::npos) break;
    }
    return future;
  }
  // Of a target that is not driven meanwhile.
  uint64_t stat(const char* name) {
    running.reset();
    const auto number = target->stat(name).value();
    run();
    return number;
  }
  std::string logged() {
    const std::scoped_lock lock(log_mutex);
    return log;
  }
  bool wait_for_log(const std::string& text, uint32_t ms = 20'000) {
    for (const auto deadline = Deadline::after_ms(ms); !deadline.passed();) {
      if (logged().find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  std::mutex log_mutex;
  std::string log;
  Net net;
  Person ana{"ana"}, bob{"bob"}, eve{"eve"};
  std::unique_ptr<Node> target;
  std::unique_ptr<Background> running;
  Bundle echo = load_bundle("echo");
};

inline void expect_denied(const Future& future, const std::string& why) {
  EXPECT_EQ(future.status, TC_ERR_DENIED) << future.message;
  EXPECT_THAT(future.message, ::testing::HasSubstr(why));
}

}  // namespace tc::node::test
