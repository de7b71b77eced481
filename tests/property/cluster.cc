// SPDX-License-Identifier: Apache-2.0
#include "cluster.h"

#include <fmt/format.h>
#include <threechains/benchmark.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace tc::property {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t most_pending = 256, most_open = 6, most_in_one_go = 200;
constexpr size_t variants = 3;
// For what ends soon, on a machine that is busy with other things.
constexpr uint32_t long_ms = 120'000;
// What a transport takes to send what was committed is a second.
constexpr auto short_end = milliseconds(800);

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + tc_error_message()); }

void must(tc_status_t status, const char* what) {
  if (status != TC_OK) fail(what);
}

// For a person who repeats a seed: the log of the nodes, from which level on, and the steps.
const char* log_level() { return std::getenv("TC_PROPERTY_LOG"); }
bool logs() { return log_level() != nullptr; }

void copy_words(char* to, size_t size, const char* words) noexcept {
  std::strncpy(to, words, size - 1);
  to[size - 1] = 0;
}

}  // namespace

// ---- The second thread

Aside::Aside() : thread_([this] { serve(); }) {}

Aside::~Aside() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Aside::run(const std::function<void()>& work, const std::function<void()>& meanwhile) {
  done_ = false;
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
  }
  changed_.notify_all();
  while (!done_) {
    meanwhile();
    std::this_thread::yield();
  }
}

void Aside::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return work_ != nullptr || stops_; });
    if (stops_) return;
    (*work_)();
    work_ = nullptr;
    done_ = true;
  }
}

// ---- Nodes

Cluster::Cluster(Journal& journal, Scenario& scenario, const Wanted& wanted, std::vector<std::string> addresses,
                 const std::vector<size_t>& local, uint64_t seed)
    : journal_(journal), scenario_(scenario), wanted_(wanted), addresses_(std::move(addresses)), order_(seed) {
  for (const auto number : local) {
    auto& node = *nodes_.emplace_back(std::make_unique<Node>());
    node.number = number;
    node.answer.resize(WITNESS_LARGEST + 64);
    begin(node);
  }
}

Cluster::~Cluster() {
  for (auto& node : nodes_)
    if (node->handle != nullptr) end(*node);
}

void Cluster::begin(Node& node) {
  auto& its = log(node);
  node.incarnation = its.lives++;
  auto& runs = its.runs();
  runs.incarnation = node.incarnation;
  runs.capacity = most_runs;
  const auto& settings = scenario_.settings(node.number);
  its.limits = settings.limits;
  its.life[node.incarnation].began = journal_.tick();

  threechains::Config config;
  config.set("listen", addresses_[node.number]).set("path", TC_TEST_IFUNCS);
  config.set("name", fmt::format("{}.{}", node.number, node.incarnation));
  config.set("log", logs() ? log_level() : "off");
  std::string all;
  for (const auto& address : addresses_) all += (all.empty() ? "" : ",") + address;
  config.set("cluster", all);
  for (const auto& [key, value] : settings.options) config.set(key, value);
  const auto created = tc_node_create(config.handle(), &node.handle);
  if (created == TC_ERR_UNSUPPORTED) throw Unavailable(tc_error_message());
  must(created, "a node does not start");
  must(tc_node_expose(node.handle, "runs", &runs, its.run_memory.size()), "tc_node_expose");
  must(tc_node_expose(node.handle, "clock", &journal_.clock, sizeof journal_.clock), "tc_node_expose");
  must(tc_node_expose(node.handle, "answer", node.answer.data(), node.answer.size()), "tc_node_expose");
  register_code(node);
  if (wanted_.threads) must(tc_node_start_progress(node.handle), "tc_node_start_progress");
}

void Cluster::register_code(Node& node) {
  auto old = std::exchange(node.ifuncs, {});
  // Before the new ones are registered, or after.
  const bool first = order_.one_in(2);
  if (first)
    for (auto* const ifunc : old) tc_ifunc_free(ifunc);
  for (size_t i = 0; i < variants; ++i) {
    tc_ifunc_t* ifunc = nullptr;
    must(tc_ifunc_register(node.handle, fmt::format("witness_{}", i).c_str(), &ifunc), "tc_ifunc_register");
    node.ifuncs.push_back(ifunc);
  }
  if (!first)
    for (auto* const ifunc : old) tc_ifunc_free(ifunc);
}

