// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/worker.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ranges>
#include <span>

#include "base/clock.h"

namespace tc::transport {

namespace {

// UCX logs to stderr by itself, even about peers that were closed in order. We report errors ourselves, so its log is
// off unless the user sets UCX_LOG_LEVEL.
void silence_logs() {
  if (getenv("UCX_LOG_LEVEL") == nullptr) (void)ucs_global_opts_set_value("LOG_LEVEL", "fatal");
}

// When libucs is loaded, it installs handlers for the signals of crashes. These belong to the program, or to its
// language's runtime. Restores the signals that libucs still handles, unless the user sets UCX_ERROR_SIGNALS.
void give_back_signals() {
  if (getenv("UCX_ERROR_SIGNALS") != nullptr) return;
  for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction now{};
    Dl_info owner{};
    if (sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) continue;
    if (dladdr(reinterpret_cast<void*>(now.sa_handler), &owner) != 0 && owner.dli_fname != nullptr &&
        std::strstr(owner.dli_fname, "libucs") != nullptr)
      ucs_debug_disable_signal(number);
  }
}

constexpr std::array<std::string_view, 9> shared_memory{"posix", "sysv", "self", "shm",  "sm",
                                                        "mm",    "cma",  "knem", "xpmem"};
constexpr std::array<std::string_view, 2> sockets{"tcp", "self"};
// By default all but SysV shared memory: the user's group may write to its segments.
constexpr const char* default_tls = "^sysv";

// Does a list like UCX_TLS name nothing but `transports`?
bool names_only(std::span<const std::string_view> transports, std::string_view tls) {
  if (tls.empty()) return false;
  return std::ranges::all_of(tls | std::views::split(','), [&](auto part) {
    return std::ranges::find(transports, std::string_view(part.begin(), part.end())) != transports.end();
  });
}

// Endpoints with error handling use a UCX transport only if it can report peer failures. Shared memory cannot, unless
// this setting makes UCX believe so. We find the failures ourselves, on our socket to each peer. This is done only if
// shared memory is the only transport: a peer that dies while it writes to UCX's shared queue can block it for all
// others.
void allow_failures_on_shared_memory(std::string_view tls) {
  if (!names_only(shared_memory, tls)) return;
  (void)setenv("UCX_POSIX_ERROR_HANDLING", "y", 0);
  (void)setenv("UCX_SYSV_ERROR_HANDLING", "y", 0);
}

// Each of UCX's shared-memory interfaces allocates 4 MiB of receive buffers at once. A small step makes them grow only
// when they are needed.
void shrink_receive_buffers() {
  (void)setenv("UCX_POSIX_RX_BUFS_GROW", "16", 0);
  (void)setenv("UCX_SYSV_RX_BUFS_GROW", "16", 0);
}

}  // namespace

std::string ucx_message(ucs_status_t status) { return fmt::format("UCX says: {}", ucs_status_string(status)); }

std::string UcxWorker::version() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

Result<std::unique_ptr<UcxWorker>> UcxWorker::open(const std::string& tls, const std::string& devices, bool rma) {
  std::unique_ptr<UcxWorker> worker(new UcxWorker);
  TC_CHECK(worker->start(tls, devices, rma));
  return worker;
}

Status UcxWorker::start(const std::string& tls, const std::string& devices, bool rma) {
  silence_logs();
  give_back_signals();
  shrink_receive_buffers();
  const char* const environment = getenv("UCX_TLS");
  const std::string named = !tls.empty() ? tls : environment != nullptr ? environment : default_tls;
  allow_failures_on_shared_memory(named);
  tcp_alone_ = names_only(sockets, named);
  if (devices.empty() && getenv("UCX_NET_DEVICES") == nullptr && !names_only(shared_memory, named))
    return fail(
        TC_ERR_DENIED,
        "UCX would accept writes into this process on every network interface, from any peer: name the devices of "
        "a network where every peer is trusted (ucx-devices, or UCX_NET_DEVICES), or shared memory alone (ucx-tls, or "
        "UCX_TLS: posix,self)");

  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "reading UCX's configuration: {}", ucx_message(status));
  (void)ucp_config_modify(config, "TLS", named.c_str());
  if (!devices.empty()) (void)ucp_config_modify(config, "NET_DEVICES", devices.c_str());
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  if (rma) params.features |= UCP_FEATURE_RMA;
  params.name = "threechains";
  const auto created = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  if (created != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "starting UCX with UCX_TLS '{}': {}", named, ucx_message(created));

  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
  if (const auto status = ucp_worker_create(context_, &worker_params, &worker_); status != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "creating a UCX worker: {}", ucx_message(status));
  if (const auto status = ucp_worker_get_efd(worker_, &event_fd_); status != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "UCX's worker has no event descriptor: {}", ucx_message(status));

  ucp_address_t* address = nullptr;
  size_t size = 0;
  if (const auto status = ucp_worker_get_address(worker_, &address, &size); status != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "UCX's worker has no address: {}", ucx_message(status));
  const auto* const first = reinterpret_cast<const std::byte*>(address);
  address_.assign(first, first + size);
  ucp_worker_release_address(worker_, address);
  return {};
}

