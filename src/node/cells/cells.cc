// SPDX-License-Identifier: Apache-2.0
#include "node/cells/cells.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/log_format.h"
#include "node/authority.h"
#include "node/call_log.h"
#include "node/config.h"
#include "transport/transport.h"
#include "wire/abi_names.h"
#include "wire/text.h"

namespace tc::node {

namespace {

// Messages of the cell in one poll: what one call says must not hold up the node.
constexpr size_t messages_a_poll = 64;
// The pause before a cell is started in the place of one that died at its start: it doubles.
constexpr uint64_t first_pause_ns = 1'000'000;
constexpr uint64_t deaths_of_longest_pause = 10;
constexpr uint64_t longest_start_ms = 10'000;
// Reasons why code cannot be linked. Bounds what callers can make the node keep; beyond, the reasons are found anew.
constexpr size_t most_unlinkable = 1024;
// With allow-lib "*", callers choose what cells open.
constexpr size_t most_libraries = 64;
constexpr size_t longest_library = 128;
// Besides those of calls: the one in reserve, and one that has been retired and is not gone yet.
constexpr size_t spare_cells = 2;

// The longest sleep while a cell has no room for what is sent to it: a cell that reads wakes nobody. One that has a core makes
// room while the node still polls.
constexpr uint64_t backlog_step_ns = 1'000'000;

// May it say something by itself?
bool speaks(const Cell& cell) noexcept { return cell.handed() != nullptr || cell.is_starting(); }

// It has run calls, and may run more.
bool is_in_use(const Cell& cell) noexcept { return !cell.is_fresh() && !cell.is_retired(); }
bool is_in_reserve(const Cell& cell) noexcept { return cell.is_fresh() && !cell.is_retired(); }

}  // namespace

// ---- Which code runs there

bool Cells::wants(const trust::CodeRights& rights) const noexcept {
  if (isolate_ == Isolate::all || rights.wants_cell()) return true;
  return isolate_ == Isolate::untrusted && !rights.is_trusted();
}

bool Cells::may_be_wanted(bool restricted) const noexcept {
  if (!exist() || isolate_ == Isolate::all) return exist();
  return restricted && (isolate_ == Isolate::untrusted || authority_.names_cells());
}

// ---- Starting

Status Cells::start(transport::Transport& transport) {
  const auto wish = common_.config.isolate;
  const bool is_automatic = wish == Isolate::automatic;
  isolate_ = is_automatic ? Isolate::untrusted : wish;
  auto begun = begin_to_exist(transport);
  // Else the first one is started when a call wants it.
  const bool is_needed = isolate_ != Isolate::none && (!is_automatic || authority_.has_grants());
  if (begun && is_needed) {
    order();
    begun = wait_until_ready();
  }
  if (begun) {
    authority_.set_has_cells();
    return {};
  }
  close();
  exists_ = false;
  isolate_ = Isolate::none;
  if (!is_automatic) return wish == Isolate::none ? Status() : begun;
  if (is_needed)
    common_.log.warn("{}: there can be no cells, so code of those who may not run any code runs in this process: {}",
                     common_.self.label, begun.error().message);
  return {};
}

Status Cells::begin_to_exist(transport::Transport& transport) {
  TC_ASSIGN(program_, cell::CellProcess::find_program(common_.config.cell));
  for (const auto& name : common_.config.allowed_libraries)
    if (name != "*") libraries_.push_back(name);
  waiting_.reserve(common_.config.cells);
  transport_ = &transport;
  exists_ = true;
  return {};
}

// While the node starts.
Status Cells::wait_until_ready() {
  for (const auto deadline = Deadline::after_ms(longest_start_ms); !deadline.passed();) {
    if (cells_.empty()) return fail(why_not_);
    look();
    if (std::ranges::any_of(cells_, [](const auto& cell) { return cell->is_free(); })) return {};
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return fail(TC_ERR_TIMEOUT, "no cell was ready within {} ms", longest_start_ms);
}

size_t Cells::running() const noexcept {
  return static_cast<size_t>(std::ranges::count_if(cells_, [](const auto& cell) { return cell->handed() != nullptr; }));
}

std::string Cells::running_name() const {
  for (const auto& cell : cells_)
    if (cell->handed() != nullptr) return std::string(cell->handed()->code->name());
  return {};
}

// The code of a call that runs is stopped with its process; what it has done until then stays.
void Cells::cancel(const void* link, uint64_t token) {
  const auto is_it = [&](const HandedCall* handed) {
    return handed != nullptr && handed->call.link == link && handed->call.wants_reply &&
           !handed->call.has_return_address && handed->call.header.token == token;
  };
  fail_waiting({TC_ERR_CANCELED, "its caller canceled the call before it ran"},
               [&](const HandedCall& handed) { return is_it(&handed); });
  for (const auto& cell : cells_)
    if (is_it(cell->handed())) {
      cell->handed()->is_canceled = true;
      return cell->process().kill("its caller canceled the call");
    }
}

// Is one wanted in reserve? Those that are ending count, too: a cell with much memory takes a while.
bool Cells::may_order() const noexcept {
  return cells_.size() < common_.config.cells + spare_cells &&
         std::ranges::none_of(cells_, [](const auto& cell) { return is_in_reserve(*cell); });
}

// One after the other.
void Cells::order() {
  if (!may_order() || now_ns() < order_at_ns_) return;
  order_at_ns_ = 0;
  if (keeper_ == nullptr) {
    keeper_ = std::make_unique<CellKeeper>([transport = transport_] { transport->wake(); });
    if (auto started = keeper_->start(); !started) {
      keeper_.reset();
      return fail_to_start(started.error());
    }
  }
  auto made = Cell::create(common_.config, libraries_, data_turn_);
  if (!made) return fail_to_start(made.error());
  ordered_ = cells_.emplace_back(std::move(*made)).get();
  auto options = ordered_->options(common_.config, common_.self);
  options.program = program_;
  keeper_->order(std::move(options));
}

void Cells::take_started() {
  if (ordered_ == nullptr) return;
  auto started = keeper_->take();
  if (!started) return;
  auto* const cell = std::exchange(ordered_, nullptr);
  if (*started) return cell->attach(std::move(**started));
  std::erase_if(cells_, [&](const auto& one) { return one.get() == cell; });
  fail_to_start(started->error());
}

// The next one would fail, too, and who needs it would wait for good.
void Cells::fail_to_start(const Error& why) {
  why_not_ = why;
  pause_orders();
  common_.log.error("{}: a cell cannot be started: {}", common_.self.label, why.message);
  fail_waiting(why, [&](const HandedCall& handed) { return !may_come_free(handed.rights); });
}

void Cells::pause_orders() noexcept {
  ++deaths_;
  order_at_ns_ = now_ns() + (first_pause_ns << std::min(deaths_, deaths_of_longest_pause));
}

// ---- Calls

bool Cells::has_room(const void* link, bool concurrent) const noexcept {
  if (running() + waiting_.size() >= common_.config.cells) return false;
  const auto comes_first = [&](const HandedCall* handed) {
    return handed != nullptr && !handed->code->concurrent && handed->call.link == link;
  };
  return concurrent || (std::ranges::none_of(waiting_, comes_first) &&
                        std::ranges::none_of(cells_, [&](const auto& cell) { return comes_first(cell->handed()); }));
}

// One that has served its principal, as its code is linked there; else a fresh one; null: neither is free.
Cell* Cells::free_cell(const trust::SharedRights& rights) noexcept {
  Cell* fresh = nullptr;
  for (const auto& cell : cells_) {
    if (!cell->is_free()) continue;
    if (cell->serves(rights)) return cell.get();
    if (cell->is_fresh()) fresh = cell.get();
  }
  return fresh;
}

bool Cells::may_come_free(const trust::SharedRights& rights) const noexcept {
  return std::ranges::any_of(
      cells_, [&](const auto& cell) { return is_in_reserve(*cell) || (is_in_use(*cell) && cell->serves(rights)); });
}

void Cells::run(std::unique_ptr<HandedCall> handed) {
  handed->in_cell = true;
  auto& call = calls_.add(std::move(handed));
  if (const auto* const why = why_unlinkable(*call.code)) return calls_.fail(call, Error(*why));
  if (auto* const cell = free_cell(call.rights); cell != nullptr)
    begin(*cell, call);
  else
    waiting_.push_back(&call);
  order();
}

void Cells::begin(Cell& cell, HandedCall& handed) {
  const auto names = cell.lacking(*handed.code, calls_.store());
  if (auto added = add_libraries(names); !added) return calls_.fail(handed, added.error());
  // It opens libraries before its sandbox is shut, and never later.
  if (!names.empty() || cell.has_gone_library(calls_.store())) return cell.retire(), waiting_.push_back(&handed);
  if (auto begun = cell.begin(handed, calls_.store()); !begun) fail_to_link(handed, begun.error());
  retire_one_too_many();
}

// As many are in use as calls may run at once. The one that was used least of late makes way.
void Cells::retire_one_too_many() noexcept {
  size_t in_use = 0;
  Cell* oldest = nullptr;
  for (const auto& cell : cells_) {
    if (!is_in_use(*cell)) continue;
    ++in_use;
    if (cell->is_free() && (oldest == nullptr || cell->begun_ns() < oldest->begun_ns())) oldest = cell.get();
  }
  if (in_use > common_.config.cells && oldest != nullptr) oldest->retire();
}

const Error* Cells::why_unlinkable(const target::Code& code) noexcept {
  if (unlinkable_since_ != calls_.store().library_changes()) unlinkable_.clear();
  const auto found = unlinkable_.find(code.id());
  return found != unlinkable_.end() ? &found->second : nullptr;
}

void Cells::fail_to_link(HandedCall& handed, const Error& why) {
  const bool is_of_the_code =
      why.code == TC_ERR_COMPILE || why.code == TC_ERR_MALFORMED || why.code == TC_ERR_UNRESOLVED;
  if (is_of_the_code && unlinkable_.size() < most_unlinkable) {
    unlinkable_since_ = calls_.store().library_changes();
    unlinkable_.emplace(handed.code->id(), why);
  }
  calls_.fail(handed, why);
}

Status Cells::add_libraries(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (std::ranges::find(libraries_, name) != libraries_.end()) continue;
    if (name.size() > longest_library)
      return fail(TC_ERR_LIMIT, "the name of a library has {} bytes when cells take {}", name.size(), longest_library);
    if (libraries_.size() >= most_libraries)
      return fail(TC_ERR_LIMIT, "cells have {} libraries already, and take no more: '{}'", libraries_.size(), name);
    libraries_.push_back(name);
  }
  return {};
}

size_t Cells::poll() {
  size_t happened = 0;
  for (const auto& cell : cells_)
    if (speaks(*cell)) happened += poll(*cell);
  if (data_turn_.is_free()) happened += give_awaited_data();
  return happened + begin_waiting();
}

// One at a time: a cell that is free for one of them may be so for others, too.
size_t Cells::begin_waiting() {
  for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
    auto* const cell = free_cell((*one)->rights);
    if (cell == nullptr) continue;
    auto& handed = **one;
    waiting_.erase(one);
    begin(*cell, handed);
    order();
    calls_.tell_freed();
    return 1;
  }
  return 0;
}

