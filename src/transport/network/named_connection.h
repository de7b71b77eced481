// SPDX-License-Identifier: Apache-2.0
//
// Connections to peers whose address has the name of a host in it, and the threads that look such names up.
//
// Thread: the node's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/address.h"
#include "transport/poller.h"
#include "transport/socket_connection.h"

namespace tc::transport {

// Resolves the names of hosts on threads of its own, because getaddrinfo() waits for name servers: ten seconds for one
// that is silent.
//
//     start(name) -> waiting -> running, on a thread -> done -> Client::on_addresses(), on the node's thread
//
// Nobody can end a thread that waits in getaddrinfo(), and a node's end must not wait for it. So the threads are detached.
// They own a share of all that they touch, and nothing of the node. One ends when no name waits.
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

// A connection to a peer whose address has the name of a host in it. Which transport carries it depends on what the name
// stands for. So this one waits for the addresses, and then has the real connection, which does everything.
//
//     resolving -> carried: by inner_, which greets
//         '------> lost: the name has no address, nothing can connect there, or 10 s have passed
//
// Events of the real connection have that one as their connection, and the same owner.
class NamedConnection final : public Connection, private NameLookups::Client {
 public:
  using Connect = std::function<Result<std::unique_ptr<SocketConnection>>(const std::vector<SocketAddress>& found)>;
  // All that exist and have no real connection.
  using List = std::vector<NamedConnection*>;

  // TC_ERR_LIMIT: too many names wait.
  static Result<std::unique_ptr<NamedConnection>> start(Hub& hub, NameLookups& lookups, List& list, std::string address,
                                                        HostAndPort where, Connect connect);
  ~NamedConnection() override;
  NamedConnection(const NamedConnection&) = delete;
  NamedConnection& operator=(const NamedConnection&) = delete;

  OutStream& out() noexcept override { return inner_ != nullptr ? inner_->out() : no_out_; }
  InStream& in() noexcept override { return inner_ != nullptr ? inner_->in() : no_in_; }
  bool is_polled() const noexcept override { return inner_ != nullptr && inner_->is_polled(); }
  Status open(ByteView hello) override;
  void refuse(const Error& why) noexcept override;
  void close() noexcept override;
  void drop() noexcept override;
  void set_paused(bool paused) noexcept override;
  std::string_view transport() const noexcept override { return inner_ != nullptr ? inner_->transport() : ""; }
  const std::string& peer_address() const noexcept override { return address_; }
  const Origin& origin() const noexcept override { return inner_ != nullptr ? inner_->origin() : no_origin_; }
  Traffic traffic() const noexcept override { return inner_ != nullptr ? inner_->traffic() : Traffic(); }

  // For the transport, as those of SocketConnection.
  bool deliver_loss() noexcept;
  void check_deadline(uint64_t now) noexcept;
  uint64_t greeting_deadline_ns() const noexcept { return deadline_ns_; }

 private:
  struct NoOut final : OutStream {
    void flush() noexcept override {}
    std::byte* make_room(size_t) noexcept override { return nullptr; }
    void slow_commit() noexcept override {}
  };
  struct NoIn final : InStream {
    bool refill() noexcept override { return false; }
    void release() noexcept override {}
  };

  NamedConnection(Hub& hub, NameLookups& lookups, List& list, std::string address, uint16_t port, Connect connect);
  void on_addresses(const NameLookups::Found& found) noexcept override;
  Status connect_to(const NameLookups::Found& found);
  void lose(Error reason) noexcept;
  void end_silently() noexcept;

  Hub& hub_;
  NameLookups& lookups_;
  List& list_;
  const std::string address_;
  const uint16_t port_;
  Connect connect_;
  uint64_t deadline_ns_;         // 0: resolved, or ended
  std::optional<Error> reason_;  // of a loss that is to be delivered
  std::unique_ptr<SocketConnection> inner_;
  NoOut no_out_;
  NoIn no_in_;
  Origin no_origin_;
};

}  // namespace tc::transport
