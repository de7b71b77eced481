// SPDX-License-Identifier: Apache-2.0
//
// A property test of nodes and links: from a seed, nodes do what programs may do, in any order, and in the end each
// message that was accepted has run exactly once with its bytes, or its sender was told why not (check.h).
//
//     property_test --transport tcp --seed 7 --steps 1000
//
// A seed that fails prints this command. Exit status: 0 all is right, 1 it is not, 77 the transport cannot be had here.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "check.h"
#include "cluster.h"
#include "processes.h"

namespace tc::property {

namespace {

constexpr unsigned most_seconds = 280;  // for one seed

struct Arguments {
  Wanted wanted;
  uint64_t seed = 1;
  uint64_t seeds = 1;
};

[[noreturn]] void usage(const std::string& why) {
  std::cerr << why << "\n"
            << "property_test [--transport shm|unix|tcp|tls|ucx|ucx-put] [--seed N] [--seeds COUNT] [--steps N]\n"
               "              [--nodes 2|3] [--processes] [--threads] [--without WHAT]...\n";
  std::exit(2);
}

uint64_t number_of(const std::string& name, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) usage(fmt::format("{} {} is no number", name, text));
  return value;
}

Arguments read_arguments(int argc, char** argv) {
  Arguments read;
  auto& wanted = read.wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) usage(name + " has no value");
      return argv[i];
    };
    if (name == "--transport") {
      wanted.transport = value();
    } else if (name == "--seed") {
      read.seed = number_of(name, value());
    } else if (name == "--seeds") {
      read.seeds = number_of(name, value());
    } else if (name == "--steps") {
      wanted.steps = number_of(name, value());
    } else if (name == "--nodes") {
      wanted.nodes = number_of(name, value());
    } else if (name == "--processes") {
      wanted.processes = true;
    } else if (name == "--threads") {
      wanted.threads = true;
    } else if (name == "--without") {
      wanted.leave_out.push_back(value());
    } else {
      usage(name + " is no argument");
    }
  }
  if (wanted.nodes < 2 || wanted.nodes > most_nodes) usage("--nodes is 2 or 3");
  return read;
}

std::string command_of(const char* program, const Wanted& wanted, uint64_t seed) {
  auto text = fmt::format("{} --transport {} --seed {} --steps {} --nodes {}", program, wanted.transport, seed,
                          wanted.steps, wanted.nodes);
  if (wanted.processes) text += " --processes";
  if (wanted.threads) text += " --threads";
  for (const auto& what : wanted.leave_out) text += " --without " + what;
  return text;
}

// Addresses that nobody else listens at, below those that the system gives to connections. They stay ours: a socket that does
// not listen keeps its port from all that do not allow it to be used again, as nodes do, and we only afterwards.
class Addresses {
 public:
  explicit Addresses(size_t count) {
    Random random(static_cast<uint64_t>(getpid()));
    while (texts.size() < count) reserve(static_cast<uint16_t>(10'000 + random.below(20'000)));
  }
  ~Addresses() {
    for (const int socket : sockets_) ::close(socket);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;

  std::vector<std::string> texts;

 private:
  void reserve(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return void(::close(socket));
    sockets_.push_back(socket);
    const int allowed = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &allowed, sizeof allowed);
    texts.push_back(fmt::format("127.0.0.1:{}", port));
  }

  std::vector<int> sockets_;
};

// A test that hangs or crashes says how to repeat it as well.
char said_at_the_end[512];

void on_signal(int number) {
  static constexpr char words[] = "\nthe test ended by a signal (SIGALRM: it hangs); again with:\n  ";
  (void)!write(STDERR_FILENO, words, sizeof words - 1);
  (void)!write(STDERR_FILENO, said_at_the_end, std::strlen(said_at_the_end));
  signal(number, SIG_DFL);
  raise(number);
}

void watch(const std::string& command) {
  std::snprintf(said_at_the_end, sizeof said_at_the_end, "%s\n", command.c_str());
  for (const int number : {SIGALRM, SIGSEGV, SIGBUS, SIGABRT}) {
    struct sigaction action{};
    struct sigaction before{};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_DFL) continue;  // a sanitizer's
    action.sa_handler = on_signal;
    sigaction(number, &action, nullptr);
  }
  alarm(most_seconds);
}

Findings run_in_one_process(const Wanted& wanted, uint64_t seed, const std::vector<std::string>& addresses) {
  const auto journal = make_journal();
  Scenario scenario(wanted, seed);
  std::vector<size_t> local;
  for (size_t node = 0; node < wanted.nodes; ++node) local.push_back(node);
  Cluster cluster(*journal, scenario, wanted, addresses, local, seed);
  for (size_t i = 0; i < wanted.steps; ++i) cluster.perform(scenario.next());
  cluster.settle();
  // What was sent on may still be on its way: what is missing is waited for.
  uint64_t before = 0;
  cluster.drive_until([&] {
    const auto now = journal->now();
    return std::exchange(before, now) == now && check(*journal, wanted.nodes).missing == 0;
  });
  auto found = check(*journal, wanted.nodes);
  cluster.end();
  return found;
}

// May throw Unavailable.
bool run_seed(const char* program, const Wanted& wanted, uint64_t seed) {
  const auto command = command_of(program, wanted, seed);
  watch(command);
  Findings found;
  try {
    const Addresses addresses(wanted.nodes);
    found = wanted.processes ? run_in_processes(wanted, seed, addresses.texts)
                             : run_in_one_process(wanted, seed, addresses.texts);
  } catch (const Unavailable&) {
    throw;
  } catch (const std::exception& error) {
    found.wrong.push_back(error.what());
  }
  alarm(0);
  std::cout << fmt::format("seed {}: {} accepted, {} refused, {} ran, {} calls answered, {} failed; {} may be lost\n",
                           seed, found.accepted, found.refused, found.ran, found.answered, found.failed, found.lost)
            << std::flush;
  if (found.wrong.empty()) return true;
  for (const auto& what : found.wrong) std::cout << "  " << what << "\n";
  std::cout << "again with:\n  " << command << "\n" << std::flush;
  return false;
}

}  // namespace

}  // namespace tc::property

int main(int argc, char** argv) try {
  using namespace tc::property;
  setenv("THREECHAINS_HOME", TC_TEST_HOME, 0);  // keys of the tests, not the user's own
  setenv("UCX_POSIX_USE_PROC_LINK", "n", 0);    // nodes of this process come and go: docs/transport.md, "Known risks"
  const auto arguments = read_arguments(argc, argv);
  size_t failed = 0;
  for (uint64_t i = 0; i < arguments.seeds; ++i)
    if (!run_seed(argv[0], arguments.wanted, arguments.seed + i)) ++failed;
  if (failed != 0) std::cout << fmt::format("{} of {} seeds failed\n", failed, arguments.seeds);
  return failed == 0 ? 0 : 1;
} catch (const tc::property::Unavailable& why) {
  std::cout << "SKIP: " << why.what() << "\n";
  return 77;
}
