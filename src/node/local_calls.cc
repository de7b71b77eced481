// SPDX-License-Identifier: Apache-2.0
#include "node/local_calls.h"

#include <new>
#include <utility>

#include "base/clock.h"
#include "node/workers/call_places.h"

namespace tc::node {

Status LocalCalls::add(const OutgoingCall& call, trust::SharedRights rights,
                       const std::shared_ptr<MemoryBudget>& share) {
  Charge charge;
  TC_CHECK(common_.charge(charge, call.payload.size() + sizeof(Call), share));
  ready_.push_back({*call.bundle, Bytes(call.payload.begin(), call.payload.end()), *call.header,
                    call.return_address != nullptr ? std::optional(*call.return_address) : std::nullopt,
                    std::move(rights), std::move(charge)});
  common_.work.calls = true;
  return {};
}

void LocalCalls::run() {
  tell_failed();
  const target::Executor::Scope scope(executor_);
  executor_.begin_turn();
  for (size_t left = ready_.size(); left != 0 && has_ready() && !executor_.slice().is_over(); --left) {
    Call call = std::move(ready_.front());
    ready_.pop_front();
    try {
      run(call);
    } catch (const std::bad_alloc&) {
      const bool is_answered = executor_.running().answered;
      executor_.reset();  // lest the next call answers for this one
      common_.reserve.release();
      if (!is_answered) failed_ = std::move(call);
      tell_failed();
    }
    executor_.reset();
  }
}

// Where there is no memory for that, the next turn tells it.
void LocalCalls::tell_failed() {
  if (!failed_) return;
  answers_.fail_later(failed_->header.token, failed_->caller(),
                      Error{TC_ERR_NO_MEMORY, "there is no memory for a call"});
  failed_.reset();
}

// Any code that runs here may call what the application registered. Other code must be code that the peer may send. Code that
// calls its own node again and again ends when the keyring changes.
Result<trust::SharedRights> LocalCalls::rights_of(const Call& call) const {
  if (!authority_.are_current(*call.rights)) return tc::fail(HandedCalls::rights_have_changed());
  if (call.rights->is_all() || code_.codes.is_registered(call.bundle.id())) return call.rights;
  return authority_.rights_of_code(call.rights->peer, call.rights->chain, call.bundle);
}

// Also for a caller that does not wait: the log is told.
void LocalCalls::fail(const Call& call, const Error& why) {
  answers_.count_failure(why, code_.codes.find(call.bundle.id()));
  answers_.fail_later(call.header.token, call.caller(), why);
}

// Null: the call waits for its code, or has failed.
target::Code* LocalCalls::code_of(Call& call, const trust::SharedRights& rights) {
  const bool in_cell = places_->is_for_cells(*rights);
  if (auto* const code = code_.codes.find(call.bundle.id()); code != nullptr && (in_cell || code->is_linked()))
    return code;
  const auto* const grant = rights->peer.grant();
  const auto key = grant != nullptr ? std::optional(grant->key) : std::nullopt;
  const auto loaded = code_.loader.load(call.bundle, {{}, key, rights, in_cell}, CodeLoader::this_node);
  if (loaded.is_error()) fail(call, loaded.error);
  if (loaded.is_pending()) uncompiled_.push_back(std::move(call));
  return loaded.is_loaded() ? loaded.code : nullptr;
}

void LocalCalls::run(Call& local) {
  auto rights = rights_of(local);
  if (!rights) return fail(local, rights.error());
  auto* const code = code_of(local, *rights);
  if (code == nullptr) return;
  const auto wish = places_->wish_of(*code, *rights);
  const auto place = places_->place(*code, wish, nullptr);
  if (place == CallPlaces::Place::later) {
    ready_.push_front(std::move(local));
    awaits_worker_ = true;
    return;
  }
  running_rights_ = std::move(*rights);
  set_running(local);
  if (place != CallPlaces::Place::here) return hand_over(local, *code, wish.in_cell);
  Bytes memory;
  auto* const payload = aligned_copy(memory, local.payload, size_t{1} << code->alignment_log2);
  executor_.run(*code, payload, local.payload.size());
  answers_.end_running_call(executor_);
}

void LocalCalls::hand_over(Call& local, target::Code& code, bool in_cell) {
  auto handed = std::make_unique<HandedCall>();
  executor_.prepare(code);
  handed->code = &code;
  handed->call = executor_.running();
  handed->rights = running_rights_;
  handed->since_ns = now_ns();
  handed->size = local.payload.size();
  handed->payload = aligned_copy(handed->memory, local.payload, size_t{1} << code.alignment_log2);
  handed->charge = std::move(local.charge);
  places_->hand_over(std::move(handed), in_cell ? CallPlaces::Place::in_cell : CallPlaces::Place::elsewhere);
}

// In Executor::running().
void LocalCalls::set_running(const Call& local) {
  executor_.reset();
  auto& call = executor_.running();
  call.link = nullptr;
  call.header = local.header;
  call.has_header = true;
  call.wants_reply = local.header.token != 0;
  call.has_return_address = local.return_address.has_value();
  if (local.return_address) {
    call.return_address = *local.return_address;
    call.chain = running_rights_->chain;
  }
  call.has_effects = true;
}

void LocalCalls::on_compiled() {
  common_.work.calls = true;
  for (; !uncompiled_.empty(); uncompiled_.pop_front()) ready_.push_back(std::move(uncompiled_.front()));
}

void LocalCalls::each_waiting(ShowCall show) const {
  for (const auto* const calls : {&ready_, &uncompiled_})
    for (const auto& call : *calls)
      if (call.header.token != 0)
        show(call.return_address ? call.caller()->instance : answers_.own_instance(), call.header.token);
  if (failed_ && failed_->header.token != 0)
    show(failed_->caller() != nullptr ? failed_->caller()->instance : answers_.own_instance(), failed_->header.token);
}

}  // namespace tc::node
