// SPDX-License-Identifier: Apache-2.0
//
// A connection to a peer whose address has the name of a host in it. Which transport carries it depends on what the name
// stands for. So this one waits for the addresses, and then has the real connection, which does everything.
//
//     resolving -> carried: by inner_, which greets
//         '------> lost: the name has no address, nothing can connect there, or 10 s have passed
//
// Events of the real connection have that one as their connection, and the same owner.
//
// Thread: the node's.
#pragma once

#include <functional>
#include <optional>

#include "transport/network/name_lookups.h"
#include "transport/socket_connection.h"

namespace tc::transport {

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