size_t Cells::poll(Cell& cell) {
  size_t happened = cell.process().send_on() ? 1 : 0;
  for (size_t messages = 0; messages < messages_a_poll; ++messages) {
    auto event = cell.process().next();
    if (!event) break;
    take(cell, *event);
    ++happened;
  }
  return happened;
}

void Cells::take(Cell& cell, cell::Event& event) {
  auto* const handed = cell.handed();
  if (const auto* const ready = std::get_if<cell::Ready>(&event)) return on_ready(*ready);
  if (const auto* const resolved = std::get_if<cell::Resolved>(&event)) {
    if (auto runs = cell.on_resolved(*resolved); !runs && handed != nullptr) fail_to_link(*handed, runs.error());
    return;
  }
  if (const auto* const mapped = std::get_if<cell::Mapped>(&event)) {
    if (mapped->status != TC_OK)
      common_.log.warn("{}: a cell cannot map data '{}': {}", common_.self.label, wire::words(mapped->name),
                       wire::words(mapped->message));
    return;
  }
  if (handed == nullptr) return;
  if (const auto* const reply = std::get_if<cell::Reply>(&event)) {
    handed->outcome.answered = true;
    return calls_.reply(*handed, reply->bytes);
  }
  if (const auto* const log = std::get_if<cell::Log>(&event))
    return common_.call_log.write(handed->outcome, log->level, log->text);
  if (const auto* const ask = std::get_if<cell::Ask>(&event)) return answer(cell, *ask);
  if (const auto* const ended = std::get_if<cell::Ended>(&event)) end_call(cell, *ended);
}

