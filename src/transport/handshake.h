// SPDX-License-Identifier: Apache-2.0
//
// The TLS handshake at the beginning of an encrypted connection, and the thread that computes its steps.
//
// Thread: the node's.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "transport/poller.h"
#include "transport/socket_stream.h"
#include "trust/tls.h"

namespace tc::transport {

// Computes the steps of TLS handshakes on a thread of its own, because each takes as long as a hundred calls. The thread
// starts with the first step, and has a low priority: peers that are connected are served first.
//
// Under a flood of newcomers, more steps come than can be computed. So those of handshakes that we began, or that a peer
// has continued, come first, in order. Then comes the newest newcomer, as its handshake is done at once or not at all:
// were it the oldest, each would wait for so long that it is closed before it is done (network/admission.h).
//
// A session belongs to the worker from submit() until its OnStep is called, on the node's thread. A mutex guards the two queues in between.
class HandshakeWorker final : private Watcher {
 public:
  // The step is done; as TlsSession::handshake() says.
  using OnStep = std::function<void(std::unique_ptr<trust::TlsSession> session, Result<bool> complete)>;

  enum class Urgency : uint8_t {
    begun,     // by us, or the peer has answered what we computed
    newcomer,  // the first step for a peer that has connected
  };

  explicit HandshakeWorker(Poller& poller) noexcept : poller_(poller) {}
  ~HandshakeWorker();
  HandshakeWorker(const HandshakeWorker&) = delete;
  HandshakeWorker& operator=(const HandshakeWorker&) = delete;

  // `client` identifies the step for cancel(), and has one under way at most. `on_step` must not throw.
  // TC_ERR_NO_MEMORY, TC_ERR_LIMIT: the system gives no thread.
  Status submit(std::unique_ptr<trust::TlsSession> session, const void* client, OnStep on_step, Urgency urgency);
  // The client's session is dropped, and its on_step is not called.
  void cancel(const void* client) noexcept;

 private:
  struct Step {
    const void* client;  // null: it was cancelled
    OnStep on_step;
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

// One TLS handshake on a socket: moves the bytes, and has the worker compute each step. Meanwhile the socket stays here,
// where its limits and deadlines are, and the stream has no session.
class Handshake final {
 public:
  class Owner {
   public:
    // The handshake is over: the stream has its session again. The owner may destroy the handshake.
    virtual void on_handshake(Status result) noexcept = 0;
    // Call progress() on these events of the socket.
    virtual void watch_for_handshake(uint32_t events) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  // `stream` has a session.
  Handshake(HandshakeWorker& worker, SocketStream& stream, trust::TlsRole role, Owner& owner) noexcept
      : worker_(worker), stream_(stream), role_(role), owner_(owner) {}
  ~Handshake() { worker_.cancel(this); }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // Call first, and when the socket is ready.
  void progress() noexcept;
  // Has the peer been sent anything?
  bool has_answered() const noexcept { return has_answered_; }

 private:
  void on_step(std::unique_ptr<trust::TlsSession> session, Result<bool> complete) noexcept;
  Status exchange();
  Status compute();
  Status check_first_bytes() const;

  HandshakeWorker& worker_;
  SocketStream& stream_;
  const trust::TlsRole role_;
  Owner& owner_;
  bool has_started_ = false;
  bool is_computed_ = false;  // the worker has the session
  bool has_answered_ = false;
};

}  // namespace tc::transport
