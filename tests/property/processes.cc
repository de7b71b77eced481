// SPDX-License-Identifier: Apache-2.0
#include "processes.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cluster.h"

namespace tc::property {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int unavailable = 77;  // the exit status of a child
constexpr auto most_to_settle = std::chrono::seconds(200), most_missing = std::chrono::seconds(60);

// What a child does.
int serve(Journal& journal, const Wanted& wanted, uint64_t seed, const std::vector<std::string>& addresses, size_t node,
          uint64_t stream) try {
  auto& log = journal.node[node];
  Scenario scenario(wanted, seed, stream);
  Cluster cluster(journal, scenario, wanted, addresses, {node}, seed + stream);
  log.phase = Phase::steps;
  log.listens = true;
  const auto all = std::span(journal.node).first(wanted.nodes);
  while (!std::ranges::all_of(all, [](const NodeLog& one) { return one.listens.load(); })) cluster.poll_once();
  while (log.steps < wanted.steps) {
    cluster.perform(scenario.next());
    cluster.poll_once();
  }
  cluster.settle();
  log.phase = Phase::settled;
  while (!journal.ends) cluster.drive_until([&] { return journal.ends.load(); });
  cluster.end();
  return 0;
} catch (const Unavailable& why) {
  std::printf("%s\n", why.what());
  std::fflush(stdout);
  return unavailable;
} catch (const std::exception& error) {
  std::fprintf(stderr, "the process of node %zu ends: %s\n", node, error.what());
  return 1;
}

// Which process is killed or stopped, once it has done so many steps.
struct Blow {
  size_t node;
  uint32_t step;
  milliseconds stopped;  // 0: it is killed
};

class Processes {
 public:
  Processes(const Wanted& wanted, uint64_t seed, const std::vector<std::string>& addresses)
      : journal_(make_journal()), wanted_(wanted), seed_(seed), addresses_(addresses), children_(wanted.nodes) {
    Random random(seed ^ 0x6b696c6c);
    for (size_t i = random.below(8); i > 0; --i) {
      const Blow blow{random.below(wanted.nodes), static_cast<uint32_t>(random.below(wanted.steps)),
                      milliseconds(random.one_in(2) ? 0 : 1 + random.below(50))};
      if (blow.stopped == milliseconds(0) && (wanted.leaves_out("kill") || wanted.transport.starts_with("ucx")))
        continue;
      blows_.push_back(blow);
    }
  }
  ~Processes() {
    for (const auto pid : children_)
      if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
      }
  }

  Findings run() {
    for (size_t node = 0; node < wanted_.nodes; ++node) start(node);
    const auto all_settled = [&] {
      return std::ranges::all_of(std::span(journal_->node).first(wanted_.nodes),
                                 [](const NodeLog& log) { return log.phase == Phase::settled; });
    };
    for (auto until = Clock::now() + most_to_settle; !all_settled();) {
      if (Clock::now() > until) return ended("not all processes came to an end of their steps");
      if (strike()) until = Clock::now() + most_to_settle;
      if (const auto died = first_dead(); !died.empty()) return ended(died);
      std::this_thread::sleep_for(milliseconds(1));
    }
    uint64_t before = 0;
    for (const auto until = Clock::now() + most_missing; Clock::now() < until;) {
      const auto now = journal_->now();
      if (std::exchange(before, now) == now && check(*journal_, wanted_.nodes).missing == 0) break;
      std::this_thread::sleep_for(milliseconds(20));
    }
    auto found = check(*journal_, wanted_.nodes);
    journal_->ends = true;
    for (size_t node = 0; node < wanted_.nodes; ++node) {
      int status = 0;
      waitpid(std::exchange(children_[node], 0), &status, 0);
      if (status != 0) found.wrong.push_back(fmt::format("the process of node {} ended with {}", node, status));
    }
    return found;
  }

 private:
  Findings ended(const std::string& why) const {
    auto found = check(*journal_, wanted_.nodes);
    found.wrong.insert(found.wrong.begin(), why);
    return found;
  }

  void start(size_t node) {
    const uint64_t stream = 1 + node + most_nodes * started_++;
    const auto pid = fork();
    if (pid < 0) throw std::runtime_error("no process can be had");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::_Exit(serve(*journal_, wanted_, seed_, addresses_, node, stream));
    }
    children_[node] = pid;
  }

  std::string first_dead() {
    for (size_t node = 0; node < wanted_.nodes; ++node) {
      int status = 0;
      if (waitpid(children_[node], &status, WNOHANG) != children_[node]) continue;
      children_[node] = 0;
      if (WIFEXITED(status) && WEXITSTATUS(status) == unavailable) throw Unavailable("a node cannot be had here");
      return fmt::format("the process of node {} ended before its time, with {}", node, status);
    }
    return {};
  }

  // True: something happened.
  bool strike() {
    const auto due =
        std::ranges::find_if(blows_, [&](const Blow& blow) { return journal_->node[blow.node].steps >= blow.step; });
    if (due == blows_.end()) return false;
    const auto blow = *due;
    blows_.erase(due);
    auto& log = journal_->node[blow.node];
    if (blow.stopped != milliseconds(0)) {
      kill(children_[blow.node], SIGSTOP);
      std::this_thread::sleep_for(blow.stopped);
      kill(children_[blow.node], SIGCONT);
      return true;
    }
    kill(children_[blow.node], SIGKILL);
    waitpid(children_[blow.node], nullptr, 0);
    if (log.lives != 0)
      if (auto& life = log.life[log.lives - 1]; life.ended == 0) {
        life.killed = true;
        if (life.ending == 0) life.ending = journal_->tick();
        life.ended = journal_->tick();
      }
    log.phase = Phase::steps;
    start(blow.node);
    return true;
  }

  const JournalMemory journal_;
  const Wanted& wanted_;
  const uint64_t seed_;
  const std::vector<std::string>& addresses_;
  std::vector<pid_t> children_;
  std::vector<Blow> blows_;
  uint64_t started_ = 0;
};

}  // namespace

Findings run_in_processes(const Wanted& wanted, uint64_t seed, const std::vector<std::string>& addresses) {
  return Processes(wanted, seed, addresses).run();
}

}  // namespace tc::property
