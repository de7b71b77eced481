// SPDX-License-Identifier: Apache-2.0
//
// The source's process: measures, and reports.
#include "tsi/tsi.h"

#include <functional>
#include <optional>

#include "common/progress.h"
#include "tsi/cell_calls.h"
#include "tsi/measure.h"
#include "wire/frame.h"

namespace tc::bench {

namespace {

// Never-seen code.
struct FirstExecution {
  Summary all_us;   // last byte received to end of first execution
  Summary load_us;  // of that: check and link, or compile
};

// A call and its answer, in ns.
enum class Call : uint8_t {
  flags,  // two raw flags, there and back
  process,
  cell,
  added  // by the cell
};

class Bench {
 public:
  Bench(const TsiOptions& options, Pair pair) : options_(options), pair_(std::move(pair)) {}
  Status run();
  Report report() const { return {table(), json()}; }

 private:
  Meanwhile poll() {
    return [this] { peers_.poll(); };
  }
  Status connect();
  Status use(SliceForm form);
  Status warm_up();
  Status one_run();
  Result<FirstExecution> first_executions(const std::function<Result<Bundle>(const std::string&)>& make);
  Status measure_first_executions();
  Result<double> ask_stat_us(const std::string& name);
  Status latency(Mode mode, uint64_t rounds, Samples<Mode>& into);
  Status rate(Mode mode, uint64_t calls, Samples<Mode>& into);
  Status start_cell_calls();
  Status measure_cell_calls();
  std::string cell_calls() const;
  void add_frame_sizes();
  bool by_network() const noexcept { return pair_.transport.by_network; }
  // Whose latency is the floor: two flags in memory, or a socket.
  Mode latency_floor() const noexcept { return by_network() ? Mode::raw : Mode::raw_flags; }

  void add_row(Table& table, const char* name, Mode mode) const;
  std::string breakdown() const;
  std::string table() const;
  void put_plain(Json& root) const;
  Json uncached(Mode mode) const;
  Json json() const;