void Cluster::end(Node& node) {
  auto& its = log(node);
  auto& life = its.life[node.incarnation];
  life.ending = journal_.tick();
  for (const auto& endpoint : node.endpoints) {
    auto& open = its.endpoint[endpoint.number];
    open.ending = life.ending;
    open.how = Ending::with_its_node;
  }
  const auto begun = Clock::now();
  auto* const handle = std::exchange(node.handle, nullptr);
  aside(node, [&] { tc_node_free(handle); });
  life.slow_end = Clock::now() - begun > short_end;
  life.ended = journal_.tick();
  for (const auto& endpoint : node.endpoints) its.endpoint[endpoint.number].ended = life.ended;
  node.endpoints.clear();
  node.ifuncs.clear();
  harvest(node);
  if (!node.pending.empty()) throw std::runtime_error("a future is not ready when its node was destroyed");
}

void Cluster::end() {
  for (auto& node : nodes_)
    if (node->handle != nullptr) end(*node);
}

// ---- Driving

void Cluster::poll_others(const Node* but) {
  if (wanted_.threads) return;
  const size_t first = order_.below(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    auto& node = *nodes_[(first + i) % nodes_.size()];
    if (&node != but && node.handle != nullptr && node.asleep == 0) must(tc_node_poll(node.handle, nullptr), "poll");
  }
}

void Cluster::wake_all() {
  for (auto& node : nodes_) node->asleep = 0;
}

void Cluster::poll_once() { poll_others(nullptr); }

void Cluster::aside(Node& node, const std::function<void()>& work) {
  if (wanted_.threads || nodes_.size() == 1) return work();
  aside_.run(work, [&] { poll_others(&node); });
}

void Cluster::harvest(Node& node) {
  std::erase_if(node.pending, [&](const Pending& pending) {
    if (tc_future_ready(pending.future) == 0) return false;
    harvest_one(node, pending);
    return true;
  });
}

void Cluster::harvest_one(Node& node, const Pending& pending) {
  auto& sent = log(node).sent[pending.number];
  sent.status = static_cast<uint8_t>(tc_future_status(pending.future));
  sent.code = tc_future_code(pending.future);
  size_t size = 0;
  const auto* const bytes = static_cast<const unsigned char*>(tc_future_bytes(pending.future, &size));
  if (sent.status == TC_OK) {
    const size_t expected =
        sent.then == WITNESS_REPLIES && sent.size >= sizeof(witness_head) ? size_t{sent.reply_size} : 0;
    const auto key = witness_key(static_cast<uint32_t>(node.number), pending.number, 1);
    sent.wrong_reply = size != expected || witness_difference(bytes, 0, size, key) != size;
  } else {
    copy_words(sent.why, sizeof sent.why, tc_future_error(pending.future));
    if (logs()) std::fprintf(stderr, "node %zu's call %u failed: %s\n", node.number, pending.number, sent.why);
  }
  sent.told = journal_.tick();
  tc_future_free(pending.future);
}

void Cluster::look_at_links(Node& node) {
  for (auto& endpoint : node.endpoints) {
    if (endpoint.lost) continue;
    const auto status = tc_endpoint_status(endpoint.handle);
    if (status == TC_OK) continue;
    endpoint.lost = true;
    auto& life = log(node).endpoint[endpoint.number];
    life.lost_status = static_cast<uint8_t>(status);
    copy_words(life.why_lost, sizeof life.why_lost, tc_error_message());
    life.found_lost = journal_.tick();
  }
}

// ---- Steps

Cluster::Node* Cluster::node_of(const Step& step) {
  auto& node = *nodes_[step.node % nodes_.size()];
  return node.handle != nullptr ? &node : nullptr;
}

void Cluster::perform(const Step& step) {
  for (auto& node : nodes_) {
    if (node->asleep != 0) --node->asleep;
    if (node->down != 0 && --node->down == 0) begin(*node);
  }
  Node* const node = node_of(step);
  if (node == nullptr) return poll_once();
  ++log(*node).steps;
  if (logs())
    std::fprintf(stderr, "%llu: node %zu: %s\n", static_cast<unsigned long long>(journal_.now()), node->number,
                 name_of(step.action));
  switch (step.action) {
    case Action::poll:
      for (uint64_t i = 0; i <= step.plan % 50; ++i) poll_once();
      break;
    case Action::sleep:
      if (wanted_.threads)
        std::this_thread::sleep_for(milliseconds(step.time % 5));
      else
        node->asleep = 1 + step.time % 60;
      break;
    case Action::connect: (void)connect(*node, step.peer % wanted_.nodes); break;
    case Action::renew_code: register_code(*node); break;
    case Action::give_up_call: give_up_call(*node, step); break;
    case Action::destroy:
      node->down = 1 + step.time % 40;
      if (step.time / 64 % 16 != 0) wake_all();
      node->asleep = 0;
      end(*node);
      break;
    default:
      if (auto* const endpoint = endpoint_of(*node, step); endpoint != nullptr) {
        switch (step.action) {
          case Action::send: send(*node, *endpoint, step, Way::send); break;
          case Action::send_with_code: send(*node, *endpoint, step, Way::with_code); break;
          case Action::call: send(*node, *endpoint, step, Way::call); break;
          case Action::send_many: send_many(*node, *endpoint, step); break;
          case Action::flush: flush(*node, *endpoint, step.time % 4 == 0 ? 20 : long_ms); break;
          case Action::close: close(*node, *endpoint, step.time % 8 == 0 ? 5 : long_ms); break;
          default: close(*node, *endpoint, 0); break;
        }
      }
  }
  for (auto& one : nodes_) {
    if (one->handle == nullptr) continue;
    harvest(*one);
    look_at_links(*one);
  }
  if (step.time >> 32 & 1) poll_once();
}

