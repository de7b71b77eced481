// SPDX-License-Identifier: Apache-2.0
//
// The source's process: measures.
#include "tsi/tsi.h"

#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>

#include "common/pinning.h"
#include "common/shared_key.h"
#include "common/talk.h"
#include "tsi/dispatch.h"
#include "tsi/tsi_bundle.h"
#include "wire/frame.h"

namespace tc::bench {

namespace {

constexpr uint64_t talk_ms = 60'000;

class Bench {
 public:
  explicit Bench(const TsiOptions& options) { result_.options = options; }
  Status run();
  TsiResult take() { return std::move(result_); }

 private:
  using PerMode = std::map<Mode, std::vector<double>>;

  Status start();
  Status tell(const std::string& line, const std::string& expected);
  Status use(SliceForm form);
  Status warm_up();
  Status one_run();
  Result<FirstExecution> first_executions(const std::function<Result<Bundle>(const std::string&)>& make);
  Status measure_first_executions();
  Result<uint64_t> ask_stat(const std::string& name);
  Status latency(Mode mode, uint64_t rounds, std::vector<double>& into);
  Status rate(Mode mode, uint64_t calls, std::vector<double>& into);
  void note_ratios();
  void note_frame_sizes();
  void summarize_all();
  void show_progress(const char* what, int done, int of) const;
  bool tcp() const { return result_.by_network; }

