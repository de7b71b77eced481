// SPDX-License-Identifier: Apache-2.0
#include "ifunc-metrics/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <threechains/threechains.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "ifunc-metrics/families.h"
#include "ifunc-metrics/host_header.h"
#include "ifunc-metrics/openmetrics.h"
#include "ifunc/told.h"

namespace tc::metrics {
namespace {

constexpr uint64_t millisecond = 1'000'000;
// Those who scrape often, or are many, get the same report.
constexpr uint64_t fresh_for_ns = 100 * millisecond;
// A scrape that takes longer may be given up by Prometheus, which waits ten seconds.
constexpr uint64_t scrape_waits_ns = 1000 * millisecond;
constexpr uint64_t unhealthy_after_ns = 5000 * millisecond;

// Requests of Prometheus have 400 bytes, and proxies add some.
constexpr size_t connection_bytes = 8192;

constexpr const char* plain_text = "text/plain; charset=utf-8";
constexpr const char* metrics_text = "text/plain; version=0.0.4; charset=utf-8";

auto response_of(std::string_view text, const char* type) {
  std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)> response(
      MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY),
      &MHD_destroy_response);
  if (response != nullptr) (void)MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONTENT_TYPE, type);
  return response;
}

// Without memory the connection ends.
MHD_Result say(MHD_Connection* connection, unsigned status, std::string_view text) {
  const auto response = response_of(fmt::format("{}\n", text), plain_text);
  if (response == nullptr) return MHD_NO;
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
    (void)MHD_add_response_header(response.get(), MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  return MHD_queue_response(connection, status, response.get());
}

std::vector<std::string> names_of(const Settings& settings) {
  auto names = settings.names;
  names.push_back(settings.host);
  return names;
}

// Without the header it is no browser that asks.
bool is_meant_for_us(MHD_Connection* connection, const std::vector<std::string>& names) {
  const auto* const host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  return host == nullptr || is_for_us(std::string_view(host), names);
}

bool is_fresh(const NodeSight& sight, uint64_t now) {
  return sight.report != nullptr && sight.report->made_ns + fresh_for_ns > now;
}

}  // namespace

struct HttpServer::Request {
  Page page = Page::none;
  MHD_Connection* connection = nullptr;
  uint64_t asked_ns = 0;    // when the node was asked; 0: not yet
  bool is_waiting = false;  // suspended, and in waiting_
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(const Settings& settings, Callbacks callbacks) {
  TC_ASSIGN(auto listener, listen_at(settings.host, settings.port));
  std::unique_ptr<HttpServer> server(new HttpServer(settings, std::move(callbacks), listener.address));
  TC_CHECK(server->open(listener, settings));
  return server;
}

HttpServer::HttpServer(const Settings& settings, Callbacks callbacks, std::string address)
    : callbacks_(std::move(callbacks)),
      address_(std::move(address)),
      names_(names_of(settings)),
      most_connections_(settings.most_connections),
      started_(process_start_time()),
      daemon_(nullptr, &MHD_stop_daemon) {}

Status HttpServer::open(const Listener& listener, const Settings& settings) {
  event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_) return fail(TC_ERR_IO, "no event descriptor can be had: {}", system_words(errno));
  // libmicrohttpd closes the one that it gets.
  const int socket = ::fcntl(listener.socket.get(), F_DUPFD_CLOEXEC, 0);
  if (socket < 0) return fail(TC_ERR_IO, "no descriptor can be had: {}", system_words(errno));
  daemon_.reset(MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, &HttpServer::handle,
                                 this, MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, most_connections_,
                                 MHD_OPTION_CONNECTION_TIMEOUT, settings.timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 connection_bytes, MHD_OPTION_NOTIFY_COMPLETED, &HttpServer::end_request, this,
                                 MHD_OPTION_NOTIFY_CONNECTION, &HttpServer::note_connection, this, MHD_OPTION_END));
  if (daemon_ == nullptr) return fail(TC_ERR_IO, "libmicrohttpd does not start: {}", system_words(errno));
  const auto* const info = MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD);
  if (info == nullptr) return fail(TC_ERR_INTERNAL, "libmicrohttpd has no epoll descriptor");
  epoll_ = info->epoll_fd;
  auto thread = quiet_thread([this] { run(); });
  if (!thread) return context("no thread can be started", std::move(thread).error());
  thread_ = std::move(*thread);
  return {};
}

HttpServer::~HttpServer() {
  is_ending_.store(true);
  notify();
  if (thread_.joinable()) thread_.join();
  for (auto* const request : waiting_) MHD_resume_connection(request->connection);
  daemon_.reset();  // ends all requests, which are this server's
}

void HttpServer::notify() noexcept {
  const uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);  // when it cannot count further, it is readable anyway
}

// ---- The thread

