// SPDX-License-Identifier: Apache-2.0
//
// All links of a node: connecting, finding the link to a node, reading what came by them, and failing everything that
// waits on a link that was lost.
//
// Thread: the node's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "node/link/link.h"
#include "node/peer_shares.h"
#include "node/refusals.h"
#include "wire/statistics.h"

namespace tc::node {

class Watchdog;
struct Expectation;

class Links final : public transport::Events {
 public:
  Links(const LinkServices& services, FutureTable& futures, Watchdog& watchdog)
      : services_(services), futures_(futures), watchdog_(watchdog), shares_(services.channel.common.config) {}

  // Before anything else.
  void use(transport::Transport& transport) noexcept { transport_ = &transport; }

  // ---- Connecting. Nodes connect when they first have something to say to each other.

  // For the application: waits until the peer has greeted. One connection serves both ways. A peer that has no room
  // (TC_ERR_LIMIT) is asked again until the deadline.
  Result<Link*> connect(std::string_view address, Deadline deadline);
  // Ends one endpoint of the link: flushes until `deadline`. The link ends when neither side uses it (Link::is_used). Returns
  // what the flush said. Inside the node's polling nobody can wait: the flush goes on in later polls, and its result is
  // told to nobody.
  Status close(Link& link, Deadline deadline);
  // Starts a connection; what is sent waits until the peer has greeted.
  Result<Link*> reach(std::string_view address);
  // The same for an answer, to the address that a frame names: the node there must be known already, or have the first
  // key of `chain`, on whose behalf the call was made; and no name server is asked. TC_ERR_DENIED.
  Result<Link*> reach_caller(std::string_view address, const wire::SharedChain& chain);
  // The link to the node that listens there; it may have to greet first.
  Result<Link*> find_or_reach(std::string_view address);
  // The same by number in the cluster. Outside of a cluster: a peer that says it has this number.
  Result<Link*> to_node(uint32_t node);
  // The same when it was looked for before; else null.
  Link* known(uint32_t node) const noexcept { return node < by_number_.size() ? by_number_[node] : nullptr; }

  // ---- Finding. Null: there is none.

  // To the node that made a call. `chain`: on whose behalf.
  Link* ready_to(const wire::ReturnAddress& to, const wire::SharedChain& chain = nullptr) const noexcept;
  // For answers to the node there; calls have find_or_reach().
  Link* to_address(std::string_view address) const noexcept;
  // By which that call came, which went on from here. It is found once.
  Link* that_forwarded(const ForwardedCalls::Call& call) const noexcept;
  // That call goes on to another node, with that header and return address. False: too many of its link wait for answers that
  // can come back through this node alone.
  bool record_forwarded(const target::Call& call, const wire::CallHeader& header, const wire::ReturnAddress& to) const;
  // Authority::is_known()
  bool is_known(std::string_view address) const;
  // Ready.
  Link* with_id(uint64_t id) const noexcept;
  void each(FunctionRef<void(Link&)> show) const;
  size_t size() const noexcept { return links_.size(); }
  // Bytes of all that there are, and that there were.
  transport::Traffic traffic() const noexcept;
  // Of those whose peers have greeted.
  std::vector<wire::LinkReport> report() const;
  // Calls with a token that wait on any link here.
  void each_waiting_call(ShowCall show) const;

  // ---- Polling

  // Runs the frames of links whose peers write into our memory, and of links that come_back_to() named: one turn of each link.
  // How many frames.
  size_t receive() {
    size_t happened = 0;
    // By index: a link may open meanwhile.
    for (size_t i = 0; i < polled_.size(); ++i)
      if (auto& link = *polled_[i]; link.has_frame()) happened += receive_from(link);
    if (!pending_.empty()) [[unlikely]]
      happened += receive_pending();
    return happened;
  }
  // The link has something to do though no frame comes: the next poll reads it.
  void come_back_to(Link& link);
  // Its peer has sent more than it may, or than it reads the answers of: nothing of it is received before that time, or
  // before Link::may_go_on().
  void pause(Link& link, uint64_t until_ns);
  // Goes on with links that may. How many.
  size_t resume_paused();
  // When the next one may go on; UINT64_MAX: none is paused.
  uint64_t next_resume_ns() const noexcept;
  // Large messages of which too little comes fail. Now and then.
  void expire_unfinished(uint64_t now_ns);
  // What a peer may take of `message-memory`; null: as much as all.
  std::shared_ptr<MemoryBudget> share_of(const transport::Origin& peer, const trust::Rights* rights) {
    return shares_.memory_of(peer, rights);
  }
  // What calls on behalf of that key may take of it.
  std::shared_ptr<MemoryBudget> share_of(const trust::PublicKey& key) { return shares_.memory_of(key); }
  // What peers may do has changed: links of those that may not connect any more end. So do our own links to nodes whose keys
  // are `lost`: revoked, or taken out of the keyring.
  void renew_rights(std::span<const trust::PublicKey> lost);
  // The keys of all links are in use. Now and then.
  void record_uses();
  // Its first call waits until calls on other threads have ended.
  void await_worker(Link& link) { awaiting_worker_.push_back(&link); }
  // One has: those that wait are read, in the order in which they came to wait. How much happened.
  size_t on_worker_free();
  // How many links have calls to run that waited for that.
  size_t drain_backlogs();
  // Fails everything that waits on lost links, and removes the links that nobody holds.
  void handle_losses();
  // The peer connected, and has no use for the link any more.
  void on_released_by_peer(Link& link);
  // Ends those that neither side uses. Now and then.
  void end_unused();
  // Nobody holds a lost link any more.
  void on_unheld() noexcept { services_.channel.common.work.lost_links = true; }
  // The store is about to free this code.
  void forget(const target::Code& code) noexcept;
  // The next call of that code takes it along once more.
  void send_again(const ContentId& id);

