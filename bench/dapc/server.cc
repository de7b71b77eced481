// SPDX-License-Identifier: Apache-2.0
//
// A server's process: holds its shard, offers every mode, and gives the CPU to the one that is being measured.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "05-pointer-chase/chase.h"
#include "common/talk.h"
#include "dapc/am_chase.h"
#include "dapc/dapc.h"
#include "dapc/get_chase.h"
#include "dapc/ifunc_chase.h"

namespace tc::bench {

namespace {

constexpr uint64_t order_ms = 24ull * 3600 * 1000;
constexpr uint32_t wait_ms = 1000;

struct Parts {
  std::unique_ptr<GetServer> get;
  std::unique_ptr<AmChaseServer> am;
  std::unique_ptr<IfuncChaseServer> bitcode, object;

  void wake() noexcept {
    get->party().wake();
    am->party().wake();
    bitcode->wake();
    object->wake();
  }
};

// Listens to the client in a thread of its own, so that the one that serves looks at nothing but its mode's work.
class Orders {
 public:
  Orders(Talk& talk, Parts& parts) : talk_(talk), parts_(parts), thread_([this] { listen(); }) {}
  ~Orders() { thread_.join(); }

  // The next order; blocks.
  std::string next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pending_.load(); });
    pending_ = false;
    return order_;
  }
  bool pending() const noexcept { return pending_.load(std::memory_order_relaxed); }

 private:
  void listen() {
    for (std::string heard; heard != "end";) {
      auto line = talk_.hear(Deadline::after_ms(order_ms));
      heard = line ? *line : "end";
      {
        const std::lock_guard lock(mutex_);
        order_ = heard;
        pending_ = true;
      }
      changed_.notify_one();
      parts_.wake();
    }
  }

  Talk& talk_;
  Parts& parts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string order_;
  std::atomic<bool> pending_{false};
  std::thread thread_;
};

// Every server draws the whole cycle and keeps its part: that is what makes all of them agree.
void fill_shard(std::span<uint64_t> shard, const DapcServerOptions& options) {
  std::vector<uint64_t> table(options.servers * options.shard_entries);
  chase_fill(table.data(), table.size(), options.seed);
  std::copy_n(table.begin() + static_cast<ptrdiff_t>(options.index * options.shard_entries), shard.size(),
              shard.begin());
}

Result<Parts> make_parts(const DapcServerOptions& options) {
  TC_ASSIGN(const auto transport, BenchTransport::parse(options.transport));
  Parts parts;
  TC_ASSIGN(parts.get, GetServer::create(transport.ucx_tls, options.shard_entries * sizeof(uint64_t)));
  const std::span shard(reinterpret_cast<uint64_t*>(parts.get->memory().data()), options.shard_entries);
  fill_shard(shard, options);
  TC_ASSIGN(parts.am, AmChaseServer::create(transport.ucx_tls, options.index, shard));
  const auto place = [&](const char* form) {
    return ServerPlace{transport, options.host, options.rendezvous + "/" + form, options.index, options.servers};
  };
  TC_ASSIGN(parts.bitcode, IfuncChaseServer::create(CodeForm::bitcode, place("bitcode"), shard));
  TC_ASSIGN(parts.object, IfuncChaseServer::create(CodeForm::object, place("object"), shard));
  return parts;
}

// "connect CLIENT SERVER...": workers of mode `am`.
Status connect(Parts& parts, Talk& talk) {
  TC_ASSIGN(const auto line, talk.hear(Deadline::after_ms(60'000)));
  std::vector<std::string> words;
  for (size_t begin = 0, end; begin < line.size(); begin = end + 1) {
    end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
  }
  if (words.size() < 3 || words[0] != "connect") return fail(TC_ERR_INTERNAL, "heard '{}' in place of peers", line);
  TC_CHECK(parts.am->connect(std::span(words).subspan(2), words[1]));
  return talk.say("connected");
}

void serve_mode(Parts& parts, std::string_view mode, const Orders& orders) {
  const auto serve = [&](auto&& wait) {
    while (!orders.pending()) wait();
  };
  if (mode == mode_name(ChaseMode::am)) serve([&] { parts.am->party().wait(Deadline::after_ms(wait_ms)); });
  if (mode == mode_name(ChaseMode::get)) serve([&] { parts.get->party().wait(Deadline::after_ms(wait_ms)); });
  if (mode == mode_name(ChaseMode::ifunc_bitcode)) serve([&] { parts.bitcode->wait(wait_ms); });
  if (mode == mode_name(ChaseMode::ifunc_object)) serve([&] { parts.object->wait(wait_ms); });
}

Status serve(const DapcServerOptions& options, Talk& talk) {
  TC_ASSIGN(auto parts, make_parts(options));
  TC_ASSIGN(const auto am, parts.am->address());
  TC_ASSIGN(const auto get, parts.get->contact());
  TC_CHECK(talk.say(fmt::format("ready {} {} {} {}", am, get, parts.bitcode->address(), parts.object->address())));
  TC_CHECK(connect(parts, talk));
  Orders orders(talk, parts);
  while (true) {
    const auto order = orders.next();
    if (order == "end") return {};
    if (order == "settle") TC_CHECK(parts.bitcode->settle());
    TC_CHECK(talk.say(order == "executed" ? std::to_string(parts.bitcode->executed()) : order));
    serve_mode(parts, order, orders);
  }
}

}  // namespace

int run_dapc_server(const DapcServerOptions& options) {
  return run_as_partner([&](Talk& talk) { return serve(options, talk); });
}

}  // namespace tc::bench
