// SPDX-License-Identifier: Apache-2.0
//
// A server's process: holds its shard, offers every mode, and gives the CPU to the one that is being measured.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

#include "05-pointer-chase/chase.h"
#include "dapc/am_chase.h"
#include "dapc/dapc.h"
#include "dapc/get_chase.h"
#include "dapc/ifunc_chase.h"

namespace tc::bench {

namespace {

constexpr uint64_t order_ms = 24ull * 3600 * 1000;
constexpr uint32_t wait_ms = 1000;

struct Parts {
  std::unique_ptr<UcxParty> get;
  std::optional<UcxMemory> memory;
  std::unique_ptr<AmChaseServer> am;
  std::optional<threechains::Node> bitcode, object;

  void wake() noexcept {
    get->wake();
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
void fill_shard(std::span<uint64_t> shard, const ServerPlace& place, uint64_t seed) {
  std::vector<uint64_t> table(place.count * shard.size());
  chase_fill(table.data(), table.size(), seed);
  std::copy_n(table.begin() + static_cast<ptrdiff_t>(place.index * shard.size()), shard.size(), shard.begin());
}

Result<Parts> make_parts(const ServerPlace& place, uint64_t entries, uint64_t seed) {
  const auto& tls = place.transport.ucx_tls;
  Parts parts;
  TC_ASSIGN(parts.get, UcxParty::create(tls, UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP));
  TC_ASSIGN(auto memory, UcxMemory::map(*parts.get, entries * sizeof(uint64_t)));
  parts.memory.emplace(std::move(memory));
  const std::span shard(reinterpret_cast<uint64_t*>(parts.memory->bytes().data()), entries);
  fill_shard(shard, place, seed);
  TC_ASSIGN(parts.am, AmChaseServer::create(tls, place.index, shard));
  const auto meeting_in = [&](const char* folder) {  // each of the two nodes meets the others in a folder of its own
    auto there = place;
    there.rendezvous += std::string("/") + folder;
    return there;
  };
  TC_ASSIGN(parts.bitcode, make_chase_server(CodeForm::bitcode, meeting_in("bitcode"), shard));
  TC_ASSIGN(parts.object, make_chase_server(CodeForm::object, meeting_in("object"), shard));
  return parts;
}

// "CLIENT SERVER...": workers of mode `am`.
Status connect(Parts& parts, Talk& talk) {
  TC_ASSIGN(const auto line, talk.hear());
  std::istringstream words(line);
  const std::vector<std::string> addresses{std::istream_iterator<std::string>(words), {}};
  if (addresses.size() < 2) return fail(TC_ERR_INTERNAL, "heard '{}' in place of peers", line);
  TC_CHECK(parts.am->connect(std::span(addresses).subspan(1), addresses[0]));
  return talk.say("connected");
}

void serve_mode(Parts& parts, std::string_view mode, const Orders& orders) {
  const auto serve = [&](auto&& wait) {
    while (!orders.pending()) wait();
  };
  if (mode == mode_name(ChaseMode::am)) serve([&] { parts.am->party().wait(Deadline::after_ms(wait_ms)); });
  if (mode == mode_name(ChaseMode::get)) serve([&] { parts.get->wait(Deadline::after_ms(wait_ms)); });
  if (mode == mode_name(ChaseMode::ifunc_bitcode))
    serve([&] { (void)tc_node_wait(parts.bitcode->handle(), wait_ms, nullptr); });
  if (mode == mode_name(ChaseMode::ifunc_object))
    serve([&] { (void)tc_node_wait(parts.object->handle(), wait_ms, nullptr); });
}

}  // namespace

Status serve_dapc(const Arguments& arguments, Talk& talk) {
  TC_ASSIGN(const auto place, place_in(arguments));
  TC_ASSIGN(auto parts, make_parts(place, number_in(arguments, "shard"), number_in(arguments, "seed")));
  TC_ASSIGN(const auto am, parts.am->address());
  TC_ASSIGN(const auto get, parts.memory->contact());
  TC_CHECK(talk.say(fmt::format("ready {} {} {} {}", am, get, parts.bitcode->address(), parts.object->address())));
  TC_CHECK(connect(parts, talk));
  Orders orders(talk, parts);
  while (true) {
    const auto order = orders.next();
    if (order == "end") return {};
    if (order == "settle") TC_CHECK(wait_until_tuned(*parts.bitcode));
    TC_CHECK(talk.say(order == "executed" ? std::to_string(parts.bitcode->stat("executed")) : order));
    serve_mode(parts, order, orders);
  }
}

}  // namespace tc::bench
