// SPDX-License-Identifier: Apache-2.0
//
// A channel's life: the greeting, names for messages, the end.
#include "node/link/channel.h"

#include <spdlog/logger.h>
#include <threechains/ifunc.h>

#include <algorithm>
#include <new>

namespace tc::node {

namespace {

// More is not to wait for a peer that is to be answered further calls: far less than what ends its link, so that answers of
// any size have room above it, and little of the memory that all peers share.
constexpr size_t most_behind_bytes = 16u * 1024 * 1024;

}  // namespace

Channel::Channel(const ChannelServices& services, std::unique_ptr<transport::Connection> connection, bool initiator)
    : out_(&connection->out()),
      version_(services.ids.next()),
      initiator_(initiator),
      id_(version_),
      services_(services),
      connection_(std::move(connection)),
      behind_bytes_(std::min(most_behind_bytes, services.buffers.budget().limit() / 4)) {}

std::string Channel::peer_label() const {
  if (peer_.protocol == 0) return fmt::format("the peer at {}", connection_->peer_address());
  if (peer_.node_id != Identity::no_id) return fmt::format("node {} ({})", peer_.node_id, peer_.name);
  if (!peer_.address.empty()) return fmt::format("node at {} ({})", peer_.address, peer_.name);
  return fmt::format("client {}", peer_.name);
}

const std::shared_ptr<const std::string>& Channel::shared_label() {
  if (label_ == nullptr || state_ == State::greeting) label_ = std::make_shared<const std::string>(peer_label());
  return label_;
}

bool Channel::leads_to(std::string_view address) const noexcept {
  if (initiator_ && connection_->peer_address() == address) return true;
  if (state_ != State::ready || peer_.address != address) return false;
  if (initiator_) return true;
  if (!stands_for_address_) return false;
  return origin().same_user || address.substr(0, address.rfind(':')) == origin().host;
}

Status Channel::accept(ByteView greeting, ByteView own) {
  TC_ASSIGN(peer_, wire::decode_hello(greeting));
  TC_ASSIGN(peer_triple_, TargetTriple::parse(peer_.triple));
  if (peer_.abi != TC_IFUNC_ABI)
    return fail(TC_ERR_VERSION, "{} has ifunc ABI {} when this build has {}", peer_label(), peer_.abi, TC_IFUNC_ABI);
  TC_CHECK(connection_->open(own));
  out_ = &connection_->out();
  state_ = State::ready;
  label_.reset();
  changed();
  services_.log.debug("{}: link is ready, frames go by {}", peer_label(), connection_->transport());
  return {};
}

// Everything that sending looks at first follows from the state, in this one place.
void Channel::changed() noexcept {
  open_ = state_ == State::ready && backlog_.empty() && !calls_wait_ && !streaming_;
  open_version_ = open_ ? version_ : closed_version;
  is_behind_ = backlog_bytes_ > behind_bytes_ && !expects_end_;
  const uint64_t end = open_ ? std::min<uint64_t>(peer_.max_message, out_->max_length()) + 1 : 0;
  end_at_once_ = static_cast<uint32_t>(std::min<uint64_t>(end, UINT32_MAX));
}

// ---- The end

void Channel::lose(const Error& reason) noexcept {
  state_ = State::lost;
  changed();
  services_.work.lost_links = true;
  reason_.code = reason.code;
  try {
    reason_.message = reason.message;
  } catch (const std::bad_alloc&) {
    reason_.message = "no memory";
  }
}

// The last frame, where there is room for one and memory to build it, and where no piece of another one is missing.
void Channel::write_bye(const Error& reason) noexcept try {
  if (state_ != State::ready || mid_frame_) return;
  const auto body = wire::encode_disconnect({reason.code, reason.message});
  if (is_large(body.size())) return;
  std::byte* const at = out_->reserve(body.size());
  if (at == nullptr) return;
  std::memcpy(at + wire::header_bytes, body.data(), body.size());
  out_->commit(wire::encode(wire::Kind::disconnect, 0, 0, static_cast<uint32_t>(body.size())));
} catch (const std::bad_alloc&) {
}

void Channel::disconnect(const Error& reason) noexcept {
  if (state_ == State::lost) return;
  Error told{reason.code, {}};
  try {
    told.message = fmt::format("{}: {}", services_.self.label, reason.message);
  } catch (const std::bad_alloc&) {
    told.message = "no memory";  // short enough to need none
  }
  if (state_ == State::greeting && !initiator_) {
    connection_->refuse(told);
  } else {
    write_bye(told);
    connection_->close();
  }
  lose(reason);
}

bool Channel::disconnect_for(const std::string& what) {
  disconnect(Error{TC_ERR_MALFORMED, fmt::format("{} breaks the protocol: {}", peer_label(), what)});
  return false;
}

void Channel::close(const Error& reason) noexcept {
  if (state_ == State::lost) return;
  if (!is_released_) write_bye({TC_OK, "closed"});
  connection_->close();
  lose(reason);
}

// In order behind what waits for room. A peer that cannot be told finds the connection closed.
void Channel::release() noexcept try {
  if (state_ != State::ready || is_released_) return;
  const auto body = wire::encode_disconnect({TC_OK, "not used any more"});
  if (!post(wire::Kind::disconnect, 0, 0, {body})) return close();
  is_released_ = true;
} catch (const std::bad_alloc&) {
  close();
}

void Channel::end(const Error& reason) noexcept {
  if (state_ == State::lost) return;
  connection_->drop();
  lose(reason);
}

}  // namespace tc::node
