// SPDX-License-Identifier: Apache-2.0
#include "mixed/am_client.h"

namespace tc::bench {

Result<std::unique_ptr<AmClient>> AmClient::create(const std::string& tls, uint32_t number, unsigned long_id,
                                                   const BurnWork& work) {
  std::unique_ptr<AmClient> client(new AmClient(number, long_id, work));
  TC_ASSIGN(client->party_, UcxParty::create(tls, UCP_FEATURE_AM | UCP_FEATURE_WAKEUP));
  TC_CHECK(client->party_->handle(am_answer_id, &AmClient::on_answer, client.get()));
  return client;
}

Status AmClient::connect(const std::string& target) {
  TC_ASSIGN(endpoint_, party_->connect(target));
  return {};
}

void AmClient::poll() {
  party_->progress();
  keep(party_->status());
}

void AmClient::wait(uint32_t ms) {
  party_->wait(Deadline::after_ms(ms));
  keep(party_->status());
}

ucs_status_t AmClient::on_answer(void* self, const void* header, size_t header_size, void*, size_t,
                                 const ucp_am_recv_param_t*) {
  auto& client = *static_cast<AmClient*>(self);
  AmCall answer;
  if (!read_am_call(header, header_size, answer)) return UCS_OK;
  if (answer.is_long == 0 || answer.value == client.work_.result)
    client.answered();
  else
    client.keep(fail(TC_ERR_INTERNAL, "a long call answered {} when {} was due", answer.value, client.work_.result));
  return UCS_OK;
}

}  // namespace tc::bench
