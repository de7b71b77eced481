// SPDX-License-Identifier: Apache-2.0
#include "common/processes.h"

#include <poll.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tc::bench {

namespace {

constexpr uint64_t order_ms = 600'000;
constexpr uint64_t last_words_ms = 200;  // a peer's death may be seen before the system tells its parent

}  // namespace

Status Talk::say(const std::string& line) {
  const auto text = line + "\n";
  if (::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) return {};
  return fail(TC_ERR_DISCONNECTED, "the benchmark's other process is gone: {}", std::strerror(errno));
}

Result<std::string> Talk::hear(Deadline deadline, const Meanwhile& meanwhile) {
  while (true) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      auto line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (line.starts_with("error ")) return fail(TC_ERR_INTERNAL, "the benchmark's other process: {}", line.substr(6));
      return line;
    }
    if (meanwhile) meanwhile();
    pollfd wait{fd_.get(), POLLIN, 0};
    const auto patience_ms = meanwhile ? 0 : std::min<uint64_t>(deadline.remaining_ns() / 1'000'000 + 1, 60'000);
    if (::poll(&wait, 1, static_cast<int>(patience_ms)) > 0) {
      char chunk[4096];
      const auto got = ::recv(fd_.get(), chunk, sizeof chunk, 0);
      if (got <= 0) return fail(TC_ERR_DISCONNECTED, "the benchmark's other process ended");
      buffer_.append(chunk, static_cast<size_t>(got));
    } else if (deadline.passed()) {
      return fail(TC_ERR_TIMEOUT, "the benchmark's other process does not answer");
    }
  }
}

Status Talk::expect(std::string_view expected, const Meanwhile& meanwhile) {
  TC_ASSIGN(const auto line, hear(meanwhile));
  if (line == expected) return {};
  return fail(TC_ERR_INTERNAL, "the benchmark's other process said '{}' when '{}' was due", line, expected);
}

Result<std::string> Talk::ask(const std::string& line, const Meanwhile& meanwhile) {
  TC_CHECK(say(line));
  return hear(meanwhile);
}

Status Talk::tell(const std::string& line, std::string_view expected, const Meanwhile& meanwhile) {
  TC_CHECK(say(line));
  return expect(expected, meanwhile);
}

Status Talk::serve(const std::function<Result<std::string>(const std::string&)>& obey, const Meanwhile& meanwhile) {
  while (true) {
    TC_ASSIGN(const auto order, hear(Deadline::after_ms(order_ms), meanwhile));
    if (order == "end") return {};
    const auto answer = obey(order);
    TC_CHECK(say(answer ? *answer : "error " + answer.error().message));
  }
}

uint64_t number_in(const Arguments& arguments, const char* name) { return std::stoull(arguments.at(name)); }

Result<std::unique_ptr<Partner>> Partner::start(const std::string& kind, const Arguments& arguments,
                                                const std::function<bool()>& before_exec) {
  std::vector<std::string> command{"/proc/self/exe", "bench", "partner", kind};
  for (const auto& [name, value] : arguments) command.insert(command.end(), {"--" + name, value});
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(TC_ERR_IO, "socketpair: {}", std::strerror(errno));
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  TC_ASSIGN(auto process, ChildProcess::spawn(command, {.input = theirs.get(), .before_exec = before_exec}));
  return std::unique_ptr<Partner>(new Partner(std::move(process), std::move(ours)));
}

const std::string& Partner::end() {
  if (!end_.empty()) return end_;
  const auto exit = process_.poll();
  if (!exit) return end_;
  end_ = exit->text();
  auto last = talk_.hear(Deadline::after_ms(0));
  while (last) last = talk_.hear(Deadline::after_ms(0));
  if (last.error().code == TC_ERR_INTERNAL) end_ += ": " + last.error().message;
  return end_;
}

int run_as_partner(const PartnerKinds& kinds, const std::vector<std::string>& words) {
  const auto kind = words.empty() ? kinds.end() : kinds.find(words[0]);
  if (kind == kinds.end()) return 2;
  Arguments arguments;
  for (size_t i = 1; i + 1 < words.size(); i += 2) arguments[words[i].substr(2)] = words[i + 1];
  Talk talk{Fd(STDIN_FILENO)};  // the partner's end of the socket pair
  const auto served = kind->second(arguments, talk);
  if (served) return 0;
  (void)talk.say("error " + served.error().message);
  return 1;
}

Result<Pair> Pair::start(const std::string& kind, const std::string& transport, Arguments arguments) {
  if (usable_cpus() < 2) return fail(TC_ERR_UNSUPPORTED, "this benchmark needs two CPUs and may use {}", usable_cpus());
  Pair pair;
  TC_ASSIGN(pair.transport, BenchTransport::parse(transport));
  if (pair.transport.by_network) ::setenv("UCX_NET_DEVICES", "lo", 0);
  pair.machine = describe_machine(ucp_get_version_string());
  pair.placement = describe_placement();
  if (pair.transport.encrypted()) {
    TC_ASSIGN(pair.key, SharedKey::make());
  }
  arguments["transport"] = transport;
  TC_ASSIGN(pair.partner, Partner::start(kind, arguments));
  pin_to(0);
  return pair;
}

