// SPDX-License-Identifier: Apache-2.0
//
// The source's half of a link: sends calls to the peer, and code where the peer does not have it yet.
//
// Each code gets a number when it is first sent to the peer, in front of its first call; later calls bring the number
// alone. A call cannot leave at once
//   - before the peer has greeted, which tells for which CPU it wants code, or
//   - while slices for that CPU are missing here and are asked of the node that sent the code here (code/slices.h).
// It waits then, with all calls behind it, and leaves when its code is there, or its caller is told why it cannot.
//
// Thread: the node's.
#pragma once

#include <deque>
#include <optional>

#include "node/link/services.h"
#include "node/outgoing_call.h"
#include "source/code_table.h"
#include "source/message.h"

namespace tc::node {

class CallSender {
 public:
  CallSender(Channel& channel, const LinkServices& services);

  // Hot: a plain call of code that the peer was sent before. False when it takes more than writing one frame now; then
  // send() does it.
  [[gnu::always_inline]] bool try_send(source::Message& message) noexcept {
    if (message.prepared_for != channel_.open_version() && !prepare(message)) [[unlikely]]
      return false;
    auto& out = channel_.out();
    const auto word = message.prepared_header;
    if (out.reserve(static_cast<size_t>(word >> 32)) == nullptr) [[unlikely]]
      return false;
    out.put(word, message.payload());
    return true;
  }
  // The same for several messages, in order. How many were sent.
  size_t try_send(source::Message* const* messages, size_t count) noexcept;

  // Hot for ifuncs that forward calls: a call with a header, of the code that was sent to this peer last. False as above.
  bool try_send(const OutgoingCall& call) noexcept;

  // Sends a call; its code goes along when the peer was not sent it yet. Outside of a running ifunc it waits for room until
  // `deadline`, then TC_ERR_BUSY; inside one it queues, within limits.
  Status send(const OutgoingCall& call, Deadline deadline);

  // ---- Calls that wait

  // The peer has greeted.
  void on_ready() { send_waiting(); }
  // The slices that calls wait for are here, or will never be.
  void on_slices(const ContentId& id, const std::optional<Error>& error);
  size_t waiting() const noexcept { return waiting_.size(); }
  // The caller takes back the call of that token. True: it waits here, and does not leave.
  bool cancel(uint64_t token);
  void each_waiting(ShowCall show) const;
  // The link is lost: their callers are told. May throw std::bad_alloc and be called again.
  void fail_waiting(const Error& reason);

  // ---- Calls without an answer that failed, here or at the peer: the next flush tells of the first, and how many more

  void record_failure(const Error& failure);
  std::optional<Error> take_failure();

  // ---- What the peer says of code. False: it breaks the protocol and is disconnected.

  // It dropped code that it was sent, and has a call for it.
  bool on_need(uint32_t number);
  // The next call of that code takes it along once more, if it did already.
  void send_again(const ContentId& id);
  // It has taken in code that it was sent.
  bool on_known(uint32_t number);
  // Which code was sent by that number; null: none was.
  const ContentId* id_of(uint32_t number) const noexcept { return codes_.id_of(number); }
  // Was the peer sent any call?
  bool has_called() const noexcept { return !codes_.is_empty(); }
  // The store is about to free this code.
  void forget(const target::Code& code) noexcept {
    if (last_code_ == &code) last_code_ = nullptr;
  }

 private:
  struct Waiting {
    Bundle bundle;
    uint32_t index;
    Bytes payload;
    std::optional<wire::CallHeader> header;
    std::optional<wire::PackedReturnAddress> return_address;
    wire::SharedChain chain;
    uint64_t since_ns;
    Charge charge;
    bool asked = false;            // the slices were requested
    std::optional<Error> refused;  // there are none

    // Null: this node made the call.
    const wire::ReturnAddress* caller() const noexcept { return return_address ? &return_address->value() : nullptr; }
    OutgoingCall outgoing() const noexcept;
  };

  bool prepare(source::Message& message) const noexcept;
  Status send_now(const OutgoingCall& call, Deadline deadline);
  Result<uint32_t> number_for(const OutgoingCall& call, bool& is_new);
  std::shared_ptr<const Bytes> section_for(const Bundle& bundle, const wire::SharedChain& chain);
  void withdraw(uint32_t number);
  void on_withdrawn(uint32_t number) noexcept;
  void deny(uint32_t number, const ContentId& id);
  bool lacks_slices(const Bundle& bundle) const noexcept;
  Status ask_for_slices(const Bundle& bundle);
  // Puts the call behind those that wait. Returns at once.
  Status queue(const OutgoingCall& call);
  Status queue_for_slices(const OutgoingCall& call);
  bool may_leave(Waiting& call);
  void send_waiting();
  Status send_late(const Waiting& call);
  void fail_call(const Waiting& call, const Error& reason);

  Channel& channel_;
  // The code that was sent last by its number alone, and that number. Where that code is held here, it is known by its
  // address: its id is two cache lines away.
  const target::Code* last_code_ = nullptr;
  uint32_t last_number_ = source::CodeTable::none;
  const wire::Chain* last_chain_ = nullptr;  // on whose behalf it was sent; codes_ keeps it
  ContentId last_id_;
  source::CodeTable codes_;
  uint64_t resends_ = 0;  // changed while code waited for room: it left without what is to go along
  // Calls that wait for the peer's greeting or for slices, and all calls behind them.
  std::deque<Waiting> waiting_;
  size_t waiting_bytes_ = 0;
  std::optional<Error> first_failure_;  // since the last flush
  uint64_t more_failures_ = 0;

  NodeCode& code_;
  Answers& answers_;
  const Common& common_;
};

}  // namespace tc::node
