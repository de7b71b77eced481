// SPDX-License-Identifier: Apache-2.0
#include "bulk/am_peer.h"

#include "common/ping.h"

namespace tc::bench {

namespace {

constexpr unsigned data_id = 11, answer_id = 12;
constexpr auto what = "ucp_am_send_nbx";

}  // namespace

Result<std::unique_ptr<BulkAm>> BulkAm::create(const std::string& tls, std::span<std::byte> landing) {
  TC_ASSIGN(auto party, UcxParty::create(tls, UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, UcxParty::PeerFailure::fatal));
  std::unique_ptr<BulkAm> made(new BulkAm(std::move(party), landing));
  TC_CHECK(made->party_->handle(data_id, &BulkAm::on_data, made.get()));
  TC_CHECK(made->party_->handle(answer_id, &BulkAm::on_answer, made.get()));
  return made;
}

Status BulkAm::connect(const std::string& address) {
  TC_ASSIGN(endpoint_, party_->connect(address));
  return {};
}

Status BulkAm::send(ByteView bytes) {
  const auto due = answers_ + 1;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_RNDV;
  TC_CHECK(party_->finish(ucp_am_send_nbx(endpoint_, data_id, nullptr, 0, bytes.data(), bytes.size(), &param), what));
  struct {
    BulkAm& am;
    void poll() { am.party_->progress(); }
    uint64_t count() const { return am.answers_; }
    Status status() const { return am.party_->status(); }
  } answer{*this};
  return poll_until_count(answer, due);
}

Status BulkAm::poll() {
  party_->progress();
  TC_CHECK(check_ucx(problem_, "receiving an Active Message"));
  if (received_ == answered_) return {};
  ++answered_;
  const ucp_request_param_t param{};
  return party_->finish(ucp_am_send_nbx(endpoint_, answer_id, nullptr, 0, nullptr, 0, &param), what);
}

ucs_status_t BulkAm::on_data(void* arg, const void*, size_t, void* data, size_t size,
                             const ucp_am_recv_param_t* incoming) {
  auto& self = *static_cast<BulkAm*>(arg);
  if ((incoming->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0 || size > self.landing_.size()) {
    self.problem_ = UCS_ERR_MESSAGE_TRUNCATED;
    return UCS_OK;
  }
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = &BulkAm::on_received;
  param.user_data = arg;
  auto* const request = ucp_am_recv_data_nbx(self.party_->worker(), data, self.landing_.data(), size, &param);
  if (UCS_PTR_IS_ERR(request)) self.problem_ = UCS_PTR_STATUS(request);
  if (request == nullptr) ++self.received_;
  return UCS_INPROGRESS;
}

void BulkAm::on_received(void* request, ucs_status_t status, size_t, void* arg) {
  auto& self = *static_cast<BulkAm*>(arg);
  if (status != UCS_OK) self.problem_ = status;
  ++self.received_;
  ucp_request_free(request);
}

ucs_status_t BulkAm::on_answer(void* arg, const void*, size_t, void*, size_t, const ucp_am_recv_param_t*) {
  ++static_cast<BulkAm*>(arg)->answers_;
  return UCS_OK;
}

}  // namespace tc::bench
