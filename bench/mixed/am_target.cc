// SPDX-License-Identifier: Apache-2.0
#include "mixed/am_target.h"

#include "mixed/burn.h"

namespace tc::bench {

Result<std::unique_ptr<AmTarget>> AmTarget::create(const std::string& tls) {
  std::unique_ptr<AmTarget> target(new AmTarget);
  TC_ASSIGN(target->party_, UcxParty::create(tls, UCP_FEATURE_AM | UCP_FEATURE_WAKEUP));
  auto& party = *target->party_;
  TC_CHECK(party.handle(am_small_id, &AmTarget::on_small, target.get()));
  TC_CHECK(party.handle(am_long_in_handler_id, &AmTarget::on_long_in_handler, target.get()));
  TC_CHECK(party.handle(am_long_on_worker_id, &AmTarget::on_long_on_worker, target.get()));
  target->worker_.emplace([&party] { party.wake(); });
  return target;
}

Status AmTarget::connect(std::span<const std::string> clients) {
  for (const auto& client : clients) {
    TC_ASSIGN(clients_.emplace_back(), party_->connect(client));
  }
  return {};
}

void AmTarget::wait(uint32_t ms) {
  answer_done();
  if (party_->progress() == 0) party_->wait(Deadline::after_ms(ms));  // no clock is read while messages come
}

void AmTarget::poll() {
  answer_done();
  party_->progress();
}

void AmTarget::answer(const AmCall& call) {
  if (call.client < clients_.size()) sender_.send(clients_[call.client], am_answer_id, call);
}

void AmTarget::answer_done() {
  for (const auto& call : worker_->take_done()) answer(call);
}

ucs_status_t AmTarget::on_small(void* self, const void* header, size_t header_size, void*, size_t,
                                const ucp_am_recv_param_t*) {
  auto& target = *static_cast<AmTarget*>(self);
  AmCall call;
  if (!read_am_call(header, header_size, call)) return UCS_OK;
  ++target.counter_;
  target.answer(call);
  return UCS_OK;
}

ucs_status_t AmTarget::on_long_in_handler(void* self, const void* header, size_t header_size, void*, size_t,
                                          const ucp_am_recv_param_t*) {
  AmCall call;
  if (!read_am_call(header, header_size, call)) return UCS_OK;
  call.value = burn(call.value);
  static_cast<AmTarget*>(self)->answer(call);
  return UCS_OK;
}

ucs_status_t AmTarget::on_long_on_worker(void* self, const void* header, size_t header_size, void*, size_t,
                                         const ucp_am_recv_param_t*) {
  AmCall call;
  if (read_am_call(header, header_size, call)) static_cast<AmTarget*>(self)->worker_->hand_over(call);
  return UCS_OK;
}

}  // namespace tc::bench
