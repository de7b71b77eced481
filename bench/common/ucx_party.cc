// SPDX-License-Identifier: Apache-2.0
#include "common/ucx_party.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace tc::bench {

namespace {

// As in Node::wait().
constexpr int polls_of_sockets = 1;
constexpr int polls_of_memory = 16;

constexpr uint64_t request_ms = 60'000;
constexpr uint64_t polls_between_clocks = 1u << 16;

// Addresses and keys as words for other processes.
std::string to_hex(const void* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += fmt::format("{:02x}", static_cast<const unsigned char*>(bytes)[i]);
  return text;
}

std::vector<unsigned char> from_hex(const std::string& text) {
  std::vector<unsigned char> bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) std::from_chars(&text[2 * i], &text[2 * i] + 2, bytes[i], 16);
  return bytes;
}

}  // namespace

Status check_ucx(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return {};
  return fail(TC_ERR_IO, "{}: {}", what, ucs_status_string(status));
}

Result<std::unique_ptr<UcxParty>> UcxParty::create(const std::string& tls, uint64_t features,
                                                   PeerFailure peer_failure) {
  const bool sockets = tls.starts_with("tcp");
  std::unique_ptr<UcxParty> party(new UcxParty(sockets, peer_failure));
  TC_CHECK(party->start(tls, features));
  return party;
}

