// SPDX-License-Identifier: Apache-2.0
#include "simulation/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/file.h"

namespace tc::simulation {

namespace {

constexpr uint64_t turn_takes_ns = 200;
constexpr uint64_t longest_wait_ns = 40'000'000'000;
// A node that could not start for lack of memory is started again.
constexpr uint64_t start_again_ns = 1'000'000;
// Small enough that codes are evicted.
constexpr size_t largest_message = size_t{1} << 20;

std::string name_of(uint32_t number) { return fmt::format("n{}:1", number); }

std::vector<std::string> names_of(uint32_t nodes) {
  std::vector<std::string> names;
  for (uint32_t number = 0; number < nodes; ++number) names.push_back(name_of(number));
  return names;
}

// What the program of a node does: it is told that there is no memory as the C API tells it.
template <class Body>
Status with_memory_of(Shortage& shortage, Body&& body) {
  const MemoryOfNode memory(&shortage);
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(TC_ERR_NO_MEMORY, "no memory");
  }
}

bool is_for_lack_of_memory(const Status& status) { return !status && status.error().code == TC_ERR_NO_MEMORY; }

uint32_t number_of(std::string_view name) {
  uint32_t number = 0;
  std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return number;
}

Bytes payload_of(const Event& event, uint64_t number) {
  Bytes payload(sizeof(story) + event.filler);
  Dice dice(event.seed);
  for (size_t i = sizeof(story); i < payload.size(); ++i) payload[i] = static_cast<std::byte>(dice.number());
  story what{.id = number,
             .sum = story_sum(reinterpret_cast<const unsigned char*>(payload.data()) + sizeof(story), event.filler),
             .end = event.end,
             .step = 0,
             .steps = event.injections != 0 ? 0 : static_cast<uint32_t>(event.route.size()),
             .injections = event.injections,
             .route = {}};
  std::ranges::copy(event.route, what.route);
  std::memcpy(payload.data(), &what, sizeof what);
  return payload;
}

}  // namespace

Result<Code> Code::load() {
  const auto read = [](std::string_view name) -> Result<Bundle> {
    TC_ASSIGN(const auto bytes, read_file(fmt::format("{}/{}.ifunc", TC_TEST_IFUNCS, name), 1 << 24));
    return Bundle::read(bytes);
  };
  TC_ASSIGN(auto user, read("uses_library"));
  Code code{.stories = {}, .libraries = {}, .user = std::move(user)};
  for (const auto* const name : {"story_1", "story_2"}) {
    TC_ASSIGN(auto story, read(name));
    code.stories.push_back(std::move(story));
  }
  for (const auto* const name : {"greeting_1", "greeting_2"}) {
    TC_ASSIGN(auto library, read(name));
    code.libraries.push_back(std::move(library));
  }
  return code;
}

