// SPDX-License-Identifier: Apache-2.0
#include "simulation/books.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tc::simulation {

namespace {

// A node looks at its deadlines that often while answers are awaited (src/node/node.cc), and its turn has to come.
constexpr uint64_t lateness_ns = 60'000'000;
constexpr uint64_t longest_error = 4096;

constexpr uint64_t event_bits = (uint64_t{1} << 48) - 1;

template <class... T>
Status broken(size_t event, fmt::format_string<T...> text, T&&... values) {
  return fail(TC_ERR_INTERNAL, "call {}: {}", event + 1, fmt::format(text, std::forward<T>(values)...));
}

// Where it is to be after so many steps.
uint32_t place_of(const Event& event, uint32_t step) { return step == 0 ? event.other : event.route[step - 1]; }

uint32_t steps_of(const Event& event) { return event.injections != 0 ? 0 : static_cast<uint32_t>(event.route.size()); }

}  // namespace

Books::Sums& Books::Sums::operator+=(const Sums& other) noexcept {
  accepted += other.accepted, refused += other.refused, runs += other.runs;
  answered += other.answered, failed += other.failed;
  return *this;
}

void Books::record(size_t event, Call call) {
  ++(call.accepted ? sums_.accepted : sums_.refused);
  if (call.future != nullptr) open_.push_back(event);
  calls_[event] = std::move(call);
}

Status Books::ran(const Life& life, const story_entry& entry, uint64_t at_ns) {
  ++sums_.runs;
  mix(at_ns), mix(entry.id), mix(entry.step), mix(life.node);
  const size_t event = (entry.id & event_bits) - 1;
  if (event >= calls_.size() || calls_[event].event == nullptr) return broken(event, "code ran that nobody sent");
  auto& call = calls_[event];
  if (entry.is_whole == 0) return broken(event, "its payload came to node {} changed", life.node);
  if (!call.accepted)
    return broken(event, "its caller was told that it is not taken, and it ran at node {}", life.node);
  TC_CHECK(check_leave(call, event, entry, life.node));
  if ((entry.id & ~event_bits) != 0) {
    if (++injected_[entry.id] == 1) return {};
    return broken(event, "what it injected ran twice");
  }
  for (const auto& run : call.runs)
    if (run.step == entry.step)
      return broken(event, "step {} ran at node {} at {} ns and at node {} at {} ns", entry.step, run.life.node,
                    run.at_ns, life.node, at_ns);
  call.runs.push_back({entry.step, life, at_ns});
  if (entry.version != call.version)
    return broken(event, "node {} ran version {} of its code when {} was sent", life.node, entry.version, call.version);
  if (entry.step > steps_of(*call.event) || place_of(*call.event, entry.step) != life.node)
    return broken(event, "step {} ran at node {}, where it was not sent", entry.step, life.node);
  return entry.step == 0 ? check_order(call, event, life) : Status();
}

// All that it came through must have leave there: its caller, and the nodes before.
Status Books::check_leave(const Call& call, size_t event, const story_entry& entry, uint32_t at) const {
  const auto check = [&](uint32_t whose) -> Status {
    if (whose == at || keyrings_.may_run(at, whose)) return {};
    return broken(event, "step {} ran at node {}, where code of node {} may not run", entry.step, at, whose);
  };
  TC_CHECK(check(call.from.node));
  const uint32_t places = (entry.id & ~event_bits) != 0 ? 1 : std::min(entry.step, steps_of(*call.event));
  for (uint32_t step = 0; step < places; ++step) TC_CHECK(check(place_of(*call.event, step)));
  return {};
}

Status Books::check_order(const Call& call, size_t event, const Life& at) {
  auto& last = last_[{call.from, call.link, at}];
  if (last > event + 1)
    return broken(event, "it ran at node {} behind call {}, which was sent after it", at.node, last);
  last = event + 1;
  return {};
}

