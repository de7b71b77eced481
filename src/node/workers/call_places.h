// SPDX-License-Identifier: Apache-2.0
//
// Where a call runs: on the node's thread, on another one (Workers), or in a cell (Cells). Nowhere, once the node drains: then
// it ends, and takes no more calls.
//
// Thread: the node's.
#pragma once

#include <memory>
#include <utility>

#include "node/cells/cells.h"
#include "node/workers/call_wish.h"
#include "node/workers/workers.h"

namespace tc::node {

class CallPlaces {
 public:
  CallPlaces(const target::Executor& executor, Workers& workers, Cells& cells) noexcept
      : executor_(executor), workers_(workers), cells_(cells) {}

  enum class Place : uint8_t {
    here,       // on the node's thread, now
    elsewhere,  // hand_over()
    in_cell,    // hand_over(), too
    later,      // when a call has ended: may_go_on()
  };
  // From now on no new call is taken; those that were taken before go on. Links::drain() tells those that ask here.
  void take_no_more() noexcept { takes_calls_ = false; }
  bool takes_calls() const noexcept { return takes_calls_; }
  // Can calls of a peer run in a cell? `restricted`: a line of the keyring limits it.
  bool may_need_cell(bool restricted) const noexcept { return cells_.may_be_wanted(restricted); }
  // Does code with these rights run in cells alone?
  bool is_for_cells(const trust::CodeRights& rights) const noexcept { return cells_.exist() && cells_.wants(rights); }
  CallWish wish_of(const target::Code& code, const trust::SharedRights& rights) const noexcept {
    return {.concurrent = code.concurrent, .in_cell = is_for_cells(*rights)};
  }
  // `link`: that the call came by; null: it is one of this node.
  Place place(const target::Code& code, const CallWish& wish, const void* link) const noexcept {
    if (wish.in_cell) return cells_.has_room(link, wish.concurrent) ? Place::in_cell : Place::later;
    if (executor_.allows(code.lane)) return Place::here;
    switch (workers_.place(code)) {
      case Workers::Place::here: return Place::here;
      case Workers::Place::elsewhere: return Place::elsewhere;
      case Workers::Place::later: break;
    }
    return Place::later;
  }
  bool may_place(const CallWish& wish, const void* link) const noexcept {
    return wish.in_cell ? cells_.has_room(link, wish.concurrent) : workers_.may_place(wish.concurrent);
  }
  // The call of that token, which came by `link`, was taken back: it ends where it can be ended.
  void cancel(const void* link, uint64_t token) { cells_.cancel(link, token); }
  // May throw std::bad_alloc.
  void hand_over(std::unique_ptr<HandedCall> handed, Place place) {
    if (place == Place::in_cell)
      cells_.run(std::move(handed));
    else
      workers_.hand_over(std::move(handed));
  }

 private:
  const target::Executor& executor_;
  Workers& workers_;
  Cells& cells_;
  bool takes_calls_ = true;
};

}  // namespace tc::node
