// SPDX-License-Identifier: Apache-2.0
//
// A channel's life: the greeting, names for messages, the end.
#include "node/link/channel.h"

#include <spdlog/logger.h>
#include <threechains/ifunc.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "node/link/pieces.h"

namespace tc::node {

namespace {

// More is not to wait for a peer that is to be answered further calls: far less than what ends its link, so that answers of
// any size have room above it, and little of the memory that all peers share.
constexpr size_t most_behind_bytes = 16u * 1024 * 1024;

// A host without the brackets of IPv6, and without what makes it an IPv6 address of an IPv4 host.
std::string_view plain(std::string_view host) noexcept {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  constexpr std::string_view mapped = "::ffff:";
  return host.starts_with(mapped) && host.contains('.') ? host.substr(mapped.size()) : host;
}

std::string_view host_of(std::string_view address) noexcept { return plain(address.substr(0, address.rfind(':'))); }

bool is_loopback(std::string_view host) noexcept {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

}  // namespace

Channel::Channel(const ChannelServices& services, std::unique_ptr<transport::Connection> connection, bool initiator)
    : out_(&connection->out()),
      version_(services.ids.next()),
      initiator_(initiator),
      id_(version_),
      services_(services),
      connection_(std::move(connection)),
      behind_bytes_(std::min(most_behind_bytes, services.common.buffers.budget().limit() / 4)) {}

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
  return is_connected_to(address) || (state_ == State::ready && proves(address));
}

bool Channel::is_connected_to(std::string_view address) const noexcept {
  return initiator_ && !address.empty() && connection_->peer_address() == address;
}

bool Channel::proves(std::string_view address) const noexcept {
  if (address.empty() || peer_.address != address || !stands_for_address_) return false;
  if (origin().same_user || (initiator_ && !origin().on_trusted_network)) return true;
  return host_of(address) == plain(origin().host);
}

bool Channel::is_at_own_address() const noexcept {
  const auto host = host_of(peer_.address);
  if (peer_.address.empty() || is_loopback(host)) return false;
  return stands_for_address_ || is_proven() || host == plain(origin().host);
}

Status Channel::accept_greeting(ByteView greeting, ByteView own) {
  TC_ASSIGN(peer_, wire::decode_hello(greeting));
  TC_ASSIGN(peer_triple_, TargetTriple::parse(peer_.triple));
  if (peer_.abi != TC_IFUNC_ABI)
    return fail(TC_ERR_VERSION, "{} has ifunc ABI {} when this build has {}", peer_label(), peer_.abi, TC_IFUNC_ABI);
  TC_CHECK(connection_->open(own));
  out_ = &connection_->out();
  state_ = State::ready;
  label_ = std::make_shared<const std::string>(peer_label());
  changed();
  services_.common.log.debug("{}: link is ready, frames go by {}", peer_label(), connection_->transport());
  return {};
}

// Everything that sending looks at first follows from the state, in this one place.
void Channel::changed() noexcept {
  open_ = state_ == State::ready && backlog_.empty() && !calls_wait_ && !streaming_;
  open_version_ = open_ ? version_ : closed_version;
  is_behind_ = backlog_bytes_ > behind_bytes_ && !expects_end_;
  const uint64_t end = open_ ? std::min<uint64_t>(peer_.max_message, out_->max_length()) + 1 : 0;
  at_once_below_ = static_cast<uint32_t>(std::min<uint64_t>(end, UINT32_MAX));
}

// ---- The end

void Channel::lose(const Error& reason) noexcept {
  state_ = State::lost;
  changed();
  services_.common.work.lost_links = true;
  reason_.code = reason.code;
  try {
    reason_.message = reason.message;
  } catch (const std::bad_alloc&) {
    reason_.message = "no memory";
  }
}

// The last frame, where there is room for one and memory to build it, and where no piece of another one is missing.
void Channel::write_disconnect(const Error& reason) noexcept try {
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
    told.message = fmt::format("{}: {}", services_.common.self.label, reason.message);
  } catch (const std::bad_alloc&) {
    told.message = "no memory";  // short enough to need none
  }
  if (state_ == State::greeting && !initiator_) {
    connection_->refuse(told);
  } else {
    write_disconnect(told);
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
  if (!is_released_) write_disconnect({TC_OK, "closed"});
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

// ---- Frames that leave now, or wait for room

namespace {

// Bounds what one slow peer can cost us: replies, forwarded calls and code that wait for room. One frame of any size is
// taken before the peer is behind.
constexpr size_t backlog_limit = 64u * 1024 * 1024;

size_t total_size(Channel::Parts parts) noexcept {
  size_t size = 0;
  for (const auto part : parts) size += part.size();
  return size;
}

void copy_parts(std::byte* to, Channel::Parts parts) noexcept {
  for (const auto part : parts) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
}

uint64_t word_of(wire::Kind kind, uint8_t flags, uint32_t number, Channel::Parts parts) noexcept {
  return wire::encode(kind, flags, number, static_cast<uint32_t>(total_size(parts)));
}

}  // namespace

bool Channel::try_post(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) noexcept {
  std::byte* const at = reserve(total_size(parts));
  if (at == nullptr) return false;
  copy_parts(at + wire::header_bytes, parts);
  out_->commit(word_of(kind, flags, number, parts));
  return true;
}

Status Channel::post(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) {
  if (try_post(kind, flags, number, parts)) return {};
  if (state_ != State::ready || !is_large(total_size(parts))) return queue(kind, flags, number, parts);
  FrameParts frame(word_of(kind, flags, number, parts), parts);
  return post_while_read(frame.parts());
}

void Channel::post_or_disconnect(wire::Kind kind, uint8_t flags, uint32_t number, ByteView body) {
  if (const auto sent = post(kind, flags, number, {body}); !sent) disconnect(sent.error());
}

Status Channel::post_in_time(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts, Deadline deadline) {
  if (try_post(kind, flags, number, parts)) return {};
  if (!services_.waiter.may_wait() || state_ == State::greeting) return post(kind, flags, number, parts);
  if (state_ == State::ready && is_large(total_size(parts))) {
    FrameParts frame(word_of(kind, flags, number, parts), parts);
    return post_large(frame.parts(), deadline);
  }
  bool sent = false;
  services_.waiter.wait_for_room(
      deadline, [&] { return state_ == State::lost || (sent = try_post(kind, flags, number, parts)); });
  if (sent) return {};
  if (state_ == State::lost) return fail(reason_);
  return fail(no_room(total_size(parts)));
}

Error Channel::no_room(size_t bytes) const {
  return {TC_ERR_BUSY,
          fmt::format("{} has made no room for {} bytes; the message was not accepted", peer_label(), bytes)};
}

// ---- The backlog

Status Channel::may_queue(size_t size) const {
  if (state_ == State::lost) return fail(reason_);
  if (backlog_bytes_ > behind_bytes_ && backlog_bytes_ + size > backlog_limit)
    return fail(TC_ERR_LIMIT, "{} bytes wait for {} to make room, and at most {} may", backlog_bytes_, peer_label(),
                backlog_limit);
  return {};
}

void Channel::enqueue(Queued item) {
  const size_t size = item.size();
  backlog_.push_back(std::move(item));
  backlog_bytes_ += size;
  changed();
  services_.common.work.backlog = true;
}

Status Channel::queue(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) {
  const auto size = total_size(parts);
  TC_CHECK(may_queue(size));
  Charge counted;
  TC_CHECK(this->charge(counted, size));
  Bytes frame(wire::header_bytes + size);
  const auto word = word_of(kind, flags, number, parts);
  std::memcpy(frame.data(), &word, sizeof word);
  copy_parts(frame.data() + wire::header_bytes, parts);
  enqueue({.whole = std::move(frame), .rest = {}, .charge = std::move(counted)});
  return {};
}

// False: there is no room for all of it now.
bool Channel::drain(Queued& item) noexcept {
  if (item.rest) {
    const ByteView rest(item.rest.data(), item.rest.size());
    item.sent = write({&rest, 1}, item.sent);
    return item.sent == rest.size();
  }
  const ByteView frame(item.whole);
  if (is_large(frame.size() - wire::header_bytes)) {  // queued before the peer had greeted
    item.sent = write({&frame, 1}, item.sent);
    return item.sent == frame.size();
  }
  const auto body = frame.subspan(wire::header_bytes);
  std::byte* const at = out_->reserve(body.size());
  if (at == nullptr) return false;
  copy_parts(at + wire::header_bytes, {body});
  uint64_t word;
  std::memcpy(&word, frame.data(), sizeof word);
  out_->commit(word);
  drained_bytes_ += frame.size();
  return true;
}

void Channel::drain_backlog() {
  if (state_ != State::ready || streaming_) return;
  while (!backlog_.empty() && drain(backlog_.front())) {
    backlog_bytes_ -= backlog_.front().size();
    backlog_.pop_front();
  }
  changed();
}

void Channel::replace_queued(FunctionRef<std::optional<Bytes>(const Unsent&)> replace) {
  for (auto& queued : backlog_) {
    auto other = replace(unsent_of(queued));
    if (!other) continue;
    backlog_bytes_ -= queued.size();
    queued = Queued{.whole = std::move(*other), .rest = {}, .charge = {}};
    backlog_bytes_ += queued.size();
  }
  changed();
}

Channel::Unsent Channel::unsent_of(const Queued& queued) noexcept {
  const ByteView frame(queued.whole);
  uint64_t word;
  std::memcpy(&word, frame.data(), sizeof word);
  return {wire::decode(word), frame.subspan(wire::header_bytes)};
}

std::optional<Channel::Unsent> Channel::unsent() const noexcept {
  return backlog_.empty() ? std::nullopt : std::optional(unsent_of(backlog_.front()));
}

void Channel::each_unsent(FunctionRef<void(const Unsent&)> show) const {
  for (const auto& queued : backlog_) show(unsent_of(queued));
}

// ---- Large frames, which travel in pieces

namespace {

// A reader that has made no room for so long is busy with something else: what is left waits in memory of ours.
constexpr uint64_t stall_ns = 50'000;
// To copy what is left costs about this much. A reader of shared memory may be late by as much, for instance because
// the system took its CPU away for a moment ...
constexpr size_t copied_bytes_per_ns = 10;
// ... beside one that reads at this rate, so that nobody holds the node up by reading a little now and then.
constexpr size_t least_bytes_per_ns = 1;
// Of a frame: its call header and its return address.
constexpr size_t beginning_bytes = 512;

}  // namespace

// Until the frame has left, other frames queue behind it.
class Channel::Streaming {
 public:
  explicit Streaming(Channel& channel) noexcept : channel_(channel) { set(true); }
  ~Streaming() { set(false); }
  Streaming(const Streaming&) = delete;
  Streaming& operator=(const Streaming&) = delete;

 private:
  void set(bool streaming) noexcept {
    channel_.streaming_ = streaming;
    channel_.changed();
    if (channel_.has_backlog()) channel_.services_.common.work.backlog = true;
  }
  Channel& channel_;
};

// As write_pieces(). Records how it goes.
size_t Channel::write(std::span<const ByteView> frame, size_t from) noexcept {
  const size_t to = write_pieces(*out_, frame, from);
  if (to != from) mid_frame_ = to != size_of(frame);
  drained_bytes_ += to - from;
  return to;
}

// From the application: the caller waits while the peer reads, and its memory is read in place. What has begun is
// accepted: when the deadline passes, the rest is kept here.
Status Channel::post_large(std::span<const ByteView> frame, Deadline deadline) {
  auto& waiter = services_.waiter;
  if (!waiter.wait_for_room(deadline, [&] { return state_ == State::lost || (backlog_.empty() && !streaming_); }))
    return fail(no_room(size_of(frame)));
  const Streaming streaming(*this);
  size_t sent = 0;
  try {
    waiter.wait_for_room(deadline, [&] {
      if (state_ == State::ready) sent = write(frame, sent);
      return state_ != State::ready || sent == size_of(frame);
    });
  } catch (const std::bad_alloc&) {
    if (sent == 0) throw;  // something else wanted memory: what has begun here goes on
  }
  if (state_ == State::lost) return fail(reason_);
  if (sent == 0) return fail(no_room(size_of(frame)));
  return sent == size_of(frame) ? Status{} : keep_rest(frame, sent);
}

// From inside the node's polling, where nobody may wait: as long as the peer takes what is written about as fast as it
// could be copied aside, it is written.
Status Channel::post_while_read(std::span<const ByteView> frame) {
  if (!open_) return queue_large(frame);
  const size_t size = size_of(frame);
  const uint64_t begun_ns = now_ns();
  size_t sent = 0;
  const auto may_be_late = [&](uint64_t now) {
    return connection_->is_polled() && now - begun_ns < sent / least_bytes_per_ns + (size - sent) / copied_bytes_per_ns;
  };
  for (uint64_t progress_ns = begun_ns; state_ == State::ready;) {
    const size_t before = sent;
    sent = write(frame, sent);
    if (sent == size) return {};
    out_->flush();
    const auto now = now_ns();
    if (sent != before)
      progress_ns = now;
    else if (now - progress_ns > stall_ns && !may_be_late(now))
      break;
  }
  if (state_ == State::lost) return fail(reason_);
  return sent != 0 ? keep_rest(frame, sent) : queue_large(frame);
}

Result<Channel::Queued> Channel::copy_from(std::span<const ByteView> frame, size_t from) {
  const size_t size = size_of(frame) - from;
  Charge shared;
  if (share_ != nullptr && !shared.take_share(share_, size))
    return fail(TC_ERR_LIMIT,
                "{} bytes of messages wait for {}, {} more are wanted, and {} is its share of message-memory",
                share_->used(), peer_label(), size, share_->limit());
  TC_ASSIGN(auto rest, services_.common.buffers.take(size));
  gather(rest.data(), frame, from, size);
  // If the link is lost, this part says which call it was.
  Bytes beginning(std::min(size_of(frame), beginning_bytes));
  gather(beginning.data(), frame, 0, beginning.size());
  return Queued{.whole = std::move(beginning), .rest = std::move(rest), .charge = std::move(shared)};
}

Status Channel::queue_large(std::span<const ByteView> frame) {
  TC_CHECK(may_queue(size_of(frame)));
  TC_ASSIGN(auto all, copy_from(frame, 0));
  enqueue(std::move(all));
  return {};
}

// The rest of a frame whose first pieces have left goes in front of all that was queued meanwhile, because no other frame
// may come between. It is not refused for what else is queued: there is one at a time. Where there is no memory for it,
// the stream is of no more use: it ends in the middle of a frame. To reserve that memory before the first piece would
// make every large message pay for the few whose readers are late.
Status Channel::keep_rest(std::span<const ByteView> frame, size_t from) {
  try {
    auto rest = copy_from(frame, from);
    if (rest) {
      backlog_.push_front(std::move(*rest));
      backlog_bytes_ += backlog_.front().size();
      changed();
      services_.common.work.backlog = true;
      return {};
    }
    disconnect(context(fmt::format("{} of {} bytes of a message were sent to {}, and the rest cannot be kept", from,
                                   size_of(frame), peer_label()),
                       std::move(rest).error())
                   .error());
  } catch (const std::bad_alloc&) {
    disconnect(Error{TC_ERR_NO_MEMORY, "no memory"});  // short enough to need none
  }
  return fail(reason_);
}

// ---- What the log says of it

AboutLink::AboutLink(const Channel& channel, const LogFields& code)
    : peer_(channel.peer_label()),
      key_(channel.origin().key ? channel.origin().key->text() : ""),
      context_({.ifunc = code.ifunc, .content_id = code.content_id, .peer = peer_, .key = key_, .link = channel.id()}) {
}

}  // namespace tc::node
