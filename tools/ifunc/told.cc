// SPDX-License-Identifier: Apache-2.0
#include "ifunc/told.h"

#include <algorithm>
#include <charconv>

namespace tc::command {

namespace {

// One line, word by word.
class Line {
 public:
  explicit Line(std::string_view line) noexcept : line_(line), rest_(line) {}

  std::string_view word() noexcept {
    const auto word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(word.size() + 1, rest_.size()));
    return word;
  }
  std::string_view rest() const noexcept { return rest_; }
  Result<uint64_t> number() { return number_in(word()); }
  Result<Times> times() {
    Times times;
    auto text = word();
    const auto next = [&text] {
      const auto one = text.substr(0, text.find(','));
      text.remove_prefix(std::min(one.size() + 1, text.size()));
      return one;
    };
    TC_ASSIGN(times.sum_ns, number_in(next()));
    for (auto& count : times.counts) {
      TC_ASSIGN(count, number_in(next()));
    }
    if (!text.empty())
      return fail(TC_ERR_MALFORMED, "what the node says of itself has the line '{}' with too much", line_);
    return times;
  }

 private:
  Result<uint64_t> number_in(std::string_view text) const {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      return fail(TC_ERR_MALFORMED, "what the node says of itself has the line '{}' without a number", line_);
    return number;
  }

  std::string_view line_, rest_;
};

Result<IfuncUse> ifunc_in(Line& line) {
  IfuncUse use;
  TC_ASSIGN(use.calls, line.number());
  TC_ASSIGN(use.failures, line.number());
  TC_ASSIGN(use.run, line.times());
  TC_ASSIGN(use.latency, line.times());
  use.name = line.rest();
  return use;
}

Result<LinkUse> link_in(Line& line) {
  LinkUse use;
  use.transport = line.word();
  TC_ASSIGN(use.calls, line.number());
  TC_ASSIGN(use.received_bytes, line.number());
  TC_ASSIGN(use.sent_bytes, line.number());
  TC_ASSIGN(use.waiting_bytes, line.number());
  use.peer = line.rest();
  return use;
}

Result<std::pair<std::string, uint64_t>> named_number_in(Line& line) {
  std::string name(line.word());
  TC_ASSIGN(const auto number, line.number());
  return std::pair(std::move(name), number);
}

Result<std::pair<std::string, Times>> named_times_in(Line& line) {
  std::string name(line.word());
  TC_ASSIGN(const auto times, line.times());
  return std::pair(std::move(name), times);
}

template <class Value>
Status append(std::vector<Value>& list, Result<Value> value) {
  if (!value) return fail(std::move(value).error());
  list.push_back(std::move(*value));
  return {};
}

}  // namespace

Result<Told> parse_told(std::string_view text) {
  Told told;
  while (!text.empty()) {
    const auto whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    Line line(whole);
    const auto key = line.word();
    if (key == "name") told.name = line.rest();
    if (key == "version") told.version = line.rest();
    if (key == "running") told.running = line.rest();
    if (key == "draining") told.is_draining = line.rest() != "0";
    if (key == "id") {
      TC_ASSIGN(told.id, line.number());
    } else if (key == "uptime-ns") {
      TC_ASSIGN(told.uptime_ns, line.number());
    }
    if (key == "stat") TC_CHECK(append(told.statistics, named_number_in(line)));
    if (key == "failure") TC_CHECK(append(told.failures, named_number_in(line)));
    if (key == "time") TC_CHECK(append(told.times, named_times_in(line)));
    if (key == "ifunc") TC_CHECK(append(told.ifuncs, ifunc_in(line)));
    if (key == "link") TC_CHECK(append(told.links, link_in(line)));
  }
  return told;
}

}  // namespace tc::command
