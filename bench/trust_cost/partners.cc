// SPDX-License-Identifier: Apache-2.0
//
// The further processes: a node that is called and connected to, and one that connects to a node over and over.
//
// It does so with whole handshakes of a trusted peer, or with half of one, as a stranger would send it to make a node
// work: the first bytes of a client. The node answers with a key exchange and a signature, and the stranger leaves.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/bytes.h"
#include "base/fd.h"
#include "trust_cost/trust_bench.h"

namespace tc::bench {

namespace {

constexpr int patience_ms = 200;
constexpr std::byte handshake_record{0x16};

sockaddr_in loopback(uint16_t port) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::unexpected<Error> failed(const char* what) { return fail(TC_ERR_IO, "{}: {}", what, system_words(errno)); }

Result<uint16_t> port_of(const std::string& address) {
  uint16_t port = 0;
  const auto* const end = address.data() + address.size();
  const auto* const digits = address.data() + address.rfind(':') + 1;
  if (std::from_chars(digits, end, port).ptr != end) return fail(TC_ERR_INVALID, "'{}' has no port", address);
  return port;
}

bool readable(const Fd& socket) noexcept {
  pollfd waiting{socket.get(), POLLIN, 0};
  return ::poll(&waiting, 1, patience_ms) == 1;
}

// One connection; whether it was answered by a record of a handshake.
Result<bool> half_handshake(const sockaddr_in& address, ByteView hello) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger reset{1, 0};  // leaves no port waiting behind
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset) != 0)
    return failed("a socket of the flood");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed("connecting the flood");
  std::byte first{};
  return ::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(hello.size()) &&
         readable(socket) && ::recv(socket.get(), &first, 1, 0) == 1 && first == handshake_record;
}

// What one of our nodes sends first when it connects.
Result<Bytes> record_client_hello() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = loopback(0);
  socklen_t size = sizeof address;
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return failed("a listener for the first bytes of a handshake");
  TC_ASSIGN(const auto transport, BenchTransport::parse("tls"));
  TC_ASSIGN(auto node, make_node(transport, {{"log", "off"}}));
  std::thread connecting([&] {
    (void)attempt([&] {
      (void)node.connect(fmt::format("127.0.0.1:{}", ntohs(address.sin_port)), threechains::milliseconds(2000));
    });
  });
  Bytes hello(8192);
  ssize_t got = -1;
  if (readable(listener)) {
    const Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket && readable(socket)) got = ::recv(socket.get(), hello.data(), hello.size(), 0);
  }
  connecting.join();
  if (got <= 0 || hello[0] != handshake_record)
    return fail(TC_ERR_INTERNAL, "a node that connects does not begin with a handshake");
  hello.resize(static_cast<size_t>(got));
  return hello;
}

constexpr int connecting_threads = 4, flooding_threads = 8;

// Runs `work` on so many threads; the first error.
template <class Work>
Status on_threads(int count, const Work& work) {
  std::vector<Status> results(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = work(); });
  for (auto& thread : threads) thread.join();
  for (auto& result : results)
    if (!result) return result;
  return {};
}

Result<std::string> connect_for(const std::string& address, uint64_t ms) {
  TC_ASSIGN(const auto transport, BenchTransport::parse("tls"));
  std::atomic<uint64_t> connections{0}, spent_ns{0};
  TC_CHECK(on_threads(connecting_threads, [&]() -> Status {
    TC_ASSIGN(auto node, make_node(transport, {{"log", "off"}, {"listen", "none"}}));
    const auto started = now_ns();
    const auto deadline = Deadline::after_ms(ms);
    while (!deadline.passed()) {
      TC_CHECK(attempt([&] { node.connect(address, connect_limit).abandon(); }));
      ++connections;
    }
    spent_ns += now_ns() - started;
    return {};
  }));
  const auto seconds = static_cast<double>(spent_ns.load()) / 1e9 / connecting_threads;
  return fmt::format("{} {}", connections.load(), static_cast<double>(connections.load()) / seconds);
}

Result<std::string> flood_for(const std::string& address, ByteView hello, uint64_t ms) {
  TC_ASSIGN(const auto port, port_of(address));
  std::atomic<uint64_t> answered{0};
  const auto started = now_ns();
  const auto deadline = Deadline::after_ms(ms);
  TC_CHECK(on_threads(flooding_threads, [&]() -> Status {
    while (!deadline.passed()) {
      TC_ASSIGN(const bool was_answered, half_handshake(loopback(port), hello));
      if (was_answered) answered.fetch_add(1, std::memory_order_relaxed);
    }
    return {};
  }));
  const auto seconds = static_cast<double>(now_ns() - started) / 1e9;
  return fmt::format("{} {}", answered.load(), static_cast<double>(answered.load()) / seconds);
}

}  // namespace

Status serve_trust_flood(const Arguments&, Talk& talk) {
  TC_ASSIGN(const auto hello, record_client_hello());
  TC_CHECK(talk.say("ready"));
  return talk.serve([&](const std::string& order) -> Result<std::string> {
    std::string verb, address;
    uint64_t ms = 0;
    read_words(order, verb, address, ms);
    TC_CHECK(talk.say("go"));
    return verb == "connect" ? connect_for(address, ms) : flood_for(address, hello, ms);
  });
}

namespace {

// CPU time of all threads but the one that polls.
uint64_t cpu_ns_of_other_threads() {
  uint64_t sum = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    uint64_t ns = 0;
    std::ifstream(task.path() / "schedstat") >> ns;
    sum += ns;
  }
  return sum;
}

}  // namespace

Status serve_trust_target(const Arguments& arguments, Talk& talk) {
  constexpr uint32_t wait_ms = 2;
  TC_ASSIGN(const auto transport, BenchTransport::parse("tls"));
  TC_ASSIGN(auto node,
            make_node(transport,
                      {{"name", "target"}, {"warm-up", "on"}, {"log", "off"}, {"keyring", arguments.at("keyring")}}));
  uint64_t counter = 0;
  node.set_target_args(&counter);
  TC_CHECK(talk.say(node.address()));
  const auto obey = [&](const std::string& order) -> Result<std::string> {
    if (order == "cpu") return std::to_string(cpu_ns_of_other_threads());
    return attempt([&] { return std::to_string(node.stat(order.c_str())); });
  };
  return talk.serve(obey, [&] { (void)tc_node_wait(node.handle(), wait_ms, nullptr); });
}

}  // namespace tc::bench