  TsiResult result_;
  std::optional<SharedKey> key_;
  std::unique_ptr<Partner> partner_;
  Peers peers_;
  PerMode latency_, rate_, latency_ratio_, rate_ratio_, latency_to_raw_, rate_to_raw_, latency_to_plain_,
      rate_to_plain_;
};

Status Bench::tell(const std::string& line, const std::string& expected) {
  TC_CHECK(partner_->talk().say(line));
  TC_ASSIGN(const auto answer, partner_->talk().hear(Deadline::after_ms(talk_ms), [this] { peers_.poll(); }));
  if (answer != expected) return fail(TC_ERR_INTERNAL, "the target answered '{}' when '{}' was due", answer, expected);
  return {};
}

Status Bench::start() {
  auto& options = result_.options;
  if (usable_cpus() < 2) return fail(TC_ERR_UNSUPPORTED, "this benchmark needs two CPUs and may use {}", usable_cpus());
  TC_ASSIGN(const auto transport, BenchTransport::parse(options.transport));
  result_.by_network = transport.by_network;
  if (transport.by_network && std::getenv("UCX_NET_DEVICES") == nullptr) ::setenv("UCX_NET_DEVICES", "lo", 1);
  result_.ucx_version = ucp_get_version_string();
  result_.machine = describe_machine(result_.ucx_version);
  result_.placement = describe_placement();
  if (transport.encrypted()) {
    TC_ASSIGN(key_, SharedKey::make());
  }
  TC_ASSIGN(partner_, Partner::start({"bench", "tsi-target", "--transport", options.transport}));
  pin_to(0);
  TC_ASSIGN(peers_.am, AmPeer::create(transport.ucx_tls));
  TC_ASSIGN(peers_.ifunc, IfuncPeer::create(transport));
  if (transport.encrypted()) {
    TC_ASSIGN(peers_.plain, IfuncPeer::create(transport.plain()));
  }
  const auto meanwhile = [this] { peers_.poll(); };
  TC_ASSIGN(const auto line, partner_->talk().hear(Deadline::after_ms(talk_ms), meanwhile));
  std::string verb, node_address, am_address, raw_memory, raw_socket, plain_address;
  std::istringstream(line) >> verb >> node_address >> am_address >> raw_memory >> raw_socket >> plain_address;
  TC_ASSIGN(peers_.floor, Floor::open(raw_memory, raw_socket));
  TC_CHECK(peers_.am->connect(am_address));
  TC_CHECK(tell(fmt::format("connect {} {} {}", peers_.ifunc->address(), peers_.am->address(),
                            peers_.plain != nullptr ? peers_.plain->address() : "none"),
                "connected"));
  TC_CHECK(partner_->talk().say("stat executed"));  // its answer proves that the target polls: connect() needs that
  TC_CHECK(peers_.ifunc->connect(node_address));
  if (peers_.plain != nullptr) TC_CHECK(peers_.plain->connect(plain_address));
  TC_ASSIGN(const auto ignored, partner_->talk().hear(Deadline::after_ms(talk_ms), meanwhile));
  (void)ignored;
  return {};
}

Status Bench::use(SliceForm form) {
  TC_ASSIGN(const auto bundle, tsi_variant(form, "bench"));
  TC_CHECK(peers_.ifunc->use(bundle));
  if (peers_.plain != nullptr) TC_CHECK(peers_.plain->use(bundle));
  return tell(form == SliceForm::bitcode ? "use bitcode" : "use object", "used");
}

Status Bench::latency(Mode mode, uint64_t rounds, std::vector<double>& into) {
  TC_CHECK(tell(fmt::format("latency {} {}", mode_name(mode), rounds), "go"));
  TC_ASSIGN(const auto ns, measure_latency(peers_, mode, rounds));
  into.push_back(ns);
  TC_ASSIGN(const auto done, partner_->talk().hear(Deadline::after_ms(talk_ms), [this] { peers_.poll(); }));
  return done == "done" ? Status{} : fail(TC_ERR_INTERNAL, "the target said '{}'", done);
}

Status Bench::rate(Mode mode, uint64_t calls, std::vector<double>& into) {
  TC_CHECK(tell(fmt::format("rate {} {}", mode_name(mode), calls), "go"));
  TC_ASSIGN(const auto per_second, measure_rate(peers_, mode, calls));
  into.push_back(per_second);
  TC_ASSIGN(const auto done, partner_->talk().hear(Deadline::after_ms(talk_ms), [this] { peers_.poll(); }));
  return done == "done" ? Status{} : fail(TC_ERR_INTERNAL, "the target said '{}'", done);
}

// Every path once, unmeasured: connections wire up lazily, code is loaded and compiled for this CPU.
Status Bench::warm_up() {
  std::vector<double> ignored;
  TC_CHECK(use(SliceForm::object));
  for (const auto mode : {Mode::raw_flags, Mode::raw, Mode::am, Mode::cached, Mode::uncached_object})
    TC_CHECK(latency(mode, 200, ignored));
  for (const auto mode : {Mode::raw, Mode::am, Mode::am_batched, Mode::cached}) TC_CHECK(rate(mode, 6400, ignored));
  if (peers_.plain != nullptr) {
    TC_CHECK(latency(Mode::plain, 200, ignored));
    TC_CHECK(rate(Mode::plain, 6400, ignored));
  }
  TC_CHECK(use(SliceForm::bitcode));
  return latency(Mode::uncached_bitcode, 200, ignored);
}

Status Bench::one_run() {
  const auto& o = result_.options;
  const auto rounds = o.latency_rounds != 0 ? o.latency_rounds : (tcp() ? 4000 : 50'000);
  const auto calls = o.rate_calls != 0 ? o.rate_calls / 64 * 64 : (tcp() ? 1'280'000 : 6'400'000);
  const auto slow_calls = std::max<uint64_t>(calls / (tcp() ? 40 : 20), 64);
  TC_CHECK(use(SliceForm::object));
  for (const auto mode : {Mode::raw_flags, Mode::raw, Mode::am}) TC_CHECK(latency(mode, rounds, latency_[mode]));
  if (peers_.plain != nullptr) TC_CHECK(latency(Mode::plain, rounds, latency_[Mode::plain]));
  TC_CHECK(latency(Mode::cached, rounds, latency_[Mode::cached]));
  TC_CHECK(latency(Mode::uncached_object, rounds / 4, latency_[Mode::uncached_object]));
  TC_CHECK(rate(Mode::raw, calls, rate_[Mode::raw]));
  TC_CHECK(rate(Mode::am, slow_calls, rate_[Mode::am]));
  TC_CHECK(rate(Mode::am_batched, calls, rate_[Mode::am_batched]));
  for (const auto mode : {Mode::plain, Mode::cached, Mode::plain_batched, Mode::cached_batched})
    if (peers_.plain != nullptr || mode == Mode::cached || mode == Mode::cached_batched)
      TC_CHECK(rate(mode, calls, rate_[mode]));
  TC_CHECK(rate(Mode::uncached_object, slow_calls, rate_[Mode::uncached_object]));
  TC_CHECK(use(SliceForm::bitcode));
  TC_CHECK(latency(Mode::uncached_bitcode, rounds / 4, latency_[Mode::uncached_bitcode]));
  TC_CHECK(rate(Mode::uncached_bitcode, slow_calls, rate_[Mode::uncached_bitcode]));
  note_ratios();
  return {};
}

void Bench::note_ratios() {
  const auto floor_ns = latency_[result_.latency_floor()].back();
  for (auto& [mode, values] : latency_) {
    latency_ratio_[mode].push_back(values.back() / latency_[Mode::am].back());
    latency_to_raw_[mode].push_back(values.back() / floor_ns);
  }
  for (auto& [mode, values] : rate_) {
    rate_ratio_[mode].push_back(values.back() / rate_[Mode::am].back());
    rate_to_raw_[mode].push_back(values.back() / rate_[Mode::raw].back());
  }
  if (peers_.plain == nullptr) return;
  latency_to_plain_[Mode::cached].push_back(latency_[Mode::cached].back() / latency_[Mode::plain].back());
  for (const auto& [mode, plain] :
       {std::pair{Mode::cached, Mode::plain}, std::pair{Mode::cached_batched, Mode::plain_batched}})
    rate_to_plain_[mode].push_back(rate_[mode].back() / rate_[plain].back());
}

Result<uint64_t> Bench::ask_stat(const std::string& name) {
  TC_CHECK(partner_->talk().say("stat " + name));
  TC_ASSIGN(const auto answer, partner_->talk().hear(Deadline::after_ms(talk_ms), [this] { peers_.poll(); }));
  if (!answer.starts_with("stat ")) return fail(TC_ERR_INTERNAL, "the target said '{}'", answer);
  return std::strtoull(answer.c_str() + 5, nullptr, 10);
}

// Each sample is code with a content id that the target has never seen.
Result<FirstExecution> Bench::first_executions(const std::function<Result<Bundle>(const std::string&)>& make) {
  std::vector<double> first, load;
  for (int i = 0; i < result_.options.first_samples; ++i) {
    TC_ASSIGN(const auto bundle, make(fmt::format("sample {}", i)));
    TC_CHECK(peers_.ifunc->use(bundle));
    TC_CHECK(peers_.ifunc->call(10'000));
    TC_ASSIGN(const auto first_ns, ask_stat("first-execution-ns"));
    TC_ASSIGN(const auto load_ns, ask_stat("load-ns"));
    first.push_back(static_cast<double>(first_ns) / 1000);
    load.push_back(static_cast<double>(load_ns) / 1000);
    show_progress("never-seen code", i, result_.options.first_samples);
  }
  return FirstExecution{summarize(std::move(first)), summarize(std::move(load))};
}

Status Bench::measure_first_executions() {
  for (const auto& [mode, form] :
       {std::pair{Mode::uncached_object, SliceForm::object}, std::pair{Mode::uncached_bitcode, SliceForm::bitcode}}) {
    TC_ASSIGN(const auto measured,
              first_executions([form](const std::string& label) { return tsi_variant(form, label); }));
    result_.first_execution_us[mode] = measured.all_us;
    result_.load_us[mode] = measured.load_us;
  }
  TC_ASSIGN(result_.ten_symbols, first_executions(ten_symbols_variant));
  return {};
}

void Bench::note_frame_sizes() {
  result_.frame_bytes[Mode::am] = AmPeer::header_bytes + 1;
  result_.frame_bytes[Mode::cached] = wire::header_bytes + 1;
  const auto with_code = [](SliceForm form) -> size_t {
    const auto bundle = tsi_variant(form, "bench");
    if (!bundle) return 0;
    const auto code = wire::code_head_bytes + bundle->size_for(bundle->useful_for(TargetTriple::host()));
    return wire::header_bytes + (code + wire::alignment - 1) / wire::alignment * wire::alignment + 1;
  };
  result_.frame_bytes[Mode::uncached_object] = with_code(SliceForm::object);
  result_.frame_bytes[Mode::uncached_bitcode] = with_code(SliceForm::bitcode);
}

void Bench::summarize_all() {
  for (auto& [mode, values] : latency_) result_.latency_ns[mode] = summarize(values);
  for (auto& [mode, values] : rate_) result_.rate[mode] = summarize(values);
  for (auto& [mode, values] : latency_ratio_) result_.latency_ratio_to_am[mode] = summarize(values);
  for (auto& [mode, values] : rate_ratio_) result_.rate_ratio_to_am[mode] = summarize(values);
  for (auto& [mode, values] : latency_to_raw_) result_.latency_ratio_to_raw[mode] = summarize(values);
  for (auto& [mode, values] : rate_to_raw_) result_.rate_ratio_to_raw[mode] = summarize(values);
  for (auto& [mode, values] : latency_to_plain_) result_.latency_ratio_to_plain[mode] = summarize(values);
  for (auto& [mode, values] : rate_to_plain_) result_.rate_ratio_to_plain[mode] = summarize(values);
  result_.placement.set_flags(latency_[Mode::raw_flags]);
}

void Bench::show_progress(const char* what, int done, int of) const {
  if (::isatty(STDERR_FILENO) != 0)
    std::fprintf(stderr, "\r%s %d of %d\033[K%s", what, done + 1, of, done + 1 == of ? "\r\033[K" : "");
}

Status Bench::run() {
  TC_CHECK(start());
  TC_CHECK(warm_up());
  for (int run = 0; run < result_.options.runs; ++run) {
    show_progress("run", run, result_.options.runs);
    TC_CHECK(one_run());
  }
  TC_CHECK(measure_first_executions());
  result_.am_dispatch_ns = peers_.am->dispatch_ns(1'000'000);
  TC_ASSIGN(result_.cached_dispatch_ns, cached_dispatch_ns(8000, 50));
  note_frame_sizes();
  summarize_all();
  return partner_->talk().say("end");
}

}  // namespace

Result<TsiResult> run_tsi(const TsiOptions& options) {
  Bench bench(options);
  TC_CHECK(bench.run());
  return bench.take();
}

}  // namespace tc::bench
