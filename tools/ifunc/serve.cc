// SPDX-License-Identifier: Apache-2.0
//
// `ifunc serve`: a node that runs what it is sent.
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <vector>

#include "base/file.h"
#include "ifunc/arguments.h"
#include "ifunc/attempt.h"
#include "ifunc/commands.h"
#include "ifunc/mapped_file.h"
#include "ifunc/serve_options.h"
#include "ifunc/stop_signals.h"
#include "trust/key_file.h"

namespace tc::command {
namespace {

// A wake ends the wait; the deadline only bounds what a lost wake would cost. Two wake-ups a minute are free.
constexpr threechains::milliseconds longest_wait{30'000};

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
  const auto listen = options.get("listen");
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
  // With the node; false: there is none yet, or no more.
  bool with_node(const std::function<void(tc_node_t*)>& use) {
    const std::scoped_lock lock(mutex_);
    if (node_ != nullptr) use(node_);
    return node_ != nullptr || ends_;
  }
  // What keeps it from stopping.
  std::string what_runs() {
    const std::scoped_lock lock(mutex_);
    return ends_ ? last_ : running();
  }

 private:
  std::string running() const {
    char name[256] = "";
    if (node_ == nullptr || tc_node_running_ifunc(node_, name, sizeof name) != TC_OK) return "what the node does";
    return fmt::format("the running ifunc '{}'", name);
  }

  std::mutex mutex_;
  tc_node_t* node_ = nullptr;
  bool ends_ = false;
  std::string last_;
};

}  // namespace

Status serve(ServeOptions options) {
  TC_CHECK(options.read_config_file());
  isolate_the_untrusted(options);
  TC_CHECK(options.check());
  TC_CHECK(make_key_if_missing(options));
  raise_descriptor_limit();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes (ulimit -f) costs what cannot be written, and not the node
  Served serving;
  StopSignals stop;  // before the node starts threads
  stop.start(
      {
          .stop =
              [&serving, &stop] {
                if (!serving.with_node(tc_node_wake))
                  ::_exit(128 + stop.signal());  // a bootstrap that waits for others: nothing to tidy up
              },
          .waits =
              [&serving, &options] {
                fmt::print(stderr, "ifunc serve: stops when {} has ended, or after {} ms (--drain)\n",
                           serving.what_runs(), options.drain_ms);
              },
          .gives_up =
              [&serving, &options] {
                fmt::print(stderr, "ifunc serve: {} has not ended within {} ms (--drain): the node stops without it\n",
                           serving.what_runs(), options.drain_ms);
              },
          // A keyring that cannot be read stands in the log. A node that starts has just read it, or is about to.
          .reload = [&serving] { serving.with_node([](tc_node_t* node) { (void)tc_node_reload_keys(node); }); },
      },
      options.drain_ms);
  TC_ASSIGN(const auto files, map_files(options));  // outlives the node, whose ifuncs use them
  TC_ASSIGN(auto node, create_node(options));
  TC_CHECK(expose(node, files, options));
  TC_ASSIGN(const auto ifuncs, register_ifuncs(node, options));

  serving.set(node.handle());
  Status status = announce(node, options);
  while ((status || status.error().code == TC_ERR_NO_MEMORY) && !stop.requested())  // which cost a call, and no more
    status = attempt([&] { node.wait(longest_wait); });
  if (options.stats) print_statistics(node);
  serving.begin_end();
  {
    const auto ended = std::move(node);
  }  // waits for what runs on other threads, at most as long as --drain says
  stop.finish();
  return status;
}

void add_serve(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("serve", "Run a node that executes the ifuncs it is sent");
  sub->footer(
      "Prints one line `ready ADDRESS:PORT` when peers can connect, then serves until SIGTERM or SIGINT. The ifunc\n"
      "that runs then may end first (--drain); a second signal ends the node at once. SIGHUP reads the keyring anew.\n"
      "An idle node costs no CPU.\n\n"
      "  ifunc serve &                                  # ready 127.0.0.1:41234\n"
      "  ifunc send hello.ifunc 127.0.0.1:41234 --payload world\n\n"
      "Processes of your own user on this host may send any code; others only what the keyring allows (`ifunc key\n"
      "trust`). Code that runs may do what this process may do: see docs/security.md.");
  auto options = std::make_shared<ServeOptions>();
  options->add_own_to(*sub);
  options->add_shared_to(*sub);
  sub->callback([options, &exit_code] {
    if (auto status = serve(*options); !status) {
      std::fprintf(stderr, "ifunc serve: %s\n", status.error().message.c_str());
      const auto code = status.error().code;
      exit_code = code == TC_ERR_INVALID || code == TC_ERR_DENIED ? 2 : 1;
    }
  });
}

}  // namespace tc::command
