// SPDX-License-Identifier: Apache-2.0
//
// The processes of a benchmark: how one starts the others, places them on CPUs or in network namespaces, and agrees
// with them on what comes next. They talk by lines of text over a socket pair, outside of what is measured. Thread: one
// for each object.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "base/result.h"
#include "common/machine.h"
#include "common/network.h"
#include "common/node.h"

namespace tc::bench {

// Called over and over while something is waited for.
using Meanwhile = std::function<void()>;
// The same; an error ends the wait.
using Watch = std::function<Status()>;

// The words of a line, each as its variable's type has it. False: there are fewer, or one is no such thing.
template <class... Words>
bool read_words(const std::string& line, Words&... into) {
  std::istringstream words(line);
  return static_cast<bool>((words >> ... >> into));
}

// The value of an enumeration by its name. TC_ERR_INVALID: there is none.
template <class Value, size_t count>
Result<Value> value_named(const std::array<std::string_view, count>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return fail(TC_ERR_INVALID, "there is no '{}' among {}", name, fmt::join(names, ", "));
  return static_cast<Value>(found - names.begin());
}

class Talk {
 public:
  static constexpr uint64_t answer_ms = 120'000;
  explicit Talk(Fd socket) : fd_(std::move(socket)) {}
  Status say(const std::string& line);
  // The next line. This thread sleeps until it comes, unless there is something to do meanwhile.
  // TC_ERR_DISCONNECTED when the other ended, TC_ERR_TIMEOUT. A line "error TEXT" is the other's error.
  Result<std::string> hear(Deadline deadline, const Meanwhile& meanwhile = {});
  Result<std::string> hear(const Meanwhile& meanwhile = {}) { return hear(Deadline::after_ms(answer_ms), meanwhile); }
  // The next line must be `expected`.
  Status expect(std::string_view expected, const Meanwhile& meanwhile = {});
  // Says a line, and hears the answer.
  Result<std::string> ask(const std::string& line, const Meanwhile& meanwhile = {});
  Status tell(const std::string& line, std::string_view expected, const Meanwhile& meanwhile = {});
  // Answers each line with what `obey` makes of it, or with its error, until the other says "end".
  Status serve(const std::function<Result<std::string>(const std::string&)>& obey, const Meanwhile& meanwhile = {});

 private:
  Fd fd_;
  std::string buffer_;
};

// What a partner is told when it starts: --NAME VALUE on its command line.
using Arguments = std::map<std::string, std::string>;
uint64_t number_in(const Arguments& arguments, const char* name);

// A process of this program that runs `ifunc bench partner KIND`. It dies with us, and is ended by the destructor.
class Partner {
 public:
  // `before_exec`, when given, runs in the new process before its program (base/process.h); false ends it.
  static Result<std::unique_ptr<Partner>> start(const std::string& kind, const Arguments& arguments = {},
                                                const std::function<bool()>& before_exec = {});
  Talk& talk() noexcept { return talk_; }
  // How it ended ("was killed by signal 9 (Killed)", "ended with exit code 1: " and an error that it sent and that
  // was not read); empty while it runs.
  const std::string& end();

 private:
  Partner(ChildProcess process, Fd socket) : process_(std::move(process)), talk_(std::move(socket)) {}
  ChildProcess process_;
  std::string end_;
  Talk talk_;
};

// What a partner's process does, by its KIND. Its error is sent to the process that started it.
using PartnerKinds = std::map<std::string, Status (*)(const Arguments&, Talk&)>;
// `words`: KIND, and its arguments. The exit code.
int run_as_partner(const PartnerKinds& kinds, const std::vector<std::string>& words);

// This process on the first CPU, and its partner, the target, which is to pin itself to the second.
struct Pair {
  // Starts the target with a further argument, the transport. TC_ERR_UNSUPPORTED with one CPU. UCX stays on the
  // loopback device.
  static Result<Pair> start(const std::string& kind, const std::string& transport, Arguments arguments = {});

  Talk& talk() noexcept { return partner->talk(); }
  // Gives the target an order, measures while it obeys, and hears that it is done.
  template <class Measure>
  Result<double> measure(const std::string& order, const Meanwhile& meanwhile, Measure measure) {
    TC_CHECK(talk().tell(order, "go", meanwhile));
    TC_ASSIGN(const double value, measure());
    TC_CHECK(talk().expect("done", meanwhile));
    return value;
  }

  BenchTransport transport;
  Machine machine;
  Placement placement;
  std::optional<SharedKey> key;
  std::unique_ptr<Partner> partner;
};

// Where a benchmark with several servers runs.
struct Site {
  // Sets the device that UCX uses. For a process that has one thread.
  static Result<Site> prepare(const std::string& transport, bool loopback, uint32_t servers);
  std::string client_host() const { return network.network != nullptr ? Network::client_address() : "127.0.0.1"; }

  BenchTransport transport;
  std::optional<SharedKey> key;
  ChosenNetwork network;
  Machine machine;
};

// Several servers, which are all told the same.
class Servers {
 public:
  // Starts `count` of them, each in its namespace when the site has a network, with the further arguments of
  // ServerPlace. Each answers "ready" and how to reach it.
  static Result<std::unique_ptr<Servers>> start(const std::string& kind, Arguments arguments, uint32_t count,
                                                const Site& site);
  // What they said when they were ready, after that word.
  const std::vector<std::string>& contacts() const noexcept { return contacts_; }
  // Sends a line to all of them and waits for `expected` from each.
  Status tell(const std::string& line, const std::string& expected, const Watch& watch = {});
  // The sum of the numbers that they answer to a line.
  Result<uint64_t> ask_sum(const std::string& line, const Watch& watch = {});
  Status end() { return say("end"); }
  // An error when a server has ended, which says how.
  Status alive();
  // The error itself; or, when a server has ended, an error that names that server as the cause.
  Error explain(Error error);

 private:
  Servers() = default;
  Status say(const std::string& line);
  Result<std::string> hear(uint32_t index, const Watch& watch);

  std::vector<std::unique_ptr<Partner>> partners_;
  std::vector<std::string> contacts_;
};

// Where a server stands, by its arguments.
Result<ServerPlace> place_in(const Arguments& arguments);

}  // namespace tc::bench
