// SPDX-License-Identifier: Apache-2.0
//
// Computes the steps of TLS handshakes on a thread of its own, because each takes as long as a hundred calls. The thread
// starts with the first step, and has a low priority: peers that are connected are served first.
//
// Under a flood of newcomers, more steps come than can be computed. So those of handshakes that we began, or that a peer
// has continued, come first, in order. Then comes the newest newcomer, as its handshake is done at once or not at all:
// were it the oldest, each would wait for so long that it is closed before it is done (network/pending_limits.h).
//
// A session belongs to the worker from submit() until on_step(). A mutex guards the two queues in between.
//
// Thread: the node's.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "transport/poller.h"
#include "trust/tls.h"

namespace tc::transport {

class HandshakeWorker final : private Watcher {
 public:
  class Client {
   public:
    // The step is done; as TlsSession::handshake() says.
    virtual void on_step(std::unique_ptr<trust::TlsSession> session, Result<bool> complete) noexcept = 0;

   protected:
    ~Client() = default;
  };

  enum class Urgency : uint8_t {
    begun,     // by us, or the peer has answered what we computed
    newcomer,  // the first step for a peer that has connected
  };

  explicit HandshakeWorker(Poller& poller) noexcept : poller_(poller) {}
  ~HandshakeWorker();
  HandshakeWorker(const HandshakeWorker&) = delete;
  HandshakeWorker& operator=(const HandshakeWorker&) = delete;

  // A client has one step under way at most. TC_ERR_NO_MEMORY, TC_ERR_LIMIT: the system gives no thread.
  Status submit(std::unique_ptr<trust::TlsSession> session, Client& client, Urgency urgency);
  // The client's session is dropped, and on_step() is not called.
  void cancel(const Client& client) noexcept;

 private:
  struct Step {
    Client* client;  // null: it was cancelled
    std::unique_ptr<trust::TlsSession> session;
    Result<bool> complete = false;
  };

  Status start();
  void run() noexcept;
  void on_ready(uint32_t events) noexcept override;

  Poller& poller_;
  Fd done_event_;  // readable: steps are done
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable condition_;
  std::list<Step> begun_, newcomers_, running_, done_;  // steps move from one to the next, which allocates nothing
  bool ends_ = false;
};

}  // namespace tc::transport
