// SPDX-License-Identifier: Apache-2.0
//
// What the peer of a link may do here, and which code it may run. That is decided when a number is bound to code, so that
// calls by number cost nothing more.
#include <algorithm>

#include "node/authority.h"
#include "node/link/call_receiver.h"
#include "node/link/link.h"
#include "node/link/slice_requests.h"
#include "trust/code_signature.h"

namespace tc::node {

namespace {

// For so many numbers a link remembers what others may do on whose behalf they are called; code beyond is asked for again.
constexpr size_t on_behalf_limit = 4096;

// Does code that is held here come with more or fewer signatures than it has?
bool has_other_size(const wire::CodeBody& code, const Bundle& held) noexcept {
  return code.bundle.size() != held.size_for(code.head.carried);
}

}  // namespace

// Its numbers are withdrawn when a line of the keyring is in play: their code is asked for again, and checked.
void CallReceiver::renew_rights() {
  auto rights = authority_.rights_of(channel_.origin());
  const bool was_restricted = is_restricted_;
  rights_.reset();
  if (rights) rights_ = std::move(*rights);
  is_restricted_ = !rights_ || !rights_->is_all();
  full_rights_ = is_restricted_ ? trust::SharedRights() : trust::SharedRights(trust::CodeRights::all(rights_->whose()));
  may_run_ = rights_ && rights_->run() != trust::Run::none;
  if (!rights)
    why_not_ = std::move(rights).error();
  else if (!may_run_)
    why_not_ = {TC_ERR_DENIED, fmt::format("{} may run nothing here: run=none", rights_->whose())};
  on_behalf_.clear();
  if (!was_restricted && !is_restricted_) return;
  numbers_ = {};
  code_rights_.clear();
  unusable_.clear();
}

// May the peer run that code, and what may the code do? Where what was sent is held here already, signatures that came with
// the other one count too.
Result<trust::SharedRights> CallReceiver::decide(const wire::Chain& chain, const Bundle* sent, const Bundle* held) {
  if (!is_restricted_ && chain.empty()) return full_rights_;
  if (!rights_) return fail(why_not_);
  const auto shared = chain.empty() ? nullptr : std::make_shared<const wire::Chain>(chain);
  auto rights = authority_.rights_of_code(*rights_, shared, sent != nullptr ? *sent : *held);
  if (!rights && sent != nullptr && held != nullptr)
    if (auto by_held = authority_.rights_of_code(*rights_, shared, *held)) rights = std::move(by_held);
  if (rights) {
    if ((*rights)->author) authority_.record_use(*(*rights)->author);
    return rights;
  }
  ++counters_.denied_codes;
  authority_.log_denial(channel_.peer_label(), rights.error());
  return fail(std::move(rights).error());
}

const trust::SharedRights& CallReceiver::restricted_rights_of(const target::Code* code) const {
  const auto found = code_rights_.find(code);
  return found != code_rights_.end() ? found->second : no_rights_;
}

// Who is limited might fill the code's list with signatures that are none.
void CallReceiver::add_signatures(const Bundle& sent, const Bundle& held, bool is_limited) {
  if (sent.signatures() == held.signatures()) return;
  const auto is_worthless = [&](const CodeSignature& one) { return is_limited && !trust::is_valid(one, sent); };
  if (std::ranges::any_of(sent.signatures(), is_worthless) || !code_.add_signatures(sent)) return;
  link_.tell_others_of_signatures(sent.id());
}

// ---- Code

LoadResult CallReceiver::learn(uint32_t number, const wire::CodeBody& code) {
  auto* held = loader_.find(code.head.id);
  const bool is_missing = held == nullptr || (code.head.carried & ~held->bundle->carried()) != 0;
  if (is_missing && code.bundle.empty())
    return LoadResult::failed(
        {TC_ERR_NOT_FOUND, fmt::format("{} no longer holds the code {} that it called: register it there again",
                                       channel_.peer_label(), code.head.id.short_hex())});
  const bool is_limited = is_restricted_ || !code.head.chain.empty();
  const bool is_read = is_missing || (!code.bundle.empty() && (is_limited || has_other_size(code, *held->bundle)));
  Result<Bundle> bundle;
  if (is_read) bundle = Bundle::read_carried(code.bundle, code.head.carried, code.head.id);
  if (!bundle) return LoadResult::failed(std::move(bundle).error());
  auto rights = decide(code.head.chain, is_read ? &*bundle : nullptr, held != nullptr ? held->bundle.get() : nullptr);
  if (!rights) return LoadResult::failed(std::move(rights).error());
  if (is_missing) {
    const auto& origin = channel_.origin();
    auto loaded = loader_.load(std::move(*bundle), {origin.host, origin.key, *rights}, channel_.id());
    if (!loaded.is_loaded()) return loaded;
    held = loaded.code;
    slices_.record_supplier(code.head.id, channel_.id());
  } else if (is_read) {
    add_signatures(*bundle, *held->bundle, is_limited);
  }
  return bind(number, code.head.chain, *held, std::move(*rights));
}

LoadResult CallReceiver::bind(uint32_t number, const wire::Chain& chain, target::Code& code,
                              trust::SharedRights rights) {
  if (number >= id_prefixes_.size()) id_prefixes_.resize(std::max<size_t>(number + 1, id_prefixes_.size() * 2));
  id_prefixes_[number] = id_prefix_of(code.id());
  const auto* const before = chain.empty() ? numbers_.find(number) : nullptr;
  if (auto bound = bind_rights(number, chain, code, std::move(rights)); !bound)
    return LoadResult::failed(std::move(bound).error());
  unusable_.erase(number);
  if (before != &code)
    if (auto told = channel_.post(wire::Kind::known, 0, number, {}); !told)
      return LoadResult::failed(std::move(told).error());
  return LoadResult::loaded(code);
}

Status CallReceiver::bind_rights(uint32_t number, const wire::Chain& chain, target::Code& code,
                                 trust::SharedRights rights) {
  if (chain.empty()) {
    if (is_restricted_) code_rights_.insert_or_assign(&code, std::move(rights));
    return numbers_.bind(number, code);
  }
  if (on_behalf_.size() >= on_behalf_limit) on_behalf_.clear();
  on_behalf_.insert_or_assign(number, OnBehalf{&code, chain, std::move(rights)});
  return {};
}

}  // namespace tc::node