// One that is open, or a new one.
Cluster::Endpoint* Cluster::endpoint_of(Node& node, const Step& step) {
  if (node.endpoints.empty()) return connect(node, step.peer % wanted_.nodes);
  auto& endpoint = node.endpoints[step.peer % node.endpoints.size()];
  if (!endpoint.lost || step.time % 4 == 0) return &endpoint;
  const auto peer = endpoint.peer;
  close(node, endpoint, 0);
  return connect(node, peer);
}

Cluster::Endpoint* Cluster::connect(Node& node, size_t peer) {
  if (peer == node.number) peer = (peer + 1) % wanted_.nodes;
  if (node.endpoints.size() >= most_open || log(node).endpoints >= most_endpoints) return nullptr;
  for (auto& other : nodes_) {
    if (other->number != peer) continue;
    if (other->handle == nullptr) return nullptr;
    other->asleep = 0;  // to connect needs both
  }
  tc_endpoint_t* handle = nullptr;
  tc_status_t status = TC_OK;
  std::string why;
  aside(node, [&] {
    status = tc_node_connect(node.handle, addresses_[peer].c_str(), long_ms, &handle);
    if (status != TC_OK) why = tc_error_message();
  });
  if (status != TC_OK) {
    if (wanted_.processes) return nullptr;  // the other process may be gone
    // What waits for others fills the memory: that costs a link.
    const auto little_memory = [&](size_t one) { return scenario_.settings(one).limits.little_memory; };
    if (status == TC_ERR_LIMIT && (little_memory(node.number) || little_memory(peer))) return nullptr;
    throw std::runtime_error(fmt::format("node {} cannot connect to node {}: {}", node.number, peer, why));
  }
  auto& its = log(node);
  const auto number = its.endpoints.load();
  auto& life = its.endpoint[number];
  life.incarnation = static_cast<uint16_t>(node.incarnation);
  life.peer = static_cast<uint8_t>(peer);
  const std::string_view name = tc_endpoint_peer(handle);  // NODE.INCARNATION
  uint32_t incarnation = 0;
  std::from_chars(name.data() + name.find('.') + 1, name.data() + name.size(), incarnation);
  life.peer_incarnation = static_cast<uint16_t>(incarnation);
  life.opened = journal_.tick();
  its.endpoints = number + 1;
  tc_endpoint_set_timeout(handle, 0);
  node.endpoints.push_back({handle, static_cast<uint16_t>(number), static_cast<uint8_t>(peer)});
  return &node.endpoints.back();
}

void Cluster::close(Node& node, Endpoint& endpoint, uint32_t timeout_ms) {
  auto& life = log(node).endpoint[endpoint.number];
  const auto before = log(node).messages.load();
  const auto handle = endpoint.handle;
  const auto number = endpoint.number;
  if (timeout_ms == long_ms) wake_all();
  life.ending = journal_.tick();
  tc_status_t status = TC_OK;
  if (timeout_ms == 0)
    status = tc_endpoint_free(handle, 0);
  else
    aside(node, [&] { status = tc_endpoint_free(handle, timeout_ms); });
  // What else a flush reports is that of single messages.
  const bool waited = status == TC_OK || (timeout_ms == long_ms && status != TC_ERR_TIMEOUT && status != TC_ERR_BUSY &&
                                          status != TC_ERR_DISCONNECTED && status != TC_ERR_CLOSED);
  life.how = waited ? Ending::in_order : timeout_ms == 0 ? Ending::at_once : Ending::with_error;
  life.ended = journal_.tick();
  auto& its = log(node);
  if (const auto at = its.flushes.load(); at < most_flushes) {
    its.flush[at] = {life.ending, life.ended, before, number, static_cast<uint8_t>(status), must_end(timeout_ms)};
    its.flushes = at + 1;
  }
  std::erase_if(node.endpoints, [&](const Endpoint& one) { return one.number == number; });
}

