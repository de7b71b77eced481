// SPDX-License-Identifier: Apache-2.0
#include "tsi/am_peer.h"

#include <ucp/api/ucp.h>

#include <array>
#include <cstring>
#include <vector>

namespace tc::bench {

namespace {

using Function = void (*)(void* payload, size_t size, void* args);

[[gnu::noinline]] void increment(void*, size_t, void* args) { ++*static_cast<uint64_t*>(args); }
[[gnu::noinline]] void do_nothing(void*, size_t, void*) {}

// One call inside a batch: as long as one of our frames with a payload of one byte.
struct BatchedCall {
  uint64_t index;
  uint8_t payload;
  uint8_t padding[7];
};
static_assert(sizeof(BatchedCall) == 16);

constexpr unsigned single_id = 7;
constexpr unsigned batch_id = 8;
constexpr uint64_t increment_index = 1;

}  // namespace

struct AmPeer::State {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_ep_h endpoint = nullptr;
  uint64_t count = 0;
  std::array<Function, 4> table{do_nothing, increment, do_nothing, do_nothing};
  std::array<BatchedCall, batch> calls{};

  ~State() {
    if (endpoint != nullptr) {
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = UCP_EP_CLOSE_FLAG_FORCE;
      auto* const request = ucp_ep_close_nbx(endpoint, &param);
      if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
    }
    if (worker != nullptr) ucp_worker_destroy(worker);
    if (context != nullptr) ucp_cleanup(context);
  }

  static ucs_status_t on_single(void* arg, const void* header, size_t header_size, void* data, size_t size,
                                const ucp_am_recv_param_t*) {
    auto& state = *static_cast<State*>(arg);
    uint64_t index;
    if (header_size != sizeof index) return UCS_OK;
    std::memcpy(&index, header, sizeof index);
    state.table[index & 3](data, size, &state.count);
    return UCS_OK;
  }

  static ucs_status_t on_batch(void* arg, const void*, size_t, void* data, size_t size, const ucp_am_recv_param_t*) {
    auto& state = *static_cast<State*>(arg);
    const auto* const calls = static_cast<const std::byte*>(data);  // UCX aligns nothing
    for (size_t at = 0; at + sizeof(BatchedCall) <= size; at += sizeof(BatchedCall)) {
      BatchedCall call;
      std::memcpy(&call, calls + at, sizeof call);
      state.table[call.index & 3](&call.payload, 1, &state.count);
    }
    return UCS_OK;
  }

  Status handle(unsigned id, ucp_am_recv_callback_t callback) {
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id = id;
    param.cb = callback;
    param.arg = this;
    if (const auto status = ucp_worker_set_am_recv_handler(worker, &param); status != UCS_OK)
      return fail(TC_ERR_IO, "ucp_worker_set_am_recv_handler: {}", ucs_status_string(status));
    return {};
  }

  void finish(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker);
    ucp_request_free(request);
  }
};

AmPeer::AmPeer(std::unique_ptr<State> state) : state_(std::move(state)) {}
AmPeer::~AmPeer() = default;

Result<std::unique_ptr<AmPeer>> AmPeer::create(const std::string& tls) {
  auto state = std::make_unique<State>();
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return fail(TC_ERR_IO, "ucp_config_read: {}", ucs_status_string(status));
  ucp_config_modify(config, "TLS", tls.c_str());
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM;
  auto status = ucp_init(&params, config, &state->context);
  ucp_config_release(config);
  if (status != UCS_OK) return fail(TC_ERR_IO, "ucp_init: {}", ucs_status_string(status));
  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
  if (status = ucp_worker_create(state->context, &worker_params, &state->worker); status != UCS_OK)
    return fail(TC_ERR_IO, "ucp_worker_create: {}", ucs_status_string(status));
  TC_CHECK(state->handle(single_id, State::on_single));
  TC_CHECK(state->handle(batch_id, State::on_batch));
  for (auto& call : state->calls) call.index = increment_index;
  return std::unique_ptr<AmPeer>(new AmPeer(std::move(state)));
}

std::string AmPeer::address() const {
  ucp_address_t* address = nullptr;
  size_t size = 0;
  if (ucp_worker_get_address(state_->worker, &address, &size) != UCS_OK) return {};
  std::string text;
  for (size_t i = 0; i < size; ++i) text += fmt::format("{:02x}", reinterpret_cast<const unsigned char*>(address)[i]);
  ucp_worker_release_address(state_->worker, address);
  return text;
}

Status AmPeer::connect(const std::string& address) {
  std::vector<unsigned char> bytes;
  for (size_t i = 0; i + 1 < address.size(); i += 2)
    bytes.push_back(static_cast<unsigned char>(std::stoi(address.substr(i, 2), nullptr, 16)));
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(bytes.data());
  if (const auto status = ucp_ep_create(state_->worker, &params, &state_->endpoint); status != UCS_OK)
    return fail(TC_ERR_IO, "ucp_ep_create: {}", ucs_status_string(status));
  return {};
}

void AmPeer::send() {
  static constexpr uint64_t header = increment_index;
  static constexpr char payload = 1;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  auto* const request = ucp_am_send_nbx(state_->endpoint, single_id, &header, sizeof header, &payload, 1, &param);
  if (request != nullptr) [[unlikely]]
    state_->finish(request);
}

void AmPeer::send_batch() {
  // Written anew each time, as a sender of real calls would have to.
  for (auto& call : state_->calls) {
    call.index = increment_index;
    call.payload = 1;
  }
  asm volatile("" ::: "memory");
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  auto* const request =
      ucp_am_send_nbx(state_->endpoint, batch_id, nullptr, 0, state_->calls.data(), sizeof state_->calls, &param);
  if (request != nullptr) [[unlikely]]
    state_->finish(request);
}

void AmPeer::progress() { ucp_worker_progress(state_->worker); }

uint64_t AmPeer::count() const noexcept { return *const_cast<volatile uint64_t*>(&state_->count); }

double AmPeer::dispatch_ns(uint64_t calls) {
  uint64_t header = increment_index;
  char payload = 1;
  const auto started = now_ns();
  for (uint64_t i = 0; i < calls; ++i) {
    asm volatile("" : "+m"(header));
    State::on_single(state_.get(), &header, sizeof header, &payload, 1, nullptr);
  }
  const auto spent = now_ns() - started;
  state_->count -= calls;
  return static_cast<double>(spent) / static_cast<double>(calls);
}

}  // namespace tc::bench
