// SPDX-License-Identifier: Apache-2.0
//
// `ifunc serve`: a node that runs what it is sent.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <vector>

#include "base/file.h"
#include "capi/attempt.h"
#include "ifunc/arguments.h"
#include "ifunc/commands.h"
#include "ifunc/mapped_file.h"
#include "ifunc/serve_options.h"
#include "ifunc/stop_signals.h"

namespace tc::command {
namespace {

// A wake ends the wait; the deadline only bounds what a lost wake would cost. Two wake-ups a minute are free.
constexpr threechains::milliseconds longest_wait{30'000};

constexpr const char* counters[] = {"executed",
                                    "failures",
                                    "codes",
                                    "code-bytes",
                                    "code-loads",
                                    "tuned",
                                    "code-evictions",
                                    "rebinds",
                                    "retired",
                                    "cache-hits",
                                    "links",
                                    "dropped-links",
                                    "refused-strangers",
                                    "needs",
                                    "load-ns",
                                    "first-execution-ns",
                                    "late-answers",
                                    "slice-requests",
                                    "compile-requests",
                                    "compiled-for-others"};

threechains::Config config_of(const ServeOptions& options, size_t budget) {
  const auto on_or_off = [](bool on) { return std::string(on ? "on" : "off"); };
  threechains::Config config;
  config.set("listen", options.listen)
      .set("trust", options.trust)
      .set("objects", on_or_off(!options.no_object))
      .set("bitcode", on_or_off(!options.no_bitcode))
      .set("warm-up", on_or_off(options.warm_up))
      .set("code-budget", std::to_string(budget))
      .set("compile-at", options.compile_at)
      .set("compile-for", options.compile_for)
      .set("compile-limit", std::to_string(options.compile_limit_ms))
      .set("log", options.log)
      .set("bootstrap", options.bootstrap)
      .set("bootstrap-timeout", std::to_string(options.bootstrap_timeout_ms));
  if (options.id) config.set("id", std::to_string(*options.id));
  if (options.nodes != 0) config.set("nodes", std::to_string(options.nodes));
  if (!options.advertise.empty()) config.set("advertise", options.advertise);
  if (!options.transport.empty()) config.set("transport", options.transport);
  if (!options.ucx_devices.empty()) config.set("ucx-devices", options.ucx_devices);
  if (!options.name.empty()) config.set("name", options.name);
  if (!options.cluster.empty()) config.set("cluster", options.cluster);
  if (!options.cache_dir.empty()) config.set("cache-dir", options.cache_dir);
  for (const auto& library : options.allowed_libraries) config.set("allow-lib", library);
  for (const auto& rule : options.allowed_exports) config.set("allow-export", rule);
  return config;
}

Result<threechains::Node> create_node(const ServeOptions& options) {
  TC_ASSIGN(const auto budget, parse_size(options.code_budget));
  return attempt([&] { return threechains::Node(config_of(options, budget)); });
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
      node.expose(name, {static_cast<std::byte*>(file.data()), file.size()});
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

void print_counters(const threechains::Node& node) {
  for (const char* name : counters)
    if (const auto value = attempt([&] { return node.stat(name); }))
      std::printf("stat %s %llu\n", name, (unsigned long long)*value);
  std::fflush(stdout);
}

}  // namespace

Status serve(const ServeOptions& options) {
  TC_CHECK(options.check());
  std::atomic<tc_node_t*> serving{nullptr};
  StopSignals stop;  // before the node starts threads
  stop.start([&serving, &stop] {
    tc_node_t* const node = serving.load();
    if (node == nullptr) ::_exit(128 + stop.signal());  // a bootstrap that waits for others has nothing to tidy up
    tc_node_wake(node);
  });
  TC_ASSIGN(const auto files, map_files(options));  // outlives the node, whose ifuncs use them
  TC_ASSIGN(auto node, create_node(options));
  TC_CHECK(expose(node, files, options));
  TC_ASSIGN(const auto ifuncs, register_ifuncs(node, options));

  serving = node.handle();
  Status status = announce(node, options);
  while ((status || status.error().code == TC_ERR_NO_MEMORY) && !stop.requested())  // which cost a call, and no more
    status = attempt([&] { node.wait(longest_wait); });
  stop.finish();  // before the node that it wakes is gone
  if (options.stats) print_counters(node);
  return status;
}

void add_serve(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("serve", "Run a node that executes the ifuncs it is sent");
  sub->footer(
      "Prints one line `ready ADDRESS:PORT` when peers can connect, then serves until SIGTERM or SIGINT (a second\n"
      "one ends it at once). An idle node costs no CPU.\n\n"
      "  ifunc serve &                                  # ready 127.0.0.1:41234\n"
      "  ifunc send hello.ifunc 127.0.0.1:41234 --payload world\n\n"
      "Whoever may send code may do what this process may do: see docs/security.md.");
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
