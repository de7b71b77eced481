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

}  // namespace tc::transport
