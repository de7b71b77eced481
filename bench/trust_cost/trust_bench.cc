// SPDX-License-Identifier: Apache-2.0
//
// The source's process: measures.
#include "trust_cost/trust_bench.h"

#include <ucp/api/ucp.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "common/talk.h"
#include "trust/code_signature.h"
#include "trust_cost/keys.h"
#include "tsi/ifunc_peer.h"
#include "tsi/tsi_bundle.h"

namespace tc::bench {

namespace {

constexpr uint64_t talk_ms = 60'000;
constexpr uint32_t call_ms = 10'000;

class TrustBench {
 public:
  explicit TrustBench(const TrustOptions& options) { result_.options = options; }
  Status run();
  TrustResult take() { return std::move(result_); }

 private:
  struct Latency {
    std::vector<double> medians, p99s;
  };

  Status start();
  Result<std::string> ask(Partner& partner, const std::string& order);
  Result<double> ask_number(const std::string& order);
  Status first_call(bool is_signed, std::vector<double>& calls);
  Status never_seen_code();
  Status unsigned_code_of_the_author_is_refused();
  Status connections();
  Status calls(Latency& into);
  Status calls_during_flood(const std::string& address, Latency& into, std::vector<double>* per_s);
  Status floods();
  void summarize_all();

  TrustResult result_;
  std::optional<BenchKeys> keys_;
  std::unique_ptr<Partner> target_, decoy_, flood_;
  std::string target_address_, decoy_address_;
  std::unique_ptr<IfuncPeer> owner_, author_;
  uint64_t labels_ = 0;
  std::vector<double> unsigned_us_, signed_us_, unsigned_first_us_, signed_first_us_, signature_us_;
  std::vector<double> connections_per_s_, handshake_cpu_us_, flood_per_s_;
  Latency quiet_, elsewhere_, here_;
};

double quantile(std::vector<double>& values, double share) {
  const auto at = values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

Result<std::string> TrustBench::ask(Partner& partner, const std::string& order) {
  TC_CHECK(partner.talk().say(order));
  return partner.talk().hear(Deadline::after_ms(talk_ms));
}

Result<double> TrustBench::ask_number(const std::string& order) {
  TC_ASSIGN(const auto answer, ask(*target_, order));
  double number = 0;
  if (!(std::istringstream(answer) >> number)) return fail(TC_ERR_INTERNAL, "the target said '{}'", answer);
  return number;
}

Status TrustBench::start() {
  result_.machine = describe_machine(ucp_get_version_string());
  TC_ASSIGN(keys_, BenchKeys::make());
  const auto started = [&](std::unique_ptr<Partner>& partner, std::string& address) -> Status {
    TC_ASSIGN(partner, Partner::start({"bench", "trust-target", "--keyring", keys_->keyring_file()}));
    TC_ASSIGN(const auto line, partner->talk().hear(Deadline::after_ms(talk_ms)));
    std::string verb;
    if (!(std::istringstream(line) >> verb >> address)) return fail(TC_ERR_INTERNAL, "a target said '{}'", line);
    return {};
  };
  TC_CHECK(started(target_, target_address_));
  TC_CHECK(started(decoy_, decoy_address_));
  TC_ASSIGN(flood_, Partner::start({"bench", "trust-flood"}));
  TC_ASSIGN(const auto ready, flood_->talk().hear(Deadline::after_ms(talk_ms)));
  TC_ASSIGN(const auto transport, BenchTransport::parse("tls"));
  TC_ASSIGN(owner_, IfuncPeer::create(transport));
  TC_ASSIGN(author_, IfuncPeer::create(transport, {{"key", keys_->author_file()}, {"keyring", keys_->keyring_file()}}));
  TC_CHECK(owner_->connect(target_address_));
  return author_->connect(target_address_);
}

// Each is code with a content id that the target has never seen: by its owner as it is, or by the author with a signature.
Status TrustBench::first_call(bool is_signed, std::vector<double>& calls) {
  TC_ASSIGN(auto bundle, tsi_variant(SliceForm::object, fmt::format("sample {}", ++labels_)));
  if (is_signed) TC_CHECK(trust::sign_bundle(bundle, keys_->author()));
  auto& peer = is_signed ? *author_ : *owner_;
  TC_CHECK(peer.use(bundle));
  const auto started = now_ns();
  TC_CHECK(peer.call(call_ms));
  calls.push_back(static_cast<double>(now_ns() - started) / 1000);
  TC_ASSIGN(const auto first_ns, ask_number("first-execution-ns"));
  (is_signed ? signed_first_us_ : unsigned_first_us_).push_back(first_ns / 1000);
  return {};
}

Status TrustBench::never_seen_code() {
  std::vector<double> without, with;
  for (int i = 0; i < result_.options.samples; ++i) {
    TC_CHECK(first_call(false, without));
    TC_CHECK(first_call(true, with));
  }
  signature_us_.push_back(quantile(with, 0.5) - quantile(without, 0.5));
  unsigned_us_.insert(unsigned_us_.end(), without.begin(), without.end());
  signed_us_.insert(signed_us_.end(), with.begin(), with.end());
  return {};
}

// Else the signatures that were measured were not looked at.
Status TrustBench::unsigned_code_of_the_author_is_refused() {
  TC_ASSIGN(const auto bundle, tsi_variant(SliceForm::object, "unsigned"));
  TC_CHECK(author_->use(bundle));
  const auto called = author_->call(call_ms);
  if (!called && called.error().code == TC_ERR_DENIED) return {};
  return fail(TC_ERR_INTERNAL, "unsigned code of a peer that may run signed code only {}",
              called ? "was run" : "failed otherwise: " + called.error().message);
}

Status TrustBench::connections() {
  TC_ASSIGN(const auto before, ask_number("cpu"));
  TC_CHECK(ask(*flood_, fmt::format("connect {} {}", target_address_, result_.options.phase_ms)));  // "go"
  TC_ASSIGN(const auto answer, flood_->talk().hear(Deadline::after_ms(talk_ms)));
  TC_ASSIGN(const auto after, ask_number("cpu"));
  double count = 0, per_s = 0;
  if (!(std::istringstream(answer) >> count >> per_s) || count < 1)
    return fail(TC_ERR_INTERNAL, "{} connections were made when '{}' was said", count, answer);
  connections_per_s_.push_back(per_s);
  handshake_cpu_us_.push_back((after - before) / 1000 / count);
  return {};
}

Status TrustBench::calls(Latency& into) {
  std::vector<double> us;
  const auto deadline = Deadline::after_ms(result_.options.phase_ms);
  while (!deadline.passed() || us.empty()) {
    const auto started = now_ns();
    TC_CHECK(owner_->call(call_ms));
    us.push_back(static_cast<double>(now_ns() - started) / 1000);
  }
  result_.calls += us.size();
  into.medians.push_back(quantile(us, 0.5));
  into.p99s.push_back(quantile(us, 0.99));
  return {};
}

Status TrustBench::calls_during_flood(const std::string& address, Latency& into, std::vector<double>* per_s) {
  TC_CHECK(ask(*flood_, fmt::format("flood {} {}", address, result_.options.phase_ms)));  // "go"
  TC_CHECK(calls(into));
  TC_ASSIGN(const auto answer, flood_->talk().hear(Deadline::after_ms(talk_ms)));
  double answered = 0, rate = 0;
  if (!(std::istringstream(answer) >> answered >> rate) || answered < 1)
    return fail(TC_ERR_INTERNAL, "the flood met no node that answered: '{}'", answer);
  if (per_s != nullptr) per_s->push_back(rate);
  return {};
}

Status TrustBench::floods() {
  TC_ASSIGN(const auto bundle, tsi_variant(SliceForm::object, "flood"));
  TC_CHECK(owner_->use(bundle));
  TC_CHECK(owner_->call(call_ms));
  TC_CHECK(calls(quiet_));
  TC_CHECK(calls_during_flood(decoy_address_, elsewhere_, nullptr));
  return calls_during_flood(target_address_, here_, &flood_per_s_);
}

void TrustBench::summarize_all() {
  const auto ratios = [](const Latency& of, const Latency& to) {
    std::vector<double> values;
    for (size_t run = 0; run < of.medians.size(); ++run) values.push_back(of.medians[run] / to.medians[run]);
    return summarize(std::move(values));
  };
  auto& r = result_;
  r.unsigned_code = {summarize(unsigned_us_), summarize(unsigned_first_us_)};
  r.signed_code = {summarize(signed_us_), summarize(signed_first_us_)};
  r.signature_us = summarize(signature_us_);
  r.connections_per_s = summarize(connections_per_s_);
  r.handshake_cpu_us = summarize(handshake_cpu_us_);
  r.quiet = {summarize(quiet_.medians), summarize(quiet_.p99s)};
  r.elsewhere = {summarize(elsewhere_.medians), summarize(elsewhere_.p99s)};
  r.here = {summarize(here_.medians), summarize(here_.p99s)};
  r.flood_to_quiet = ratios(here_, quiet_);
  r.flood_to_elsewhere = ratios(here_, elsewhere_);
  r.flood_per_s = summarize(flood_per_s_);
}

Status TrustBench::run() {
  TC_CHECK(start());
  TC_CHECK(unsigned_code_of_the_author_is_refused());
  for (int run = 0; run < result_.options.runs; ++run) {
    TC_CHECK(never_seen_code());
    TC_CHECK(connections());
    TC_CHECK(floods());
  }
  summarize_all();
  for (auto* const partner : {target_.get(), decoy_.get(), flood_.get()}) TC_CHECK(partner->talk().say("end"));
  return {};
}

}  // namespace

Result<TrustResult> run_trust(const TrustOptions& options) {
  TrustBench bench(options);
  TC_CHECK(bench.run());
  return bench.take();
}

}  // namespace tc::bench
