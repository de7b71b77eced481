// SPDX-License-Identifier: Apache-2.0
//
// `ifunc cluster`: nodes on this machine, for as long as a command runs.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "ifunc/arguments.h"
#include "ifunc/commands.h"
#include "ifunc/serve_options.h"

namespace tc::command {
namespace {

constexpr unsigned most_nodes = 256;       // a typing mistake should not start a million processes
constexpr size_t last_words_bytes = 4096;  // of a node's output, kept for when it dies
constexpr uint64_t grace_ms = 5000;        // after `drain`, before SIGKILL: a compilation may have to end first
// Before a node that died is started again: twice as long each time, until one has lived for a while.
constexpr uint64_t first_pause_ms = 100, longest_pause_ms = 10'000, well_after_ms = 60'000;
constexpr uint64_t longest_wait_ms = 60'000;

std::string joined(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, ",")); }

// One node and what it says.
struct NodeProcess {
  unsigned id;
  std::optional<ChildProcess> process;  // always one
  std::string address = {};             // empty: not ready yet
  std::string line = {};                // not yet ended by a line feed
  std::string last_words = {};
  bool is_reported = false;  // that it died
  uint64_t begun_ns = now_ns();
  uint64_t pause_ms = first_pause_ms;
  std::optional<Deadline> again = {};  // when it is started again

  // Passes on what the node printed, marked with its number.
  void relay() {
    line += process->take_output();
    size_t end = 0;
    while ((end = line.find('\n')) != std::string::npos) {
      take_line(line.substr(0, end));
      line.erase(0, end + 1);
    }
  }

  void take_line(const std::string& text) {
    if (text.starts_with("ready ")) {
      address = text.substr(6);
      return;
    }
    std::fprintf(stderr, "[node %u] %s\n", id, text.c_str());
    last_words += last_words.empty() ? text : "\n" + text;
    if (last_words.size() > last_words_bytes) last_words.erase(0, last_words.size() - last_words_bytes);
  }

  std::string death(const ExitStatus& exit) const {
    return fmt::format("node {} died with exit code {}{}; its last words: {}", id, exit.as_shell(),
                       exit.signal != 0 ? fmt::format(" ({})", strsignal(exit.signal)) : "",
                       last_words.empty() ? "none" : last_words);
  }
};

class Cluster {
 public:
  // Takes SIGCHLD, SIGINT and SIGTERM as events from now on.
  Status start(unsigned count, const ServeOptions& shared, uint32_t ready_timeout_ms, bool restart);
  // Waits until all nodes are ready.
  Status wait_until_ready(Deadline deadline);
  // Runs the command to its end; its exit code, in the shell's numbers.
  Result<int> run(const std::vector<std::string>& command);
  // SIGTERM to all nodes, SIGKILL to those that do not listen to it, or when a second signal to stop comes.
  void stop();
  ~Cluster() {
    if (signals_ >= 0) close(signals_);
  }

 private:
  // Sleeps until a node says something, a signal comes or the deadline; returns the signal to stop, or 0.
  int wait_for_event(Deadline deadline);
  Result<ChildProcess> spawn(ServeOptions options, unsigned id) const;
  void report_deaths();
  // Those that died, if they are to be. A node finds the others by their addresses, and is found by the one that it had.
  void restart_what_is_due();

  std::string program_;
  ServeOptions shared_;
  bool restart_ = false;
  std::optional<TemporaryDirectory> rendezvous_;  // where the nodes find each other
  std::vector<std::string> addresses_;            // once all are ready
  std::vector<NodeProcess> nodes_;
  bool ready_ = false;
  uint64_t stop_deadline_ms_ = grace_ms;  // from SIGTERM to SIGKILL
  int signals_ = -1;
};

Status Cluster::start(unsigned count, const ServeOptions& shared, uint32_t ready_timeout_ms, bool restart) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signals_ < 0) return fail(TC_ERR_IO, "cannot watch for signals: {}", std::strerror(errno));

  TC_ASSIGN(rendezvous_, TemporaryDirectory::create());
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail(TC_ERR_IO, "cannot find this program's own file: {}", error.message());
  program_ = self.string();
  shared_ = shared;
  restart_ = restart;
  stop_deadline_ms_ = shared.drain_ms() + grace_ms;
  nodes_.reserve(count);
  for (unsigned id = 0; id < count; ++id) {
    ServeOptions options = shared.of_node(id);
    options.set("nodes", std::to_string(count));
    options.set("bootstrap", "dir:" + rendezvous_->file("nodes"));
    options.set("bootstrap-timeout", std::to_string(std::max(ready_timeout_ms, 1u)));
    TC_ASSIGN(auto process, spawn(std::move(options), id));
    nodes_.push_back({.id = id, .process = std::move(process)});
  }
  return {};
}

