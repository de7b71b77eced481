// SPDX-License-Identifier: Apache-2.0
#include "simulation/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>

#include "05-pointer-chase/chase.h"
#include "base/file.h"
#include "broadcast.h"
#include "simulation/environment.h"

namespace tc::simulation {

namespace {

constexpr uint64_t turn_takes_ns = 200;
constexpr uint64_t longest_part_ns = 60'000'000'000;
constexpr uint64_t ns_per_kib = 80;  // 100 Gbit/s
constexpr size_t largest_message = size_t{64} << 10;
constexpr double mebibyte = 1024 * 1024;

std::string name_of(uint32_t number) { return fmt::format("n{}", number); }

uint32_t number_of(std::string_view name) {
  uint32_t number = 0;
  std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return number;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Memory of this process. Not its resident pages: those of the code arenas are mapped twice.
uint64_t memory_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;)
    if (uint64_t kibibytes = 0; word == "Pss:" && file >> kibibytes) return kibibytes * 1024;
  return 0;
}

Result<Bundle> load(const char* name) {
  TC_ASSIGN(const auto bytes, read_file(fmt::format("{}/{}.ifunc", TC_TEST_IFUNCS, name), 1 << 24));
  return Bundle::read(bytes);
}

// No second thread, and limits for small messages and few codes: the other buffers are had when they are needed.
node::Config small_config(const std::string& name) {
  auto config = node::Config::defaults();
  config.name = config.listen = name;
  config.log = "off";
  config.keyring = "none";
  config.last_words = false;
  config.execution_limit_ms = 0;
  config.threads = 1;
  config.max_message = largest_message;
  config.message_memory = size_t{1} << 20;
  config.source_budget = size_t{64} << 10;
  config.code.budget_bytes = size_t{256} << 10;
  config.code.use_bitcode = false;
  config.code.tune = false;
  config.hops = UINT16_MAX;
  return config;
}

}  // namespace

Scale::Scale(const ScaleOptions& options)
    : options_(options),
      schedule_(options.nodes + 1),
      members_(options.nodes + 1),
      table_(uint64_t{options.nodes} * options.entries) {
  environment::reset(options.seed);
  network_.set_travel({.now = environment::time_ns,
                       .arrival =
                           [this](auto, auto, size_t bytes) {
                             return environment::time_ns() + options_.trip_ns + bytes * ns_per_kib / 1024;
                           },
                       .due =
                           [this](std::string_view node, uint64_t at_ns) {
                             const auto number = number_of(node);
                             schedule_.add(number, std::max(at_ns, members_[number].looked_ns + 1));
                           }});
  network_.set_sleep([](Deadline deadline) { environment::advance_to(deadline.at_ns()); });
  chase_fill(table_.data(), table_.size(), options.seed);
}

Scale::~Scale() {
  broadcast_.reset(), chaser_.reset();
  for (auto& member : members_) member.node.reset();
}

// ---- Nodes

// The client is in no cluster: nodes know it by the calls that it makes.
Status Scale::start(uint32_t number) {
  auto& member = members_[number];
  auto config = small_config(name_of(number));
  if (number != client()) {
    config.id = number;
    config.id_is_set = true;
    for (uint32_t other = 0; other < options_.nodes; ++other) config.cluster.push_back(name_of(other));
  }
  enter(number, end_ns_);
  TC_ASSIGN(member.node, node::Node::create(std::move(config), [this](const node::Config&, transport::Events& events) {
              return Result<std::unique_ptr<transport::Transport>>(network_.join(events));
            }));
  if (number != client()) {
    TC_CHECK(member.node->expose(BROADCAST_VISITS, &member.visits, sizeof member.visits));
    TC_CHECK(member.node->expose(CHASE_TABLE, &table_[uint64_t{number} * options_.entries],
                                 options_.entries * sizeof table_[0]));
  }
  leave(number);
  schedule_.add(number, member.time_ns);
  return {};
}

