// SPDX-License-Identifier: Apache-2.0
//
// The source's process: measures, and reports.
#include "trust_cost/trust_bench.h"

#include <ucp/api/ucp.h>

#include <optional>

#include "trust/code_signature.h"
#include "trust/key_file.h"
#include "trust/key_pair.h"
#include "trust/keyring.h"
#include "tsi/ifunc_peer.h"

namespace tc::bench {

namespace {

constexpr uint32_t call_ms = 10'000;

// That of the target and of its owner (SharedKey), and that of an author, whom the target's keyring lets run signed
// code only.
class BenchKeys {
 public:
  static Result<BenchKeys> make();
  const trust::KeyPair& author() const noexcept { return author_; }
  std::string author_file() const { return directory_.file("author"); }
  std::string keyring_file() const { return directory_.file("keyring"); }

 private:
  BenchKeys(SharedKey shared, TemporaryDirectory directory, trust::KeyPair author)
      : shared_(std::move(shared)), directory_(std::move(directory)), author_(std::move(author)) {}
  SharedKey shared_;
  TemporaryDirectory directory_;
  trust::KeyPair author_;
};

Result<BenchKeys> BenchKeys::make() {
  TC_ASSIGN(auto shared, SharedKey::make());
  TC_ASSIGN(auto directory, TemporaryDirectory::create());
  TC_ASSIGN(auto author, trust::KeyPair::fresh());
  TC_CHECK(trust::write_key_file(directory.file("author"), author));
  TC_ASSIGN(const auto target, trust::read_key_file(shared_key_file()));
  // The author connects to the target, and must know it as well.
  for (const auto& [name, key] : {std::pair{"author", author.public_key()}, std::pair{"target", target.public_key()}}) {
    trust::Grant grant;
    grant.name = name;
    grant.key = key;
    TC_CHECK(trust::add_to_keyring(directory.file("keyring"), grant));
  }
  return BenchKeys(std::move(shared), std::move(directory), std::move(author));
}

class TrustBench {
 public:
  explicit TrustBench(const TrustOptions& options) : options_(options) {}
  Status run();
  Report report() const { return {table(), json()}; }

 private:
  Status start();
  Result<double> ask_number(const std::string& order);
  Result<double> first_call(bool is_signed);
  Status never_seen_code();
  Status unsigned_code_of_the_author_is_refused();
  // What the flooding process has to say: how many connections, and how many a second.
  Result<std::pair<double, double>> hear_flood();
  Status connections();
  Status calls(const char* phase);
  Status calls_during_flood(const std::string& address, const char* phase);
  Status floods();
  std::string table() const;
  Json json() const;