Result<ChildProcess> Cluster::spawn(ServeOptions options, unsigned id) const {
  options.quiet_stop = true;
  options.set("id", std::to_string(id));
  options.set("name", fmt::format("node{}", id));
  std::vector<std::string> arguments = {program_, "serve"};
  for (auto& argument : options.arguments()) arguments.push_back(std::move(argument));
  return ChildProcess::spawn(arguments, {.output = Output::captured, .errors = Output::captured, .own_group = true});
}

int Cluster::wait_for_event(Deadline deadline) {
  std::vector<pollfd> watched = {{signals_, POLLIN, 0}};
  for (const auto& node : nodes_)
    if (node.process->output_fd() >= 0) watched.push_back({node.process->output_fd(), POLLIN, 0});
  const auto timeout_ms = std::min<uint64_t>(deadline.remaining_ns() / 1'000'000 + 1, longest_wait_ms);
  ::poll(watched.data(), watched.size(), static_cast<int>(timeout_ms));
  for (auto& node : nodes_) node.relay();
  int stop_signal = 0;
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD) stop_signal = static_cast<int>(info.ssi_signo);
  return stop_signal;
}

Status Cluster::wait_until_ready(Deadline deadline) {
  while (true) {
    size_t ready = 0;
    for (auto& node : nodes_) {
      if (const auto exit = node.process->poll()) {
        node.relay();
        node.is_reported = true;
        return fail(TC_ERR_DISCONNECTED, "{}", node.death(*exit));
      }
      ready += !node.address.empty();
    }
    ready_ = ready == nodes_.size();
    if (ready_) {
      for (const auto& node : nodes_) addresses_.push_back(node.address);
      rendezvous_.reset();  // all have met
      return {};
    }
    if (deadline.passed())
      return fail(TC_ERR_TIMEOUT, "{} of {} nodes were ready when the deadline passed (--ready-timeout)", ready,
                  nodes_.size());
    if (const int number = wait_for_event(deadline)) return fail(TC_ERR_CLOSED, "stopped by {}", strsignal(number));
  }
}

void Cluster::report_deaths() {
  for (auto& node : nodes_) {
    const auto exit = node.is_reported ? std::nullopt : node.process->poll();
    if (!exit) continue;
    node.relay();
    node.is_reported = true;
    if (!restart_) {
      std::fprintf(stderr, "ifunc cluster: %s\n", node.death(*exit).c_str());
      continue;
    }
    if (now_ns() - node.begun_ns >= well_after_ms * 1'000'000) node.pause_ms = first_pause_ms;
    std::fprintf(stderr, "ifunc cluster: node %u is started again in %llu ms: %s\n", node.id,
                 (unsigned long long)node.pause_ms, node.death(*exit).c_str());
    node.again = Deadline::after_ms(node.pause_ms);
    node.pause_ms = std::min(node.pause_ms * 2, longest_pause_ms);
  }
}

void Cluster::restart_what_is_due() {
  for (auto& node : nodes_) {
    if (!node.again || !node.again->passed()) continue;
    ServeOptions options = shared_.of_node(node.id);
    options.set("listen", addresses_[node.id]);
    options.set("cluster", joined(addresses_));
    auto process = spawn(std::move(options), node.id);
    if (!process) {  // a limit of processes, perhaps
      std::fprintf(stderr, "ifunc cluster: node %u: %s\n", node.id, process.error().message.c_str());
      node.again = Deadline::after_ms(node.pause_ms);
      continue;
    }
    node.process.emplace(std::move(*process));
    node.again.reset();
    node.is_reported = false;
    node.begun_ns = now_ns();
    node.line.clear();
    node.last_words.clear();
  }
}

Result<int> Cluster::run(const std::vector<std::string>& command) {
  const SpawnOptions options{
      .environment = {"TC_CLUSTER_ADDRESSES=" + joined(addresses_),
                      fmt::format("TC_CLUSTER_SIZE={}", addresses_.size())},
  };
  TC_ASSIGN(auto process, ChildProcess::spawn(command, options));
  while (!process.poll()) {
    auto next = Deadline::after_ms(longest_wait_ms);
    for (const auto& node : nodes_)
      if (node.again && node.again->remaining_ns() < next.remaining_ns()) next = *node.again;
    const int stop_signal = wait_for_event(next);
    report_deaths();
    restart_what_is_due();
    if (stop_signal == 0) continue;
    process.signal(stop_signal);
    if (!process.wait(Deadline::after_ms(grace_ms))) process.kill();
    process.wait(Deadline::after_ms(grace_ms));
    return 128 + stop_signal;
  }
  return process.poll()->as_shell();
}

