// SPDX-License-Identifier: Apache-2.0
#include "bulk/am_peer.h"

#include "common/ping.h"

namespace tc::bench {

namespace {

constexpr unsigned data_id = 11, answer_id = 12;

}  // namespace

Result<std::unique_ptr<BulkAm>> BulkAm::create(const std::string& tls, std::span<std::byte> landing) {
  TC_ASSIGN(auto party, UcxParty::create(tls, UCP_FEATURE_AM, UcxParty::PeerFailure::fatal));
  std::unique_ptr<BulkAm> made(new BulkAm(std::move(party), landing));
  TC_CHECK(made->handle(data_id, &BulkAm::on_data));
  TC_CHECK(made->handle(answer_id, &BulkAm::on_answer));
  return made;
}

Status BulkAm::handle(unsigned id, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  param.id = id;
  param.cb = callback;
  param.arg = this;
  return check_ucx(ucp_worker_set_am_recv_handler(party_->worker(), &param), "ucp_worker_set_am_recv_handler");
}

Status BulkAm::connect(const std::string& address) {
  TC_ASSIGN(endpoint_, party_->connect(address));
  return {};
}

Status BulkAm::finish(ucs_status_ptr_t request) {
  if (UCS_PTR_IS_ERR(request)) return check_ucx(UCS_PTR_STATUS(request), "ucp_am_send_nbx");
  if (request == nullptr) return {};
  const auto deadline = Deadline::after_ms(ping_limit_ms);
  ucs_status_t status = UCS_INPROGRESS;
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS && !deadline.passed()) party_->progress();
  ucp_request_free(request);
  return check_ucx(status, "an Active Message");
}

Status BulkAm::send(ByteView bytes) {
  const auto due = answers_ + 1;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_RNDV;
  TC_CHECK(finish(ucp_am_send_nbx(endpoint_, data_id, nullptr, 0, bytes.data(), bytes.size(), &param)));
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
  return finish(ucp_am_send_nbx(endpoint_, answer_id, nullptr, 0, nullptr, 0, &param));
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
