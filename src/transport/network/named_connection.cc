// SPDX-License-Identifier: Apache-2.0
#include "transport/network/named_connection.h"

#include <new>

namespace tc::transport {

NamedConnection::NamedConnection(Hub& hub, NameLookups& lookups, List& list, std::string address, uint16_t port,
                                 Connect connect)
    : hub_(hub),
      lookups_(lookups),
      list_(list),
      address_(std::move(address)),
      port_(port),
      connect_(std::move(connect)),
      deadline_ns_(now_ns() + SocketConnection::greeting_ns) {}

NamedConnection::~NamedConnection() {
  lookups_.cancel(*this);
  std::erase(list_, this);
}

Result<std::unique_ptr<NamedConnection>> NamedConnection::start(Hub& hub, NameLookups& lookups, List& list,
                                                                std::string address, HostAndPort where,
                                                                Connect connect) {
  std::unique_ptr<NamedConnection> made(
      new NamedConnection(hub, lookups, list, std::move(address), where.port, std::move(connect)));
  list.push_back(made.get());
  TC_CHECK(lookups.start(where.host, *made));
  hub.mark_changed();
  return made;
}

void NamedConnection::on_addresses(const NameLookups::Found& found) noexcept {
  try {
    if (auto connected = connect_to(found); !connected) lose(std::move(connected).error());
  } catch (const std::bad_alloc&) {
    lose(Error{TC_ERR_NO_MEMORY, "no memory"});  // short: it allocates nothing
  }
}

// The peer has to greet in what is left of the time.
Status NamedConnection::connect_to(const NameLookups::Found& found) {
  if (!found) return fail(found.error());
  auto addresses = *found;
  for (auto& address : addresses) address.set_port(port_);
  TC_ASSIGN(inner_, connect_(addresses));
  inner_->set_owner(owner());
  inner_->must_greet_by(deadline_ns_);
  std::erase(list_, this);
  connect_ = nullptr;
  deadline_ns_ = 0;
  return {};
}

void NamedConnection::lose(Error reason) noexcept {
  reason_ = std::move(reason);
  deadline_ns_ = 0;
  lookups_.cancel(*this);
  hub_.mark_changed();
}

void NamedConnection::check_deadline(uint64_t now) noexcept {
  if (deadline_ns_ == 0 || now < deadline_ns_) return;
  try {
    lose(Error{TC_ERR_TIMEOUT, fmt::format("its host name was not resolved within {} s",
                                           SocketConnection::greeting_ns / 1'000'000'000)});
  } catch (const std::bad_alloc&) {
    lose(Error{TC_ERR_NO_MEMORY, "no memory"});
  }
}

bool NamedConnection::deliver_loss() noexcept {
  if (!reason_) return false;
  const auto reason = std::move(*reason_);
  reason_.reset();
  hub_.events.on_lost(*this, reason);
  return true;
}

// Ends the connection on our side: the owner knows, so on_lost() is not called.
void NamedConnection::end_silently() noexcept {
  lookups_.cancel(*this);
  reason_.reset();
  deadline_ns_ = 0;
  hub_.mark_changed();
}

Status NamedConnection::open(ByteView hello) {
  if (inner_ == nullptr) return fail(TC_ERR_DISCONNECTED, "nothing connects to {} yet", address_);
  return inner_->open(hello);
}

void NamedConnection::refuse(const Error& why) noexcept { inner_ != nullptr ? inner_->refuse(why) : end_silently(); }

void NamedConnection::close() noexcept { inner_ != nullptr ? inner_->close() : end_silently(); }

void NamedConnection::drop() noexcept { inner_ != nullptr ? inner_->drop() : end_silently(); }

void NamedConnection::set_paused(bool paused) noexcept {
  if (inner_ != nullptr) inner_->set_paused(paused);
}

}  // namespace tc::transport
