// SPDX-License-Identifier: Apache-2.0
//
// For tests: a cell that runs the ifunc `misbehave`, and orders for it.
#pragma once

#include <gmock/gmock.h>
#include <poll.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/testing/run_until.h"
#include "cell/testing/cell_code.h"

namespace tc::cell::testing {

// As in tests/ifuncs/misbehave.c.
enum class What : uint64_t {
  echo,
  store,
  recurse,
  call,
  system,
  abort,
  loop,
  forward,
  produce,
  read,
  write,
  talk,
  twice,
  target,
  chatter
};

inline Bytes order(What what, std::vector<uint64_t> arguments = {}, std::string_view rest = {}) {
  Bytes out;
  arguments.resize(6);
  Writer writer(out);
  writer.u64(static_cast<uint64_t>(what));
  for (const auto argument : arguments) writer.u64(argument);
  writer.bytes(as_bytes(rest));
  return out;
}

// What a call did, as the node heard it.
struct Heard {
  std::optional<std::string> reply;
  std::vector<std::pair<int, std::string>> log;
  bool ended = false, failed = false;
  int32_t code = 0;
  std::string message;

  uint64_t number() const {
    uint64_t value = 0;
    if (reply && reply->size() == sizeof value) std::memcpy(&value, reply->data(), sizeof value);
    return value;
  }
};

class TestCell {
 public:
  explicit TestCell(CellProcess::Options options = {}) {
    if (options.program.empty()) options.program = CellProcess::find_program().value();
    options.code = code_.code();
    options.data = code_.data();
    auto started = CellProcess::start(options);
    if (!started) throw std::runtime_error(started.error().message);
    cell = std::move(*started);
  }
  // Until it is ready, with the ifunc in it.
  TestCell& ready() {
    run_until([&] { return cell->is_idle(); });
    if (!cell->is_idle()) throw std::runtime_error(cell->ending() ? cell->ending()->text() : "it is not ready");
    entry_ = code_.load("misbehave", *cell);
    return *this;
  }

  // Handles what comes until the condition holds or the cell has ended.
  template <class Condition>
  bool run_until(Condition&& condition) {
    return test::run_until([&] { return condition() || cell->ending(); }, [&] { step(); }) && condition();
  }
  // Handles what is there, or sleeps until something comes, as a node does.
  void step() {
    cell->set_sleeping(true);
    Channel::barrier();
    const bool may_sleep = !cell->has_frames() && !cell->has_backlog();
    pollfd watched{cell->descriptor(), POLLIN, 0};
    if (::poll(&watched, 1, may_sleep ? most_ms_of_sleep : 0) > 0) cell->check();
    cell->set_sleeping(false);
    (void)cell->send_on();
    while (auto event = cell->next()) std::visit([&](auto& what) { on(what); }, *event);
  }

  void begin(const Bytes& order, bool has_target_args = false, bool wants_reply = true) {
    heard = {};
    const Run run{.entry = entry_,
                  .wants_reply = wants_reply,
                  .forgets_data = forgets_data,
                  .has_target_args = has_target_args,
                  .payload = order};
    const auto status = cell->run(run);
    if (!status) throw std::runtime_error(status.error().message);
  }
  // Runs it to its end, or that of the cell.
  Heard call(const Bytes& order, bool has_target_args = false) {
    begin(order, has_target_args);
    (void)run_until([&] { return heard.ended; });
    return heard;
  }
  Ending end_of(const Bytes& order) {
    begin(order);
    return ending();
  }
  Ending ending() {
    (void)run_until([] { return false; });
    return cell->ending() ? *cell->ending() : Ending{.kind = Ending::Kind::not_started, .why = "it lives"};
  }

  std::unique_ptr<CellProcess> cell;
  CellCode& code() { return code_; }
  std::function<void(const Ask&)> on_ask = [](const Ask&) {};
  bool forgets_data = false;  // calls from now on
  Heard heard;
  std::optional<Ready> greeting;
  std::vector<std::pair<tc_status_t, std::string>> mapped;
  std::vector<uint64_t> resolved;

 private:
  static constexpr int most_ms_of_sleep = 20;
  void on(const Ready& ready) { greeting = ready; }
  void on(const Reply& reply) { heard.reply = std::string(as_text(reply.bytes)); }
  void on(const Log& log) { heard.log.emplace_back(log.level, log.text); }
  void on(const Ask& ask) { on_ask(ask); }
  void on(const Ended& ended) {
    heard.ended = true;
    heard.failed = ended.failed;
    heard.code = ended.code;
    heard.message = ended.message;
  }
  void on(const Mapped& what) { mapped.emplace_back(what.status, what.name); }
  void on(const Resolved& what) { resolved.push_back(what.address); }

  CellCode code_;
  uint64_t entry_ = 0;
};

}  // namespace tc::cell::testing