  const TrustOptions& options_;
  Machine machine_;
  std::optional<BenchKeys> keys_;
  std::unique_ptr<Partner> target_, decoy_, flood_;
  std::string target_address_, decoy_address_;
  std::unique_ptr<IfuncPeer> owner_, author_;
  uint64_t labels_ = 0, calls_ = 0;  // all calls were answered
  // "call" of never-seen code, in us, and "first": of that at the target, last byte received to end of first execution.
  Samples<std::string> unsigned_, signed_;
  Samples<std::string> values_;        // run by run
  Samples<std::string> median_, p99_;  // of the calls of a phase, in us
};

Result<double> TrustBench::ask_number(const std::string& order) {
  TC_ASSIGN(const auto answer, target_->talk().ask(order));
  double number = 0;
  if (!read_words(answer, number)) return fail(TC_ERR_INTERNAL, "the target said '{}'", answer);
  return number;
}

Status TrustBench::start() {
  machine_ = describe_machine(ucp_get_version_string());
  TC_ASSIGN(keys_, BenchKeys::make());
  for (const auto& [partner, address] : {std::pair{&target_, &target_address_}, {&decoy_, &decoy_address_}}) {
    TC_ASSIGN(*partner, Partner::start("trust-target", {{"keyring", keys_->keyring_file()}}));
    TC_ASSIGN(*address, (*partner)->talk().hear());
  }
  TC_ASSIGN(flood_, Partner::start("trust-flood"));
  TC_CHECK(flood_->talk().expect("ready"));
  TC_ASSIGN(const auto transport, BenchTransport::parse("tls"));
  TC_ASSIGN(owner_, IfuncPeer::create(transport));
  TC_ASSIGN(author_, IfuncPeer::create(transport, {{"key", keys_->author_file()}, {"keyring", keys_->keyring_file()}}));
  TC_CHECK(owner_->connect(target_address_));
  return author_->connect(target_address_);
}

// Each is code with a content id that the target has never seen: by its owner as it is, or by the author with a
// signature.
Result<double> TrustBench::first_call(bool is_signed) {
  TC_ASSIGN(auto bundle, tsi_variant(SliceForm::object, fmt::format("sample {}", ++labels_)));
  if (is_signed) TC_CHECK(trust::sign_bundle(bundle, keys_->author()));
  auto& peer = is_signed ? *author_ : *owner_;
  TC_CHECK(peer.use(bundle));
  const auto started = now_ns();
  TC_CHECK(peer.call(call_ms));
  const auto us = static_cast<double>(now_ns() - started) / 1000;
  TC_ASSIGN(const auto first_ns, ask_number("first-execution-ns"));
  auto& samples = is_signed ? signed_ : unsigned_;
  samples.add("call", us);
  samples.add("first", first_ns / 1000);
  return us;
}

Status TrustBench::never_seen_code() {
  std::vector<double> without, with;
  for (int i = 0; i < options_.samples; ++i) {
    TC_ASSIGN(without.emplace_back(), first_call(false));
    TC_ASSIGN(with.emplace_back(), first_call(true));
  }
  values_.add("signature_us", quantile(with, 0.5) - quantile(without, 0.5));
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

Result<std::pair<double, double>> TrustBench::hear_flood() {
  TC_ASSIGN(const auto answer, flood_->talk().hear());
  double count = 0, per_s = 0;
  if (!read_words(answer, count, per_s) || count < 1)
    return fail(TC_ERR_INTERNAL, "no node answered a connection: '{}'", answer);
  return std::pair{count, per_s};
}

Status TrustBench::connections() {
  TC_ASSIGN(const auto before, ask_number("cpu"));
  TC_CHECK(flood_->talk().tell(fmt::format("connect {} {}", target_address_, options_.phase_ms), "go"));
  TC_ASSIGN(const auto made, hear_flood());
  TC_ASSIGN(const auto after, ask_number("cpu"));
  values_.add("connections_per_s", made.second);
  values_.add("handshake_cpu_us", (after - before) / 1000 / made.first);
  return {};
}

Status TrustBench::calls(const char* phase) {
  std::vector<double> us;
  const auto deadline = Deadline::after_ms(options_.phase_ms);
  while (!deadline.passed() || us.empty()) {
    const auto started = now_ns();
    TC_CHECK(owner_->call(call_ms));
    us.push_back(static_cast<double>(now_ns() - started) / 1000);
  }
  calls_ += us.size();
  median_.add(phase, quantile(us, 0.5));
  p99_.add(phase, quantile(us, 0.99));
  return {};
}

Status TrustBench::calls_during_flood(const std::string& address, const char* phase) {
  TC_CHECK(flood_->talk().tell(fmt::format("flood {} {}", address, options_.phase_ms), "go"));
  TC_CHECK(calls(phase));
  TC_ASSIGN(const auto answered, hear_flood());
  if (address == target_address_) values_.add("flood_per_s", answered.second);  // half handshakes
  return {};
}

Status TrustBench::floods() {
  TC_ASSIGN(const auto bundle, tsi_variant(SliceForm::object, "flood"));
  TC_CHECK(owner_->use(bundle));
  TC_CHECK(owner_->call(call_ms));
  TC_CHECK(calls("quiet"));
  TC_CHECK(calls_during_flood(decoy_address_, "flood_elsewhere"));
  return calls_during_flood(target_address_, "flood_here");
}

Status TrustBench::run() {
  TC_CHECK(start());
  TC_CHECK(unsigned_code_of_the_author_is_refused());
  for (int run = 0; run < options_.runs; ++run) {
    TC_CHECK(never_seen_code());
    TC_CHECK(connections());
    TC_CHECK(floods());
  }
  for (auto* const partner : {target_.get(), decoy_.get(), flood_.get()}) TC_CHECK(partner->talk().say("end"));
  return {};
}

std::string TrustBench::table() const {
  const auto value = [](const Samples<std::string>& samples, const char* name, const char* format) {
    return with_quartiles(samples.of(name), format);
  };
  Table table(fmt::format("Encrypted connections on loopback, {} runs, {} calls; medians with quartiles.\n\n"
                          "Never-seen code, one call of each: without a signature {} us, with one {} us\n"
                          "  of that at the target {} us, {} us\n"
                          "A signature costs {} us\n\n"
                          "Connections: {} a second; CPU time of the target's handshakes: {} us each\n\n"
                          "Calls of a connected peer, us\n",
                          options_.runs, calls_, value(unsigned_, "call", "{:.1f}"), value(signed_, "call", "{:.1f}"),
                          value(unsigned_, "first", "{:.1f}"), value(signed_, "first", "{:.1f}"),
                          value(values_, "signature_us", "{:.1f}"), value(values_, "connections_per_s", "{:.0f}"),
                          value(values_, "handshake_cpu_us", "{:.0f}")),
              {{"", -32}, {"median", 10}, {"", 20}, {"p99", 10}});
  for (const auto& [phase, name] :
       {std::pair{"quiet", "Quiet"}, std::pair{"flood_elsewhere", "Flood of handshakes elsewhere"},
        std::pair{"flood_here", "Flood of handshakes here"}})
    table.row({name, number(median_.of(phase).median, "{:.1f}"), quartiles(median_.of(phase), "{:.1f}"),
               number(p99_.of(phase).median, "{:.1f}")});
  table.text(fmt::format("The flood is {} half handshakes a second; x quiet {}, x elsewhere {}\n",
                         value(values_, "flood_per_s", "{:.0f}"),
                         with_quartiles(median_.ratio("flood_here", "quiet"), "{:.2f}"),
                         with_quartiles(median_.ratio("flood_here", "flood_elsewhere"), "{:.2f}")));
  return table.take();
}

Json TrustBench::json() const {
  Json root;
  root["bench"] = "trust";
  root["runs"] = options_.runs;
  put_machine(root, machine_);
  for (const auto& [name, samples] : {std::pair{"unsigned", &unsigned_}, std::pair{"signed", &signed_}}) {
    put(root[name], "call_us", samples->of("call"));
    put(root[name], "first_execution_us", samples->of("first"));
  }
  // The difference of the two calls; of the target's threads for one connection, its polling thread left out.
  for (const auto* const name : {"signature_us", "connections_per_s", "handshake_cpu_us"})
    put(root, name, values_.of(name));
  for (const auto* const phase : {"quiet", "flood_elsewhere", "flood_here"}) {
    put(root[phase], "median_us", median_.of(phase));
    put(root[phase], "p99_us", p99_.of(phase));
  }
  put(root, "flood_ratio_to_quiet", median_.ratio("flood_here", "quiet"));
  put(root, "flood_ratio_to_elsewhere", median_.ratio("flood_here", "flood_elsewhere"));
  put(root, "flood_per_s", values_.of("flood_per_s"));
  root["calls"] = calls_;
  return root;
}

}  // namespace

Result<Report> run_trust(const TrustOptions& options) {
  TrustBench bench(options);
  TC_CHECK(bench.run());
  return bench.report();
}

}  // namespace tc::bench
