// SPDX-License-Identifier: Apache-2.0
#include "node/call_log.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log_format.h"
#include "node/link/link.h"

namespace tc::node {

namespace {

constexpr std::array levels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
constexpr int warning = 2;
constexpr uint64_t pause_ns = 1'000'000'000;  // until lines that were left out are told
// What is remembered of peers, and of the ifuncs of each. Those beyond share one.
constexpr size_t most_peers = 256, most_ifuncs = 64;

LogFields fields_of(const target::Code* code) noexcept {
  if (code == nullptr) return {};
  return {.ifunc = code->name(), .content_id = &code->id()};
}

}  // namespace

CallLog::Source CallLog::source_of(const Channel& channel) {
  const auto& key = channel.origin().key;
  auto label = channel.label().empty() ? channel.peer_label() : std::string(channel.label());
  return {key ? key->text() : label, std::move(label)};
}

CallLog::Source CallLog::source_of(const target::Call& call) {
  auto source =
      call.link != nullptr ? source_of(link_of(call)->channel()) : Source{{}, std::string(caller_label(call))};
  source.code = call.code.get();
  return source;
}

void CallLog::write(const target::Call& call, int level, std::string_view message) noexcept try {
  level = std::clamp(level, 0, 3);
  message = message.substr(0, longest_line);
  if (!log_.should_log(levels[static_cast<size_t>(level)])) return;
  if (!may_write(source_of(call), level, message.size())) return;
  const auto* const code = call.code.get();
  const LogContext about(fields_of(code));
  log_.log(levels[static_cast<size_t>(level)], "ifunc '{}': {}", code != nullptr ? code->name() : "?", message);
} catch (const std::exception&) {  // no memory for the line
}

void CallLog::warn(const target::Call& call, std::string_view sentence) noexcept try {
  if (!log_.should_log(spdlog::level::warn) || !may_write(source_of(call), warning, sentence.size())) return;
  const LogContext about(fields_of(call.code.get()));
  log_.warn("{}", sentence);
} catch (const std::exception&) {
}

void CallLog::warn(const Channel& channel, std::string_view sentence) noexcept try {
  if (!log_.should_log(spdlog::level::warn) || !may_write(source_of(channel), warning, sentence.size())) return;
  const AboutLink about(channel);
  log_.warn("{}", sentence);
} catch (const std::exception&) {
}

void CallLog::warn(std::string_view what, std::string_view sentence) noexcept try {
  const Source source{std::string(what), std::string(what)};
  if (log_.should_log(spdlog::level::warn) && may_write(source, warning, sentence.size())) log_.warn("{}", sentence);
} catch (const std::exception&) {
}

bool CallLog::may_write(const Source& source, int level, size_t bytes) {
  const auto now = now_ns();
  const std::scoped_lock lock(mutex_);
  auto& peer = peer_of(source, now);
  auto& ifunc = ifunc_of(peer, source.code, now);
  if (ifunc.rate.allowed(now) != 0 && peer.rate.allowed(now) != 0) {
    const auto lines = 1 + bytes / line_bytes;
    ifunc.rate.spend(lines);
    peer.rate.spend(lines);
    return true;
  }
  ++ifunc.left_out;
  ++peer.left_out;
  peer.level = std::max(peer.level, level);
  if (due_ns() == UINT64_MAX) due_ns_.store(now + pause_ns, std::memory_order_relaxed);
  return false;
}

// Does a fresh one allow no more than this?
bool CallLog::is_forgotten(const Ifunc& ifunc, uint64_t now) noexcept {
  return ifunc.left_out == 0 && ifunc.rate.is_unused(now);
}

bool CallLog::is_forgotten(const Peer& peer, uint64_t now) noexcept {
  return peer.left_out == 0 && peer.rate.is_unused(now) &&
         std::ranges::all_of(peer.ifuncs, [&](auto& one) { return is_forgotten(one.second, now); });
}

CallLog::Peer& CallLog::peer_of(const Source& source, uint64_t now) {
  if (const auto known = peers_.find(source.peer); known != peers_.end()) return known->second;
  std::erase_if(peers_, [&](auto& one) { return is_forgotten(one.second, now); });
  const bool has_room = peers_.size() < most_peers;
  const auto [peer, is_new] =
      peers_.try_emplace(has_room ? source.peer : "others",
                         Peer{Rate(times_for_a_peer * lines_a_second, now, times_for_a_peer * lines_at_once)});
  if (is_new) peer->second.label = has_room ? source.label : "others";
  return peer->second;
}

CallLog::Ifunc& CallLog::ifunc_of(Peer& peer, const target::Code* code, uint64_t now) {
  const auto id = code != nullptr ? code->id() : ContentId();
  if (const auto known = peer.ifuncs.find(id); known != peer.ifuncs.end()) return known->second;
  std::erase_if(peer.ifuncs, [&](auto& one) { return is_forgotten(one.second, now); });
  const bool has_room = peer.ifuncs.size() < most_ifuncs;
  const auto [ifunc, is_new] =
      peer.ifuncs.try_emplace(has_room ? id : ContentId(), Ifunc{Rate(lines_a_second, now, lines_at_once)});
  if (is_new && has_room && code != nullptr) ifunc->second.name = fmt::format("ifunc '{}'", code->name());
  return ifunc->second;
}

// Without the lock: the log may be a function of the application.
void CallLog::tell_left_out() noexcept try {
  std::vector<Told> all;
  {
    const std::scoped_lock lock(mutex_);
    due_ns_.store(UINT64_MAX, std::memory_order_relaxed);
    for (auto& [id, peer] : peers_)
      if (peer.left_out != 0) all.push_back(tell(peer));
  }
  for (const auto& told : all) {
    const LogContext about({.peer = told.peer});
    log_.log(levels[static_cast<size_t>(told.level)], "{}", told.sentence);
  }
} catch (const std::exception&) {  // no memory for the sentence
}

CallLog::Told CallLog::tell(Peer& peer) {
  size_t sources = 0;
  std::string name;
  for (auto& [id, ifunc] : peer.ifuncs)
    if (std::exchange(ifunc.left_out, 0) != 0 && ++sources == 1) name = ifunc.name;
  const auto whose = sources > 1    ? fmt::format("of {} ifuncs from", sources)
                     : name.empty() ? std::string("about")
                                    : fmt::format("of {} from", name);
  const auto lines = std::exchange(peer.left_out, 0);
  return {std::exchange(peer.level, 0), peer.label,
          fmt::format("{} line{} {} {} {} left out: {} are written at once, and {} a second, of each ifunc and peer",
                      lines, lines == 1 ? "" : "s", whose, peer.label, lines == 1 ? "was" : "were", lines_at_once,
                      lines_a_second)};
}

}  // namespace tc::node