Status Books::settle(uint64_t now_ns, const std::vector<uint64_t>& resumed_ns) {
  for (size_t i = 0; i < open_.size();) {
    const size_t event = open_[i];
    auto& call = calls_[event];
    const auto resumed = resumed_ns[call.from.node];
    const bool is_ready = call.future->ready;
    if (!is_ready && now_ns > std::max(call.due_ns, resumed) + lateness_ns)
      return broken(event, "it has not ended {} ms after its deadline", (now_ns - call.due_ns) / 1'000'000);
    if (!is_ready) {
      ++i;
      continue;
    }
    TC_CHECK(check_end(call, event, now_ns, resumed));
    call.future.reset();
    open_[i] = open_.back();
    open_.pop_back();
  }
  return {};
}

Status Books::check_end(Call& call, size_t event, uint64_t now_ns, uint64_t resumed_ns) {
  const auto& future = *call.future;
  mix(now_ns), mix(event), mix(static_cast<uint64_t>(future.status));
  if (now_ns > std::max(call.due_ns, resumed_ns) + lateness_ns)
    return broken(event, "it ended {} ms after its deadline", (now_ns - call.due_ns) / 1'000'000);
  ++(future.status == TC_OK ? sums_.answered : sums_.failed);
  if (future.status != TC_OK) {
    ++ended_without_answer_[call.from];
    if (future.message.empty() || future.message.size() > longest_error)
      return broken(event, "it failed with status {} and {} bytes of reason", static_cast<int>(future.status),
                    future.message.size());
    return {};
  }
  if (call.event->end == story_fails && steps_of(*call.event) == 0 && call.event->injections == 0)
    return broken(event, "it was to fail, and its caller was told that it went well");
  const auto steps = steps_of(*call.event);
  const auto ran_last = std::ranges::count(call.runs, steps, &Run::step);
  if (ran_last != 1) return broken(event, "its caller has an answer, and its last step ran {} times", ran_last);
  story answer{};
  if (call.event->end != story_replies) return {};
  if (future.bytes.size() < sizeof answer)
    return broken(event, "its answer has {} bytes when at least {} were sent", future.bytes.size(), sizeof answer);
  std::memcpy(&answer, future.bytes.data(), sizeof answer);
  if (answer.id == number_of(event) && answer.step == steps) return {};
  return broken(event, "its caller has the answer of call {}, step {}", answer.id, answer.step);
}

void Books::each_open(const Life& life, FunctionRef<void(node::Future&)> show) const {
  for (const auto event : open_)
    if (calls_[event].from == life) show(*calls_[event].future);
}

void Books::forget(const Life& life) {
  std::erase_if(open_, [&](size_t event) {
    if (calls_[event].from != life) return false;
    ++left_behind_[life.node];
    calls_[event].future.reset();
    return true;
  });
}

Status Books::came_late(const Life& life, uint64_t answers, uint64_t others) const {
  const auto before = left_behind_.find(life.node);
  auto most = others + (before != left_behind_.end() ? before->second : 0);
  for (const auto& [earlier, ended] : ended_without_answer_)
    if (earlier.node == life.node) most += ended;
  if (answers <= most) return {};
  return fail(TC_ERR_INTERNAL, "node {} got {} answers for which nobody waited, when {} of its calls can have had one",
              life.node, answers, most);
}

// One that did not go well has told a failure, and any of them may be that.
Status Books::flushed(const Life& from, uint64_t link, bool well) {
  for (size_t event = 0; event < calls_.size(); ++event) {
    auto& call = calls_[event];
    if (call.event == nullptr || !call.accepted || call.from != from || call.link != link || call.is_checked) continue;
    call.is_checked = true;
    if (!well || call.event->wants_answer) continue;
    if (call.runs.empty()) return broken(event, "a flush said that it has run, and it has not");
    if (call.event->end == story_fails && steps_of(*call.event) == 0 && call.event->injections == 0)
      return broken(event, "it failed, and a flush said that all had gone well");
  }
  return {};
}

std::string Books::words_of_open() const {
  std::string words;
  for (const auto event : open_) words += fmt::format("call {} waits\n", event + 1);
  return words;
}

}  // namespace tc::simulation
