// SPDX-License-Identifier: Apache-2.0
#include "dapc/servers.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"

namespace tc::bench {

namespace {

constexpr uint64_t answer_ms = 60'000;
constexpr uint64_t last_words_ms = 200;  // a peer's death may be seen before the system tells its parent

}  // namespace

Result<std::unique_ptr<Servers>> Servers::start(const DapcOptions& options, uint32_t count, const Network* network) {
  std::unique_ptr<Servers> servers(new Servers);
  TC_ASSIGN(const auto rendezvous, TemporaryDirectory::create());  // not needed any more once all have met
  for (uint32_t i = 0; i < count; ++i) {
    const std::vector<std::string> arguments{
        "bench",        "dapc-server",
        "--transport",  options.transport,
        "--index",      std::to_string(i),
        "--servers",    std::to_string(count),
        "--shard",      std::to_string(options.shard_entries),
        "--seed",       std::to_string(options.seed),
        "--host",       network != nullptr ? Network::server_address(i) : "127.0.0.1",
        "--rendezvous", rendezvous.path().string()};
    const auto prepare = [&] { return network == nullptr || network->enter(i); };
    TC_ASSIGN(auto partner, Partner::start(arguments, prepare));
    servers->partners_.push_back(std::move(partner));
  }
  TC_CHECK(servers->hear_contacts([] { return Status{}; }));
  return servers;
}

Result<std::string> Servers::hear(uint32_t index, const Watch& watch) {
  const auto deadline = Deadline::after_ms(answer_ms);
  while (true) {
    auto line = partners_[index]->talk().hear(Deadline::after_ms(100));
    if (line) return line;
    if (line.error().code != TC_ERR_INTERNAL) TC_CHECK(alive());  // else the server has said why
    if (line.error().code != TC_ERR_TIMEOUT || deadline.passed())
      return context(fmt::format("server {}", index), std::move(line).error());
    TC_CHECK(watch());
  }
}

Status Servers::hear_contacts(const Watch& watch) {
  for (uint32_t i = 0; i < partners_.size(); ++i) {
    TC_ASSIGN(const auto line, hear(i, watch));
    std::string verb, am, bitcode, object;
    GetContact get;
    std::istringstream words(line);
    if (!(words >> verb >> am >> get.worker >> get.key >> get.address >> bitcode >> object) || verb != "ready")
      return fail(TC_ERR_INTERNAL, "server {} said '{}' when it was to be ready", i, line);
    am_.push_back(am);
    get_.push_back(get);
    bitcode_.push_back(bitcode);
    objects_.push_back(object);
  }
  return {};
}

Status Servers::tell(const std::string& line, const std::string& expected, const Watch& watch) {
  for (const auto& partner : partners_)
    if (const auto said = partner->talk().say(line); !said) return fail(explain(said.error()));
  for (uint32_t i = 0; i < partners_.size(); ++i) {
    TC_ASSIGN(const auto answer, hear(i, watch));
    if (answer != expected) return fail(TC_ERR_INTERNAL, "server {} said '{}' when '{}' was due", i, answer, expected);
  }
  return {};
}

Result<uint64_t> Servers::ask_sum(const std::string& line, const Watch& watch) {
  for (const auto& partner : partners_)
    if (const auto said = partner->talk().say(line); !said) return fail(explain(said.error()));
  uint64_t sum = 0;
  for (uint32_t i = 0; i < partners_.size(); ++i) {
    TC_ASSIGN(const auto answer, hear(i, watch));
    uint64_t number = 0;
    if (!(std::istringstream(answer) >> number))
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

}  // namespace tc::bench
