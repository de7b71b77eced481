// SPDX-License-Identifier: Apache-2.0
//
// Resolves the names of hosts on threads of its own, because getaddrinfo() waits for name servers: ten seconds for one
// that is silent.
//
//     start(name) -> waiting -> running, on a thread -> done -> Client::on_addresses(), on the node's thread
//
// Nobody can end a thread that waits in getaddrinfo(), and a node's end must not wait for it. So the threads are detached.
// They own a share of all that they touch, and nothing of the node. One ends when no name waits.
//
// Thread: the node's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/address.h"
#include "transport/poller.h"

namespace tc::transport {

class NameLookups final : private Watcher {
 public:
  using Found = Result<std::vector<SocketAddress>>;
  // As look_up() (address.h). Runs on several threads at a time, and may still run when the node has ended.
  using Resolve = std::function<Found(const std::string& host)>;

  class Client {
   public:
    // All addresses of the name, with port 0. May start and cancel lookups.
    virtual void on_addresses(const Found& found) noexcept = 0;

   protected:
    ~Client() = default;
  };

  // At a time. A name whose server is silent holds up no other one until so many are silent; each costs a thread.
  static constexpr size_t most_running = 4;
  // Peers can make a node ask for names. The limit bounds the memory that these cost while the servers are silent.
  static constexpr size_t most_waiting = 256;

  // An empty `resolve` is look_up().
  NameLookups(Poller& poller, Resolve resolve);
  ~NameLookups();
  NameLookups(const NameLookups&) = delete;
  NameLookups& operator=(const NameLookups&) = delete;

  // A client asks once, and is told once. Several that ask for the same name at the same time share one lookup.
  // TC_ERR_LIMIT: too many names wait, or the system gives no thread or descriptor.
  Status start(const std::string& host, Client& client);
  // The client is not told any more.
  void cancel(const Client& client) noexcept;

 private:
  struct Shared;
  struct Waiting {
    Client* client;
    uint64_t lookup;
  };

  static void run(const std::shared_ptr<Shared>& shared) noexcept;
  Status open();
  Status enqueue(const std::string& host, Client& client);
  void on_ready(uint32_t events) noexcept override;

  Poller& poller_;
  const Resolve resolve_;
  std::shared_ptr<Shared> shared_;  // null until the first name
  uint64_t last_lookup_ = 0;
  std::vector<Waiting> clients_;
};

}  // namespace tc::transport
