// SPDX-License-Identifier: Apache-2.0
//
// Frames that travel in pieces (pieces.h): how they leave, and what becomes of them when they are here.
#include "base/clock.h"
#include "node/link/link.h"
#include "node/node.h"

namespace tc::node {

namespace {

// A reader that has made no room for so long is busy with something else: what is left waits in memory of ours.
constexpr uint64_t stall_ns = 50'000;
// To copy what is left costs about this much. A reader of shared memory may be late by as much, for instance because
// the system took its CPU away for a moment ...
constexpr size_t copied_bytes_per_ns = 10;
// ... beside one that reads at this rate, so that nobody holds the node up by reading a little now and then.
constexpr size_t least_bytes_per_ns = 1;
// Of a frame: its ticket and its route.
constexpr size_t beginning_bytes = 512;

}  // namespace

// Until it has left, other frames queue behind it.
class Link::Streaming {
 public:
  explicit Streaming(Link& link) noexcept : link_(link) { set(true); }
  ~Streaming() { set(false); }
  Streaming(const Streaming&) = delete;
  Streaming& operator=(const Streaming&) = delete;

 private:
  void set(bool streaming) noexcept {
    link_.streaming_ = streaming;
    link_.update_open();
    if (!link_.backlog_.empty()) link_.node_.note_backlog();
  }
  Link& link_;
};

// From the application: the caller waits while the peer reads, and its memory is read in place. What has begun is
// accepted: when the deadline passes, the rest is kept here.
Status Link::post_large(std::span<const ByteView> frame, Deadline deadline) {
  if (!node_.poll_for(deadline, [&] { return state_ == State::lost || (backlog_.empty() && !streaming_); }))
    return fail(TC_ERR_BUSY, "{} has made no room for {} bytes; the message was not accepted", peer_label(),
                size_of(frame));
  size_t sent = 0;
  {
    const Streaming streaming(*this);
    node_.poll_for(deadline, [&] {
      if (state_ == State::ready) sent = write_pieces(*out_, frame, sent);
      return state_ != State::ready || sent == size_of(frame);
    });
  }
  if (state_ == State::lost) return fail(reason_);
  if (sent == 0)
    return fail(TC_ERR_BUSY, "{} has made no room for {} bytes; the message was not accepted", peer_label(),
                size_of(frame));
  return sent == size_of(frame) ? Status{} : queue_rest(frame, sent);
}

// From inside the node's polling, where nobody may wait: as long as the peer takes what is written about as fast as it
// could be copied aside, it is written.
Status Link::post_while_read(std::span<const ByteView> frame) {
  size_t sent = 0;
  if (open_) {
    const size_t size = size_of(frame);
    const uint64_t begun_ns = now_ns();
    const auto may_be_late = [&](uint64_t now) {
      return connection_->is_polled() &&
             now - begun_ns < sent / least_bytes_per_ns + (size - sent) / copied_bytes_per_ns;
    };
    for (uint64_t progress_ns = begun_ns; state_ == State::ready;) {
      const size_t before = sent;
      sent = write_pieces(*out_, frame, sent);
      if (sent == size) return {};
      out_->flush();
      const auto now = now_ns();
      if (sent != before)
        progress_ns = now;
      else if (now - progress_ns > stall_ns && !may_be_late(now))
        break;
    }
  }
  if (state_ == State::lost) return fail(reason_);
  return queue_rest(frame, sent);
}

Status Link::queue_rest(std::span<const ByteView> frame, size_t from) {
  const size_t size = size_of(frame) - from;
  TC_CHECK(may_queue(size));
  TC_ASSIGN(auto rest, node_.buffers().take(size));
  gather(rest.data(), frame, from, size);
  // Should the link be lost, it is told whose call that was.
  Bytes beginning(std::min(size_of(frame), beginning_bytes));
  gather(beginning.data(), frame, 0, beginning.size());
  enqueue({.whole = std::move(beginning), .rest = std::move(rest)});
  return {};
}

bool Link::on_fragment(uint32_t mark, ByteView piece) {
  if (mark > last_piece) return on_broken(fmt::format("a fragment is marked {} when 0 and 1 are known", mark)), false;
  const auto added = assembly_.add(piece, mark == last_piece);
  if (!added) return on_broken(added.error().message), false;
  return *added ? on_whole(assembly_.take()) : true;
}

bool Link::on_whole(Assembly::Whole whole) {
  if (whole.refused) return refuse_whole(whole);
  if (whole.header.kind == wire::Kind::reply) return on_large_reply(std::move(whole));
  return on_frame(whole.header, whole.body);
}

// There was no memory for it: whoever waits for its answer, or for it, is told.
bool Link::refuse_whole(const Assembly::Whole& whole) {
  const auto& [header, body, memory, why, beginning] = whole;
  const Error told{why->code, fmt::format("{} bytes came from {}: {}", header.length, peer_label(), why->message)};
  if (header.kind == wire::Kind::call || header.kind == wire::Kind::call_code)
    return refuse({header.kind, header.flags, header.number, static_cast<uint32_t>(beginning.size())}, beginning, told),
           true;
  const auto reply = header.kind == wire::Kind::reply ? wire::decode_reply(beginning) : fail(told);
  if (!reply) return hang_up(told), false;
  node_.complete({.token = reply->token, .status = told.code, .node_id = node_.wire_id(), .message = told.message});
  return true;
}

}  // namespace tc::node