void Cells::on_ready(const cell::Ready& ready) {
  deaths_ = 0;
  order_at_ns_ = 0;
  if (!ready.lacks.empty() && !std::exchange(lacks_are_told_, true))
    common_.log.warn("{}: cells are less strict here, as this kernel lacks {}", common_.self.label, ready.lacks);
}

// ---- What a call asks

void Cells::answer(Cell& cell, const cell::Ask& ask) {
  const CallEffects::Asker asker{cell.handed()->outcome, cell.handed()->rights};
  tc_status_t status = TC_ERR_INTERNAL;
  switch (ask.kind) {
    case cell::AskKind::forward: status = calls_.forward(asker, ask.node, ask.payload); break;
    case cell::AskKind::forward_as: status = calls_.forward_as(asker, ask.node, ask.name, ask.payload); break;
    case cell::AskKind::inject: status = calls_.inject(asker, ask.node, ask.name, ask.payload); break;
    case cell::AskKind::data:
      if (!cell.may_have_data()) return ++common_.counters.cell_data_waits, cell.await_data(ask.name);
      status = give_data(cell, ask.name);
      break;
  }
  answer(cell, status);
}

void Cells::answer(Cell& cell, tc_status_t status) {
  if (auto told = cell.process().answer({.status = status, .first = cell.handed()->outcome.answered ? 1u : 0u}); !told)
    cell.process().kill(told.error().message);
}

