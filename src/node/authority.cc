// SPDX-License-Identifier: Apache-2.0
#include "node/authority.h"

#include <spdlog/logger.h>

#include <algorithm>

#include "base/clock.h"
#include "node/config.h"
#include "node/identity.h"
#include "transport/transport.h"
#include "trust/key_file.h"

namespace tc::node {

namespace {

trust::Time wall_time() noexcept { return trust::Time{std::chrono::seconds{wall_clock_s()}}; }

trust::Peer peer_of(const transport::Origin& origin) {
  return {.text = origin.text,
          .host = origin.host,
          .same_user = origin.same_user,
          .why_not_same_user = origin.why_not_same_user,
          .on_trusted_network = origin.on_trusted_network,
          .key = origin.key,
          .is_key_temporary = origin.is_key_temporary};
}

bool has_ended(const trust::Grant& grant, trust::Time now) noexcept {
  return grant.revoked.has_value() || (grant.until && *grant.until <= now);
}

// Between two looks at the wall clock, which may be set.
constexpr uint64_t longest_ns = 60'000'000'000;

constexpr uint64_t between_uses_ns = 60'000'000'000;

}  // namespace

Authority::Authority(const Config& config, const Identity& self, spdlog::logger& log)
    : config_(config), self_(self), log_(log) {}

// ---- Starting

Status Authority::start() {
  const auto home = trust::home();
  if (config_.keyring != "none" && (home || !config_.keyring.empty()))
    keyring_file_ = config_.keyring.empty() ? *home / "keyring" : std::filesystem::path(config_.keyring);
  if (home) known_nodes_ = *home / "known-nodes";
  contacts_ = std::make_unique<FirstContacts>(home ? std::optional(trust::KnownNodes(known_nodes_)) : std::nullopt);
  if (home && runs_code() && !keyring_file_.empty())
    uses_ = std::make_unique<UseRecorder>(*home / "last-uses", [this](const std::string& why) {
      log_.info("{}: when keys are used is not written down: {}", self_.label, why);
    });
  rules_.trust_any = config_.trust == Trust::any;
  auto keyring = read_keyring();
  if (keyring) {
    rules_.keyring = std::move(*keyring);
  } else if (runs_code()) {
    return fail(std::move(keyring).error());
  } else {
    log_.warn("{}: the keyring cannot be read, so no key is trusted: {}", self_.label, keyring.error().message);
    rules_.keyring_error = std::move(keyring).error();
  }
  find_next_expiry();
  warn_of_openness();
  return {};
}

Result<std::shared_ptr<const trust::KeyPair>> Authority::find_key() const {
  const bool is_named = !config_.key.empty();
  auto key = trust::find_key(is_named ? std::string_view(config_.key) : trust::default_key);
  if (key) return std::make_shared<const trust::KeyPair>(std::move(*key));
  if (!is_named && key.error().code == TC_ERR_NOT_FOUND) return nullptr;
  return context("this node's key", std::move(key).error());
}

void Authority::use_keys(const trust::KeyPair* own) {
  if (own != nullptr) rules_.own_key = own->public_key();
  rules_.vouched = self_.cluster_keys;
}

// Not in `ifunc send`, for one.
bool Authority::names_cells() const noexcept {
  return std::ranges::any_of(rules_.keyring.grants(), [](const auto& one) { return one.where == trust::Where::cell; });
}

bool Authority::runs_code() const noexcept { return config_.code.use_objects || config_.code.use_bitcode; }

// Where nothing can run nobody is given anything.
void Authority::warn_of_openness() const {
  if (!runs_code()) return;
  if (config_.trust == Trust::any)
    log_.warn(
        "{}: trust is any: everybody who can reach this node's address may run any code with all rights of this "
        "process",
        self_.label);
  for (const auto& network : config_.network.trusted_networks)
    log_.warn(
        "{}: trust-network {}: every process there may run any code with all rights of this process, and what is sent "
        "to and from there is not encrypted",
        self_.label, network.text());
}

Result<trust::Keyring> Authority::read_keyring() const {
  if (keyring_file_.empty()) return trust::Keyring();
  return trust::Keyring::load(keyring_file_);
}

// ---- What peers may do

Result<trust::Rights> Authority::rights_of(const transport::Origin& peer) const {
  return trust::rights_of(rules_, peer_of(peer), wall_time());
}

Result<trust::SharedRights> Authority::rights_of_code(const trust::Rights& peer, const wire::SharedChain& chain,
                                                      const Bundle& bundle) const {
  TC_ASSIGN(auto rights, trust::rights_of_code(rules_, peer, chain, bundle, has_cells_, wall_time()));
  rights.reading = readings_;
  return trust::SharedRights(std::move(rights));
}

std::shared_ptr<Rate> Authority::rate_of(const trust::Rights& peer) {
  if (peer.grant() == nullptr || !peer.grant()->rate) return nullptr;
  return rates_.of(peer.grant()->key, *peer.grant()->rate, now_ns());
}

void Authority::record_use(const trust::Rights& whose) {
  if (uses_ != nullptr && whose.grant() != nullptr) uses_->record(whose.grant()->key, wall_time());
}

bool Authority::is_use_due() {
  if (uses_ == nullptr) return false;
  const auto now = now_ns();
  if (now < next_use_ns_) return false;
  next_use_ns_ = now + between_uses_ns;
  return true;
}

void Authority::log_denial(std::string_view whose, const Error& why) {
  const auto now = now_ns();
  if (const auto unsaid = denials_.take_unsaid(now); unsaid != 0) log_.warn("{} more denials in a second", unsaid);
  if (denials_.record(now)) log_.warn("{}: {}", whose, why.message);
}

Status Authority::is_valid(const transport::Origin& peer) const {
  if (peer.key && !peer.same_user && !peer.on_trusted_network) TC_CHECK(trust::check_keyring(rules_));
  const auto* const grant = peer.key ? rules_.keyring.find(*peer.key) : nullptr;
  if (grant == nullptr || !has_ended(*grant, wall_time())) return {};
  auto denied = rights_of(peer);
  if (denied) return {};
  return fail(std::move(denied).error());
}

bool Authority::is_vouched(const trust::PublicKey& key) const noexcept {
  return std::ranges::find(rules_.vouched, key) != rules_.vouched.end();
}

// ---- Which key answers at an address

const trust::PublicKey* Authority::vouched_for(std::string_view address) const noexcept {
  const auto found = std::ranges::find(self_.cluster, address, trust::canonical_address);
  const auto number = static_cast<size_t>(found - self_.cluster.begin());
  return number < self_.cluster_keys.size() ? &self_.cluster_keys[number] : nullptr;
}

// Of several lines, the one with that key.
const trust::Grant* Authority::answers_at(std::string_view address, const trust::PublicKey& key) const noexcept {
  const trust::Grant* other = nullptr;
  for (const auto& grant : rules_.keyring.grants()) {
    if (std::ranges::find(grant.at, address) == grant.at.end()) continue;
    if (grant.key == key) return &grant;
    other = &grant;
  }
  return other;
}

Status Authority::may_answer_at(std::string_view address, const transport::Origin& peer) const {
  if (peer.same_user || peer.on_trusted_network || !peer.key || is_own(*peer.key)) return {};
  const auto spelled = trust::canonical_address(address);
  if (const auto* const vouched = vouched_for(spelled); vouched != nullptr && *vouched == *peer.key) return {};
  const auto* const there = answers_at(spelled, *peer.key);
  if (there == nullptr || there->key == *peer.key) return {};
  return fail(TC_ERR_DENIED,
              "it answers with key {} when {} (keyring, line {}) has at={}: another process has its address now, or "
              "something stands in between",
              peer.key->text(), there->name, there->line, fmt::join(there->at, ","));
}

// A key that the file has for an address counts more than the keyring: otherwise everybody in the keyring could answer in
// the place of everybody else.
Status Authority::is_expected(std::string_view spelling, const transport::Origin& peer, const Expectation& expected) {
  if (peer.same_user || peer.on_trusted_network) return {};
  if (!peer.key) return fail(TC_ERR_DENIED, "{} does not prove who it is, so nothing is sent to it", peer.text);
  const auto& key = *peer.key;
  const auto address = trust::canonical_address(spelling);
  TC_CHECK(is_valid(peer));
  if (is_own(key)) return {};
  if (const auto* const vouched = vouched_for(address); vouched != nullptr) {
    if (*vouched == key) return {};
    return fail(
        TC_ERR_DENIED,
        "it answers with key {} when the launcher gave {} to {}: another process has its address now, or something "
        "stands in between",
        key.text(), vouched->text(), address);
  }
  if (answers_at(address, key) != nullptr) return may_answer_at(address, peer);
  TC_ASSIGN(const auto known, contacts_->find(address));
  if (known == key) return {};
  if (known)
    return fail(TC_ERR_DENIED,
                "it answers with key {} when {} had {} before: something may stand in between; if its operator has "
                "changed the key, say `ifunc key forget {}` and connect again",
                key.text(), address, known->text(), address);
  if (is_vouched(key)) return {};
  const auto* const grant = rules_.keyring.find(key);
  if (grant != nullptr) TC_CHECK(rights_of(peer));
  if (expected.may_meet) return may_meet(address, peer, grant);
  if (grant != nullptr || expected.caller == key) return {};
  return fail(TC_ERR_DENIED, "it answers with key {}, which is not known here, and an answer is no first contact",
              key.text());
}

// A key that nobody has named. At an address of this host it may be that of any local user, who listens there because our
// node does not at the moment: whatever is sent would be his. Processes of our own user are met at their Unix socket, or have
// a key of our user's.
Status Authority::may_meet(std::string_view address, const transport::Origin& peer, const trust::Grant* grant) const {
  const auto policy = config_.first_contact;
  if (grant != nullptr || policy == FirstContact::remember) return {};
  const bool has_lines = !rules_.keyring.grants().empty();
  const bool is_anybodys = policy == FirstContact::keyring && !has_lines && peer.is_this_host;
  const bool meets = policy == FirstContact::keyring && !has_lines && !is_anybodys;
  if (meets || (is_anybodys && trust::is_own_key(*peer.key))) return {};
  const auto key = peer.key->text();
  const auto reason = policy == FirstContact::ask      ? std::string("first-contact is ask")
                      : policy == FirstContact::refuse ? std::string("first-contact is refuse")
                      : has_lines                      ? std::string("first-contact is keyring, which has other keys")
                                                       : fmt::format("any user of this host may listen at {}", address);
  const auto advice =
      peer.is_key_temporary
          ? std::string("it lasts only as long as its process: `ifunc key new default` there makes one to trust")
          : fmt::format("compare it with `ifunc key show` there, then say `ifunc key trust NAME {}{}`", key,
                        is_anybodys ? fmt::format(" --at {}", address) : "");
  return fail(TC_ERR_DENIED, "it answers with key {}, which is not known here, and {}: {}", key, reason, advice);
}

void Authority::remember(std::string_view spelling, const transport::Origin& peer) {
  if (peer.same_user || peer.on_trusted_network || !peer.key) return;
  const auto& key = *peer.key;
  const auto address = trust::canonical_address(spelling);
  if (is_own(key) || is_vouched(key) || answers_at(address, key) != nullptr) return;
  if (const auto known = contacts_->find(address); !known || *known) return;  // is_expected() has looked at it
  const auto* const grant = rules_.keyring.find(key);
  if (peer.is_key_temporary && grant == nullptr)
    return log_.warn(
        "{}: {} answers with key {}, which lasts only as long as its process and is not remembered: next time it "
        "may be anybody; `ifunc key new default` there makes a key that lasts",
        self_.label, address, key.text());
  auto said = fmt::format("{}: first contact with {}: it answers with key {}{}", self_.label, address, key.text(),
                          grant != nullptr ? " of " + grant->name : "");
  contacts_->remember(address, key, [this, said = std::move(said), is_warning = grant == nullptr](const Status& kept) {
    if (kept) {
      log_.log(is_warning ? spdlog::level::warn : spdlog::level::info,
               "{}; from now on, no other key is accepted there ({})", said, known_nodes_.string());
    } else if (kept.error().code == TC_ERR_BUSY) {
      log_.error("{}; meanwhile another process has met another key there: {}", said, kept.error().message);
    } else {
      log_.warn("{}; it is remembered until this process ends: {}", said, kept.error().message);
    }
  });
}

bool Authority::may_stand_for(std::string_view spelling, const transport::Origin& peer) const {
  const auto address = trust::canonical_address(spelling);
  if (peer.same_user || peer.on_trusted_network) return true;
  if (!peer.key || rules_.keyring_error) return false;
  if (is_own(*peer.key)) return true;
  if (const auto* const vouched = vouched_for(address); vouched != nullptr) return *vouched == *peer.key;
  if (const auto* const there = answers_at(address, *peer.key); there != nullptr) return there->key == *peer.key;
  const auto known = contacts_->find(address);
  if (!known) return false;
  return *known ? *known == *peer.key : is_vouched(*peer.key);
}

bool Authority::is_known(std::string_view spelling) const {
  const auto address = trust::canonical_address(spelling);
  const auto& cluster = self_.cluster;
  if (std::ranges::find(cluster, address, trust::canonical_address) != cluster.end()) return true;
  for (const auto& grant : rules_.keyring.grants())
    if (std::ranges::find(grant.at, address) != grant.at.end()) return true;
  const auto known = contacts_->find(address);
  return known && *known;
}

// ---- What changes

Status Authority::reload() {
  auto keyring = read_keyring();
  if (!keyring) {
    log_.error("{}: the keyring stays as it was: {}", self_.label, keyring.error().message);
    return fail(std::move(keyring).error());
  }
  const std::scoped_lock lock(mutex_);
  reloaded_ = std::move(*keyring);
  is_reloaded_.store(true, std::memory_order_release);
  return {};
}

bool Authority::has_changed() const noexcept {
  return is_reloaded_.load(std::memory_order_acquire) || contacts_->has_conflicts() ||
         (next_expiry_ns_ != UINT64_MAX && now_ns() >= next_expiry_ns_);
}

std::vector<trust::PublicKey> Authority::take_change() {
  ++readings_;
  std::optional<trust::Keyring> reloaded;
  {
    const std::scoped_lock lock(mutex_);
    reloaded.swap(reloaded_);
    is_reloaded_.store(false, std::memory_order_relaxed);
  }
  trust::KeyringChange change;
  if (reloaded) {
    change = trust::compare(rules_.keyring, *reloaded);
    rules_.keyring = std::move(*reloaded);
    rules_.keyring_error.reset();
    // A warning, because these are the default level: rights on this node have changed.
    log_.warn("{}: the keyring was read again: {}", self_.label,
              trust::to_text(change, rules_.keyring.grants().size()));
  }
  find_next_expiry();
  return std::move(change.lost);
}

void Authority::find_next_expiry() noexcept {
  next_expiry_ns_ = UINT64_MAX;
  const auto now = wall_time();
  for (const auto& grant : rules_.keyring.grants()) {
    if (!grant.until || *grant.until <= now) continue;
    const auto left_s = static_cast<uint64_t>((*grant.until - now).count());
    const auto left_ns = std::min<uint64_t>(left_s, longest_ns / 1'000'000'000) * 1'000'000'000;
    next_expiry_ns_ = std::min(next_expiry_ns_, now_ns() + left_ns);
  }
}

}  // namespace tc::node
