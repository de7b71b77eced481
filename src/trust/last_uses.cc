// SPDX-License-Identifier: Apache-2.0
#include "trust/last_uses.h"

#include <algorithm>
#include <vector>

#include "trust/private_file.h"

namespace tc::trust {

namespace {

constexpr size_t max_file_bytes = 1024 * 1024;
constexpr size_t most_keys = 10'000;  // each line has less than 100 bytes

Status read_line(UseTimes& uses, std::string_view line) {
  const auto blank = line.find(' ');
  if (blank == std::string_view::npos) return fail(TC_ERR_INVALID, "it is no key and time with one blank between them");
  TC_ASSIGN(const auto key, PublicKey::parse(line.substr(0, blank)));
  TC_ASSIGN(uses[key], parse_time(line.substr(blank + 1)));
  return {};
}

void drop_oldest(UseTimes& uses) {
  if (uses.size() <= most_keys) return;
  std::vector<Time> times;
  for (const auto& [key, time] : uses) times.push_back(time);
  std::ranges::nth_element(times, times.end() - most_keys);
  const auto oldest = *(times.end() - most_keys);
  std::erase_if(uses, [&](const auto& use) { return use.second < oldest; });
}

}  // namespace

Result<UseTimes> LastUses::read() const {
  TC_ASSIGN(const auto text, read_policy(file_, max_file_bytes));
  UseTimes uses;
  std::string_view rest = text;
  for (unsigned number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    if (auto read = read_line(uses, rest.substr(0, end)); !read)
      return context(fmt::format("{}, line {}", file_.string(), number), std::move(read).error());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return uses;
}

Status LastUses::record(const UseTimes& uses) const {
  TC_ASSIGN(const auto lock, FileLock::of(file_));
  auto all = read();
  if (!all && all.error().code != TC_ERR_INVALID && all.error().code != TC_ERR_TOO_LARGE)
    return fail(std::move(all).error());
  auto merged = all ? std::move(*all) : UseTimes();
  for (const auto& [key, time] : uses) {
    auto& last = merged[key];
    last = std::max(last, time);
  }
  drop_oldest(merged);
  std::string text;
  for (const auto& [key, time] : merged) text += fmt::format("{} {}\n", key.text(), to_text(time));
  return write_guarded(file_, text, Replace::any);
}

}  // namespace tc::trust
