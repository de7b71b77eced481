// SPDX-License-Identifier: Apache-2.0
//
// The cells of a node: processes of their own for code that may not run in the node's (docs/cells.md). Each runs one call at a
// time, and only calls of one principal with one set of rights, because the code of a call can change what later ones find
// there. One more is fresh: it takes the next call of somebody who has no cell, also when another cell ends.
//
//     fresh --- the first call ---> serves its principal --- others want cells, or the keyring was read again ---> retired
//
//     the node's thread                                          a cell
//     run() ---- the call, its payload ------------------------> runs it
//     poll() <-- its answer, its log, what it asks ------------- waits for what it asked
//            <-- its end ---------------------------------------
//     look() <-- it has ended: its call fails, another one is started
//
// Code in a cell is alone with its memory, whatever runs elsewhere. But for named data: DataTurn.
//
// Thread: the node's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "node/cells/cell.h"
#include "node/cells/cell_keeper.h"
#include "node/workers/handed_calls.h"

namespace tc::transport {
class Transport;
}

namespace tc::node {

enum class Isolate : uint8_t;

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

  // May a call that came by that link be given to run()? Null: one of this node. The ordinary calls of one link run in their
  // order.
  bool has_room(const void* link, bool concurrent) const noexcept;
  // May throw std::bad_alloc.
  void run(std::unique_ptr<HandedCall> handed);
  // The call of that token, which came by that link, was taken back by its caller: it is not run, or its cell is ended.
  void cancel(const void* link, uint64_t token);
  // Takes what cells say, and sends on what they had no room for. How much happened.
  size_t poll();
  // What bells, deadlines and ends want done: when take_news(), and now and then. How much happened.
  size_t look() { return keeper_ == nullptr ? 0 : look_at_all(); }
  bool has_news() noexcept { return keeper_ != nullptr && keeper_->take_news(); }
  // Around a sleep of the node.
  void set_sleeping(bool sleeping) noexcept;
  // The name of an ifunc that runs in a cell now; empty: none does.
  std::string running_name() const;
  size_t waiting() const noexcept { return waiting_.size(); }
  bool has_frames() const noexcept;
  // When look() has something to do that nothing announces: a call has run for too long, a cell does not become ready, or one may
  // be started again. UINT64_MAX: nothing.
  uint64_t next_due_ns() const noexcept;
  // The keyring was read again: a call that has not begun is not run by rights that its sender may not have any more, and cells
  // serve nobody by rights of before.
  void renew_rights() noexcept;

  void close() noexcept;

 private:
  Status begin_to_exist(transport::Transport& transport);
  Status wait_until_ready();
  size_t running() const noexcept;
  uint64_t limit_ns(const Cell& cell) const noexcept;
  bool may_order() const noexcept;
  void order();
  void take_started();
  Cell* free_cell(const trust::SharedRights& rights) noexcept;
  bool may_come_free(const trust::SharedRights& rights) const noexcept;
  void begin(Cell& cell, HandedCall& handed);
  void retire_one_too_many() noexcept;
  Status add_libraries(const std::vector<std::string>& names);
  const Error* why_unlinkable(const target::Code& code) noexcept;
  void fail_to_link(HandedCall& handed, const Error& why);
  size_t look_at_all();
  size_t poll(Cell& cell);
  void take(Cell& cell, cell::Event& event);
  void answer(Cell& cell, const cell::Ask& ask);
  void answer(Cell& cell, tc_status_t status);
  size_t give_awaited_data();
  tc_status_t give_data(Cell& cell, std::string_view name);
  void end_call(Cell& cell, const cell::Ended& ended);
  size_t begin_waiting();
  void fail_waiting(const Error& why, FunctionRef<bool(const HandedCall&)> which);
  void on_ready(const cell::Ready& ready);
  void pause_orders() noexcept;
  void fail_to_start(const Error& why);
  void look_at(Cell& cell, uint64_t now);
  size_t take_out_ended();
  void watch();
  void on_end_of(Cell& cell);
  Error error_of(Cell& cell, const HandedCall& handed, const cell::Ending& ending) const;

  const Common& common_;
  HandedCalls& calls_;
  Authority& authority_;
  transport::Transport* transport_ = nullptr;
  std::unique_ptr<CellKeeper> keeper_;
  DataTurn data_turn_;
  std::vector<std::unique_ptr<Cell>> cells_;
  Cell* ordered_ = nullptr;           // which of them has no process yet
  std::vector<HandedCall*> waiting_;  // for a cell; with those that run, at most as many as there are cells for calls
  std::filesystem::path program_;
  std::vector<std::string> libraries_;  // that cells are started with
  Error why_not_;                       // the last cell that was to be started was not
  // Code that cannot be linked in cells, with the libraries that there are: it is not compiled for each call anew.
  std::unordered_map<ContentId, Error> unlinkable_;
  uint64_t unlinkable_since_ = 0;  // CodeStore::library_changes()
  bool exists_ = false;
  Isolate isolate_{};
  bool lacks_are_told_ = false;
  uint64_t deaths_ = 0;
  uint64_t order_at_ns_ = 0;  // not before: cells that die at once are started with growing pauses
};

}  // namespace tc::node
