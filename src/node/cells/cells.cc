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
// With allow-lib "*", callers choose what cells open.
constexpr size_t most_libraries = 64;
constexpr size_t longest_library = 128;

// May it say something by itself?
bool speaks(const Cell& cell) noexcept { return cell.handed() != nullptr || cell.is_starting(); }

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
  transport_ = &transport;
  exists_ = true;
  return {};
}

// While the node starts.
Status Cells::wait_until_ready() {
  for (const auto deadline = Deadline::after_ms(longest_start_ms); !deadline.passed();) {
    if (cells_.empty()) return fail(why_not_);
    look();
    if (free_cell() != nullptr) return {};
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
  if (is_it(waiting_)) return fail_waiting({TC_ERR_CANCELED, "its caller canceled the call before it ran"});
  for (const auto& cell : cells_)
    if (is_it(cell->handed())) {
      cell->handed()->is_canceled = true;
      return cell->process().kill("its caller canceled the call");
    }
}

// One for each call, and a spare one.
bool Cells::may_order() const noexcept {
  if (ordered_ != nullptr) return false;
  const auto calls = running() + (waiting_ != nullptr ? 1 : 0);
  return cells_.size() <= std::clamp<size_t>(calls, 1, common_.config.cells);
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

void Cells::fail_to_start(const Error& why) {
  why_not_ = why;
  on_death();
  common_.log.error("{}: a cell cannot be started: {}", common_.self.label, why.message);
  if (cells_.empty()) fail_waiting(why);
}

void Cells::on_death() {
  ++deaths_;
  order_at_ns_ = now_ns() + (first_pause_ns << std::min(deaths_, deaths_of_longest_pause));
}

// ---- Calls

bool Cells::has_room(const void* link, bool concurrent) const noexcept {
  if (waiting_ != nullptr) return false;
  const auto comes_first = [&](const auto& cell) {
    const auto* const handed = cell->handed();
    return handed != nullptr && !handed->code->concurrent && handed->call.link == link;
  };
  return running() < common_.config.cells && (concurrent || std::ranges::none_of(cells_, comes_first));
}

Cell* Cells::free_cell() noexcept {
  const auto found = std::ranges::find_if(cells_, [](const auto& cell) { return cell->is_free(); });
  return found == cells_.end() ? nullptr : found->get();
}

void Cells::run(std::unique_ptr<HandedCall> handed) {
  handed->in_cell = true;
  auto& call = calls_.add(std::move(handed));
  if (auto* const cell = free_cell(); cell != nullptr)
    begin(*cell, call);
  else
    waiting_ = &call;
  order();
}

void Cells::begin(Cell& cell, HandedCall& handed) {
  const auto names = cell.lacking(*handed.code, calls_.store());
  if (auto added = add_libraries(names); !added) return calls_.fail(handed, added.error());
  if (!names.empty() || cell.has_gone_library(calls_.store())) return start_again_for(handed);
  if (auto begun = cell.begin(handed, calls_.store()); !begun) calls_.fail(handed, begun.error());
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

// A cell opens libraries before its sandbox is shut, and never later. One that is being started is looked at when it is ready.
void Cells::start_again_for(HandedCall& handed) {
  waiting_ = &handed;
  std::erase_if(cells_, [](const auto& cell) { return cell->has_process() && cell->handed() == nullptr; });
  order();
  watch();
}

size_t Cells::poll() {
  size_t happened = 0;
  for (const auto& cell : cells_)
    if (speaks(*cell)) happened += poll(*cell);
  if (data_turn_.is_free()) happened += give_awaited_data();
  if (waiting_ == nullptr) return happened;
  if (auto* const cell = free_cell(); cell != nullptr) {
    begin(*cell, *std::exchange(waiting_, nullptr));
    calls_.tell_freed();
    ++happened;
  }
  return happened;
}

size_t Cells::poll(Cell& cell) {
  size_t messages = 0;
  for (; messages < messages_a_poll; ++messages) {
    auto event = cell.process().next();
    if (!event) break;
    take(cell, *event);
  }
  return messages;
}

void Cells::take(Cell& cell, cell::Event& event) {
  auto* const handed = cell.handed();
  if (const auto* const ready = std::get_if<cell::Ready>(&event)) return on_ready(*ready);
  if (const auto* const resolved = std::get_if<cell::Resolved>(&event)) {
    if (auto runs = cell.on_resolved(*resolved); !runs && handed != nullptr) calls_.fail(*handed, runs.error());
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
  const LogContext about({.ifunc = handed.code->name(), .content_id = &handed.code->id()});
  common_.log.warn("{}: ifunc '{}': {}", common_.self.label, handed.code->name(), mapped.error().message);
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
  happened += std::erase_if(cells_, [&](const auto& cell) { return cell->has_process() && look_at(*cell, now); });
  happened += poll();
  order();
  watch();
  return happened;
}

// Has it ended?
bool Cells::look_at(Cell& cell, uint64_t now) {
  auto& process = cell.process();
  if (now >= limit_ns(cell))
    process.kill(fmt::format("it ran for more than {} ms (execution-limit)", common_.config.execution_limit_ms));
  process.check();
  poll(cell);
  if (!process.ending()) return false;
  on_end_of(cell);
  return true;
}

void Cells::watch() {
  std::vector<int> descriptors;
  for (const auto& cell : cells_)
    if (cell->has_process()) descriptors.push_back(cell->process().descriptor());
  keeper_->watch(std::move(descriptors));
}

void Cells::on_end_of(Cell& cell) {
  const auto& ending = *cell.process().ending();
  ++common_.counters.cell_deaths;
  auto* const handed = cell.release();
  // Somebody killed it. Once: else a cell that cannot take the call, for its size, would be followed by the next one.
  const bool may_run_again = handed != nullptr && !handed->is_put_back && !handed->is_canceled;
  if (may_run_again && !cell.process().has_begun() && waiting_ == nullptr) {
    handed->is_put_back = true;
    waiting_ = handed;
  } else if (handed != nullptr) {
    const auto why = error_of(cell, *handed, ending);
    const LogContext about({.ifunc = handed->code->name(), .content_id = &handed->code->id()});
    common_.log.log(handed->is_canceled ? spdlog::level::info : spdlog::level::err, "{}: {}", common_.self.label,
                    why.message);
    return calls_.fail(*handed, why);
  }
  fail_to_start({TC_ERR_IO, fmt::format("the cell {}", ending.text())});
  // Else the next one would fail, too, and the call would wait for good.
  if (ending.kind == cell::Ending::Kind::not_started) fail_waiting(why_not_);
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

void Cells::fail_waiting(const Error& why) noexcept {
  if (auto* const handed = std::exchange(waiting_, nullptr)) calls_.fail(*handed, why);
}

void Cells::renew_rights() noexcept {
  if (waiting_ == nullptr || !HandedCalls::may_have_other_rights(*waiting_)) return;
  const auto why = HandedCalls::rights_have_changed();
  common_.log.warn("a call is not run: {}", why.message);
  fail_waiting(why);
}

uint64_t Cells::limit_ns(const Cell& cell) const noexcept {
  const auto limit_ms = common_.config.execution_limit_ms;
  if (limit_ms == 0 || cell.handed() == nullptr || cell.awaits_data() || cell.process().is_killed()) return UINT64_MAX;
  return cell.begun_ns() + uint64_t{limit_ms} * 1'000'000;
}

uint64_t Cells::next_due_ns() const noexcept {
  auto due = order_at_ns_ != 0 && may_order() ? order_at_ns_ : UINT64_MAX;
  for (const auto& cell : cells_)
    if (cell->has_process()) due = std::min({due, limit_ns(*cell), cell->process().check_at_ns()});
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
  fail_waiting(why);
  for (const auto& cell : cells_)
    if (auto* const handed = cell->release()) calls_.fail(*handed, why);
  cells_.clear();
  keeper_.reset();
}

}  // namespace tc::node
