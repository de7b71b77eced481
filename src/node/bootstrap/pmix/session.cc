// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/pmix/session.h"

#include <condition_variable>
#include <memory>
#include <mutex>

namespace tc::node::bootstrap {

namespace {

constexpr int longest_get_s = 5;

std::unexpected<Error> refused(const char* what, pmix_status_t status) {
  const bool gone = status == PMIX_ERR_UNREACH || status == PMIX_ERR_LOST_CONNECTION || status == PMIX_ERR_INIT;
  return fail(gone ? TC_ERR_DISCONNECTED : TC_ERR_IO, "{}: PMIx says {}", what, PMIx_Error_string(status));
}

// A value that PMIx made for us.
struct Freer {
  void operator()(pmix_value_t* value) const noexcept { PMIX_VALUE_RELEASE(value); }
};
using Value = std::unique_ptr<pmix_value_t, Freer>;

pmix_proc_t proc(const pmix_proc_t& self, pmix_rank_t rank) noexcept {
  pmix_proc_t other = self;  // the same job
  other.rank = rank;
  return other;
}

// Shared with the callback, which may come after we gave up.
struct FenceState {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<pmix_status_t> result;
};

extern "C" void on_fence(pmix_status_t status, void* context) {
  const std::unique_ptr<std::shared_ptr<FenceState>> state(static_cast<std::shared_ptr<FenceState>*>(context));
  const std::lock_guard lock((*state)->mutex);
  (*state)->result = status;
  (*state)->changed.notify_all();
}

}  // namespace

Session::~Session() {
  if (open_) (void)PMIx_Finalize(nullptr, 0);
}

Status Session::open() {
  const auto status = PMIx_Init(&self_, nullptr, 0);
  if (status != PMIX_SUCCESS) return refused("connecting to the launcher of this process", status);
  open_ = true;
  return {};
}

Result<uint32_t> Session::number(const char* key) {
  const auto job = proc(self_, PMIX_RANK_WILDCARD);
  pmix_value_t* raw = nullptr;
  if (const auto status = PMIx_Get(&job, key, nullptr, 0, &raw); status != PMIX_SUCCESS) return refused(key, status);
  const Value value(raw);
  if (value == nullptr || value->type != PMIX_UINT32)
    return fail(TC_ERR_MALFORMED, "the launcher's {} is no 32-bit number", key);
  return value->data.uint32;
}

Status Session::publish(const std::string& key, const std::string& text) {
  pmix_value_t value;
  PMIX_VALUE_LOAD(&value, text.c_str(), PMIX_STRING);
  const auto put = PMIx_Put(PMIX_GLOBAL, key.c_str(), &value);
  PMIX_VALUE_DESTRUCT(&value);
  if (put != PMIX_SUCCESS) return refused("publishing our address and key", put);
  if (const auto status = PMIx_Commit(); status != PMIX_SUCCESS)
    return refused("publishing our address and key", status);
  return {};
}

Result<bool> Session::fence(Deadline deadline) {
  const auto job = proc(self_, PMIX_RANK_WILDCARD);
  const bool collect = true;  // brings all values along, so that nobody asks N times
  pmix_info_t info;
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  const auto state = std::make_shared<FenceState>();
  auto context = std::make_unique<std::shared_ptr<FenceState>>(state);
  if (const auto status = PMIx_Fence_nb(&job, 1, &info, 1, on_fence, context.get()); status != PMIX_SUCCESS)
    return refused("meeting the other nodes", status);
  (void)context.release();  // the callback's
  std::unique_lock lock(state->mutex);
  const auto done = [&] { return state->result.has_value(); };
  if (!state->changed.wait_for(lock, std::chrono::nanoseconds(deadline.remaining_ns()), done)) return false;
  if (*state->result == PMIX_ERR_TIMEOUT) return false;
  if (*state->result != PMIX_SUCCESS) return refused("meeting the other nodes", *state->result);
  return true;
}

Result<std::optional<std::string>> Session::published(uint32_t rank, const std::string& key) {
  const auto node = proc(self_, rank);
  const bool immediate = true;
  pmix_info_t info[2];
  PMIX_INFO_LOAD(&info[0], PMIX_IMMEDIATE, &immediate, PMIX_BOOL);
  PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &longest_get_s, PMIX_INT);
  pmix_value_t* raw = nullptr;
  const auto status = PMIx_Get(&node, key.c_str(), info, 2, &raw);
  if (status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT) return std::optional<std::string>();
  if (status != PMIX_SUCCESS) return refused("asking for a node's address and key", status);
  const Value value(raw);
  if (value == nullptr || value->type != PMIX_STRING || value->data.string == nullptr)
    return fail(TC_ERR_MALFORMED, "what node {} published is no text", rank);
  return std::optional<std::string>(value->data.string);
}

}  // namespace tc::node::bootstrap