Status Scale::start() {
  for (uint32_t number = 0; number <= client(); ++number) TC_CHECK(start(number));
  TC_ASSIGN(auto broadcast, load("broadcast"));
  TC_ASSIGN(auto chaser, load("chaser"));
  TC_ASSIGN(broadcast_, members_[client()].node->register_bundle(std::move(broadcast)));
  TC_ASSIGN(chaser_, members_[client()].node->register_bundle(std::move(chaser)));
  return {};
}

// ---- Time

void Scale::enter(uint32_t number, uint64_t at_ns) {
  auto& member = members_[number];
  member.looked_ns = std::max(member.time_ns, at_ns) + turn_takes_ns;
  environment::go_to(member.looked_ns);
}

void Scale::leave(uint32_t number) {
  members_[number].time_ns = environment::time_ns();
  end_ns_ = std::max(end_ns_, environment::time_ns());
}

void Scale::turn(uint32_t number, uint64_t at_ns) {
  auto& member = members_[number];
  enter(number, at_ns);
  member.node->poll();
  auto deadline = Deadline::never();
  const bool is_idle = member.node->arm(deadline);
  leave(number);
  const auto next = member.time_ns + 1;
  if (!is_idle) schedule_.add(number, next);
  schedule_.set_deadline(number, deadline.at_ns() == UINT64_MAX ? UINT64_MAX : std::max(deadline.at_ns(), next));
  ++turns_;
  hash_ = (hash_ ^ (member.time_ns << 12 | number)) * 0x9e3779b97f4a7c15;
}

// TC_ERR_TIMEOUT: it is not done, and nothing moves any more.
Status Scale::run_until(const std::function<bool()>& done) {
  const auto limit = end_ns_ + longest_part_ns;
  while (!done()) {
    const auto due = schedule_.take();
    if (due.at_ns > limit)
      return fail(TC_ERR_TIMEOUT, "it is not done after {} turns, and nothing happens any more", turns_);
    if (due.at_ns > members_[due.node].looked_ns) turn(due.node, due.at_ns);
  }
  return {};
}

// ---- What the nodes do

// Done when all have counted; so a second visit may come later. It is looked for at the end.
Status Scale::broadcast(const char* what) {
  auto& node = *members_[client()].node;
  const auto before = used();
  const uint32_t visits = members_[0].visits + 1;
  const struct broadcast all = {options_.nodes};
  enter(client(), end_ns_);
  TC_ASSIGN(const auto link, node.links().find_or_reach(name_of(0)));
  TC_ASSIGN(const auto message, source::Message::create(broadcast_, &all, sizeof all, largest_message));
  TC_CHECK(node.send(*link, *message, false, Deadline::at_ns(0)));
  leave(client());
  schedule_.add(client(), members_[client()].time_ns + 1);
  uint32_t first_without = 0;  // all before have counted
  TC_CHECK(run_until([&] {
    while (first_without < options_.nodes && members_[first_without].visits >= visits) ++first_without;
    return first_without == options_.nodes;
  }));
  tell(what, before, static_cast<uint64_t>(std::bit_width(options_.nodes)), options_.nodes);
  return {};
}

Result<Scale::Chase> Scale::begin_chase(uint32_t index) {
  auto& node = *members_[client()].node;
  Chase chase;
  chase.start = chase_start(index, table_.size(), options_.seed);
  chase.trips = 2;
  uint64_t address = chase.start;
  for (uint32_t step = 1; step < options_.depth; ++step) {
    const auto owner = address / options_.entries;
    address = table_[address];
    if (address / options_.entries != owner) ++chase.trips;
  }
  chase.end = table_[address];
  const struct chase what = {chase.start, options_.depth, CHASE_TO_CALLER};
  TC_ASSIGN(const auto link,
            node.links().find_or_reach(name_of(static_cast<uint32_t>(chase.start / options_.entries))));
  TC_ASSIGN(const auto message, source::Message::create(chaser_, &what, sizeof what, largest_message));
  TC_ASSIGN(chase.future, node.call(*link, *message, 0, Deadline::at_ns(0)));
  return chase;
}

