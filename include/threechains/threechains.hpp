// SPDX-License-Identifier: Apache-2.0
//
// Three-Chains for C++20: threechains.h with objects that clean up after themselves. Header-only; link libthreechains.
//
//     threechains::Node node;
//     auto peer = node.connect("10.0.0.2:7171");
//     auto hello = node.load("hello");
//     std::cout << peer.call(hello.message("world")).get().text();
//
// Conventions, once for all of this file:
//   - Whatever fails throws threechains::Error, which holds the status and the library's sentence about it.
//   - Objects are move-only. Each keeps its node alive: the node ends when the last of them is gone, in any order. A
//     moved-from object may only be assigned to or destroyed.
//   - Threads are as in threechains.h: calls on one node and on what belongs to it must not overlap, unless its
//     progress thread runs.
//   - Times are std::chrono::milliseconds. Every wait has a deadline; 0 polls once and does not wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "threechains.h"

namespace threechains {

using std::chrono::milliseconds;

// What went wrong: status() to decide on, what() to read.
class Error : public std::runtime_error {
 public:
  Error(tc_status_t status, const std::string &message) : std::runtime_error(message), status_(status) {}
  tc_status_t status() const noexcept { return status_; }

 private:
  tc_status_t status_;
};

// A call that reached its target and failed there, or on the way: what() names the ifunc, the node and the cause.
class CallError : public Error {
 public:
  CallError(tc_status_t status, const std::string &message, int32_t code, uint32_t node)
      : Error(status, message), code_(code), node_(node) {}
  // The number that the ifunc gave to tc_fail().
  int32_t code() const noexcept { return code_; }
  // The node that answered.
  uint32_t node() const noexcept { return node_; }

 private:
  int32_t code_;
  uint32_t node_;
};

namespace detail {

inline void check(tc_status_t status) {
  if (status != TC_OK) throw Error(status, tc_error_message());
}

inline uint32_t count(milliseconds time) noexcept {
  if (time.count() <= 0) return 0;
  return time.count() > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(time.count());
}

template <auto free>
struct Free {
  template <class T>
  void operator()(T *handle) const noexcept {
    free(handle);
  }
};

using NodeHandle = std::shared_ptr<tc_node_t>;

}  // namespace detail

// Options of a node; docs/options.md lists them with their defaults.
class Config {
 public:
  Config() {
    tc_config_t *handle = nullptr;
    detail::check(tc_config_create(&handle));
    handle_.reset(handle);
  }

  // Throws TC_ERR_INVALID when the key or the value makes no sense.
  Config &set(const std::string &key, const std::string &value) {
    detail::check(tc_config_set(handle_.get(), key.c_str(), value.c_str()));
    return *this;
  }

  // Sets the options in a file of `key = value` lines. Throws TC_ERR_NOT_FOUND, TC_ERR_IO, TC_ERR_INVALID.
  Config &read(const std::string &file) {
    detail::check(tc_config_read(handle_.get(), file.c_str()));
    return *this;
  }
  // Gives the log to a function; tc_config_set_log_function() says what it may do, and how long it must live.
  Config &set_log_function(tc_log_function_t function, void *context) {
    detail::check(tc_config_set_log_function(handle_.get(), function, context));
    return *this;
  }

  const tc_config_t *handle() const noexcept { return handle_.get(); }

 private:
  std::unique_ptr<tc_config_t, detail::Free<tc_config_free>> handle_;
};

// An answer that is there. Owns its bytes.
class Reply {
 public:
  explicit Reply(std::string bytes, uint32_t node) : bytes_(std::move(bytes)), node_(node) {}

  // The bytes given to tc_reply(), as text or as they are. Valid while the reply is.
  std::string_view text() const noexcept { return bytes_; }
  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(bytes_)); }
  // The bytes as a T, for which they must have the right number: TC_ERR_MALFORMED.
  template <class T>
  T as() const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes_.size() != sizeof(T))
      throw Error(TC_ERR_MALFORMED, "the reply is " + std::to_string(bytes_.size()) + " bytes when " +
                                        std::to_string(sizeof(T)) + " were expected");
    T value;
    __builtin_memcpy(&value, bytes_.data(), sizeof(T));
    return value;
  }
  // Which node answered.
  uint32_t node() const noexcept { return node_; }

 private:
  std::string bytes_;
  uint32_t node_;
};

// An answer that will come. May be dropped before it does; outlives its endpoint and its node.
class Future {
 public:
  explicit Future(tc_future_t *handle) noexcept : handle_(handle) {}