// The turns follow the order of the cells: each call ends, or is ended.
size_t Cells::give_awaited_data() {
  const auto next = std::ranges::find_if(cells_, [](const auto& cell) { return cell->awaits_data(); });
  if (next == cells_.end()) return 0;
  answer(**next, give_data(**next, (*next)->take_awaited_data()));
  return 1;
}

// Read-only where the caller may not write.
tc_status_t Cells::give_data(Cell& cell, std::string_view name) {
  const auto& handed = *cell.handed();
  const auto data = name == cell::target_args_name ? target_args_of(handed) : find(*handed.data, name);
  if (data == nullptr) return TC_ERR_NOT_FOUND;
  const CallEffects::Asker asker{cell.handed()->outcome, handed.rights};
  if (!handed.rights->is_all() && !calls_.may_touch(asker, data->name)) return TC_ERR_DENIED;
  const bool writable =
      data->file.is_writable() && (handed.rights->is_all() || handed.rights->may_write(data->name).has_value());
  const auto mapped = cell.map_data(data, std::string(name), writable);
  if (mapped) return TC_OK;
  common_.call_log.warn(handed.outcome, fmt::format("{}: ifunc '{}': {}", common_.self.label, handed.code->name(),
                                                    mapped.error().message));
  return mapped.error().code;
}

// ---- Its end

void Cells::end_call(Cell& cell, const cell::Ended& ended) {
  auto& handed = *cell.release();
  ++common_.counters.cell_calls;
  handed.took_ns = ended.run_ns;
  if (ended.failed) CallEffects::fail(handed.outcome, ended.code, ended.message);
  calls_.end(handed);
}

size_t Cells::look_at_all() {
  const bool has_news = keeper_->take_news();
  const auto now = now_ns();
  const auto starts = [](const auto& cell) { return cell->is_starting() && cell->process().has_frames(); };
  if (!has_news && now < next_due_ns() && std::ranges::none_of(cells_, starts)) return 0;
  size_t happened = has_news ? 1 : 0;
  take_started();
  for (const auto& cell : cells_)
    if (cell->has_process()) look_at(*cell, now);
  happened += take_out_ended() + poll();
  order();
  watch();
  return happened;
}

void Cells::look_at(Cell& cell, uint64_t now) {
  auto& process = cell.process();
  if (now >= limit_ns(cell))
    process.kill(fmt::format("it ran for more than {} ms (execution-limit)", common_.config.execution_limit_ms));
  process.check();
  poll(cell);
}

size_t Cells::take_out_ended() {
  std::vector<std::unique_ptr<Cell>> ended;
  for (auto& cell : cells_)
    if (cell->has_process() && cell->process().ending()) ended.push_back(std::move(cell));
  std::erase(cells_, nullptr);
  for (auto& cell : ended) {
    on_end_of(*cell);
    cell->release();
    keeper_->dispose(std::move(cell));
  }
  return ended.size();
}

void Cells::watch() {
  std::vector<int> descriptors;
  for (const auto& cell : cells_)
    if (cell->has_process()) descriptors.push_back(cell->process().descriptor());
  keeper_->watch(std::move(descriptors));
}