Status Scale::check(const Chase& chase) {
  const auto& future = *chase.future;
  if (future.status != TC_OK) return fail(future.status, "a chase from {}: {}", chase.start, future.message);
  uint64_t end = 0;
  if (future.bytes.size() != sizeof end)
    return fail(TC_ERR_INTERNAL, "a chase from {} answers with {} bytes when an address has {}", chase.start,
                future.bytes.size(), sizeof end);
  std::memcpy(&end, future.bytes.data(), sizeof end);
  if (end == chase.end) return {};
  return fail(TC_ERR_INTERNAL, "a chase from {} ends at {} when the table leads to {}", chase.start, end, chase.end);
}

// All at the same time.
Status Scale::chase(const char* what, uint32_t count) {
  const auto before = used();
  std::vector<Chase> chases;
  enter(client(), end_ns_);
  for (uint32_t index = 0; index < count; ++index) {
    TC_ASSIGN(auto chase, begin_chase(index));
    chases.push_back(std::move(chase));
  }
  leave(client());
  schedule_.add(client(), members_[client()].time_ns + 1);
  size_t ended = 0;  // all before are ready
  TC_CHECK(run_until([&] {
    while (ended < chases.size() && chases[ended].future->ready) ++ended;
    return ended == chases.size();
  }));
  uint64_t longest = 0, all = 0;
  for (const auto& chase : chases) {
    TC_CHECK(check(chase));
    longest = std::max(longest, chase.trips);
    all += chase.trips;
  }
  tell(what, before, longest, all);
  return {};
}

Status Scale::check_visits(uint32_t expected) const {
  for (uint32_t number = 0; number < options_.nodes; ++number)
    if (members_[number].visits != expected)
      return fail(TC_ERR_INTERNAL, "node {} ran {} broadcasts when there were {}", number, members_[number].visits,
                  expected);
  return {};
}

// ---- What it takes

Scale::Used Scale::used() {
  Used used{.time_ns = end_ns_, .turns = turns_, .links = 0, .bytes = memory_bytes(), .seconds = wall_seconds()};
  for (auto& member : members_) used.links += member.node->links().size();
  used.links /= 2;  // each is known at both ends
  return used;
}

// `trips` after each other, of `all` trips. The model (bench/model): a trip is what a frame travels, and a turn.
void Scale::tell(const char* what, const Used& before, uint64_t trips, uint64_t all) {
  const auto now = used();
  const auto trip_us = static_cast<double>(options_.trip_ns + turn_takes_ns) / 1e3;
  const auto us = static_cast<double>(now.time_ns - before.time_ns) / 1e3;
  const auto seconds = now.seconds - before.seconds;
  fmt::print("{:<22} {:>10.1f} {:>8.3f} {:>10.1f} {:>9} {:>7} {:>9} {:>9.1f} {:>8.2f} {:>9.0f}\n", what, us,
             us / static_cast<double>(trips), static_cast<double>(trips) * trip_us, all, now.links - before.links,
             now.turns - before.turns, static_cast<double>(now.bytes) / mebibyte, seconds,
             static_cast<double>(now.turns - before.turns) / seconds);
}

Status Scale::run() {
  const auto empty = memory_bytes();
  const auto began = wall_seconds();
  TC_CHECK(start());
  fmt::print(
      "{} nodes, {} entries each, seed {}; a frame travels {} ns, a turn takes {} ns\n"
      "started in {:.2f} s: {:.1f} KiB a node, {:.1f} MiB in all\n\n"
      "{:<22} {:>10} {:>8} {:>10} {:>9} {:>7} {:>9} {:>9} {:>8} {:>9}\n",
      options_.nodes, options_.entries, options_.seed, options_.trip_ns, turn_takes_ns, wall_seconds() - began,
      static_cast<double>(memory_bytes() - empty) / 1024 / options_.nodes,
      static_cast<double>(memory_bytes()) / mebibyte, "", "virtual us", "a trip", "model us", "trips", "links", "turns",
      "MiB", "s", "turns/s");
  TC_CHECK(broadcast("a broadcast, cold"));
  TC_CHECK(broadcast("a broadcast"));
  TC_CHECK(chase("a chase, cold", 1));
  TC_CHECK(chase("a chase", 1));
  TC_CHECK(chase("chases, cold", options_.chases));
  TC_CHECK(chase("chases", options_.chases));
  return check_visits(2);
}

}  // namespace tc::simulation
