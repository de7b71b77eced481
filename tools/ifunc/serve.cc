// SPDX-License-Identifier: Apache-2.0
//
// `ifunc serve`: a node that runs what it is sent.
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "base/file.h"
#include "ifunc/arguments.h"
#include "ifunc/attempt.h"
#include "ifunc/commands.h"
#include "ifunc/given_socket.h"
#include "ifunc/mapped_file.h"
#include "ifunc/metrics.h"
#include "ifunc/serve_options.h"
#include "ifunc/service.h"
#include "ifunc/stop_signals.h"
#include "ifunc/supervise.h"
#include "trust/key_file.h"

namespace tc::command {
namespace {

// A wake ends the wait; the deadline only bounds what a lost wake would cost. Two wake-ups a minute are free.
constexpr threechains::milliseconds longest_wait{30'000};

// Between two looks at what is left of a node that drains; the end of a call ends the wait.
constexpr threechains::milliseconds drain_step{50};

// Each peer takes a descriptor. The usual soft limit is for programs that call select(), which this one does not. A program
// of the user's own decides that for itself.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// A service is more exposed than a program of the user's own, whose functions and memory its ifuncs may count on.
void isolate_the_untrusted(ServeOptions& options) {
  if (options.get("isolate").empty() && std::getenv("TC_ISOLATE") == nullptr) options.set("isolate", "auto");
}

Result<threechains::Node> create_node(const ServeOptions& options) {
  return attempt([&] {
    threechains::Config config;
    for (const auto& [name, value] : options.settings) config.set(name, value);
    return threechains::Node(config);
  });
}

struct NamedFile {
  std::string name;
  MappedFile file;
};

Result<std::vector<NamedFile>> map_files(const ServeOptions& options) {
  std::vector<NamedFile> files;
  for (const auto& text : options.data) {
    TC_ASSIGN(auto option, parse_data(text));
    const auto access = option.read_only ? MappedFile::Access::read_only : MappedFile::Access::read_write_if_possible;
    TC_ASSIGN(auto file, MappedFile::open(option.file, access));
    files.push_back({std::move(option.name), std::move(file)});
  }
  for (const auto& text : options.scratch) {
    TC_ASSIGN(auto option, parse_scratch(text));
    TC_ASSIGN(auto memory, MappedFile::scratch(option.bytes));
    files.push_back({std::move(option.name), std::move(memory)});
  }
  return files;
}

Status expose(threechains::Node& node, const std::vector<NamedFile>& files, const ServeOptions& options) {
  return attempt([&] {
    for (const auto& [name, file] : files) {
      node.expose_file(name, {static_cast<std::byte*>(file.data()), file.size()}, file.descriptor());
      if (name == options.target_args_data) node.set_target_args(file.data());
    }
  });
}

// They are registered for as long as the handles are there.
Result<std::vector<threechains::Ifunc>> register_ifuncs(threechains::Node& node, const ServeOptions& options) {
  std::vector<threechains::Ifunc> ifuncs;
  for (const auto& path : options.ifuncs) {
    TC_ASSIGN(const auto bytes, read_file(path, 256u << 20));
    TC_ASSIGN(auto ifunc, attempt(path, [&] { return node.load(std::span(bytes)); }));
    ifuncs.push_back(std::move(ifunc));
  }
  return ifuncs;
}

Status announce(const threechains::Node& node, const ServeOptions& options) {
  const auto address = node.address();
  std::printf("ready %s\n", address.c_str());
  std::fflush(stdout);
  if (options.ready_file.empty()) return {};
  return write_file_atomically(options.ready_file, as_bytes(address + "\n"));
}

void print_statistics(const threechains::Node& node) {
  for (size_t i = 0; i < tc_statistic_count(); ++i) {
    const char* const name = tc_statistic_name(tc_statistic_at(i));
    if (const auto value = attempt([&] { return node.stat(name); }))
      std::printf("stat %s %llu\n", name, (unsigned long long)*value);
  }
  std::fflush(stdout);
}

// Others can only trust a node whose key lasts: one that they can reach makes itself a key, as sshd does. Where a launcher
// vouches for the node, a fresh key will do.
Status make_key_if_missing(const ServeOptions& options) {
  auto listen = options.get("listen");
  if (listen.starts_with("fd:")) listen = address_of(std::atoi(listen.c_str() + 3));
  if (listen.empty() || listen == "none" || is_path(listen) || !options.get("key").empty()) return {};
  if (const auto bootstrap = options.get("bootstrap"); !bootstrap.empty() && bootstrap != "none") return {};
  TC_ASSIGN(const auto address, parse_address(listen));
  const auto home = trust::home();
  if (is_loopback(address) || !home) return {};
  TC_ASSIGN(const auto file, trust::key_path(trust::default_key));
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown) || unknown) return {};
  TC_ASSIGN(const auto key, trust::KeyPair::fresh());
  TC_CHECK(trust::write_key_file(file, key));
  fmt::print(stderr,
             "this node had no key, and has one now: {} ({}); elsewhere it is trusted with `ifunc key trust NAME {}`\n",
             key.public_key().text(), file.string(), key.public_key().text());
  return {};
}

// The node, for the thread that handles signals.
class Served {
 public:
  void set(tc_node_t* node) {
    const std::scoped_lock lock(mutex_);
    node_ = node;
  }
  // The node is about to be freed, which waits for what runs on its other threads.
  void begin_end() {
    const std::scoped_lock lock(mutex_);
    last_ = running();
    node_ = nullptr;
    ends_ = true;
  }
  // No call gets any more time.
  void set_time_is_over() noexcept { time_is_over_.store(true); }
  bool is_time_over() const noexcept { return time_is_over_.load(); }
  // With the node; false: there is none yet.
  bool with_node(const std::function<void(tc_node_t*)>& use) {
    const std::scoped_lock lock(mutex_);
    if (node_ != nullptr) use(node_);
    return node_ != nullptr || ends_;
  }
  // What keeps it from stopping.
  std::string what_runs() {
    auto running = running_ifunc();
    return running.empty() ? "what runs in cells, waits or is to be sent" : running;
  }
  // Empty: none runs.
  std::string running_ifunc() {
    const std::scoped_lock lock(mutex_);
    return ends_ ? last_ : running();
  }

