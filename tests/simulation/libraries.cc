// SPDX-License-Identifier: Apache-2.0
#include "simulation/libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tc::simulation {

namespace {

// As tests/ifuncs/uses_library.c writes it.
struct Answer {
  char version[8];
  uint32_t result, calls;
};

}  // namespace

Status Libraries::settle(uint64_t now_ns) {
  for (size_t i = 0; i < open_.size();) {
    if (!open_[i].future->ready) {
      ++i;
      continue;
    }
    const auto call = std::move(open_[i]);
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
    if (call.future->status != TC_OK) ++without_answer_[call.from];
    if (call.version != 0)
      end_send(call, now_ns);
    else
      TC_CHECK(check_use(call));
  }
  return {};
}

void Libraries::forget(uint32_t node, uint64_t now_ns) {
  std::erase_if(open_, [&](auto& call) {
    if (call.from != node) return false;
    ++without_answer_[node];
    call.future->status = TC_ERR_CLOSED;
    if (call.version != 0) end_send(call, now_ns);
    return true;
  });
}

uint64_t Libraries::without_answer(uint32_t node) const {
  const auto found = without_answer_.find(node);
  return found != without_answer_.end() ? found->second : 0;
}

// One that failed may be taken later.
void Libraries::end_send(const Call& call, uint64_t now_ns) {
  const bool is_taken = call.future->status == TC_OK;
  sent_.push_back({call.to, call.version, call.sent_ns, is_taken ? now_ns : UINT64_MAX, is_taken});
}

Status Libraries::check_use(const Call& call) const {
  const auto& future = *call.future;
  if (future.status != TC_OK) return {};
  Answer answer{};
  if (future.bytes.size() != sizeof answer)
    return fail(TC_ERR_INTERNAL, "call {}: what uses the library answers with {} bytes when {} are due", call.event + 1,
                future.bytes.size(), sizeof answer);
  std::memcpy(&answer, future.bytes.data(), sizeof answer);
  const auto name = std::string_view(answer.version, strnlen(answer.version, sizeof answer.version));
  const int version = name == "one" ? 1 : name == "two" ? 2 : 0;
  const uint32_t due = version == 1 ? 2 * call.value : call.value + 1000;
  if (version == 0 || answer.result != due)
    return fail(TC_ERR_INTERNAL, "call {}: version '{}' of the library makes {} of {}: it is a mixture", call.event + 1,
                name, answer.result, call.value);
  if (may_have(call.to, version, call.sent_ns)) return {};
  return fail(TC_ERR_INTERNAL, "call {}: node {} has version {} of the library, which had been replaced before",
              call.event + 1, call.to, version);
}

// Was it sent there, and not replaced by one that was sent after it had been taken, and taken before the use began?
bool Libraries::may_have(uint32_t node, int version, uint64_t from_ns) const {
  const auto is_under_way = [&](const Call& call) { return call.to == node && call.version == version; };
  if (std::ranges::any_of(open_, is_under_way)) return true;
  uint64_t latest_ns = 0;
  for (const auto& sent : sent_)
    if (sent.to == node && sent.version == version) latest_ns = std::max(latest_ns, sent.ended_ns);
  if (latest_ns == 0) return false;
  return std::ranges::none_of(sent_, [&](const Sent& other) {
    return other.to == node && other.version != version && other.is_taken && other.began_ns > latest_ns &&
           other.ended_ns < from_ns;
  });
}

}  // namespace tc::simulation