  const TsiOptions& options_;
  Pair pair_;
  Peers peers_;
  Samples<Mode> latency_;  // ns
  Samples<Mode> rate_;     // calls per second
  std::map<Mode, size_t> frame_bytes_;
  std::map<Mode, FirstExecution> first_;  // the two uncached modes
  FirstExecution ten_symbols_;            // the object of ten_symbols.c
  double am_dispatch_ns_ = 0;             // "lookup and execution"
  double cached_dispatch_ns_ = 0;
  std::unique_ptr<CellCalls> cells_;
  std::string no_cells_;  // why there are none, where there should be some
  Samples<Call> calls_;
  Progress progress_{"tsi"};
};

Status Bench::connect() {
  TC_CHECK(peers_.create(pair_.transport));
  TC_ASSIGN(const auto line, pair_.talk().hear(poll()));
  std::string node_address, am_address, plain_address, raw_memory, raw_socket;
  read_words(line, node_address, am_address, plain_address, raw_memory, raw_socket);
  TC_ASSIGN(peers_.floor, Floor::open(raw_memory, raw_socket));
  TC_CHECK(peers_.am->connect(am_address));
  TC_ASSIGN(const auto ours, peers_.addresses());
  TC_CHECK(pair_.talk().tell(ours, "connected", poll()));
  TC_CHECK(pair_.talk().say("stat executed"));  // its answer proves that the target polls: connect() needs that
  TC_CHECK(peers_.ifunc->connect(node_address));
  if (peers_.plain != nullptr) TC_CHECK(peers_.plain->connect(plain_address));
  TC_CHECK(pair_.talk().hear(poll()));
  return {};
}

Status Bench::use(SliceForm form) {
  TC_CHECK(peers_.use(form));
  return pair_.talk().tell(form == SliceForm::bitcode ? "use bitcode" : "use object", "used", poll());
}

Status Bench::latency(Mode mode, uint64_t rounds, Samples<Mode>& into) {
  TC_ASSIGN(const auto ns, pair_.measure(fmt::format("latency {} {}", mode_name(mode), rounds), poll(),
                                         [&] { return measure_latency(peers_, mode, rounds); }));
  into.add(mode, ns);
  return {};
}

Status Bench::rate(Mode mode, uint64_t calls, Samples<Mode>& into) {
  TC_ASSIGN(const auto rate, pair_.measure(fmt::format("rate {} {}", mode_name(mode), calls), poll(),
                                           [&] { return measure_rate(peers_, mode, calls); }));
  into.add(mode, rate);
  return {};
}

// Every path once, unmeasured: connections wire up lazily, code is loaded and compiled for this CPU.
Status Bench::warm_up() {
  Samples<Mode> ignored;
  TC_CHECK(use(SliceForm::object));
  for (const auto mode : {Mode::raw_flags, Mode::raw, Mode::am, Mode::cached, Mode::uncached_object})
    TC_CHECK(latency(mode, 200, ignored));
  for (const auto mode : {Mode::raw, Mode::am, Mode::am_batched, Mode::cached}) TC_CHECK(rate(mode, 6400, ignored));
  if (peers_.plain != nullptr) {
    TC_CHECK(latency(Mode::plain, 200, ignored));
    TC_CHECK(rate(Mode::plain, 6400, ignored));
  }
  TC_CHECK(use(SliceForm::bitcode));
  TC_CHECK(latency(Mode::uncached_bitcode, 200, ignored));
  return start_cell_calls();
}

// The calls' own ring, and that of the cell: other transports add to both places what the other rows show.
Status Bench::start_cell_calls() {
  if (options_.transport != "shm") return {};
  auto cells = CellCalls::create(pair_.transport, pair_.placement);
  if (!cells) {
    no_cells_ = cells.error().message;
    return {};
  }
  cells_ = std::move(*cells);
  return {};
}

// While the other process sleeps: the cell needs its CPU.
Status Bench::measure_cell_calls() {
  using enum CellCalls::Where;
  const auto calls = options_.latency_rounds != 0 ? options_.latency_rounds : 20'000;
  double in_process = 0;
  TC_ASSIGN(const auto in_cell, pair_.measure("pause", poll(), [&] -> Result<double> {
    TC_CHECK(cells_->latency(process, calls / 10 + 1));
    TC_ASSIGN(in_process, cells_->latency(process, calls));
    TC_CHECK(cells_->latency(cell, calls / 10 + 1));
    TC_ASSIGN(const auto ns, cells_->latency(cell, calls));
    TC_CHECK(pair_.talk().say("on"));
    return ns;
  }));
  calls_.add(Call::flags, 2 * latency_.last(Mode::raw_flags));
  calls_.add(Call::process, in_process);
  calls_.add(Call::cell, in_cell);
  calls_.add(Call::added, in_cell - in_process);
  return {};
}

Status Bench::one_run() {
  const auto& o = options_;
  const auto rounds = o.latency_rounds != 0 ? o.latency_rounds : (by_network() ? 4000 : 50'000);
  const auto calls = o.rate_calls != 0 ? o.rate_calls / 64 * 64 : (by_network() ? 1'280'000 : 6'400'000);
  const auto slow_calls = std::max<uint64_t>(calls / (by_network() ? 40 : 20), 64);
  const bool plain = peers_.plain != nullptr;
  TC_CHECK(use(SliceForm::object));
  for (const auto mode : {Mode::raw_flags, Mode::raw, Mode::am}) TC_CHECK(latency(mode, rounds, latency_));
  if (plain) TC_CHECK(latency(Mode::plain, rounds, latency_));
  TC_CHECK(latency(Mode::cached, rounds, latency_));
  if (cells_ != nullptr) TC_CHECK(measure_cell_calls());
  TC_CHECK(latency(Mode::uncached_object, rounds / 4, latency_));
  TC_CHECK(rate(Mode::raw, calls, rate_));
  TC_CHECK(rate(Mode::am, slow_calls, rate_));
  TC_CHECK(rate(Mode::am_batched, calls, rate_));
  for (const auto mode : {Mode::plain, Mode::cached, Mode::plain_batched, Mode::cached_batched})
    if (plain || mode == Mode::cached || mode == Mode::cached_batched) TC_CHECK(rate(mode, calls, rate_));
  TC_CHECK(rate(Mode::uncached_object, slow_calls, rate_));
  TC_CHECK(use(SliceForm::bitcode));
  TC_CHECK(latency(Mode::uncached_bitcode, rounds / 4, latency_));
  return rate(Mode::uncached_bitcode, slow_calls, rate_);
}

Result<double> Bench::ask_stat_us(const std::string& name) {
  TC_ASSIGN(const auto answer, pair_.talk().ask("stat " + name, poll()));
  double ns = 0;
  if (!read_words(answer, ns)) return fail(TC_ERR_INTERNAL, "the target said '{}'", answer);
  return ns / 1000;
}

// Each sample is code with a content id that the target has never seen.
Result<FirstExecution> Bench::first_executions(const std::function<Result<Bundle>(const std::string&)>& make) {
  std::vector<double> first, load;
  for (int i = 0; i < options_.first_samples; ++i) {
    TC_ASSIGN(const auto bundle, make(fmt::format("sample {}", i)));
    TC_CHECK(peers_.ifunc->use(bundle));
    TC_CHECK(peers_.ifunc->call(10'000));
    TC_ASSIGN(first.emplace_back(), ask_stat_us("first-execution-ns"));
    TC_ASSIGN(load.emplace_back(), ask_stat_us("load-ns"));
    progress_.show(i, options_.first_samples, "never-seen code");
  }
  return FirstExecution{summarize(std::move(first)), summarize(std::move(load))};
}

Status Bench::measure_first_executions() {
  for (const auto& [mode, form] :
       {std::pair{Mode::uncached_object, SliceForm::object}, std::pair{Mode::uncached_bitcode, SliceForm::bitcode}}) {
    TC_ASSIGN(first_[mode], first_executions([form](const std::string& label) { return tsi_variant(form, label); }));
  }
  TC_ASSIGN(ten_symbols_, first_executions(ten_symbols_variant));
  return {};
}

void Bench::add_frame_sizes() {
  frame_bytes_[Mode::am] = AmPeer::header_bytes + 1;
  frame_bytes_[Mode::cached] = wire::header_bytes + 1;
  const auto with_code = [](SliceForm form) -> size_t {
    const auto bundle = tsi_variant(form, "bench");
    if (!bundle) return 0;
    const auto code = wire::code_head_bytes + bundle->size_for(bundle->useful_for(TargetTriple::host()));
    return wire::header_bytes + (code + wire::alignment - 1) / wire::alignment * wire::alignment + 1;
  };
  frame_bytes_[Mode::uncached_object] = with_code(SliceForm::object);
  frame_bytes_[Mode::uncached_bitcode] = with_code(SliceForm::bitcode);
}

Status Bench::run() {
  TC_CHECK(connect());
  TC_CHECK(warm_up());
  for (int run = 0; run < options_.runs; ++run) {
    progress_.show(run, options_.runs, fmt::format("run {} of {}", run + 1, options_.runs));
    TC_CHECK(one_run());
  }
  TC_CHECK(measure_first_executions());
  am_dispatch_ns_ = peers_.am->dispatch_ns(1'000'000);
  TC_ASSIGN(cached_dispatch_ns_, cached_dispatch_ns(8000, 50));
  add_frame_sizes();
  pair_.placement.set_flags(latency_.all().at(Mode::raw_flags));
  return pair_.talk().say("end");
}

// The papers' Tables I-III.
std::string Bench::breakdown() const {
  struct Stages {
    double lookup_us;
    double jit_us;  // negative: none
    double total_us;
  };
  const double cached_us = cached_dispatch_ns_ / 1000;
  const auto column = [&](Mode mode) -> Stages {
    const auto first = first_.find(mode);
    return {mode == Mode::am ? am_dispatch_ns_ / 1000 : cached_us,
            first != first_.end() ? first->second.load_us.median : -1, latency_.of(mode).median / 1000};
  };
  Table table("\n", {{"Stage (us)", -18},
                     {"Active Message", 18},
                     {"Uncached object", 18},
                     {"Uncached bitcode", 18},
                     {"Cached ifunc", 18}});
  const auto row = [&](const char* stage, const auto& cell) {
    std::vector<std::string> cells{stage};
    for (const auto mode : {Mode::am, Mode::uncached_object, Mode::uncached_bitcode, Mode::cached})
      cells.push_back(cell(column(mode)));
    table.row(cells);
  };
  constexpr auto us = "{:.4f}";
  row("Lookup+Exec", [](const Stages& c) { return number(c.lookup_us, us); });
  row("JIT or link", [](const Stages& c) { return c.jit_us < 0 ? "-" : number(c.jit_us, "({:.2f})"); });
  row("Transmission", [](const Stages& c) { return number(c.total_us - c.lookup_us, us); });
  row("Total", [](const Stages& c) { return number(c.total_us, us); });
  table.text("(JIT or link is paid once per code and, as in the paper, not part of the total.)\n");
  return table.take();
}

void Bench::add_row(Table& table, const char* name, Mode mode) const {
  const auto frame = frame_bytes_.find(mode);
  std::vector<std::string> row{name, frame != frame_bytes_.end() ? std::to_string(frame->second) : "-"};
  // A figure, its quartiles and its ratios.
  const auto add = [&](const Samples<Mode>& samples, double unit, const char* format, Mode raw) {
    if (!samples.has(mode)) {
      row.insert(row.end(), 4, "-");
      return;
    }
    const auto value = samples.of(mode);
    row.insert(row.end(), {number(value.median / unit, format), quartiles(value, format, unit),
                           number(samples.ratio(mode, Mode::am).median, "{:.2f}"),
                           number(samples.ratio(mode, raw).median, "{:.2f}")});
  };
  add(latency_, 1, "{:.1f}", latency_floor());
  add(rate_, 1e6, "{:.3f}", Mode::raw);
  table.row(row);
}

std::string Bench::table() const {
  const auto introduction = fmt::format(
      "{}.\n"
      "Target-side increment, 1-byte payload, {}, UCX {}, {} interleaved runs, two pinned processes.\n"
      "Medians with quartiles; x AM and x raw are medians of the runs' own ratios.\n\n",
      format_placement(pair_.placement), options_.transport, pair_.machine.ucx, options_.runs);
  Table table(introduction, {{"", -20},
                             {"bytes", 6},
                             {"latency ns", 12},
                             {"", 20},
                             {"x AM", 7},
                             {"x raw", 7},
                             {"M msg/s", 12},
                             {"", 20},
                             {"x AM", 7},
                             {"x raw", 7}});
  add_row(table, "Two raw flags", Mode::raw_flags);
  add_row(table, by_network() ? "Raw socket" : "Raw ring", Mode::raw);
  add_row(table, "Active Message", Mode::am);
  add_row(table, "  64 in a message", Mode::am_batched);
  const bool encrypted = pair_.transport.encrypted();
  if (encrypted) {
    add_row(table, "Cached, plain TCP", Mode::plain);
    add_row(table, "  64 in a call", Mode::plain_batched);
  }
  add_row(table, "Cached ifunc", Mode::cached);
  add_row(table, "  64 in a call", Mode::cached_batched);
  add_row(table, "Uncached object", Mode::uncached_object);
  add_row(table, "Uncached bitcode", Mode::uncached_bitcode);
  if (encrypted)
    table.text(fmt::format("\nEncrypted, x plain TCP of the same run: latency {}, rate {}, 64 in a call {}\n",
                           with_quartiles(latency_.ratio(Mode::cached, Mode::plain), "{:.2f}"),
                           with_quartiles(rate_.ratio(Mode::cached, Mode::plain), "{:.2f}"),
                           with_quartiles(rate_.ratio(Mode::cached_batched, Mode::plain_batched), "{:.2f}")));
  table.text(
      fmt::format("\nNever-seen code, last byte received to end of first execution: object {} us {}, bitcode {} us {}\n"
                  "The same for an object with ten external symbols: {} us {}\n",
                  number(first_.at(Mode::uncached_object).all_us.median, "{:.2f}"),
                  quartiles(first_.at(Mode::uncached_object).all_us, "{:.2f}"),
                  number(first_.at(Mode::uncached_bitcode).all_us.median, "{:.1f}"),
                  quartiles(first_.at(Mode::uncached_bitcode).all_us, "{:.1f}"),
                  number(ten_symbols_.all_us.median, "{:.2f}"), quartiles(ten_symbols_.all_us, "{:.2f}")));
  table.text(cell_calls());
  table.text(breakdown());
  return table.take();
}

std::string Bench::cell_calls() const {
  if (!no_cells_.empty()) return fmt::format("\nNo call in a cell: {}\n", no_cells_);
  if (cells_ == nullptr) return "";
  Table table("\n", {{"Call and answer", -26}, {"ns", 10}, {"", 20}, {"x flags", 9}});
  const auto row = [&](const char* name, Call call) {
    const auto value = calls_.of(call);
    table.row({name, number(value.median, "{:.0f}"), quartiles(value, "{:.0f}"),
               number(calls_.ratio(call, Call::flags).median, "{:.2f}")});
  };
  row("Two raw flags", Call::flags);
  row("In the target's process", Call::process);
  row("In a warm cell of it", Call::cell);
  row("  which that adds", Call::added);
  table.text("(Caller and target are nodes of one thread; the cell has the other CPU.)\n");
  return table.take();
}

Json Bench::uncached(Mode mode) const {
  Json object;
  object["frame_bytes"] = frame_bytes_.at(mode);
  put(object, "latency_ns", latency_.of(mode));
  put(object, "rate_msgs_per_s", rate_.of(mode));
  put(object, "first_execution_us", first_.at(mode).all_us);
  put(object, "load_us", first_.at(mode).load_us);
  return object;
}

// Encrypted calls beside plain ones.
void Bench::put_plain(Json& root) const {
  auto& plain = root["plain"];
  put(plain, "latency_ns", latency_.of(Mode::plain));
  put(plain, "rate_msgs_per_s", rate_.of(Mode::plain_batched));
  put(plain, "single_rate_msgs_per_s", rate_.of(Mode::plain));
  auto& cached = root["cached"];
  put(cached, "latency_ratio_to_plain", latency_.ratio(Mode::cached, Mode::plain));
  put(cached, "rate_ratio_to_plain", rate_.ratio(Mode::cached_batched, Mode::plain_batched));
  put(cached, "single_rate_ratio_to_plain", rate_.ratio(Mode::cached, Mode::plain));
}

Json Bench::json() const {
  auto root = json_head("tsi", options_.transport, pair_.machine, options_.runs);
  put_machine(root, pair_.machine);
  put_placement(root, pair_.placement);
  auto& raw = root["raw"];
  put(raw, "latency_ns", latency_.of(latency_floor()));
  put(raw, "rate_msgs_per_s", rate_.of(Mode::raw));
  if (!by_network()) put(raw, "ring_latency_ns", latency_.of(Mode::raw));
  auto& am = root["am"];
  am["frame_bytes"] = frame_bytes_.at(Mode::am);
  put(am, "latency_ns", latency_.of(Mode::am));
  put(am, "rate_msgs_per_s", rate_.of(Mode::am));
  put(am, "batched64_rate_msgs_per_s", rate_.of(Mode::am_batched));
  am["lookup_execution_ns"] = am_dispatch_ns_;
  auto& cached = root["cached"];
  cached["frame_bytes"] = frame_bytes_.at(Mode::cached);
  put(cached, "latency_ns", latency_.of(Mode::cached));
  put(cached, "rate_msgs_per_s", rate_.of(Mode::cached_batched));
  put(cached, "single_rate_msgs_per_s", rate_.of(Mode::cached));
  for (const auto& [to, name] : {std::pair{Mode::am, "am"}, std::pair{Mode::raw, "raw"}}) {
    put(cached, fmt::format("latency_ratio_to_{}", name),
        latency_.ratio(Mode::cached, to == Mode::raw ? latency_floor() : to));
    put(cached, fmt::format("rate_ratio_to_{}", name), rate_.ratio(Mode::cached_batched, to));
    put(cached, fmt::format("single_rate_ratio_to_{}", name), rate_.ratio(Mode::cached, to));
  }
  cached["lookup_execution_ns"] = cached_dispatch_ns_;
  if (pair_.transport.encrypted()) put_plain(root);
  if (cells_ != nullptr) {
    auto& cell = root["cell"];
    put(cell, "call_ns", calls_.of(Call::cell));
    put(cell, "process_call_ns", calls_.of(Call::process));
    put(cell, "flags_ns", calls_.of(Call::flags));
    put(cell, "call_ratio_to_process", calls_.ratio(Call::cell, Call::process));
    put(cell, "added_ratio_to_flags", calls_.ratio(Call::added, Call::flags));
  }
  root["uncached_object"] = uncached(Mode::uncached_object);
  root["uncached_bitcode"] = uncached(Mode::uncached_bitcode);
  auto& ten = root["uncached_object_ten_symbols"];
  put(ten, "first_execution_us", ten_symbols_.all_us);
  put(ten, "load_us", ten_symbols_.load_us);
  return root;
}

}  // namespace

Result<Report> run_tsi(const TsiOptions& options) {
  TC_ASSIGN(auto pair, Pair::start("tsi-target", options.transport));
  Bench bench(options, std::move(pair));
  TC_CHECK(bench.run());
  return bench.report();
}

}  // namespace tc::bench
