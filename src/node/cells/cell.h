// SPDX-License-Identifier: Apache-2.0
//
// One cell as its node has it: the process, the memory for code that both see, what is linked there, and the call that runs.
//
//     begin() --> the code is not linked yet: its symbols of shared libraries are looked up in the cell, then it is linked
//             --> runs --> take() gives what the call says and asks, and its end
//
// A cell serves one principal with one set of rights, from its first call until its end: code may have changed everything in it.
// A cell that has ended takes its code with it: the next one begins with empty memory, so that nothing which code has spoilt
// is left.
//
// Thread: the node's; the tuner's thread asks for symbols (Policy). Any thread destroys one without a call.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cell/cell_process.h"
#include "node/cells/data_turn.h"
#include "node/workers/handed_call.h"
#include "target/code_store.h"
#include "target/policy.h"

namespace tc::node {

class Cell {
 public:
  // Memory for code, and no process yet. It will have these libraries. `turn` is the node's, and outlives this. Errors of
  // CodeStore::create().
  static Result<std::unique_ptr<Cell>> create(const Config& config, std::vector<std::string> libraries, DataTurn& turn);
  ~Cell();
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  // What its process is to be started with.
  cell::CellProcess::Options options(const Config& config, const Identity& self) const;
  void attach(std::unique_ptr<cell::CellProcess> process) noexcept { process_ = std::move(process); }
  bool has_process() const noexcept { return process_ != nullptr; }
  bool is_starting() const noexcept { return process_ != nullptr && process_->is_starting(); }
  cell::CellProcess& process() noexcept { return *process_; }
  const cell::CellProcess& process() const noexcept { return *process_; }

  // `known` is the node's store: libraries that were sent there are linked here, too, before code is.
  //
  // Shared libraries that this needs, and may have, but that the process has not opened: it cannot open any more.
  std::vector<std::string> lacking(const target::Code& code, const target::CodeStore& known) const;
  // Is code here linked to a library that the node has not got any more?
  bool has_gone_library(const target::CodeStore& known) const;
  // May a call begin that this cell serves?
  bool is_free() const noexcept {
    return process_ != nullptr && process_->is_idle() && handed_ == nullptr && !process_->is_killed() && !is_retired_;
  }
  // No call has begun here: it may serve anybody.
  bool is_fresh() const noexcept { return !rights_; }
  // Do calls with these rights run here, and no others?
  bool serves(const trust::SharedRights& rights) const noexcept { return rights_ && rights_->is_same(rights); }
  // No other call begins here, and its process is ended as soon as none runs. It must have a process.
  void retire() noexcept;
  bool is_retired() const noexcept { return is_retired_; }
  // The call that runs, or waits for its code to be linked; null: none.
  HandedCall* handed() const noexcept { return handed_; }
  uint64_t begun_ns() const noexcept { return begun_ns_; }
  // The cell must be free, and be fresh or serve those rights. An error: the call cannot run here, and the cell is free again.
  Status begin(HandedCall& handed, const target::CodeStore& known);
  // An address that begin() asked for has come. Errors as those of begin().
  Status on_resolved(const cell::Resolved& resolved);
  // Its call has ended, or the cell has.
  HandedCall* release() noexcept;

  // May its call have named data now? Else it waits: await_data(). Its time does not count meanwhile.
  bool may_have_data() const noexcept { return is_concurrent() || turn_.may_take(*this); }
  void await_data(std::string_view name) { awaited_data_ = name; }
  bool awaits_data() const noexcept { return awaited_data_.has_value(); }
  // What it waits for; from now on it does not.
  std::string take_awaited_data() noexcept;
  // Gives its code that data by that name, if it has not got it already; the turn is its own. TC_ERR_UNSUPPORTED: it is memory of this
  // process alone.
  Status map_data(const std::shared_ptr<const ExposedData>& data, const std::string& name, bool writable);

  // The code of the call that ran last, in this cell's memory; null: it was not linked. May throw std::bad_alloc.
  const target::Code* code_that_ran() {
    store_->adopt();
    return code_;
  }

 private:
  using LibrarySymbol = std::pair<std::string, std::string>;
  // A copy of code that the node holds, which may free it meanwhile.
  struct ToLink {
    Bundle bundle;
    Bytes compiled;  // as Code::compiled
    target::Assembly assembly;
    std::string sender;  // as Code::sender
  };
  struct Mapped {
    std::weak_ptr<const ExposedData> data;  // may be withdrawn: a cell has a mapping of its own
    std::string name;
    bool writable;
  };

  Cell(std::vector<std::string> libraries, DataTurn& turn)
      : libraries_(std::move(libraries)),
        turn_(turn),
        policy_([this](const std::string& library, const std::string& symbol) { return find(library, symbol); }) {}
  Result<void*> find(const std::string& library, const std::string& symbol);
  std::vector<const target::Code*> to_link(const target::Code& code, const target::CodeStore& known) const;
  Status ask_for_symbols(const Bundle& bundle);
  Status begin_linking(const target::CodeStore& known);
  Status link_and_run();
  static bool has_target_args(const HandedCall& handed);
  bool is_concurrent() const noexcept { return handed_->code->concurrent; }
  bool may_keep_data() const noexcept;
  Status run();

  const std::vector<std::string> libraries_;
  DataTurn& turn_;
  target::Policy policy_;
  std::unique_ptr<target::CodeStore> store_;
  std::unique_ptr<cell::CellProcess> process_;
  std::optional<trust::SharedRights> rights_;  // of the calls that run here
  bool is_retired_ = false;
  HandedCall* handed_ = nullptr;
  target::Code* code_ = nullptr;
  uint64_t begun_ns_ = 0;
  std::vector<ToLink> linking_;   // once all of their symbols are known
  uint64_t library_changes_ = 0;  // of the node's store, which are followed here
  std::vector<Mapped> mapped_;
  std::weak_ptr<const NamedData> data_table_;  // the data that there was then
  std::optional<std::string> awaited_data_;
  std::deque<LibrarySymbol> awaited_;  // by the order of the questions
  std::mutex mutex_;                   // of what follows
  std::map<LibrarySymbol, void*> symbols_;
};

}  // namespace tc::node
