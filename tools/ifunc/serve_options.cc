// SPDX-License-Identifier: Apache-2.0
#include "ifunc/serve_options.h"

#include "ifunc/arguments.h"

namespace tc::command {

void ServeOptions::add_shared_to(CLI::App& app) {
  app.add_option("--data", data,
                 "Map FILE and let ifuncs find it by tc_data(NAME). Changes reach the file, unless "
                 "it is not writable or `:ro` is appended. May be repeated")
      ->type_name("NAME=FILE[:ro]")
      ->allow_extra_args(false);
  app.add_option("--scratch", scratch,
                 "Give ifuncs BYTES of memory that they find by tc_data(NAME), zero at first. K, M, G. May be repeated")
      ->type_name("NAME=BYTES")
      ->allow_extra_args(false);
  app.add_option("--target-args-data", target_args_data,
                 "The data (of --data or --scratch) whose address ifuncs get as target_args")
      ->type_name("NAME");
  app.add_option("--allow-lib", allowed_libraries,
                 "A shared library that ifuncs may use when they declare it, as "
                 "`libz.so.1`; \"*\" for any. None is allowed otherwise. May be repeated")
      ->type_name("LIBRARY")
      ->allow_extra_args(false);
  app.add_option("--allow-export", allowed_exports,
                 "A symbol that libraries sent here may export to other ifuncs, as `hash64` or `hash_*`; with `@HOST`, "
                 "only libraries from that host. None is allowed otherwise. May be repeated")
      ->type_name("SYMBOL[@HOST]")
      ->allow_extra_args(false);
  app.add_option("--ifunc", ifuncs,
                 "Register this file, so that running ifuncs can tc_inject() it by name. May be "
                 "repeated")
      ->type_name("FILE.ifunc")
      ->allow_extra_args(false);
  app.add_option("--trust", trust,
                 "Whom to let in and whose code to run: `user`, processes of the same user on this machine; `any`, "
                 "everybody who can reach the address. Code that runs here can do whatever this process can")
      ->check(CLI::IsMember({"user", "any"}))
      ->capture_default_str();
  app.add_option(
         "--transport", transport,
         "How frames reach other nodes: `auto` (unless TC_TRANSPORT is set), shared memory on this machine and TCP "
         "otherwise; `ucx`, by UCX, on networks where everybody is trusted")
      ->check(CLI::IsMember({"auto", "shm", "tcp", "ucx", "ucx-put"}));
  app.add_option(
         "--ucx-devices", ucx_devices,
         "Needed with --transport ucx, unless UCX_NET_DEVICES is set: on which network devices of a trusted network")
      ->type_name("DEVICE,...");
  app.add_flag("--no-bitcode", no_bitcode,
               "Run ready machine code only and never load the compiler: small and quick "
               "to start");
  app.add_flag("--no-object", no_object, "Run only bitcode, compiled here");
  app.add_flag("--warm-up", warm_up, "Load the compiler now, not with the first ifunc that needs it");
  app.add_option("--cache-dir", cache_dir, "Keep compiled code in this directory for the next run")->type_name("DIR");
  app.add_option("--compile-at", compile_at,
                 "With --no-bitcode, or built without LLVM: a node that compiles what is sent here as bitcode alone, "
                 "for this node's processor; what it gives back runs here")
      ->type_name("ADDRESS:PORT");
  app.add_option(
         "--compile-for", compile_for,
         "Whom this node compiles for: nobody, nodes of the same user on this machine, or `any` that --trust lets "
         "in")
      ->check(CLI::IsMember({"none", "user", "any"}))
      ->capture_default_str();
  app.add_option("--compile-limit", compile_limit_ms,
                 "Milliseconds that compiling one ifunc for another node, or at one, may take")
      ->check(CLI::Range(1u, 3'600'000u))
      ->capture_default_str();
  app.add_option("--code-budget", code_budget, "Bytes of code to keep; the least recently used is dropped. K, M, G")
      ->capture_default_str();
  app.add_option("--log", log, "Level of messages on stderr")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug"}))
      ->capture_default_str();
  app.add_flag("--stats", stats, "Print the node's counters when it stops, one `stat NAME VALUE` a line");
}

void ServeOptions::add_own_to(CLI::App& app) {
  app.add_option(
         "--listen", listen,
         "Where to accept peers; port 0 picks a free one, which is printed. At unix:PATH: processes of the same "
         "user on this machine alone")
      ->type_name("ADDRESS:PORT|unix:PATH")
      ->capture_default_str();
  app.add_option("--name", name, "Label of this node in messages");
  app.add_option("--advertise", advertise,
                 "What peers are told to connect to, when that is not where this node listens. With --listen 0.0.0.0:0 "
                 "it is the address of the first network interface otherwise")
      ->type_name("ADDRESS[:PORT]");
  app.add_option("--id", id, "Number of this node in its cluster; 0, or what the bootstrap gives it, otherwise");
  app.add_option("--cluster", cluster, "Addresses of all nodes, by number, for tc_forward() and tc_inject()")
      ->type_name("ADDRESS:PORT,...");
  app.add_option("--bootstrap", bootstrap,
                 "How nodes learn their numbers and addresses instead of --id and --cluster: `pmix`, from the launcher "
                 "(mpirun, srun --mpi=pmix); `dir:PATH`, by files in a directory that all nodes see; `auto`, pmix if "
                 "such a launcher started this process")
      ->type_name("none|auto|pmix|dir:PATH")
      ->capture_default_str();
  app.add_option("--nodes", nodes, "How many nodes meet in the directory of --bootstrap")->check(CLI::PositiveNumber);
  app.add_option("--bootstrap-timeout", bootstrap_timeout_ms, "Milliseconds in which all nodes must have come")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--ready-file", ready_file, "Write the address to this file once peers can connect")
      ->type_name("FILE");
}

ServeOptions ServeOptions::of_node(unsigned node) const {
  static constexpr std::string_view placeholder = "{id}";
  ServeOptions options = *this;
  options.id = node;
  const auto number = std::to_string(node);
  for (auto& one : options.data)
    for (size_t at = 0; (at = one.find(placeholder, at)) != std::string::npos; at += number.size())
      one.replace(at, placeholder.size(), number);
  return options;
}

std::vector<std::string> ServeOptions::arguments() const {
  std::vector<std::string> list;
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    list.push_back(option);
    list.push_back(value);
  };
  for (const auto& one : data) add("--data", one);
  for (const auto& one : scratch) add("--scratch", one);
  for (const auto& one : allowed_libraries) add("--allow-lib", one);
  for (const auto& one : allowed_exports) add("--allow-export", one);
  for (const auto& one : ifuncs) add("--ifunc", one);
  add("--target-args-data", target_args_data);
  add("--trust", trust);
  add("--transport", transport);
  add("--ucx-devices", ucx_devices);
  add("--cache-dir", cache_dir);
  add("--compile-at", compile_at);
  add("--compile-for", compile_for);
  add("--compile-limit", std::to_string(compile_limit_ms));
  add("--code-budget", code_budget);
  add("--log", log);
  if (no_bitcode) list.push_back("--no-bitcode");
  if (no_object) list.push_back("--no-object");
  if (warm_up) list.push_back("--warm-up");
  if (stats) list.push_back("--stats");
  add("--listen", listen);
  add("--name", name);
  add("--advertise", advertise);
  if (id) add("--id", std::to_string(*id));
  add("--cluster", cluster);
  add("--bootstrap", bootstrap);
  if (nodes != 0) add("--nodes", std::to_string(nodes));
  add("--bootstrap-timeout", std::to_string(bootstrap_timeout_ms));
  add("--ready-file", ready_file);
  return list;
}

Status ServeOptions::check() const {
  if (!is_path(listen)) {
    TC_ASSIGN(const auto address, parse_address(listen));
    if (trust != "any" && !is_loopback(address))
      return fail(TC_ERR_DENIED,
                  "will not listen on {}: other machines can reach that address, nothing here checks who they are yet, "
                  "and whoever connects can run any code with this process's rights. Listen on 127.0.0.1, or say "
                  "`--trust any` when only machines you trust can reach it",
                  address.host);
  }
  if (no_bitcode && no_object)
    return fail(TC_ERR_INVALID, "--no-bitcode and --no-object together leave no code that could run");
  if (!compile_at.empty()) TC_CHECK(parse_address(compile_at));
  TC_CHECK(parse_size(code_budget));
  bool found = target_args_data.empty();
  for (const auto& text : data) {
    TC_ASSIGN(const auto option, parse_data(text));
    found = found || option.name == target_args_data;
  }
  for (const auto& text : scratch) {
    TC_ASSIGN(const auto option, parse_scratch(text));
    found = found || option.name == target_args_data;
  }
  if (!found)
    return fail(TC_ERR_INVALID, "--target-args-data {}: no --data or --scratch has that name", target_args_data);
  return {};
}

}  // namespace tc::command