Result<Site> Site::prepare(const std::string& transport, bool loopback, uint32_t servers) {
  Site site;
  TC_ASSIGN(site.transport, BenchTransport::parse(transport));
  if (site.transport.encrypted()) {
    TC_ASSIGN(site.key, SharedKey::make());
  }
  if (site.transport.by_network) site.network = choose_network(loopback, servers);
  site.machine = describe_machine(ucp_get_version_string());
  return site;
}

Result<std::unique_ptr<Servers>> Servers::start(const std::string& kind, Arguments arguments, uint32_t count,
                                                const Site& site) {
  const auto* const network = site.network.network.get();
  std::unique_ptr<Servers> servers(new Servers);
  TC_ASSIGN(const auto rendezvous, TemporaryDirectory::create());  // not needed any more once all have met
  arguments["transport"] = site.transport.name;
  arguments["servers"] = std::to_string(count);
  arguments["rendezvous"] = rendezvous.path().string();
  for (uint32_t i = 0; i < count; ++i) {
    arguments["index"] = std::to_string(i);
    arguments["host"] = network != nullptr ? Network::server_address(i) : "127.0.0.1";
    TC_ASSIGN(auto partner, Partner::start(kind, arguments, [&] { return network == nullptr || network->enter(i); }));
    servers->partners_.push_back(std::move(partner));
  }
  for (uint32_t i = 0; i < count; ++i) {
    TC_ASSIGN(const auto line, servers->hear(i, {}));
    constexpr std::string_view ready = "ready ";
    if (!line.starts_with(ready)) return fail(TC_ERR_INTERNAL, "server {} said '{}' when it was to be ready", i, line);
    servers->contacts_.push_back(line.substr(ready.size()));
  }
  return servers;
}

Status Servers::say(const std::string& line) {
  for (const auto& partner : partners_)
    if (const auto said = partner->talk().say(line); !said) return fail(explain(said.error()));
  return {};
}

Result<std::string> Servers::hear(uint32_t index, const Watch& watch) {
  const auto deadline = Deadline::after_ms(Talk::answer_ms);
  while (true) {
    auto line = partners_[index]->talk().hear(Deadline::after_ms(100));
    if (line) return line;
    if (line.error().code != TC_ERR_INTERNAL) TC_CHECK(alive());  // else the server has said why
    if (line.error().code != TC_ERR_TIMEOUT || deadline.passed())
      return context(fmt::format("server {}", index), std::move(line).error());
    if (watch) TC_CHECK(watch());
  }
}

Status Servers::tell(const std::string& line, const std::string& expected, const Watch& watch) {
  TC_CHECK(say(line));
  for (uint32_t i = 0; i < partners_.size(); ++i) {
    TC_ASSIGN(const auto answer, hear(i, watch));
    if (answer != expected) return fail(TC_ERR_INTERNAL, "server {} said '{}' when '{}' was due", i, answer, expected);
  }
  return {};
}

Result<uint64_t> Servers::ask_sum(const std::string& line, const Watch& watch) {
  TC_CHECK(say(line));
  uint64_t sum = 0;
  for (uint32_t i = 0; i < partners_.size(); ++i) {
    TC_ASSIGN(const auto answer, hear(i, watch));
    uint64_t number = 0;
    if (!read_words(answer, number))
      return fail(TC_ERR_INTERNAL, "server {} said '{}' when a number was due", i, answer);
    sum += number;
  }
  return sum;
}

Status Servers::alive() {
  for (uint32_t i = 0; i < partners_.size(); ++i)
    if (const auto end = partners_[i]->end(); !end.empty()) return fail(TC_ERR_DISCONNECTED, "server {} {}", i, end);
  return {};
}

Error Servers::explain(Error error) {
  const auto deadline = Deadline::after_ms(last_words_ms);
  do {
    if (const auto state = alive(); !state) {
      if (error.message.find(state.error().message) != std::string::npos) return error;
      return {state.error().code, fmt::format("{} ({})", state.error().message, error.message)};
    }
    ::usleep(5000);
  } while (!deadline.passed());
  return error;
}

Result<ServerPlace> place_in(const Arguments& arguments) {
  TC_ASSIGN(auto transport, BenchTransport::parse(arguments.at("transport")));
  return ServerPlace{std::move(transport), arguments.at("host"), arguments.at("rendezvous"),
                     static_cast<uint32_t>(number_in(arguments, "index")),
                     static_cast<uint32_t>(number_in(arguments, "servers"))};
}

}  // namespace tc::bench
