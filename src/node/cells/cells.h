// SPDX-License-Identifier: Apache-2.0
//
// The cells of a node: processes of their own for code that may not run in the node's (docs/cells.md). One runs calls, one at
// a time; a spare one takes over when it ends.
//
//     the node's thread                                          the cell
//     run() ---- the call, its payload ------------------------> runs it
//     poll() <-- its answer, its log, what it asks ------------- waits for what it asked
//            <-- its end ---------------------------------------
//     look() <-- it has ended: its call fails, the spare goes on, another one is started
//
// Thread: the node's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "node/cells/cell.h"
#include "node/cells/cell_keeper.h"
#include "node/workers/handed_calls.h"

namespace tc::transport {
class Transport;
}

namespace tc::node {

class Cells {
 public:
  Cells(const Common& common, HandedCalls& calls, Authority& authority)
      : common_(common), calls_(calls), authority_(authority) {}
  ~Cells() { close(); }
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;

  // From now on there can be cells. Where code must run in one, with isolate, waits until the first is ready: TC_ERR_NOT_FOUND,
  // TC_ERR_UNSUPPORTED, TC_ERR_IO, TC_ERR_TIMEOUT.
  Status start(transport::Transport& transport);
  bool exist() const noexcept { return exists_; }
  // Does code with these rights run in a cell?
  bool wants(const trust::CodeRights& rights) const noexcept;

  // Can that be so of code of a peer? `restricted`: a line of the keyring limits it.
  bool may_be_wanted(bool restricted) const noexcept;

  // May a call be given to run()?
  bool has_room() const noexcept { return waiting_ == nullptr && (active_ == nullptr || active_->handed() == nullptr); }
  // May throw std::bad_alloc.
  void run(std::unique_ptr<HandedCall> handed);
  // Takes what the cell says. How much happened.
  size_t poll();
  // What bells, deadlines and ends want done: when take_news(), and now and then. How much happened.
  size_t look();
  bool has_news() noexcept { return keeper_ != nullptr && keeper_->take_news(); }
  // Around a sleep of the node.
  void set_sleeping(bool sleeping) noexcept;
  bool has_frames() const noexcept {
    return active_ != nullptr && active_->has_process() && active_->process().has_frames();
  }
  // When look() has something to do that nothing announces: a call has run for too long, a cell does not become ready, or one may
  // be started again. UINT64_MAX: nothing.
  uint64_t next_due_ns() const noexcept;
  // The keyring was read again: a call that has not begun is not run by rights that its sender may not have any more.
  void renew_rights() noexcept;

  void close() noexcept;

 private:
  Status wait_until_ready();
  uint64_t limit_ns() const noexcept;
  bool may_order() const noexcept { return ordered_ == nullptr && (active_ == nullptr || spare_ == nullptr); }
  void order();
  void take_started();
  void begin(HandedCall& handed);
  Status add_libraries(const std::vector<std::string>& names);
  void start_again_for(HandedCall& handed);
  void take(cell::Event& event);
  void answer(const cell::Ask& ask);
  tc_status_t give_data(HandedCall& handed, std::string_view name);
  void end_call(const cell::Ended& ended);
  void fail_waiting(const Error& why) noexcept;
  void on_ready(const cell::Ready& ready);
  void on_death();
  void fail_to_start(const Error& why);
  void look_at_spare();
  void watch();
  void replace();
  Error error_of(const HandedCall& handed, const cell::Ending& ending) const;

  const Common& common_;
  HandedCalls& calls_;
  Authority& authority_;
  transport::Transport* transport_ = nullptr;
  std::unique_ptr<CellKeeper> keeper_;
  std::unique_ptr<Cell> active_, spare_;
  Cell* ordered_ = nullptr;        // which of them has no process yet
  HandedCall* waiting_ = nullptr;  // for the active one's process
  std::filesystem::path program_;
  std::vector<std::string> libraries_;  // that cells are started with
  Error why_not_;                       // the last cell that was to be started was not
  bool exists_ = false;
  bool lacks_are_told_ = false;
  uint64_t deaths_ = 0;
  uint64_t order_at_ns_ = 0;  // not before: cells that die at once are started with growing pauses
};

}  // namespace tc::node