void HttpServer::run() {
  while (!is_ending_.load()) {
    (void)MHD_run(daemon_.get());
    resume_what_is_due();
    wait();
  }
}

void HttpServer::wait() {
  pollfd both[] = {{.fd = epoll_, .events = POLLIN, .revents = 0},
                   {.fd = event_.get(), .events = POLLIN, .revents = 0}};
  (void)::poll(both, std::size(both), wait_ms());
  uint64_t count = 0;
  (void)!::read(event_.get(), &count, sizeof count);
}

int HttpServer::wait_ms() const {
  MHD_UNSIGNED_LONG_LONG ms = 0;
  // It also says what is not in the descriptor: connections to resume or to end.
  uint64_t until = MHD_get_timeout(daemon_.get(), &ms) == MHD_YES ? now_ns() + ms * millisecond : UINT64_MAX;
  for (const auto* const request : waiting_)
    until =
        std::min(until, request->asked_ns + (request->page == Page::metrics ? scrape_waits_ns : unhealthy_after_ns));
  const auto now = now_ns();
  if (until <= now) return 0;
  if (until == UINT64_MAX) return -1;
  return static_cast<int>(std::min<uint64_t>((until - now) / millisecond + 1, 60'000));
}

void HttpServer::resume_what_is_due() {
  if (waiting_.empty()) return;
  const auto sight = callbacks_.look();
  const auto now = now_ns();
  const auto before = waiting_.size();
  std::erase_if(waiting_, [&](Request* request) {
    if (!is_due(*request, sight, now)) return false;
    request->is_waiting = false;
    MHD_resume_connection(request->connection);
    return true;
  });
  if (waiting_.size() != before) (void)MHD_run(daemon_.get());
}

// ---- Requests

MHD_Result HttpServer::handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                              const char* /*version*/, const char* /*upload*/, size_t* upload_size, void** place) try {
  auto& server = *static_cast<HttpServer*>(self);
  if (*place == nullptr) {  // its headers have come
    const std::string_view asked = url, how = method;
    if (!is_meant_for_us(connection, server.names_))
      return say(connection, MHD_HTTP_MISDIRECTED_REQUEST,
                 "the Host header has a name that is not known here: ask by a number, or say `--metrics-host NAME` to "
                 "the node");
    if (how != MHD_HTTP_METHOD_GET && how != MHD_HTTP_METHOD_HEAD)
      return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
    auto request = std::make_unique<Request>();
    request->connection = connection;
    set_busy(connection, true);
    request->page = asked == "/metrics"   ? Page::metrics
                    : asked == "/healthz" ? Page::health
                    : asked == "/readyz"  ? Page::readiness
                                          : Page::none;
    *place = request.release();
    return MHD_YES;
  }
  if (*upload_size != 0) {
    *upload_size = 0;  // nobody reads it
    return MHD_YES;
  }
  return server.answer(connection, *static_cast<Request*>(*place));
} catch (const std::exception&) {  // no memory; nothing of it may reach libmicrohttpd
  return MHD_NO;
}

void HttpServer::end_request(void* self, MHD_Connection* connection, void** place, MHD_RequestTerminationCode /*how*/) {
  set_busy(connection, false);
  const std::unique_ptr<Request> request(static_cast<Request*>(*place));
  *place = nullptr;
  if (request != nullptr && request->is_waiting) static_cast<HttpServer*>(self)->waiting_.remove(request.get());
}

void HttpServer::note_connection(void* self, MHD_Connection* connection, void** place,
                                 MHD_ConnectionNotificationCode what) try {
  auto& server = *static_cast<HttpServer*>(self);
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    if (*place != nullptr) std::erase_if(server.connections_, [&](const Open& one) { return &one == *place; });
    return;
  }
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info != nullptr) *place = &server.connections_.emplace_back(info->connect_fd);
  // Before libmicrohttpd would accept no more.
  if (server.connections_.size() > server.most_connections_ * 3 / 4) server.end_oldest();
} catch (const std::bad_alloc&) {  // it counts as none, and ends by its timeout
}

void HttpServer::set_busy(MHD_Connection* connection, bool is_busy) {
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  if (info != nullptr && info->socket_context != nullptr) static_cast<Open*>(info->socket_context)->is_busy = is_busy;
}

void HttpServer::end_oldest() {
  const auto is_idle = [](const Open& one) { return one.socket >= 0 && !one.is_busy; };
  auto oldest = std::ranges::find_if(connections_, is_idle);
  if (oldest == connections_.end())
    oldest = std::ranges::find_if(connections_, [](const Open& one) { return one.socket >= 0; });
  if (oldest == connections_.end()) return;
  // libmicrohttpd takes it for the client's end, and closes the socket.
  (void)::shutdown(std::exchange(oldest->socket, -1), SHUT_RDWR);
}