void Cells::on_end_of(Cell& cell) {
  if (cell.is_retired() && cell.handed() == nullptr) return;  // as it should
  const auto& ending = *cell.process().ending();
  ++common_.counters.cell_deaths;
  auto* const handed = cell.release();
  // Somebody killed it. Once: else a cell that cannot take the call, for its size, would be followed by the next one.
  const bool may_run_again = handed != nullptr && !handed->is_put_back && !handed->is_canceled;
  if (may_run_again && !cell.process().has_begun()) {
    handed->is_put_back = true;
    waiting_.insert(waiting_.begin(), handed);
  } else if (handed != nullptr) {
    const auto why = error_of(cell, *handed, ending);
    const LogContext about({.ifunc = handed->code->name(), .content_id = &handed->code->id()});
    common_.log.log(handed->is_canceled ? spdlog::level::info : spdlog::level::err, "{}: {}", common_.self.label,
                    why.message);
    return calls_.fail(*handed, why);
  }
  // Its call was canceled, or reached its limit, in the moment in which it ended.
  if (ending.kind == cell::Ending::Kind::killed) return;
  if (ending.kind == cell::Ending::Kind::not_started)
    return fail_to_start({TC_ERR_IO, fmt::format("the cell {}", ending.text())});
  if (cell.is_fresh()) pause_orders();
  common_.log.error("{}: a cell has ended while it ran no code: it {}", common_.self.label, ending.text());
}

// "ifunc 'sum' (1f2e3d4c5b6a) ended its cell: was ended by signal 11 (SIGSEGV) at address 0x0, in sum_main+0x12".
Error Cells::error_of(Cell& cell, const HandedCall& handed, const cell::Ending& ending) const {
  std::string place;
  const auto* const code = cell.code_that_ran();
  if (code != nullptr && ending.crash) {
    auto at = ending.crash->pc;
    for (size_t i = 0; !code->holds(at) && i < ending.crash->frames.size(); ++i) at = ending.crash->frames[i];
    if (code->holds(at)) {
      const auto found = code->place_of(at);
      place = fmt::format(", in {}+{:#x}",
                          found.symbol == abi_names::main ? handed.code->name() + std::string(abi_names::main_suffix)
                          : found.symbol.empty()          ? "its code"
                                                          : std::string(found.symbol),
                          found.offset);
    }
  }
  const bool was_killed = ending.kind == cell::Ending::Kind::killed;
  return {!was_killed          ? TC_ERR_CRASHED
          : handed.is_canceled ? TC_ERR_CANCELED
                               : TC_ERR_LIMIT,
          fmt::format("ifunc '{}' ({}) ended its cell, which {}{}", handed.code->name(), handed.code->id().short_hex(),
                      ending.text(), place)};
}

void Cells::fail_waiting(const Error& why, FunctionRef<bool(const HandedCall&)> which) {
  for (size_t i = 0; i < waiting_.size();) {
    if (!which(*waiting_[i])) {
      ++i;
      continue;
    }
    auto& handed = *waiting_[i];
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    calls_.fail(handed, why);
  }
}

void Cells::renew_rights() noexcept {
  for (const auto& cell : cells_)
    if (is_in_use(*cell)) cell->retire();
  const auto why = HandedCalls::rights_have_changed();
  fail_waiting(why, [&](const HandedCall& handed) {
    if (!HandedCalls::may_have_other_rights(handed)) return false;
    common_.log.warn("a call is not run: {}", why.message);
    return true;
  });
}

uint64_t Cells::limit_ns(const Cell& cell) const noexcept {
  const auto limit_ms = common_.config.execution_limit_ms;
  if (limit_ms == 0 || cell.handed() == nullptr || cell.awaits_data() || cell.process().is_killed()) return UINT64_MAX;
  return cell.begun_ns() + uint64_t{limit_ms} * 1'000'000;
}

uint64_t Cells::next_due_ns() const noexcept {
  auto due = order_at_ns_ != 0 && may_order() ? order_at_ns_ : UINT64_MAX;
  for (const auto& cell : cells_) {
    if (!cell->has_process()) continue;
    due = std::min({due, limit_ns(*cell), cell->process().check_at_ns()});
    if (speaks(*cell) && cell->process().has_backlog()) due = std::min(due, now_ns() + backlog_step_ns);
  }
  return due;
}

bool Cells::has_frames() const noexcept {
  return std::ranges::any_of(cells_, [](const auto& cell) { return speaks(*cell) && cell->process().has_frames(); });
}

void Cells::set_sleeping(bool sleeping) noexcept {
  bool any = false;
  for (const auto& cell : cells_)
    if (speaks(*cell)) cell->process().set_sleeping(sleeping), any = true;
  if (sleeping && any) cell::Channel::barrier();
}

void Cells::close() noexcept {
  if (keeper_ == nullptr) return;
  const Error why{TC_ERR_CLOSED, "this node ends"};
  fail_waiting(why, [](const HandedCall&) { return true; });
  for (const auto& cell : cells_)
    if (auto* const handed = cell->release()) calls_.fail(*handed, why);
  cells_.clear();
  keeper_.reset();
}

}  // namespace tc::node