void Cluster::flush(Node& node, Endpoint& endpoint, uint32_t timeout_ms) {
  auto& its = log(node);
  const auto at = its.flushes.load();
  if (at >= most_flushes) return;
  if (timeout_ms == long_ms) wake_all();
  auto& flushed = its.flush[at];
  flushed.endpoint = endpoint.number;
  flushed.before = its.messages;
  flushed.began = journal_.tick();
  its.flushes = at + 1;
  tc_status_t status = TC_OK;
  aside(node, [&] { status = tc_endpoint_flush(endpoint.handle, timeout_ms); });
  flushed.status = static_cast<uint8_t>(status);
  flushed.must_end = must_end(timeout_ms);
  flushed.ended = journal_.tick();
}

// Another process may be stopped, or killed.
bool Cluster::must_end(uint32_t timeout_ms) const noexcept { return timeout_ms == long_ms && !wanted_.processes; }

void Cluster::plan(Node& node, Sent& sent, const Step& step, Way way) {
  Random random(step.plan);
  if (sent.size < sizeof(witness_head)) return;
  const auto kind = random.below(16);
  if (kind < 8)
    sent.then = WITNESS_REPLIES;
  else if (kind == 8 && !wanted_.leaves_out("fail"))
    sent.then = WITNESS_FAILS;
  if (sent.then == WITNESS_REPLIES)
    sent.reply_size = scenario_.size_of(random.next(), random.below(wanted_.nodes), node.number);
  if (!random.one_in(3) || wanted_.leaves_out("hops")) return;
  sent.hops = static_cast<uint8_t>(1 + random.below(WITNESS_MOST_HOPS));
  for (size_t hop = 0; hop < sent.hops; ++hop) {
    const uint8_t how[] = {WITNESS_FORWARDS, WITNESS_FORWARDS, WITNESS_FORWARDS_AS, WITNESS_INJECTS};
    sent.route[hop] = static_cast<uint8_t>(random.below(wanted_.nodes) | how[random.below(4)]);
  }
  (void)way;
}

std::optional<Cluster::Made> Cluster::make(Node& node, const Endpoint& endpoint, const Step& step, uint32_t size,
                                           Way way) {
  auto& its = log(node);
  const uint32_t number = its.messages;
  if (number + 1 >= most_messages) return std::nullopt;
  auto& sent = its.sent[number];
  sent = {};
  sent.size = size;
  sent.endpoint = endpoint.number;
  sent.incarnation = static_cast<uint16_t>(node.incarnation);
  sent.way = way;
  plan(node, sent, step, way);
  const witness_head head = [&] {
    witness_head made{.number = number,
                      .source = static_cast<uint8_t>(node.number),
                      .hop = 0,
                      .hops = sent.hops,
                      .then = sent.then,
                      .route = {},
                      .reply_size = sent.reply_size,
                      .size = size,
                      .check = 0};
    std::ranges::copy(sent.route, made.route);
    made.check = witness_check(&made);
    return made;
  }();
  if (payload_.size() < size + 8) payload_.resize(size + 8);
  const auto key = witness_key(head.source, number, 0);
  if (size < WITNESS_NAMED) {
    std::fill_n(payload_.begin(), size, head.source);
  } else {
    const size_t begin = size < sizeof head ? size_t{WITNESS_NAMED} : sizeof head;
    std::memcpy(payload_.data(), &head, begin);
    witness_fill(payload_.data(), begin, size, key);
  }
  Made made{nullptr, number};
  auto* const ifunc = node.ifuncs[step.ifunc % node.ifuncs.size()];
  if (const auto status = tc_message_create(ifunc, payload_.data(), size, &made.message); status != TC_OK) {
    sent = {};
    if (status == TC_ERR_TOO_LARGE && size > its.limits.max_message) return std::nullopt;
    fail("tc_message_create");
  }
  sent.state = State::begun;
  sent.begun = journal_.tick();
  its.messages = number + 1;
  return made;
}