MHD_Result HttpServer::answer(MHD_Connection* connection, Request& request) {
  if (request.page == Page::none)
    return say(connection, MHD_HTTP_NOT_FOUND, "there are /metrics, /healthz and /readyz");
  const auto sight = callbacks_.look();
  if (request.page == Page::readiness) return answer_readiness(connection, sight);
  if (!is_due(request, sight, now_ns())) return suspend(connection, request);
  return request.page == Page::health ? answer_health(connection, sight) : answer_metrics(connection, sight);
}

MHD_Result HttpServer::suspend(MHD_Connection* connection, Request& request) {
  if (request.asked_ns == 0) request.asked_ns = now_ns();
  waiting_.push_back(&request);
  request.is_waiting = true;
  MHD_suspend_connection(connection);
  callbacks_.ask();
  return MHD_YES;
}

bool HttpServer::is_due(const Request& request, const NodeSight& sight, uint64_t now) const {
  // Only a node that serves makes reports. One that ends has its own deadline (--drain).
  if (sight.state == State::starting) return true;
  if (is_fresh(sight, now)) return true;
  if (request.asked_ns != 0 && sight.report != nullptr && sight.report->made_ns >= request.asked_ns) return true;
  if (request.page == Page::health)
    return sight.state == State::draining ||
           (sight.unanswered_since_ns != 0 && now >= sight.unanswered_since_ns + unhealthy_after_ns);
  return request.asked_ns != 0 && now >= request.asked_ns + scrape_waits_ns;
}

MHD_Result HttpServer::answer_health(MHD_Connection* connection, const NodeSight& sight) {
  const auto now = now_ns();
  const auto since = sight.unanswered_since_ns;
  if (sight.state != State::serving || since == 0 || now < since + unhealthy_after_ns)
    return say(connection, MHD_HTTP_OK, "ok");
  const auto running = callbacks_.what_runs();
  return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
             fmt::format("the node has not answered for {:.1f} s{}{}", static_cast<double>(now - since) / 1e9,
                         running.empty() ? "" : ": ", running));
}

MHD_Result HttpServer::answer_readiness(MHD_Connection* connection, const NodeSight& sight) {
  switch (sight.state) {
    case State::serving: return say(connection, MHD_HTTP_OK, "ok");
    case State::draining: return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "draining");
    default: return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "starting");
  }
}

MHD_Result HttpServer::answer_metrics(MHD_Connection* connection, const NodeSight& sight) {
  const char* const accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
  const bool open = accept != nullptr && wants_openmetrics(accept);
  const auto now = now_ns();
  auto& page = open ? openmetrics_ : text_;
  if (page.response == nullptr || page.of != sight.report || page.state != sight.state ||
      page.made_ns + fresh_for_ns <= now) {
    const auto families = families_of(sight);
    page.response =
        open ? response_of(openmetrics_of(families), openmetrics_type) : response_of(text_of(families), metrics_text);
    if (page.response != nullptr)
      (void)MHD_add_response_header(page.response.get(), MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT);
    page.of = sight.report;
    page.state = sight.state;
    page.made_ns = now;
  }
  return page.response == nullptr ? MHD_NO : MHD_queue_response(connection, MHD_HTTP_OK, page.response.get());
}

Families HttpServer::families_of(const NodeSight& sight) const {
  Families families;
  add_gauge(families, "threechains_build_info", "The version of Three-Chains; its value is 1.", 1,
            {{"version", tc_version()}});
  add_gauge(families, "threechains_draining", "1: the node is ending, and takes no more calls.",
            sight.state == State::draining ? 1 : 0);
  if (sight.report != nullptr) {
    add_gauge(families, "threechains_report_age_seconds",
              "How old the node's numbers are: more than a second when its thread does not answer.",
              static_cast<double>(now_ns() - sight.report->made_ns) / 1e9);
    // It comes from the library of this process: what cannot be read is a defect of ours, and the rest is shown.
    if (const auto told = command::parse_told(sight.report->text)) add_node(families, *told);
  }
  add_process(families, started_);
  return families;
}

}  // namespace tc::metrics

// What libthreechains_metrics.so exports (metrics_plugin.h).
extern "C" __attribute__((visibility("default"))) tc::metrics::Server* threechains_serve_metrics(
    uint32_t version, const tc::metrics::Settings& settings, tc::metrics::Callbacks callbacks, tc::Error& error) {
  if (version != tc::metrics::plugin_version) return nullptr;
  try {
    auto made = tc::metrics::HttpServer::start(settings, std::move(callbacks));
    if (made) return made->release();
    error = made.error();
  } catch (const std::exception& problem) {
    error = {TC_ERR_INTERNAL, problem.what()};
  }
  return nullptr;
}