Status UcxParty::start(const std::string& tls, uint64_t features) {
  ucp_config_t* config = nullptr;
  TC_CHECK(check_ucx(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read"));
  ucp_config_modify(config, "TLS", tls.c_str());
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = features;
  const auto started = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  TC_CHECK(check_ucx(started, "ucp_init"));
  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
  TC_CHECK(check_ucx(ucp_worker_create(context_, &worker_params, &worker_), "ucp_worker_create"));
  if ((features & UCP_FEATURE_WAKEUP) == 0) return {};
  TC_CHECK(check_ucx(ucp_worker_get_efd(worker_, &event_fd_), "ucp_worker_get_efd"));
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return wake_fd_ >= 0 ? Status{} : fail(TC_ERR_IO, "there is no eventfd");
}

UcxParty::~UcxParty() {
  for (auto* const endpoint : endpoints_) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    auto* const request = ucp_ep_close_nbx(endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

Result<std::string> UcxParty::address() const {
  ucp_address_t* address = nullptr;
  size_t size = 0;
  TC_CHECK(check_ucx(ucp_worker_get_address(worker_, &address, &size), "ucp_worker_get_address"));
  auto text = to_hex(address, size);
  ucp_worker_release_address(worker_, address);
  return text;
}

Status UcxParty::handle(unsigned id, ucp_am_recv_callback_t callback, void* arg) {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  param.id = id;
  param.cb = callback;
  param.arg = arg;
  return check_ucx(ucp_worker_set_am_recv_handler(worker_, &param), "ucp_worker_set_am_recv_handler");
}

Status UcxParty::finish_pending(ucs_status_ptr_t request, const char* what) {
  if (!UCS_PTR_IS_PTR(request)) return check_ucx(UCS_PTR_RAW_STATUS(request), what);
  auto status = ucp_request_check_status(request);
  auto deadline = Deadline::never();  // a stream of small messages waits often and briefly: it reads no clock
  for (uint64_t polls = 1; status == UCS_INPROGRESS && !(polls % polls_between_clocks == 0 && deadline.passed());
       ++polls) {
    progress();
    status = ucp_request_check_status(request);
    if (polls == polls_between_clocks) deadline = Deadline::after_ms(request_ms);
  }
  ucp_request_free(request);
  if (status == UCS_INPROGRESS) return fail(TC_ERR_TIMEOUT, "{} takes more than {} ms", what, request_ms);
  return check_ucx(status, what);
}

Status UcxParty::flush(ucp_ep_h endpoint) {
  const ucp_request_param_t param{};
  return finish(ucp_ep_flush_nbx(endpoint, &param), "ucp_ep_flush_nbx");
}

void UcxParty::on_error(void* self, ucp_ep_h, ucs_status_t status) { static_cast<UcxParty*>(self)->failure_ = status; }

Result<ucp_ep_h> UcxParty::connect(const std::string& address) {
  const auto bytes = from_hex(address);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(bytes.data());
  if (by_sockets_alone_ && peer_failure_ == PeerFailure::reported) {  // in shared memory they cannot be
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = &UcxParty::on_error;
    params.err_handler.arg = this;
  }
  ucp_ep_h endpoint = nullptr;
  TC_CHECK(check_ucx(ucp_ep_create(worker_, &params, &endpoint), "ucp_ep_create"));
  endpoints_.push_back(endpoint);
  return endpoint;
}

Status UcxParty::status() const {
  if (failure_ == UCS_OK) return {};
  return fail(TC_ERR_DISCONNECTED, "an endpoint failed: {}", ucs_status_string(failure_));
}

void UcxParty::wait(Deadline deadline) {
  using transport::WaitPolicy;
  auto policy = WaitPolicy::until(core_, deadline);
  const int polls = by_sockets_alone_ ? polls_of_sockets : polls_of_memory;
  for (auto next = WaitPolicy::Next::poll; next != WaitPolicy::Next::block;) {
    for (int poll = 0; poll < polls; ++poll)
      if (found_something()) return;
    next = policy.after_empty_poll(by_sockets_alone_);
    if (next == WaitPolicy::Next::give_up) return;
  }
  if (arms_ && ucp_worker_arm(worker_) != UCS_OK) {
    progress();
    return;
  }
  arms_ = true;
  pollfd events[2] = {{event_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  const auto left = deadline.remaining_ns();
  const timespec timeout{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
  (void)::ppoll(events, 2, &timeout, nullptr);
  uint64_t count = 0;
  if (events[1].revents != 0) (void)!::read(wake_fd_, &count, sizeof count);
  (void)found_something();
}

bool UcxParty::found_something() noexcept {
  if (progress() == 0) return false;
  arms_ = !by_sockets_alone_;
  return true;
}

void UcxParty::wake() noexcept {
  const uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

Result<UcxMemory> UcxMemory::map(UcxParty& party, size_t bytes, void* own) {
  UcxMemory memory(party);
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.address = own;
  params.length = bytes;
  params.flags = own == nullptr ? UCP_MEM_MAP_ALLOCATE : 0;
  TC_CHECK(check_ucx(ucp_mem_map(party.context(), &params, &memory.mapped_), "ucp_mem_map"));
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  TC_CHECK(check_ucx(ucp_mem_query(memory.mapped_, &attributes), "ucp_mem_query"));
  memory.bytes_ = {static_cast<std::byte*>(attributes.address), bytes};
  return memory;
}

Result<std::string> UcxMemory::contact() const {
  void* key = nullptr;
  size_t size = 0;
  TC_CHECK(check_ucx(ucp_rkey_pack(party_->context(), mapped_, &key, &size), "ucp_rkey_pack"));
  const auto text = to_hex(key, size);
  ucp_rkey_buffer_release(key);
  TC_ASSIGN(const auto address, party_->address());
  return fmt::format("{} {} {}", address, text, reinterpret_cast<uintptr_t>(bytes_.data()));
}

std::istream& operator>>(std::istream& words, GetContact& into) {
  return words >> into.worker >> into.key >> into.address;
}

Result<RemoteMemory> RemoteMemory::reach(UcxParty& party, const GetContact& contact) {
  TC_ASSIGN(auto* const endpoint, party.connect(contact.worker));
  const auto key_bytes = from_hex(contact.key);
  ucp_rkey_h key = nullptr;
  TC_CHECK(check_ucx(ucp_ep_rkey_unpack(endpoint, key_bytes.data(), &key), "ucp_ep_rkey_unpack"));
  return RemoteMemory(endpoint, key, contact.address);
}

}  // namespace tc::bench