  // ---- At the node's end

  // The node drains: calls that come from now on are refused (CallPlaces::take_no_more()).
  void drain() noexcept;
  // How many calls wait here: of peers, to be run, and to peers, to be sent.
  size_t waiting_calls() const noexcept;
  // From now on nothing that comes is run.
  void stop_receiving() noexcept { is_leaving_ = true; }
  // How much waits on all links to be sent (Link::unsent()).
  size_t unsent() const noexcept;
  // Moves queued frames on, and throws away what has come. May throw std::bad_alloc.
  void send_unsent();
  // Closes all links. The log is told what cannot be sent any more.
  void close_all() noexcept;

  // How many refused connections were not put into the log one by one.
  uint64_t take_unsaid_refusals() noexcept;

  // ---- transport::Events
  Status may_connect(const transport::Origin& origin) override;
  Status is_expected(std::string_view address, const transport::Origin& origin) override;
  void on_accept(std::unique_ptr<transport::Connection> connection, ByteView hello) override;
  void on_greeting(transport::Connection& connection, ByteView hello) override;
  void on_frames(transport::Connection& connection) override;
  void on_lost(transport::Connection& connection, const Error& reason) noexcept override;
  void on_refused(const std::string& who, const Error& why) noexcept override;
  void on_warning(const std::string& what) noexcept override;

 private:
  Link& adopt(std::unique_ptr<transport::Connection> connection, bool initiator);
  Result<Link*> connect_once(std::string_view address, Deadline deadline);
  void end_endpoints(Link& link, uint32_t count) noexcept;
  void continue_closing(Link& link);
  void begin_nothing_new(Link& link) noexcept;
  Status has_room_for(const transport::Origin& peer) const;
  Link* accepted_from(std::string_view address) const noexcept;
  Expectation expected_at(std::string_view address) const noexcept;
  Bytes own_greeting() const;
  void accept_greeting(Link& link, ByteView hello);
  Link* that_says_it_is(uint32_t node) const noexcept;
  void find_what_it_stands_for(Link& link) const;
  void settle_on_one(Link& link);
  size_t receive_pending();
  size_t receive_from(Link& link);
  // There was no memory for what it sends, or for what its loss wants done.
  void give_up(Link& link) noexcept;
  void fail_running() noexcept;
  bool tell_loss(Link& link) noexcept;
  void add_ended(const Link& link) noexcept;
  void log_loss(const Link& link) noexcept;
  void log_unsent(Link& link) noexcept;

  std::vector<Link*> polled_;   // whose peers write into our memory
  std::vector<Link*> pending_;  // come_back_to()
  std::vector<Link*> paused_;   // pause()
  std::vector<Link*> awaiting_worker_;
  std::vector<Link*> by_number_;  // known()
  std::vector<std::unique_ptr<Link>> links_;
  const LinkServices& services_;
  transport::Transport* transport_ = nullptr;
  FutureTable& futures_;
  Watchdog& watchdog_;
  PeerShares shares_;
  uint64_t looked_at_unfinished_ns_ = 0;
  Refusals refusals_;
  std::string_view caller_at_;  // the address of a connection that reach_caller() begins; else empty
  std::optional<trust::PublicKey> caller_key_;
  bool some_are_released_ = false;  // by their peers; no endpoint uses them, but something else may, or the peer does
  bool is_leaving_ = false;
  transport::Traffic ended_;  // of links that are gone
};

}  // namespace tc::node