void Cluster::send(Node& node, Endpoint& endpoint, const Step& step, Way way) {
  const auto size = scenario_.size_of(step.size, node.number, endpoint.peer);
  const auto made = make(node, endpoint, step, size, way);
  if (!made) return;
  auto& sent = log(node).sent[made->number];
  if (way == Way::call && node.pending.size() >= most_pending) way = sent.way = Way::send;
  // Mostly the sender does not wait for room: then nothing but this node moves meanwhile.
  const uint32_t patience_ms = step.time % 4 == 0 ? 50 : 0;
  if (way == Way::call) sent.deadline_ms = step.time / 4 % 8 == 0 ? 1 + step.time / 32 % 20 : 0;
  tc_future_t* future = nullptr;
  tc_status_t status = TC_OK;
  const auto deliver = [&] {
    tc_endpoint_set_timeout(endpoint.handle, patience_ms);
    if (way == Way::call)
      status = tc_endpoint_call(endpoint.handle, made->message, sent.deadline_ms, &future);
    else if (way == Way::with_code)
      status = tc_endpoint_send_with_code(endpoint.handle, made->message);
    else
      status = tc_endpoint_send(endpoint.handle, made->message);
    // A copy was sent: what happens to the message now changes nothing.
    size_t room = 0;
    auto* const bytes = static_cast<unsigned char*>(tc_message_payload(made->message, &room));
    if (room != 0) std::memset(bytes, 0xdb, std::min<size_t>(room, 256));
  };
  if (patience_ms != 0)
    aside(node, deliver);
  else
    deliver();
  sent.returned = journal_.tick();
  if (status != TC_OK) sent.status = static_cast<uint8_t>(status);
  sent.state = status == TC_OK ? State::accepted : State::refused;
  tc_message_free(made->message);
  if (future != nullptr) node.pending.push_back({future, made->number});
}

void Cluster::send_many(Node& node, Endpoint& endpoint, const Step& step) {
  Random random(step.plan ^ step.time);
  const size_t count = 1 + random.below(most_in_one_go);
  // Either small ones, or a few of any size.
  const bool small = !random.one_in(3);
  const bool mixes_code = random.one_in(4);
  std::vector<Made> made;
  for (size_t i = 0; i < (small ? count : 1 + count / 16); ++i) {
    const auto size =
        small ? static_cast<uint32_t>(random.below(200)) : scenario_.size_of(random.next(), node.number, endpoint.peer);
    auto one = step;
    one.plan = random.next();
    one.ifunc = mixes_code ? random.next() : step.ifunc;
    if (const auto message = make(node, endpoint, one, size, Way::send_many)) made.push_back(*message);
  }
  std::vector<tc_message_t*> messages;
  for (const auto& one : made) messages.push_back(one.message);
  size_t sent = 0;
  tc_status_t status = TC_OK;
  const uint32_t patience_ms = step.time % 3 == 0 ? 50 : 0;
  const auto deliver = [&] {
    tc_endpoint_set_timeout(endpoint.handle, patience_ms);
    status = tc_endpoint_send_many(endpoint.handle, messages.data(), messages.size(), &sent);
  };
  if (patience_ms != 0)
    aside(node, deliver);
  else
    deliver();
  const auto returned = journal_.tick();
  for (size_t i = 0; i < made.size(); ++i) {
    auto& one = log(node).sent[made[i].number];
    one.returned = returned;
    one.state = i < sent ? State::accepted : State::refused;
    // Those behind the first that was refused were not tried.
    if (i >= sent) one.status = static_cast<uint8_t>(i == sent ? status : TC_ERR_BUSY);
    tc_message_free(made[i].message);
  }
}

void Cluster::give_up_call(Node& node, const Step& step) {
  if (node.pending.empty()) return;
  const auto at = node.pending.begin() + static_cast<ptrdiff_t>(step.plan % node.pending.size());
  log(node).sent[at->number].given_up = true;
  tc_future_free(at->future);
  node.pending.erase(at);
}

// ---- The end

void Cluster::drive_until(const std::function<bool()>& done) {
  const auto until = Clock::now() + milliseconds(long_ms);
  for (uint32_t round = 0; Clock::now() < until; ++round) {
    for (int i = 0; i < 16; ++i) poll_once();
    for (auto& node : nodes_) {
      if (node->handle == nullptr) continue;
      harvest(*node);
      look_at_links(*node);
    }
    if (done()) return;
    if (round > 64) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void Cluster::settle() {
  wake_all();
  drive_until([&] { return std::ranges::all_of(nodes_, [](const auto& node) { return node->pending.empty(); }); });
  for (auto& node : nodes_)
    for (size_t i = 0; i < node->endpoints.size(); ++i)
      if (auto& endpoint = node->endpoints[i]; !endpoint.lost) flush(*node, endpoint, long_ms);
}

}  // namespace tc::property