  // Is the answer, or the failure, there? Does not progress the node.
  bool ready() const noexcept { return tc_future_ready(handle_.get()) != 0; }
  // Waits at most that long, progressing the node. False: not there yet.
  bool wait(milliseconds timeout) const {
    const auto status = tc_future_wait(handle_.get(), detail::count(timeout));
    if (status != TC_ERR_TIMEOUT) detail::check(status);
    return status == TC_OK;
  }
  // How the call ended, once it is ready; TC_ERR_INVALID before.
  tc_status_t status() const noexcept { return tc_future_status(handle_.get()); }
  // Calls `function` once when it is ready: now, or on the thread that progresses the node. The function gets no
  // argument, lives as long as this future, and may do what tc_future_on_ready() allows. Once for each future.
  template <class Function>
  void on_ready(Function function) {
    auto held = std::make_unique<std::function<void()>>(std::move(function));
    detail::check(tc_future_on_ready(
        handle_.get(), [](tc_future_t *, void *context) { (*static_cast<std::function<void()> *>(context))(); },
        held.get()));
    on_ready_ = std::move(held);
  }
  // Waits for the answer. Throws CallError when the call failed, and Error with TC_ERR_TIMEOUT when the answer is not
  // there in time; then it can be waited for again.
  Reply get(milliseconds timeout = milliseconds(10'000)) const {
    const auto answer = bytes(timeout);
    return Reply(std::string(reinterpret_cast<const char *>(answer.data()), answer.size()),
                 tc_future_node(handle_.get()));
  }
  // The same, without a copy: the answer's bytes where they lie, valid while the future is.
  std::span<const std::byte> bytes(milliseconds timeout = milliseconds(10'000)) const {
    if (!wait(timeout)) throw Error(TC_ERR_TIMEOUT, "no answer within " + std::to_string(timeout.count()) + " ms");
    if (const auto status = tc_future_status(handle_.get()); status != TC_OK)
      throw CallError(status, tc_future_error(handle_.get()), tc_future_code(handle_.get()),
                      tc_future_node(handle_.get()));
    size_t size = 0;
    const auto *bytes = static_cast<const std::byte *>(tc_future_bytes(handle_.get(), &size));
    return {bytes, bytes == nullptr ? 0 : size};
  }

  tc_future_t *handle() const noexcept { return handle_.get(); }

 private:
  std::unique_ptr<std::function<void()>> on_ready_;  // outlives the handle: a future that is freed calls nobody
  std::unique_ptr<tc_future_t, detail::Free<tc_future_free>> handle_;
};

// An ifunc and a payload, to be sent any number of times.
class Message {
 public:
  Message(detail::NodeHandle node, tc_message_t *handle) noexcept : node_(std::move(node)), handle_(handle) {}

  // The payload, to be read or changed between sends. Valid while the message is.
  std::span<std::byte> payload() noexcept {
    size_t size = 0;
    auto *bytes = static_cast<std::byte *>(tc_message_payload(handle_.get(), &size));
    return {bytes, size};
  }

  tc_message_t *handle() const noexcept { return handle_.get(); }

 private:
  detail::NodeHandle node_;
  std::unique_ptr<tc_message_t, detail::Free<tc_message_free>> handle_;
};

// A registered ifunc.
class Ifunc {
 public:
  Ifunc(detail::NodeHandle node, tc_ifunc_t *handle) noexcept : node_(std::move(node)), handle_(handle) {}

  std::string name() const { return tc_ifunc_name(handle_.get()); }
  // 64 hexadecimal digits: what the code is known by everywhere.
  std::string content_id() const { return tc_ifunc_content_id(handle_.get()); }

  // Makes a message: runs the ifunc's payload functions on the source args, or copies them when it has none.
  Message message(const void *source_args, size_t size) const {
    tc_message_t *message = nullptr;
    detail::check(tc_message_create(handle_.get(), source_args, size, &message));
    return {node_, message};
  }
  // The same without a copy, for large payloads: where the ifunc has no payload functions, the bytes are the payload
  // themselves, and each send reads them as they are then. They must stay in place as long as the message.
  Message message_in_place(std::span<const std::byte> source_args) const {
    tc_message_t *message = nullptr;
    detail::check(tc_message_create_in_place(handle_.get(), source_args.data(), source_args.size(), &message));
    return {node_, message};
  }
  Message message(std::string_view source_args = {}) const { return message(source_args.data(), source_args.size()); }
  template <class T>
    requires(std::is_trivially_copyable_v<T> && !std::is_convertible_v<const T &, std::string_view>)
  Message message(const T &source_args) const {
    return message(&source_args, sizeof(T));
  }

  tc_ifunc_t *handle() const noexcept { return handle_.get(); }

 private:
  detail::NodeHandle node_;
  std::unique_ptr<tc_ifunc_t, detail::Free<tc_ifunc_free>> handle_;
};

// The connection to one peer. Its end flushes for at most a second and disconnects.
class Endpoint {
 public:
  Endpoint(detail::NodeHandle node, tc_endpoint_t *handle) noexcept : node_(std::move(node)), handle_(handle) {}

  // Sends; nobody waits for the answer, flush() reports failures. Leaves with the next poll, wait or flush, or sooner.
  void send(const Message &message) { detail::check(tc_endpoint_send(handle_.get(), message.handle())); }
  // Sends and asks for the answer, to come within `deadline` (0: none; the peer's loss still ends it).
  Future call(const Message &message, milliseconds deadline = milliseconds(10'000)) {
    tc_future_t *future = nullptr;
    detail::check(tc_endpoint_call(handle_.get(), message.handle(), detail::count(deadline), &future));
    return Future(future);
  }
  // Waits until the peer has run all that was sent. Throws the first failure since the last flush.
  void flush(milliseconds timeout = milliseconds(10'000)) {
    detail::check(tc_endpoint_flush(handle_.get(), detail::count(timeout)));
  }
  // Asks the peer about itself; the answer is text, as tc_endpoint_ask_statistics() says.
  Future ask_statistics(milliseconds deadline = milliseconds(10'000)) {
    tc_future_t *future = nullptr;
    detail::check(tc_endpoint_ask_statistics(handle_.get(), detail::count(deadline), &future));
    return Future(future);
  }
  // How long send() and call() wait for room when the peer is behind.
  void set_timeout(milliseconds timeout) noexcept { tc_endpoint_set_timeout(handle_.get(), detail::count(timeout)); }

  // TC_OK while the peer is there, else why not.
  tc_status_t status() const noexcept { return tc_endpoint_status(handle_.get()); }
  // "shm", "tcp", "ucx" or "ucx-put".
  std::string transport() const { return tc_endpoint_transport(handle_.get()); }
  std::string peer() const { return tc_endpoint_peer(handle_.get()); }
  uint32_t peer_id() const noexcept { return tc_endpoint_peer_id(handle_.get()); }

  // Flushes, disconnects and frees the endpoint, also when it throws what the flush reports.
  void close(milliseconds timeout = milliseconds(10'000)) {
    detail::check(tc_endpoint_free(handle_.release(), detail::count(timeout)));
  }

  // Disconnects and frees the endpoint at once: what was sent and has not run may be lost.
  void abandon() noexcept { (void)tc_endpoint_free(handle_.release(), 0); }

  tc_endpoint_t *handle() const noexcept { return handle_.get(); }

 private:
  struct Close {
    void operator()(tc_endpoint_t *handle) const noexcept { (void)tc_endpoint_free(handle, 1000); }
  };
  detail::NodeHandle node_;
  std::unique_ptr<tc_endpoint_t, Close> handle_;
};

// This process's place in the system: source and target in one.
class Node {
 public:
  Node() : Node(nullptr) {}
  explicit Node(const Config &config) : Node(config.handle()) {}
  Node(Node &&) noexcept = default;
  Node &operator=(Node &&) noexcept = default;

  // Where peers can connect to; empty when the node does not listen.
  std::string address() const { return tc_node_address(handle()); }
  // Our number in the cluster, how many nodes there are, and where one of them can be connected to: empty when there is
  // no such node.
  uint32_t id() const noexcept { return tc_node_id(handle()); }
  uint32_t count() const noexcept { return tc_node_count(handle()); }
  std::string peer_address(uint32_t number) const { return tc_node_peer_address(handle(), number); }

  // Lets injected code call or use what lies at `address`, which must live as long as the node.
  template <class T>
  void export_symbol(const std::string &symbol, T *address) {
    // A function pointer becomes a void * on every POSIX system.
    detail::check(tc_node_export(handle(), symbol.c_str(), reinterpret_cast<void *>(address)));
  }
  // Gives injected code data by name: tc_data(name). It must live as long as the node, or until withdrawn. With several
  // threads, both functions wait for calls that use what the name stood for before; when these have not ended after a while, they
  // throw TC_ERR_BUSY, and the old memory must be kept (tc_node_expose).
  void expose(const std::string &name, std::span<std::byte> data) {
    detail::check(tc_node_expose(handle(), name.c_str(), data.data(), data.size()));
  }
  // The same of a file that `data` maps from its beginning, for code in cells, too (tc_node_expose_file).
  void expose_file(const std::string &name, std::span<std::byte> data, int fd) {
    detail::check(tc_node_expose_file(handle(), name.c_str(), data.data(), data.size(), fd));
  }
  void withdraw(const std::string &name) { detail::check(tc_node_expose(handle(), name.c_str(), nullptr, 0)); }
  // What ifuncs get as target_args.
  void set_target_args(void *target_args) noexcept { tc_node_set_target_args(handle(), target_args); }

  // Runs what has come; never waits. Returns how many ifuncs ran.
  size_t poll() {
    size_t executed = 0;
    detail::check(tc_node_poll(handle(), &executed));
    return executed;
  }
  // The same, and sleeps until there is something to do, at most `timeout`.
  size_t wait(milliseconds timeout) {
    size_t executed = 0;
    detail::check(tc_node_wait(handle(), detail::count(timeout), &executed));
    return executed;
  }
  // Ends a wait() of another thread, now or the next one. From any thread, and from signal handlers.
  void wake() noexcept { tc_node_wake(handle()); }
  // The name of the ifunc that runs at the moment; empty: none does. Any thread.
  std::string running_ifunc() const {
    char name[256] = "";
    const auto status = tc_node_running_ifunc(handle(), name, sizeof name);
    if (status != TC_ERR_NOT_FOUND) detail::check(status);
    return name;
  }
  // From now on new calls are refused: tc_node_drain() in node.h. True: no call is left. False: some run or wait; poll, and
  // call it again.
  bool drain() {
    const auto status = tc_node_drain(handle());
    if (status != TC_ERR_BUSY) detail::check(status);
    return status == TC_OK;
  }
  // Which messages are logged from now on: "info". Any thread.
  void set_log_level(const std::string &level) { detail::check(tc_node_set_log_level(handle(), level.c_str())); }
  // Reads the keyring file anew. Any thread.
  void reload_keys() { detail::check(tc_node_reload_keys(handle())); }

  // For an event loop of the program's own: see tc_node_arm() in node.h.
  int fd() const {
    int fd = -1;
    detail::check(tc_node_fd(handle(), &fd));
    return fd;
  }
  // False: there is something to do, so poll() and arm() again. True: wait for fd() at most `timeout_ms`, -1 for ever.
  bool arm(int &timeout_ms) {
    const auto status = tc_node_arm(handle(), &timeout_ms);
    if (status != TC_ERR_BUSY) detail::check(status);
    return status == TC_OK;
  }

  // A thread of the node's that polls and sleeps, so that the application need not.
  void start_progress() { detail::check(tc_node_start_progress(handle())); }
  // The same, and threads that wait poll the node themselves.
  void start_shared_progress() { detail::check(tc_node_start_shared_progress(handle())); }
  void stop_progress() { detail::check(tc_node_stop_progress(handle())); }

  // One number about the node; docs/statistics.md lists the names.
  uint64_t stat(const std::string &name) const {
    uint64_t value = 0;
    detail::check(tc_node_stat(handle(), name.c_str(), &value));
    return value;
  }

  // What the node says of itself, a thing a line: tc_endpoint_ask_statistics() has the lines.
  std::string report() const {
    std::string text;
    size_t size = 16384;
    tc_status_t status = TC_OK;
    do {
      text.resize(size);
      status = tc_node_report(handle(), text.data(), text.size(), &size);
    } while (status == TC_ERR_LIMIT);
    detail::check(status);
    text.resize(size);
    return text;
  }

  // Connects and waits until both sides have greeted.
  Endpoint connect(const std::string &address, milliseconds timeout = milliseconds(10'000)) {
    tc_endpoint_t *endpoint = nullptr;
    detail::check(tc_node_connect(handle(), address.c_str(), detail::count(timeout), &endpoint));
    return {handle_, endpoint};
  }

  // Registers the ifunc NAME.ifunc from the node's path; a name with a slash is a file.
  Ifunc load(const std::string &name) {
    tc_ifunc_t *ifunc = nullptr;
    detail::check(tc_ifunc_register(handle(), name.c_str(), &ifunc));
    return {handle_, ifunc};
  }
  // Registers an ifunc from the bytes of an .ifunc file, which are copied.
  Ifunc load(std::span<const std::byte> bundle) {
    tc_ifunc_t *ifunc = nullptr;
    detail::check(tc_ifunc_register_memory(handle(), bundle.data(), bundle.size(), &ifunc));
    return {handle_, ifunc};
  }

  tc_node_t *handle() const noexcept { return handle_.get(); }

 private:
  explicit Node(const tc_config_t *config) {
    tc_node_t *node = nullptr;
    detail::check(tc_node_create(config, &node));
    handle_ = detail::NodeHandle(node, tc_node_free);
  }

  detail::NodeHandle handle_;
};

}  // namespace threechains