World::World(uint64_t seed, uint32_t nodes, const Code& code, const std::vector<Event>& plan)
    : plan_(plan),
      code_(code),
      addresses_(names_of(nodes + 1)),
      dice_(seed ^ 0x5eed),
      keyrings_(dice_, network_, addresses_),
      books_(plan.size(), keyrings_),
      members_(nodes),
      paths_(addresses_.size() * addresses_.size()),
      resumed_ns_(nodes),
      schedule_(nodes + 1) {
  environment::reset(seed);
  network_.set_travel({.now = environment::time_ns,
                       .arrival = [this](auto from, auto to, size_t bytes) { return arrival(from, to, bytes); },
                       .due = [this](auto node, uint64_t at_ns) { schedule_.add(number_of(node), at_ns); }});
  network_.set_sleep([this](Deadline deadline) {
    if (!turn()) pass_time(deadline.at_ns() - std::min(deadline.at_ns(), environment::skew_ns()));
  });
  for (auto& path : paths_)
    path = {.latency_ns = 500 + dice_.skewed(2'000'000),
            .ns_per_kib = 100 + dice_.skewed(100'000),
            .jitter_ns = 1 + dice_.skewed(500'000)};
  for (auto& member : members_) member.skew_ns = dice_.skewed(1'000'000'000'000);
}

// The schedule is told of what ends: it goes last.
World::~World() {
  for (uint32_t number = 0; number < members_.size(); ++number) end(number);
  stranger_.reset();
}

uint64_t World::arrival(std::string_view from, std::string_view to, size_t bytes) {
  const auto& way = path(number_of(from), number_of(to));
  return std::max(environment::time_ns(), way.blocked_until_ns) + way.latency_ns + dice_.below(way.jitter_ns) +
         bytes * way.ns_per_kib / 1024;
}

// ---- Nodes

Status World::start(uint32_t number) {
  auto& member = members_[number];
  const environment::ClockOfNode clock(member.skew_ns);
  auto config = node::Config::defaults();
  config.name = fmt::format("{}.{}", number, ++member.life);
  config.id = number;
  config.id_is_set = true;
  config.listen = name_of(number);
  config.cluster.assign(addresses_.begin(), addresses_.end() - 1);
  config.log = "off";
  config.keyring = keyrings_.file(number);
  config.first_contact = node::FirstContact::refuse;
  config.allowed_exports = {"greeting_*"};
  config.last_words = false;
  config.execution_limit_ms = 0;
  config.max_message = largest_message;
  config.code.use_bitcode = false;
  member.journal.count = 0;
  const auto made = with_memory_of(member.shortage, [&]() -> Status { return make_node(member, std::move(config)); });
  if (!is_for_lack_of_memory(made)) return made;
  end(number);
  member.back_at_ns = environment::time_ns() + start_again_ns;
  return {};
}

Status World::make_node(Member& member, node::Config config) {
  TC_ASSIGN(member.node, node::Node::create(std::move(config), [this](const node::Config&, transport::Events& events) {
              return Result<std::unique_ptr<transport::Transport>>(network_.join(events));
            }));
  member.node->set_pause([this, &member](Deadline deadline) {
    if (!turn()) pass_time(deadline.at_ns() - std::min(deadline.at_ns(), member.skew_ns));
  });
  member.has_work = true;
  TC_CHECK(member.node->expose("journal", &member.journal, sizeof member.journal));
  return register_story(member);
}

Status World::register_story(Member& member) {
  TC_ASSIGN(member.story, member.node->register_bundle(code_.stories[member.version - 1]));
  return {};
}

Status World::swap_story(Member& member) {
  if (member.node == nullptr) return {};
  const environment::ClockOfNode clock(member.skew_ns);
  const auto before = std::exchange(member.version, static_cast<uint16_t>(3 - member.version));
  const auto registered = with_memory_of(member.shortage, [&] { return register_story(member); });
  if (!is_for_lack_of_memory(registered)) return registered;
  member.version = before;
  return {};
}

// In good order, unless its connections were broken off before.
void World::end(uint32_t number) {
  auto& member = members_[number];
  if (member.node == nullptr) return;
  if (auto seen = look(); !seen) found_ = std::move(seen);
  if (auto late = check_late_answers(number); !late && found_) found_ = std::move(late);
  books_.forget(life_of(number));
  libraries_.forget(number, environment::time_ns());
  const environment::ClockOfNode clock(member.skew_ns);
  const MemoryOfNode memory(&member.shortage);
  member.story.reset();
  auto node = std::move(member.node);
  node->set_pause({});
  node.reset();
}

// The stranger sends some that nobody has asked for.
Status World::check_late_answers(uint32_t number) {
  if (stranger_) return {};
  return books_.came_late(life_of(number), members_[number].node->stat("late-answers").value(),
                          libraries_.without_answer(number));
}

// ---- What happens

Status World::happen(size_t index) {
  using Kind = Event::Kind;
  const auto& event = plan_[index];
  auto& member = members_[event.node];
  const auto now = environment::time_ns();
  member.has_work = true;
  switch (event.kind) {
    case Kind::call: return call(index);
    case Kind::flush: return flush(event);
    case Kind::cut:
      network_.break_off(name_of(event.node), name_of(event.other), static_cast<unsigned>(event.seed % 257));
      break;
    case Kind::block: block(event); break;
    case Kind::partition: part(event); break;
    case Kind::crash: crash(event); break;
    case Kind::leave:
      end(event.node);
      member.back_at_ns = environment::time_ns();
      break;
    case Kind::pause:
      member.paused_until_ns = std::max(member.paused_until_ns, now + event.for_ns);
      resumed_ns_[event.node] = member.paused_until_ns;
      break;
    case Kind::swap: return swap_story(member);
    case Kind::drop_code: drop_code(event); break;
    case Kind::wall_clock: environment::jump_wall_clock(static_cast<int64_t>(event.seed % 20'000) - 10'000); break;
    case Kind::keyring: return set_keyring(event);
    case Kind::library: return send_library(index);
    case Kind::use: return use_library(index);
    case Kind::cancel: cancel(event); break;
    case Kind::mischief:
      if (!stranger_) stranger_.emplace(network_, addresses_.back(), code_.stories[0]);
      stranger_->act(Dice(event.seed), event.node, addresses_);
      break;
    case Kind::no_memory: member.shortage = shortage_of(event); break;
  }
  return {};
}

bool World::is_awake(const Member& member) const {
  return member.node != nullptr && member.paused_until_ns <= environment::time_ns();
}

Status World::call(size_t index) {
  const auto& event = plan_[index];
  auto& member = members_[event.node];
  if (!is_awake(member)) return {};
  const environment::ClockOfNode clock(member.skew_ns);
  Books::Call call{.event = &event, .from = life_of(event.node), .version = member.version, .future = {}, .runs = {}};
  const auto payload = payload_of(event, Books::number_of(index));
  call.accepted = with_memory_of(member.shortage, [&] { return send(member, event, payload, call); }).has_value();
  if (call.link != 0) books_.record(index, std::move(call));  // else its application is told that there is no link
  return {};
}

Status World::send(Member& member, const Event& event, const Bytes& payload, Books::Call& call) {
  TC_ASSIGN(auto* const link, member.node->links().to_node(event.other));
  call.link = link->id();
  call.due_ns = environment::time_ns() + event.for_ns;
  TC_ASSIGN(const auto message, source::Message::create(member.story, payload.data(), payload.size(), largest_message));
  if (!event.wants_answer) return member.node->send(*link, *message, false, Deadline::at_ns(0));
  const auto answer_ms = static_cast<uint32_t>(event.for_ns / 1'000'000);
  TC_ASSIGN(call.future, member.node->call(*link, *message, answer_ms, Deadline::at_ns(0)));
  return {};
}

Status World::flush(const Event& event) {
  auto& member = members_[event.node];
  if (!is_awake(member)) return {};
  const environment::ClockOfNode clock(member.skew_ns);
  uint64_t number = 0;
  const auto flushed = with_memory_of(member.shortage, [&]() -> Status {
    TC_ASSIGN(auto* const link, member.node->links().to_node(event.other));
    const node::Link::Hold hold(*link);
    number = link->id();
    return link->flush(Deadline::after_ms(event.for_ns / 1'000'000));
  });
  if (number == 0) return {};
  TC_CHECK(look());
  return books_.flushed(life_of(event.node), number, flushed.has_value());
}

// Some, or all.
void World::cancel(const Event& event) {
  auto& member = members_[event.node];
  if (!is_awake(member)) return;
  const environment::ClockOfNode clock(member.skew_ns);
  Dice dice(event.seed);
  const auto one_in = 1 + dice.skewed(8);
  (void)with_memory_of(member.shortage, [&]() -> Status {
    books_.each_open(life_of(event.node), [&](node::Future& future) {
      if (!future.ready && dice.once_in(one_in)) member.node->cancel(future);
    });
    return {};
  });
}

void World::block(const Event& event) {
  auto& way = path(event.node, event.other);
  way.blocked_until_ns = std::max(way.blocked_until_ns, environment::time_ns() + event.for_ns);
}

void World::part(const Event& event) {
  const auto is_inside = [&](uint32_t number) { return std::ranges::find(event.route, number) != event.route.end(); };
  for (uint32_t from = 0; from < members_.size(); ++from)
    for (uint32_t to = 0; to < members_.size(); ++to)
      if (is_inside(from) != is_inside(to))
        path(from, to).blocked_until_ns =
            std::max(path(from, to).blocked_until_ns, environment::time_ns() + event.for_ns);
}

void World::crash(const Event& event) {
  if (members_[event.node].node == nullptr) return;
  network_.die(name_of(event.node), static_cast<unsigned>(event.seed % 257));
  end(event.node);
  members_[event.node].back_at_ns = environment::time_ns() + event.for_ns;
}

void World::drop_code(const Event& event) {
  auto& member = members_[event.node];
  if (member.node == nullptr) return;
  const environment::ClockOfNode clock(member.skew_ns);
  (void)with_memory_of(member.shortage, [&]() -> Status {
    for (const auto& version : code_.stories)
      if (event.seed & 1 || version.id() == code_.stories[0].id()) member.node->store().evict(version.id());
    return {};
  });
}

// What came before was run by the rights that there were.
Status World::set_keyring(const Event& event) {
  TC_CHECK(look());
  TC_CHECK(keyrings_.set(event.node, event.other, leave_of(event)));
  auto& member = members_[event.node];
  if (member.node == nullptr) return {};
  const environment::ClockOfNode clock(member.skew_ns);
  TC_CHECK(member.node->reload_keys());
  auto deadline = Deadline::never();
  (void)member.node->arm(deadline);  // takes it over
  return {};
}

Status World::send_library(size_t index) {
  const auto version = library_version_of(plan_[index]);
  return call_library(index, code_.libraries[static_cast<size_t>(version) - 1], {.version = version});
}

Status World::use_library(size_t index) {
  return call_library(index, code_.user, {.value = static_cast<uint32_t>(plan_[index].seed % 100'000)});
}

Status World::call_library(size_t index, const Bundle& bundle, Libraries::Call call) {
  const auto& event = plan_[index];
  auto& member = members_[event.node];
  if (!is_awake(member)) return {};
  const environment::ClockOfNode clock(member.skew_ns);
  const auto called = with_memory_of(member.shortage, [&]() -> Status {
    TC_ASSIGN(auto* const link, member.node->links().to_node(event.other));
    TC_ASSIGN(const auto ifunc, member.node->register_bundle(bundle));
    TC_ASSIGN(const auto message, source::Message::create(ifunc, &call.value, sizeof call.value, largest_message));
    const auto answer_ms = static_cast<uint32_t>(event.for_ns / 1'000'000);
    TC_ASSIGN(call.future, member.node->call(*link, *message, answer_ms, Deadline::at_ns(0)));
    return {};
  });
  if (!called) return {};
  call.event = index, call.from = event.node, call.to = event.other, call.sent_ns = environment::time_ns();
  libraries_.record(std::move(call));
  return {};
}

// ---- Time

// Each node that has something to do gets its turn. True: something happened.
bool World::turn() {
  const MemoryOfNode nobodys(nullptr);  // it may be in the middle of a node's call
  ++turns_;
  environment::advance_to(environment::time_ns() + turn_takes_ns);
  while (schedule_.next().at_ns <= environment::time_ns())
    if (const auto due = schedule_.take(); due.node < members_.size()) members_[due.node].has_work = true;
  bool happened = false;
  const auto first = dice_.below(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    const auto number = static_cast<uint32_t>((first + i) % members_.size());
    auto& member = members_[number];
    if (!member.has_work || !is_awake(member)) continue;
    const environment::ClockOfNode clock(member.skew_ns);
    auto deadline = Deadline::never();
    const auto polled = with_memory_of(member.shortage, [&]() -> Status {
      happened |= member.node->poll() != 0;
      member.has_work = !member.node->arm(deadline);
      return {};
    });
    member.has_work |= !polled;  // its program goes on
    happened |= member.has_work;
    if (deadline.at_ns() != UINT64_MAX)
      deadline = Deadline::at_ns(deadline.at_ns() - std::min(deadline.at_ns(), member.skew_ns));
    schedule_.set_deadline(number, deadline.at_ns());
  }
  if (stranger_) stranger_->progress();
  if (auto seen = look(); !seen && found_) found_ = std::move(seen);
  return happened;
}

// What was written into the journals, and what has ended.
Status World::look() {
  for (uint32_t number = 0; number < members_.size(); ++number) {
    auto& journal = members_[number].journal;
    const auto count = std::exchange(journal.count, 0);
    if (count > std::size(journal.entries)) return fail(TC_ERR_INTERNAL, "the journal of node {} is full", number);
    for (uint64_t i = 0; i < count; ++i)
      TC_CHECK(books_.ran(life_of(number), journal.entries[i], environment::time_ns()));
  }
  TC_CHECK(libraries_.settle(environment::time_ns()));
  return books_.settle(environment::time_ns(), resumed_ns_);
}

uint64_t World::next_ns() const {
  uint64_t next = schedule_.next().at_ns;
  for (const auto& member : members_)  // a pause may have ended in the middle of the last turn
    if (member.has_work && member.node != nullptr) next = std::min(next, member.paused_until_ns);
  return next;
}

void World::pass_time(uint64_t limit_ns) { environment::advance_to(std::min(next_ns(), limit_ns)); }

Status World::run_until(uint64_t time_ns) {
  while (environment::time_ns() < time_ns) {
    for (uint32_t number = 0; number < members_.size(); ++number) {
      if (members_[number].node == nullptr && members_[number].back_at_ns <= environment::time_ns())
        TC_CHECK(start(number));
    }
    if (!turn()) pass_time(time_ns);
    TC_CHECK(Status(found_));
  }
  return {};
}

Status World::run() {
  const auto beginning = environment::time_ns();
  for (uint32_t number = 0; number < members_.size(); ++number) TC_CHECK(start(number));
  for (size_t i = 0; i < plan_.size(); ++i) {
    TC_CHECK(run_until(beginning + plan_[i].at_ns));
    TC_CHECK(happen(i));
    TC_CHECK(Status(found_));
  }
  TC_CHECK(wait_for_the_open());
  return balance();
}

Status World::wait_for_the_open() {
  for (auto& way : paths_) way.blocked_until_ns = 0;
  const auto limit = environment::time_ns() + longest_wait_ns;
  while (books_.open() != 0 && environment::time_ns() < limit) TC_CHECK(run_until(environment::time_ns() + 1'000'000));
  if (books_.open() == 0) return {};
  return fail(TC_ERR_INTERNAL, "{} ms after the end:\n{}", longest_wait_ns / 1'000'000, books_.words_of_open());
}

// Nothing is left anywhere.
Status World::balance() {
  if (stranger_) stranger_->vanish();
  TC_CHECK(run_until(environment::time_ns() + longest_wait_ns));
  for (uint32_t number = 0; number < members_.size(); ++number) {
    const auto& node = members_[number].node;
    if (node == nullptr) continue;
    if (!node->futures().empty())
      return fail(TC_ERR_INTERNAL, "{} futures wait at node {} when nobody there waits", node->futures().size(),
                  number);
    if (const auto used = node->buffers().budget().used(); used != 0)
      return fail(TC_ERR_INTERNAL, "{} bytes of messages wait at node {} when nothing is under way", used, number);
  }
  for (uint32_t number = 0; number < members_.size(); ++number) end(number);
  TC_CHECK(Status(found_));
  if (network_.in_flight() == 0) return {};
  return fail(TC_ERR_INTERNAL, "{} bytes are under way when no node is there any more", network_.in_flight());
}

}  // namespace tc::simulation