 private:
  std::string running() const {
    char name[256] = "";
    if (node_ == nullptr || tc_node_running_ifunc(node_, name, sizeof name) != TC_OK) return "";
    return fmt::format("the running ifunc '{}'", name);
  }

  std::mutex mutex_;
  tc_node_t* node_ = nullptr;
  bool ends_ = false;
  std::string last_;
  std::atomic<bool> time_is_over_{false};
};

const char* name_of(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

std::string in_parentheses(const std::string& text) { return text.empty() ? "" : fmt::format(" ({})", text); }

// The file, and whether it and the command line together make sense.
Result<size_t> read_whole_configuration(ServeOptions& options) {
  const auto file = options.config_file;
  TC_ASSIGN(const auto count, options.read_config_file());
  if (auto checked = options.check(); !checked) return context(file, std::move(checked).error());
  return count;
}

// What SIGHUP changes. All other options are those of the node's start.
constexpr std::array<std::string_view, 2> changeable_options = {"log", "drain"};

std::string list_of(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

// What the thread that takes signals does with them, and says of it.
class Life {
 public:
  // `given`: the options without those of the file.
  Life(const ServeOptions& options, const ServeOptions& given, Served& serving, Metrics& metrics)
      : options_(options),
        given_(given),
        serving_(serving),
        metrics_(metrics),
        values_(options.values()),
        drain_ms_(options.drain_ms()),
        log_(make_service_log(options)),
        supervisor_(Supervisor::from_environment()) {}

  // Peers can connect. This and the next two are called by the thread of the node.
  void say_ready(const std::string& address) const { supervisor_.ready("serves at " + address); }
  // Nobody else knows a port that the system chose.
  void say_where_metrics_are() const {
    const auto address = metrics_.address();
    if (address.empty()) return;
    const auto level = options_.metrics.ends_with(":0") ? spdlog::level::warn : spdlog::level::info;
    log_->log(level, "ifunc serve: metrics at http://{}/metrics", address);
  }
  void say_what_is_left(const Error& what) const {
    log_->warn("ifunc serve: after {} ms (--drain) the node stops: {}", drain_ms_.load(), what.message);
  }

  // For these signals, which end before this object does.
  StopSignals::Handlers handlers(StopSignals& signals) {
    signals_ = &signals;
    return {.stop = [this](int signal) { stop(signal); },
            .again = [this](int signal) { stop_at_once(signal); },
            .waits = [this] { say_what_it_waits_for(); },
            .gives_up = [this] { return give_up(); },
            .reload = [this] { reload(); }};
  }

 private:
  void stop(int signal) {
    metrics_.set_draining();
    const auto running = serving_.running_ifunc();
    const auto what = fmt::format(
        "stops, told by {}{}", name_of(signal),
        running.empty() ? "" : fmt::format("; {} may go on for {} ms (--drain)", running, drain_ms_.load()));
    if (!options_.quiet_stop) log_->warn("ifunc serve: {}", what);
    is_stopping_ = true;
    supervisor_.stopping(what);
    if (!serving_.with_node(tc_node_wake))
      ::_exit(128 + signal);  // a bootstrap that waits for others: nothing to tidy up
  }
  void stop_at_once(int signal) {
    log_->warn("ifunc serve: stops at once, told by a second signal, {}{}", name_of(signal),
               in_parentheses(serving_.running_ifunc()));
  }
  void say_what_it_waits_for() {
    if (options_.quiet_stop && serving_.running_ifunc().empty()) return;  // nothing holds it up but the machine
    log_->warn("ifunc serve: stops when {} has ended, or after {} ms (--drain)", serving_.what_runs(),
               drain_ms_.load());
  }
  // Code in this process cannot be stopped. Without it the node ends in good order, which takes a moment.
  bool give_up() {
    if (!serving_.is_time_over() && serving_.running_ifunc().empty()) {
      serving_.set_time_is_over();
      serving_.with_node(tc_node_wake);
      return false;
    }
    log_->warn("ifunc serve: {} has not ended within {} ms (--drain): the node stops without it", serving_.what_runs(),
               drain_ms_.load());
    return true;
  }
  // A node that starts has just read its keyring, or is about to.
  void reload() {
    const bool has_keyring = options_.get("keyring") != "none";
    const auto running = serving_.running_ifunc();
    // The node logs what the keyring has now when it takes it over, and what is wrong with it at once.
    log_->warn("ifunc serve: {} (SIGHUP){}{}", has_keyring ? "reads its keyring again" : "has no keyring to read",
               !has_keyring || running.empty() ? "" : fmt::format(", which takes effect when {} has ended", running),
               given_.config_file.empty() ? "; other options are read only when it starts"
                                          : fmt::format("; reads {} again", given_.config_file));
    serving_.with_node([this](tc_node_t* node) {
      // One that stops is not ready any more.
      if (!is_stopping_) supervisor_.reloading();
      (void)tc_node_reload_keys(node);
      if (!given_.config_file.empty()) reload_options(node);
      if (!is_stopping_) supervisor_.ready("");
    });
  }

  // The file is good as a whole, or nothing changes.
  void reload_options(tc_node_t* node) {
    auto fresh = given_;
    isolate_the_untrusted(fresh);
    if (const auto read = read_whole_configuration(fresh); !read)
      return log_->error("ifunc serve: the options stay as they were: {}", read.error().message);
    if (fresh.get("listen").empty() && options_.get("listen").starts_with("fd:"))
      fresh.set("listen", options_.get("listen"));
    std::vector<std::string> changed, fixed;
    const auto values = fresh.values();
    for (const auto& [name, value] : values) {
      if (value == values_.at(name)) continue;
      const bool can_change = std::ranges::find(changeable_options, name) != changeable_options.end();
      (can_change ? changed : fixed).push_back(name);
    }
    for (const auto& name : changed) values_[name] = values.at(name);
    set_drain_ms(fresh.drain_ms());
    // Said before the level changes, which may hide it.
    if (!fixed.empty())
      log_->warn("ifunc serve: {} changed, and take{} effect when the node starts again", list_of(fixed),
                 fixed.size() == 1 ? "s" : "");
    log_->warn("ifunc serve: the options were read again; new: {}", changed.empty() ? "none" : list_of(changed));
    const auto level = fresh.get("log").empty() ? std::string("warn") : fresh.get("log");
    (void)tc_node_set_log_level(node, level.c_str());
    log_->set_level(level_of(level));
  }
  void set_drain_ms(uint32_t drain_ms) {
    drain_ms_ = drain_ms;
    signals_->set_drain_ms(drain_ms);
  }

  const ServeOptions& options_;
  const ServeOptions& given_;
  Served& serving_;
  Metrics& metrics_;
  std::map<std::string, std::vector<std::string>> values_;  // that are in effect, or of the node's start
  std::atomic<uint32_t> drain_ms_;
  StopSignals* signals_ = nullptr;
  const std::shared_ptr<spdlog::logger> log_;
  const Supervisor supervisor_;
  bool is_stopping_ = false;
};

// Until no call is left. An error: some are, when the time is over.
Status drain(threechains::Node& node, const Served& serving, Metrics& metrics) {
  while (true) {
    auto drained = attempt([&] { return node.drain(); });
    if (drained && *drained) return {};
    if (serving.is_time_over()) return fail(drained ? Error{TC_ERR_TIMEOUT, tc_error_message()} : drained.error());
    (void)attempt([&] { node.wait(drain_step); });  // no memory, which cost a call, and no more
    metrics.answer(node.handle());
  }
}

}  // namespace

Result<int> serve(ServeOptions options, ServeOptions given) {
  isolate_the_untrusted(options);
  TC_CHECK(options.check());
  TC_CHECK(make_key_if_missing(options));
  raise_descriptor_limit();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes (ulimit -f) costs what cannot be written, and not the node
  Served serving;
  Metrics metrics(
      {.wake = [&] { serving.with_node(tc_node_wake); }, .what_runs = [&] { return serving.running_ifunc(); }});
  Life life(options, given, serving, metrics);
  StopSignals stop;  // before the node starts threads
  TC_CHECK(metrics.start(options.metrics, options.metrics_hosts));
  life.say_where_metrics_are();
  TC_CHECK(stop.start(life.handlers(stop), options.drain_ms()));
  TC_ASSIGN(const auto files, map_files(options));  // outlives the node, whose ifuncs use them
  TC_ASSIGN(auto node, create_node(options));
  TC_CHECK(expose(node, files, options));
  TC_ASSIGN(const auto ifuncs, register_ifuncs(node, options));

  serving.set(node.handle());
  Status status = announce(node, options);
  if (status) life.say_ready(node.address());
  if (status) metrics.set_serving();
  while ((status || status.error().code == TC_ERR_NO_MEMORY) && !stop.requested()) {  // which cost a call, and no more
    status = attempt([&] { node.wait(longest_wait); });
    metrics.answer(node.handle());
  }
  Status drained;
  if (stop.requested()) drained = drain(node, serving, metrics);
  if (!drained) life.say_what_is_left(drained.error());
  if (options.stats) print_statistics(node);
  serving.begin_end();
  {
    const auto ended = std::move(node);
  }  // waits for what runs on other threads, at most until Life::give_up()
  const auto exit_code = drained ? 0 : 128 + stop.signal();
  stop.finish();
  TC_CHECK(status);
  return exit_code;
}

namespace {

// One that this process was given, where nothing else says where to listen.
Status take_socket(ServeOptions& read, ServeOptions& given) {
  TC_ASSIGN(const auto socket, take_given_socket());
  if (!socket || !read.get("listen").empty()) return {};
  if (given.supervise) TC_CHECK(keep_for_children(*socket));
  for (auto* const options : {&read, &given}) options->set("listen", fmt::format("fd:{}", *socket));
  return {};
}

Result<int> run(ServeOptions read, ServeOptions given) {
  TC_CHECK(take_socket(read, given));
  return given.supervise ? supervise(std::move(given)) : serve(std::move(read), std::move(given));
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("serve", "Run a node that executes the ifuncs it is sent");
  sub->footer(
      "Prints one line `ready ADDRESS:PORT` when peers can connect, then serves until SIGTERM or SIGINT. Calls that\n"
      "run or wait then may end first (--drain), and new ones are refused; a second signal ends the node at once.\n"
      "SIGHUP reads the keyring anew, and the file of --config.\n"
      "An idle node costs no CPU. The exit code is 78 when its --config is wrong, which trying again does not mend.\n\n"
      "  ifunc serve &                                  # ready 127.0.0.1:41234\n"
      "  ifunc send hello.ifunc 127.0.0.1:41234 --payload world\n\n"
      "Processes of your own user on this host may send any code; others only what the keyring allows (`ifunc key\n"
      "trust`). Code that runs may do what this process may do: see docs/security.md.");
  auto options = std::make_shared<ServeOptions>();
  options->add_own_to(*sub);
  options->add_shared_to(*sub);
  const auto checked_file = std::make_shared<std::string>();
  sub->add_option("--check-config", *checked_file,
                  "Say all that is wrong with this file for --config, each fault with its line, and run no node: exit "
                  "code 0 when it is good, else 78")
      ->type_name("FILE")
      ->excludes("--config");
  sub->callback([options, checked_file, &exit_code] {
    auto read = *options;
    const bool only_checks = !checked_file->empty();
    if (only_checks) read.config_file = *checked_file;
    if (const auto file = read.config_file; !file.empty()) {
      const auto count = read_whole_configuration(read);
      if (!count) {
        std::fprintf(stderr, "ifunc serve: %s\n", count.error().message.c_str());
        exit_code = exit_bad_configuration;
        return;
      }
      if (only_checks) {
        fmt::print("{}: good, {} option{}\n", file, *count, *count == 1 ? "" : "s");
        return;
      }
    }
    const auto ended = run(std::move(read), *options);
    if (ended) {
      exit_code = *ended;
      return;
    }
    std::fprintf(stderr, "ifunc serve: %s\n", ended.error().message.c_str());
    const auto code = ended.error().code;
    exit_code = code == TC_ERR_INVALID || code == TC_ERR_DENIED ? 2 : 1;
  });
}

}  // namespace tc::command
