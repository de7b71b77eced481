// SPDX-License-Identifier: Apache-2.0
//
// The HTTP server of metrics_plugin.h, by libmicrohttpd. Its thread waits for three things: connections (libmicrohttpd's epoll
// descriptor), what notify() says, and the deadlines of requests that wait for the node. A request that waits is suspended,
// so that others go on.
//
// Who connects is a stranger:
//
//     connections that send nothing   end after Settings::timeout_s; the oldest end when there are many
//     a client that reads nothing     the same; its answer is in memory once, however many want it
//     large or broken requests        8 KiB of memory for each connection; libmicrohttpd answers 431, or 400
//     pages in somebody's browser     host_header.h; answered 421
//     many requests                   one report in 100 ms
//
// Threads: one of its own. notify() and address(): any.
#pragma once

#include <microhttpd.h>

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "ifunc-metrics/families.h"
#include "ifunc-metrics/listener.h"
#include "ifunc-metrics/metrics_plugin.h"

namespace tc::metrics {

class HttpServer final : public Server {
 public:
  static Result<std::unique_ptr<HttpServer>> start(const Settings& settings, Callbacks callbacks);
  ~HttpServer() override;
  const std::string& address() const noexcept override { return address_; }
  void notify() noexcept override;

 private:
  using Response = std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)>;

  // The last page in one format, for all that ask within 100 ms.
  struct Kept {
    Response response{nullptr, &MHD_destroy_response};
    std::shared_ptr<const Report> of;
    State state = State::starting;
    uint64_t made_ns = 0;
  };

  enum class Page : uint8_t { metrics, health, readiness, none };
  struct Request;
  struct Open {
    int socket = -1;       // libmicrohttpd's; -1: it is being ended
    bool is_busy = false;  // a request has come whole, and is not answered yet
  };

  HttpServer(const Settings& settings, Callbacks callbacks, std::string address);
  Status open(const Listener& listener, const Settings& settings);

  // The thread.
  void run();
  void wait();
  int wait_ms() const;
  void resume_what_is_due();

  // What libmicrohttpd calls, on the thread.
  static MHD_Result handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                           const char* version, const char* upload, size_t* upload_size, void** request);
  static void end_request(void* self, MHD_Connection* connection, void** request, MHD_RequestTerminationCode how);
  static void note_connection(void* self, MHD_Connection* connection, void** place,
                              MHD_ConnectionNotificationCode what);

  static void set_busy(MHD_Connection* connection, bool is_busy);
  void end_oldest();

  MHD_Result answer(MHD_Connection* connection, Request& request);
  MHD_Result suspend(MHD_Connection* connection, Request& request);
  // What the request waits for is there, or is waited for no longer.
  bool is_due(const Request& request, const NodeSight& sight, uint64_t now) const;
  MHD_Result answer_health(MHD_Connection* connection, const NodeSight& sight);
  MHD_Result answer_readiness(MHD_Connection* connection, const NodeSight& sight);
  MHD_Result answer_metrics(MHD_Connection* connection, const NodeSight& sight);
  Families families_of(const NodeSight& sight) const;

  const Callbacks callbacks_;
  const std::string address_;
  const std::vector<std::string> names_;  // for whom requests are, besides numbers and localhost
  const unsigned most_connections_;
  const double started_;  // the process
  std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)> daemon_;
  Fd event_;  // readable: notify() was called
  int epoll_ = -1;
  std::atomic<bool> is_ending_{false};
  std::list<Open> connections_;  // in the order in which they came
  std::list<Request*> waiting_;
  Kept text_, openmetrics_;
  std::thread thread_;
};

}  // namespace tc::metrics
