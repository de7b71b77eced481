// SPDX-License-Identifier: Apache-2.0
//
// Frames that leave in pieces (pieces.h).
#include <new>

#include "base/clock.h"
#include "node/link/channel.h"
#include "node/link/pieces.h"

namespace tc::node {

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
    if (channel_.has_backlog()) channel_.services_.work.backlog = true;
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
  TC_ASSIGN(auto rest, services_.buffers.take(size));
  gather(rest.data(), frame, from, size);
  // Should the link be lost, it is told whose call that was.
  Bytes beginning(std::min(size_of(frame), beginning_bytes));
  gather(beginning.data(), frame, 0, beginning.size());
  return Queued{.whole = std::move(beginning), .rest = std::move(rest), .charge = {}};
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
      services_.work.backlog = true;
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

}  // namespace tc::node