UcxWorker::~UcxWorker() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

namespace {

// No key is longer. UCX reads as far as the lengths in a key say, so zeroes are put behind it.
constexpr size_t max_key_bytes = 4096;

}  // namespace

Result<std::unique_ptr<OwnMemory>> OwnMemory::allocate(ucp_context_h context, size_t bytes) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.length = bytes;
  params.flags = UCP_MEM_MAP_ALLOCATE;
  ucp_mem_h handle = nullptr;
  if (const auto status = ucp_mem_map(context, &params, &handle); status != UCS_OK)
    return fail(TC_ERR_NO_MEMORY, "allocating {} bytes for a peer: {}", bytes, ucx_message(status));
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
  if (const auto status = ucp_mem_query(handle, &attributes); status != UCS_OK || attributes.length < bytes) {
    ucp_mem_unmap(context, handle);
    return fail(TC_ERR_NO_MEMORY, "UCX gave {} bytes when {} were asked for", attributes.length, bytes);
  }
  // UCX may have taken it from the heap. What was there before is not for the peer to read, and is no counter of puts.
  std::memset(attributes.address, 0, bytes);
  return std::unique_ptr<OwnMemory>(new OwnMemory(context, handle, attributes.address));
}

OwnMemory::~OwnMemory() { ucp_mem_unmap(context_, handle_); }

Result<Bytes> OwnMemory::packed_key() const {
  void* buffer = nullptr;
  size_t size = 0;
  if (const auto status = ucp_rkey_pack(context_, handle_, &buffer, &size); status != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "packing a memory key: {}", ucx_message(status));
  const auto* const first = static_cast<const std::byte*>(buffer);
  Bytes key(first, first + size);
  ucp_rkey_buffer_release(buffer);
  return key;
}

Result<std::unique_ptr<RemoteKey>> RemoteKey::unpack(ucp_ep_h endpoint, ByteView packed) {
  if (packed.empty() || packed.size() > max_key_bytes)
    return fail(TC_ERR_MALFORMED, "the peer's memory key is {} bytes when 1 to {} are possible", packed.size(),
                max_key_bytes);
  Bytes padded(2 * max_key_bytes);
  std::memcpy(padded.data(), packed.data(), packed.size());
  ucp_rkey_h key = nullptr;
  if (const auto status = ucp_ep_rkey_unpack(endpoint, padded.data(), &key); status != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "the peer's memory cannot be reached: {}", ucx_message(status));
  return std::unique_ptr<RemoteKey>(new RemoteKey(key));
}

RemoteKey::~RemoteKey() { ucp_rkey_destroy(key_); }

namespace {

// UCX reads as far as the lengths in an address say, so zeroes are put behind it.
constexpr size_t address_slack = 4096;
// A forced close is local and quick. If it takes longer all the same, the request ends with the worker.
constexpr uint64_t close_ms = 100;

}  // namespace

Result<std::unique_ptr<UcxEndpoint>> UcxEndpoint::open(ucp_worker_h worker, ByteView address, unsigned& failures) {
  std::unique_ptr<UcxEndpoint> made(new UcxEndpoint(failures));
  Bytes padded(address.size() + address_slack);
  std::memcpy(padded.data(), address.data(), address.size());
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(padded.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxEndpoint::on_error;
  params.err_handler.arg = made.get();
  made->worker_ = worker;
  if (const auto status = ucp_ep_create(worker, &params, &made->endpoint_); status != UCS_OK) {
    made->endpoint_ = nullptr;
    return fail(TC_ERR_UNSUPPORTED, "no UCX transport leads to the peer (is UCX_TLS the same on both sides?): {}",
                ucx_message(status));
  }
  ucp_request_param_t nothing{};
  made->settling_ = ucp_ep_flush_nbx(made->endpoint_, &nothing);
  return made;
}

void UcxEndpoint::on_error(void* self, ucp_ep_h, ucs_status_t status) noexcept {
  auto& endpoint = *static_cast<UcxEndpoint*>(self);
  endpoint.failure_ = status;
  ++endpoint.failures_;
}

bool UcxEndpoint::is_settled() const noexcept {
  return failed() || !UCS_PTR_IS_PTR(settling_) || ucp_request_check_status(settling_) != UCS_INPROGRESS;
}

UcxEndpoint::~UcxEndpoint() {
  if (endpoint_ == nullptr) return;
  if (UCS_PTR_IS_PTR(settling_)) ucp_request_free(settling_);
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint_, &params);
  if (!UCS_PTR_IS_PTR(request)) return;
  const auto deadline = Deadline::after_ms(close_ms);
  while (ucp_request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) ucp_worker_progress(worker_);
  ucp_request_free(request);
}

}  // namespace tc::transport