void Cluster::stop() {
  for (auto& node : nodes_) {
    node.is_reported = node.is_reported || !ready_;  // of several that fail to start, the first one's words do
    node.process->signal(SIGTERM);
  }
  auto deadline = Deadline::after_ms(stop_deadline_ms_);
  const auto begun_ns = now_ns();
  for (auto& node : nodes_) {
    while (!node.process->poll() && !deadline.passed())
      if (wait_for_event(Deadline::after_ms(20)) != 0) deadline = Deadline::after_ms(0);
    const auto exit = node.process->poll();
    node.relay();
    if (!exit) {
      std::fprintf(stderr, "ifunc cluster: node %u did not stop within %llu ms of SIGTERM: killed\n", node.id,
                   (unsigned long long)((now_ns() - begun_ns) / 1'000'000));
      node.process->kill();
      node.process->wait(Deadline::after_ms(grace_ms));
    } else if (!exit->success() && !node.is_reported) {
      std::fprintf(stderr, "ifunc cluster: %s\n", node.death(*exit).c_str());
    }
  }
}

Result<int> run_cluster(unsigned count, ServeOptions shared, const std::vector<std::string>& command,
                        uint32_t ready_timeout_ms, bool restart) {
  TC_CHECK(shared.check());
  Cluster cluster;
  TC_CHECK(cluster.start(count, shared, ready_timeout_ms, restart));
  if (auto status = cluster.wait_until_ready(Deadline::after_ms(ready_timeout_ms)); !status) {
    cluster.stop();
    return fail(std::move(status).error());
  }
  auto exit_code = cluster.run(command);
  cluster.stop();
  return exit_code;
}

}  // namespace

void add_cluster(CLI::App& app, const std::vector<char*>& command, int& exit_code) {
  auto* sub = app.add_subcommand("cluster", "Run a command beside N nodes on this machine");
  sub->footer(
      "Write it as `ifunc cluster N [OPTIONS] -- COMMAND [ARGUMENTS...]`.\n\n"
      "Nodes have the numbers 0 to N-1 and know each other, so ifuncs can tc_forward() and tc_inject(). COMMAND finds\n"
      "their addresses in $TC_CLUSTER_ADDRESSES (comma-separated) and their number in $TC_CLUSTER_SIZE; inside,\n"
      "`ifunc send` takes a node's number as its target. `{id}` in a file of --data is the node's number. All nodes "
      "stop\n"
      "with the command, whose exit code is ours.\n\n"
      "  ifunc cluster 4 -- sh -c 'ifunc send hello.ifunc 2 --payload world'");
  struct Options {
    unsigned count = 0;
    uint32_t ready_timeout_ms = 20'000;
    bool restart = false;
    ServeOptions serve;
  };
  auto options = std::make_shared<Options>();
  sub->add_option("N", options->count, "How many nodes")->required()->check(CLI::Range(1u, most_nodes));
  sub->add_option("--ready-timeout", options->ready_timeout_ms, "Milliseconds that nodes may take to start")
      ->capture_default_str();
  sub->add_flag("--restart", options->restart,
                "Start a node that dies again, at its address, after a pause that grows from 0.1 s to 10 s");
  options->serve.add_shared_to(*sub);
  sub->callback([options, &command, &exit_code] {
    if (command.empty()) {
      std::fprintf(stderr, "ifunc cluster: no command to run: write `ifunc cluster N -- COMMAND`\n");
      exit_code = 2;
      return;
    }
    if (const auto read = options->serve.read_config_file(); !read) {
      std::fprintf(stderr, "ifunc cluster: %s\n", read.error().message.c_str());
      exit_code = exit_bad_configuration;
      return;
    }
    if (!options->serve.metrics.empty()) {
      std::fprintf(stderr,
                   "ifunc cluster: the file sets metrics, which is one node's: nodes cannot share an address\n");
      exit_code = exit_bad_configuration;
      return;
    }
    const auto result = run_cluster(options->count, options->serve, {command.begin(), command.end()},
                                    options->ready_timeout_ms, options->restart);
    if (result) {
      exit_code = *result;
    } else {
      std::fprintf(stderr, "ifunc cluster: %s\n", result.error().message.c_str());
      exit_code = result.error().code == TC_ERR_INVALID ? 2 : result.error().code == TC_ERR_NOT_FOUND ? 127 : 1;
    }
  });
}

}  // namespace tc::command
