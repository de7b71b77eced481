// SPDX-License-Identifier: Apache-2.0
//
// A network of its own for each process of the benchmark: a network namespace each, joined by a bridge in one more.
// The namespaces have no names: they are held by file descriptors and processes, and vanish with the last of them,
// however that ends. Thread: the only one of the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::bench {

class Network {
 public:
  // Makes `servers` namespaces and moves this thread into one more; threads that it starts later are there as well.
  // For a process that has one thread, is root, and does not return to its old network. TC_ERR_UNSUPPORTED says what
  // is missing, and then this process is where it was.
  static Result<std::unique_ptr<Network>> create(uint32_t servers);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  static constexpr const char* range = "10.99.0.0/16";  // of all addresses
  static std::string client_address();
  static std::string server_address(uint32_t index);
  // In a child process between fork and exec: moves it to its namespace.
  bool enter(uint32_t index) const noexcept;

 private:
  Network() = default;
  Status make(uint32_t servers);
  Result<int> new_namespace();
  std::vector<int> held_;  // the bridge's, the client's, the servers'
};

// The network that a benchmark over `by_network` transports runs in, or why it is the loopback device. Sets the device
// that UCX uses. For a process that has one thread.
struct ChosenNetwork {
  std::unique_ptr<Network> network;
  std::string why_none;
};
ChosenNetwork choose_network(bool loopback, uint32_t servers);

// Where something was measured, in words.
std::string describe_network(const std::string& transport, const ChosenNetwork& chosen);

}  // namespace tc::bench
