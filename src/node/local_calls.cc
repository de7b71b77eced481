// SPDX-License-Identifier: Apache-2.0
#include "node/local_calls.h"

#include <new>
#include <utility>

namespace tc::node {

void LocalCalls::add(const OutgoingCall& call, trust::SharedRights rights) {
  ready_.push_back({*call.bundle, Bytes(call.payload.begin(), call.payload.end()), *call.header,
                    call.return_address != nullptr ? std::optional(*call.return_address) : std::nullopt,
                    std::move(rights)});
}

void LocalCalls::run() {
  const target::Executor::Scope scope(executor_);
  executor_.begin_turn();
  for (size_t left = ready_.size(); left != 0 && !executor_.slice().is_over(); --left) {
    Call call = std::move(ready_.front());
    ready_.pop_front();
    try {
      run(call);
    } catch (const std::bad_alloc&) {
      reserve_.release();
      answers_.fail_later(call.header.token, call.caller(), Error{TC_ERR_NO_MEMORY, "there is no memory for a call"});
    }
    executor_.reset();
  }
}

// Any code that runs here may call what the application registered. Other code must be code that the peer may send.
Result<trust::SharedRights> LocalCalls::rights_of(const Call& call) const {
  if (call.rights->is_all() || code_.codes.is_registered(call.bundle.id())) return call.rights;
  return authority_.rights_of_code(call.rights->peer, call.rights->chain, call.bundle);
}

// Null: the call waits for its code, or has failed.
target::Code* LocalCalls::code_of(Call& call, const trust::SharedRights& rights) {
  if (auto* const code = code_.codes.find(call.bundle.id()); code != nullptr) return code;
  const auto* const grant = rights->peer.grant();
  const auto key = grant != nullptr ? std::optional(grant->key) : std::nullopt;
  const auto loaded = code_.loader.load(call.bundle, {{}, key, rights}, CodeLoader::this_node);
  if (loaded.is_error()) answers_.fail_later(call.header.token, call.caller(), loaded.error);
  if (loaded.is_pending()) uncompiled_.push_back(std::move(call));
  return loaded.is_loaded() ? loaded.code : nullptr;
}

void LocalCalls::run(Call& local) {
  auto rights = rights_of(local);
  if (!rights) return answers_.fail_later(local.header.token, local.caller(), rights.error());
  auto* const code = code_of(local, *rights);
  if (code == nullptr) return;
  running_rights_ = std::move(*rights);
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
  Bytes memory;
  auto* const payload = aligned_copy(memory, local.payload, size_t{1} << code->alignment_log2);
  executor_.run(*code, payload, local.payload.size());
  answers_.end_running_call(executor_);
}

void LocalCalls::on_compiled() {
  for (auto& call : std::exchange(uncompiled_, {})) ready_.push_back(std::move(call));
}

void LocalCalls::each_waiting(ShowCall show) const {
  for (const auto* const calls : {&ready_, &uncompiled_})
    for (const auto& call : *calls)
      if (call.header.token != 0)
        show(call.return_address ? call.caller()->instance : answers_.own_instance(), call.header.token);
}

}  // namespace tc::node
