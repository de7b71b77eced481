// SPDX-License-Identifier: Apache-2.0
#include "node/config.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tc::node {

namespace {

// ---- Reads the values of options. Errors name the value and what would be right; the name of the option is added by the
// caller.

template <class T>
Status parse_number(std::string_view value, T& out, T least, T most) {
  T number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < least || number > most)
    return fail(TC_ERR_INVALID, "'{}' when it is a whole number from {} to {}", value, least, most);
  out = number;
  return {};
}

// A number with an optional K, M or G behind it, which are powers of 1024.
Status parse_bytes(std::string_view value, size_t& out, size_t least, size_t most) {
  const auto unit = value.empty() ? std::string_view::npos : std::string_view("KMGkmg").find(value.back());
  const unsigned shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit % 3) + 1);
  const auto digits = value.substr(0, value.size() - (shift == 0 ? 0 : 1));
  size_t number = 0;
  if (!parse_number(digits, number, size_t{0}, std::numeric_limits<size_t>::max() >> shift) ||
      (number << shift) < least || (number << shift) > most)
    return fail(TC_ERR_INVALID, "'{}' when it is a number of bytes from {} to {}; K, M and G may stand behind it",
                value, least, most);
  out = number << shift;
  return {};
}

Status parse_power_of_two(std::string_view value, size_t& out, size_t least, size_t most) {
  size_t number = 0;
  TC_CHECK(parse_bytes(value, number, least, most));
  if ((number & (number - 1)) != 0) return fail(TC_ERR_INVALID, "{} when it is a power of two", number);
  out = number;
  return {};
}

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

// `words`: all names in words, for the error.
template <class T>
Status parse_choice_of(std::string_view value, T& out, std::string_view words,
                       std::initializer_list<Choice<T>> choices) {
  for (const auto& choice : choices)
    if (choice.name == value) return out = choice.value, Status{};
  return fail(TC_ERR_INVALID, "'{}' when it is {}", value, words);
}

Status parse_switch(std::string_view value, bool& out) {
  return parse_choice_of<bool>(value, out, "on or off", {{"on", true}, {"off", false}});
}

// The parts that are not empty.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (const auto part = text.substr(0, end); !part.empty()) parts.emplace_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

// ---- The table

constexpr size_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;

template <auto member>
Status text(Config& config, std::string_view value) {
  config.*member = value;
  return {};
}

template <auto member>
Status one_more(Config& config, std::string_view value) {
  (config.*member).emplace_back(value);
  return {};
}

Status set_trust(Config& config, std::string_view value) {
  return parse_choice_of<Trust>(value, config.trust, "user (processes of the same user on this host) or any",
                                {{"user", Trust::user}, {"any", Trust::any}});
}

Status set_first_contact(Config& config, std::string_view value) {
  return parse_choice_of<FirstContact>(value, config.first_contact, "keyring, ask, remember or refuse",
                                       {{"keyring", FirstContact::keyring},
                                        {"ask", FirstContact::ask},
                                        {"remember", FirstContact::remember},
                                        {"refuse", FirstContact::refuse}});
}

Status add_trusted_network(Config& config, std::string_view value) {
  TC_ASSIGN(auto range, AddressRange::parse(value));
  config.network.trusted_networks.push_back(std::move(range));
  return {};
}

Status set_compile_for(Config& config, std::string_view value) {
  return parse_choice_of<CompileFor>(
      value, config.compile_for,
      "none, user (processes of the same user on this host) or any (peers that may run any code)",
      {{"none", CompileFor::none}, {"user", CompileFor::user}, {"any", CompileFor::any}});
}

Status set_log(Config& config, std::string_view value) {
  std::string_view level;
  TC_CHECK(parse_choice_of<std::string_view>(
      value, level, "off, error, warn, info or debug",
      {{"off", "off"}, {"error", "error"}, {"warn", "warn"}, {"info", "info"}, {"debug", "debug"}}));
  config.log = level;
  return {};
}

Status set_log_format(Config& config, std::string_view value) {
  return parse_choice_of<std::optional<LogFormat>>(
      value, config.log_format, "text, json, journal or auto",
      {{"text", LogFormat::text}, {"json", LogFormat::json}, {"journal", LogFormat::journal}, {"auto", std::nullopt}});
}

Status set_id(Config& config, std::string_view value) {
  TC_CHECK(parse_number<uint32_t>(value, config.id, 0, 1u << 24));
  config.id_is_set = true;
  return {};
}

Status set_transport(Config& config, std::string_view value) {
  const auto choice = transport::parse_choice(value);
  if (!choice) return fail(TC_ERR_INVALID, "'{}' when it is auto, shm, unix, tcp, ucx or ucx-put", value);
  config.network.choice = *choice;
  return {};
}

Status set_isolate(Config& config, std::string_view value) {
  return parse_choice_of<Isolate>(value, config.isolate, "none, auto, untrusted or all",
                                  {{"none", Isolate::none},
                                   {"auto", Isolate::automatic},
                                   {"untrusted", Isolate::untrusted},
                                   {"all", Isolate::all}});
}

Status set_bootstrap(Config& config, std::string_view value) {
  if (bootstrap::parse(value, config.bootstrap)) return {};
  return fail(TC_ERR_INVALID, "'{}' when it is none, auto, pmix or dir:PATH", value);
}

Status set_path(Config& config, std::string_view value) {
  config.path.clear();
  for (const auto& directory : split(value, ':')) config.path.emplace_back(directory);
  return {};
}

constexpr const char* node = "This node";
constexpr const char* cluster = "Cluster";
constexpr const char* transports = "Transports";
constexpr const char* trust = "Trust";
constexpr const char* code = "Code";
constexpr const char* remote = "Compiling elsewhere";
constexpr const char* limits = "Limits";
constexpr const char* files = "Parts of Three-Chains";

constexpr Option table[] = {
    {node, "name", "LABEL", "host name and process number", "Label of this node in messages and logs.", false,
     [](Config& c, std::string_view v) { return c.name = v.substr(0, 100), Status{}; }},
    {node, "listen", "ADDRESS:PORT|unix:PATH|fd:N|none", "127.0.0.1:0",
     "Where to accept peers; port 0 picks a free one. unix:PATH accepts processes of the same user on this host alone, "
     "through shared memory. fd:N takes the listening TCP socket that this process was given as descriptor N. none "
     "accepts nobody.",
     false, [](Config& c, std::string_view v) { return c.listen = v == "none" ? "" : v, Status{}; }},
    {node, "advertise", "ADDRESS[:PORT]", "what follows from listen",
     "What peers are told to connect to. With listen on 0.0.0.0 or [::], the address of the first network interface "
     "that is up and is no loopback.",
     false, text<&Config::advertise>},
    {node, "path", "DIRECTORY:...", "., then $TC_IFUNC_PATH", "Directories with .ifunc files.", false, set_path},
    {node, "log", "off|error|warn|info|debug", "warn",
     "Which messages are logged: those of this level and above. They go to standard error unless the program takes "
     "them.",
     false, set_log},
    {node, "log-format", "text|json|journal|auto", "auto",
     "How lines of the log on standard error look. text: the time by RFC 3339, the node's name, the level, the "
     "message. "
     "json: an object a line (docs/service.md). journal: as text, with systemd's priority in place of the time. auto: "
     "journal where systemd has connected standard error to its journal, else text.",
     false, set_log_format},
    {node, "last-words", "on|off", "on",
     "What is said when a fatal signal ends the process inside an ifunc: which ifunc that was, who called it, and "
     "where "
     "it was, in a line on standard error. Who connects to this address afterwards is told, too. Handlers of SIGSEGV "
     "and "
     "its like stand in front of those that the program has then.",
     false, [](Config& c, std::string_view v) { return parse_switch(v, c.last_words); }},
    {node, "threads", "NUMBER", "1, or $TC_THREADS",
     "Threads that run calls (docs/threads.md). 1: the one that polls runs them all. With more, the others run what "
     "may take long, and concurrent code runs on several at the same time.",
     false, [](Config& c, std::string_view v) { return parse_number<uint32_t>(v, c.threads, 1, 1024); }},

    {cluster, "id", "NUMBER", "0, or what the bootstrap gives", "Number of this node in its cluster.", false, set_id},
    {cluster, "cluster", "ADDRESS:PORT,...", "",
     "Addresses of all nodes of the cluster, by number: lets ifuncs forward and inject.", false,
     [](Config& c, std::string_view v) { return c.cluster = split(v, ','), Status{}; }},
    {cluster, "bootstrap", "none|auto|pmix|dir:PATH", "none",
     "How id and cluster are learnt instead, while the node starts: pmix, from the launcher (mpirun, srun --mpi=pmix); "
     "dir:PATH, by files in a directory that all nodes see; auto, pmix if such a launcher started this process "
     "(docs/bootstrap.md).",
     false, set_bootstrap},
    {cluster, "nodes", "NUMBER", "", "How many nodes meet in the directory of the bootstrap.", false,
     [](Config& c, std::string_view v) {
       return parse_number<uint32_t>(v, c.bootstrap.nodes, 1, bootstrap::max_nodes);
     }},
    {cluster, "bootstrap-timeout", "MILLISECONDS", "30000", "In which all nodes must have come.", false,
     [](Config& c, std::string_view v) { return parse_number<uint32_t>(v, c.bootstrap.timeout_ms, 1, 1u << 31); }},

    {transports, "transport", "auto|shm|unix|tcp|ucx|ucx-put", "auto, or $TC_TRANSPORT",
     "How frames travel on connections that this node starts: auto, shared memory to processes of the same user on "
     "this "
     "host and TCP otherwise; shm, unix (a Unix socket to such processes) or tcp, that one alone; ucx, UCX's Active "
     "Messages, or ucx-put, its one-sided puts, between nodes that all have this option, on networks where every "
     "process "
     "is trusted. TCP is encrypted, unless trust-network names the peer's network (docs/transport.md).",
     false, set_transport},
    {transports, "ring-bytes", "BYTES", "256K",
     "Shared memory for each peer and direction: a power of two. Large payloads use up to 32 times as much, for as "
     "long as they "
     "come and a second longer.",
     false, [](Config& c, std::string_view v) { return parse_power_of_two(v, c.network.ring_bytes, 4 * kib, gib); }},
    {transports, "ucx-tls", "TRANSPORT,...", "$UCX_TLS, else all but sysv", "Which of UCX's transports, as UCX_TLS.",
     false, [](Config& c, std::string_view v) { return c.network.fabric.tls = v, Status{}; }},
    {transports, "ucx-devices", "DEVICE,...", "$UCX_NET_DEVICES",
     "On which devices of a trusted network, as UCX_NET_DEVICES. Must be named here or there with transport ucx, "
     "unless "
     "ucx-tls has no network.",
     false, [](Config& c, std::string_view v) { return c.network.fabric.devices = v, Status{}; }},
    {transports, "batch-bytes", "BYTES", "128K", "Of transport ucx: the most frames in one of its messages.", false,
     [](Config& c, std::string_view v) { return parse_bytes(v, c.network.fabric.batch_bytes, kib, mib); }},
    {transports, "window-bytes", "BYTES", "1M", "Of transport ucx: frames on their way to one peer.", false,
     [](Config& c, std::string_view v) { return parse_bytes(v, c.network.fabric.window_bytes, 4 * kib, gib); }},

    {trust, "key", "NAME|FILE", "default, if there is such a key",
     "This node's own key, by which peers on other hosts know it: a name from `ifunc key list`, or a file. Without one "
     "the node has a fresh key for as long as it runs. Nodes with the same key trust each other.",
     false, text<&Config::key>},
    {trust, "keyring", "FILE|none", "keyring in the folder of the user's keys",
     "The keys of peers and authors, and what each may do here: one line each (`ifunc key trust`).", false,
     text<&Config::keyring>},
    {trust, "trust", "user|any", "user",
     "Who may connect and run any code here, beside those that the keyring names: user, processes of the same user on "
     "this host; any, everybody who can reach the address. Code that runs here can do whatever this process can "
     "(docs/security.md).",
     false, set_trust},
    {trust, "trust-network", "ADDRESS/BITS", "",
     "A network where every process is trusted as those of the same user on this host are: peers there are not asked "
     "for "
     "keys, and connections to and from there are not encrypted.",
     true, add_trusted_network},
    {trust, "first-contact", "keyring|ask|remember|refuse", "keyring",
     "What to do when a node that this one connects to answers with a key that was never seen: remember it for that "
     "address, and accept no other there; or refuse it. keyring: refuse it where the keyring has a line, and at "
     "addresses of this host, where any user may listen; else remember it. ask: `ifunc send` asks at its terminal, as "
     "ssh does; everything else refuses it.",
     false, set_first_contact},
    {trust, "allow-lib", "LIBRARY", "libm.so.6",
     "A shared library that ifuncs may use when they declare it, as libz.so.1; * for any. The mathematics of C, "
     "libm.so.6, is "
     "always allowed.",
     true, one_more<&Config::allowed_libraries>},
    {trust, "allow-export", "SYMBOL[@HOST]", "",
     "A symbol that libraries sent here may export to other ifuncs, as hash64 or hash_*; with @HOST, only libraries "
     "from "
     "that host. None is allowed otherwise.",
     true, one_more<&Config::allowed_exports>},

    {code, "isolate", "none|auto|untrusted|all", "none, or $TC_ISOLATE; auto for ifunc serve",
     "Which code runs in cells, processes of their own that it cannot leave and may crash (docs/cells.md), besides "
     "that of keys whose line says in=cell. untrusted: what runs by other rights than run=any. all: all code. With "
     "both, the node does not start where this host cannot have cells. auto: untrusted where it can, else none.",
     false, set_isolate},
    {code, "cells", "NUMBER", "4",
     "How many calls run in cells at once, and so many cells are kept for those who called last, from 1 to 64. There "
     "is "
     "one more cell, and none before it is needed.",
     false, [](Config& c, std::string_view v) { return parse_number<uint32_t>(v, c.cells, 1, 64); }},
    {code, "cell-memory", "BYTES", "1G", "What the code in a cell may use.", false,
     [](Config& c, std::string_view v) { return parse_bytes(v, c.cell_memory, mib, 1024 * gib); }},
    {code, "objects", "on|off", "on", "Run ready machine code.", false,
     [](Config& c, std::string_view v) { return parse_switch(v, c.code.use_objects); }},
    {code, "bitcode", "on|off", "on", "Run bitcode, compiled here. off never loads the compiler.", false,
     [](Config& c, std::string_view v) { return parse_switch(v, c.code.use_bitcode); }},
    {code, "tune", "on|off", "on", "Compile for this CPU in the background.", false,
     [](Config& c, std::string_view v) { return parse_switch(v, c.code.tune); }},
    {code, "warm-up", "on|off", "off",
     "Load the compiler when the node starts, not with the first ifunc that needs it.", false,
     [](Config& c, std::string_view v) { return parse_switch(v, c.warm_up); }},
    {code, "cache-dir", "DIRECTORY", "", "Keep compiled code here for the next run. Nowhere otherwise.", false,
     [](Config& c, std::string_view v) { return c.code.cache_dir = v, Status{}; }},
    {code, "code-budget", "BYTES", "64M", "Code to keep; the least recently used is dropped.", false,
     [](Config& c, std::string_view v) { return parse_bytes(v, c.code.budget_bytes, 4 * kib, 1024 * gib); }},
    {code, "source-budget", "BYTES", "64M",
     "Memory for code that was sent and is not registered any more, kept so that a peer which dropped it can have it "
     "again. Beyond it, such code must be registered again.",
     false, [](Config& c, std::string_view v) { return parse_bytes(v, c.source_budget, 0, 1024 * gib); }},

    {remote, "compile-at", "ADDRESS:PORT", "",
     "A node that compiles for this one what came as bitcode alone, when this one has no LLVM or bitcode is off. What "
     "it "
     "gives back runs here (docs/small-nodes.md).",
     false, text<&Config::compile_at>},
    {remote, "compile-for", "none|user|any", "none",
     "Which nodes this one compiles for: none, those of the same user on this host, or any that may run any code "
     "here. Needs the program ifunc-toolchain.",
     false, set_compile_for},
    {remote, "compile-limit", "MILLISECONDS", "10000",
     "That compiling one ifunc for another node, or at one, may take.", false,
     [](Config& c, std::string_view v) { return parse_number<uint32_t>(v, c.compile_limit_ms, 1, 3'600'000); }},

    {limits, "max-message", "BYTES", "256M", "Largest payload or bundle accepted.", false,
     [](Config& c, std::string_view v) { return parse_bytes(v, c.max_message, kib, 2 * gib); }},
    {limits, "message-memory", "BYTES", "1G", "Messages that may wait here, of all peers together.", false,
     [](Config& c, std::string_view v) { return parse_bytes(v, c.message_memory, mib, 16384 * gib); }},
    {limits, "key-links", "NUMBER", "256",
     "Links that a key of the keyring may have here at a time, and at most half as many as this process may open "
     "descriptors. One with run=none may have 16.",
     false, [](Config& c, std::string_view v) { return parse_number<uint32_t>(v, c.key_links, 1, 1u << 20); }},
    {limits, "hops", "NUMBER", "64", "How often a call that starts here may be forwarded.", false,
     [](Config& c, std::string_view v) { return parse_number<uint16_t>(v, c.hops, 0, 65535); }},
    {limits, "fan-out", "NUMBER", "1024", "How many ifuncs a call that starts here may inject.", false,
     [](Config& c, std::string_view v) { return parse_number<uint16_t>(v, c.fanout, 0, 65535); }},
    {limits, "execution-limit", "MILLISECONDS", "10000", "After which a running ifunc is reported as stuck. 0: never.",
     false, [](Config& c, std::string_view v) { return parse_number<uint32_t>(v, c.execution_limit_ms, 0, 1u << 31); }},

    {files, "cell", "PATH", "threechains-cell beside this library", "The program that runs in a cell.", false,
     text<&Config::cell>},
    {files, "jit-plugin", "FILE", "beside libthreechains.so", "Path of libthreechains_jit.so.", false,
     [](Config& c, std::string_view v) { return c.code.jit_plugin = v, Status{}; }},
    {files, "ucx-plugin", "FILE", "beside libthreechains.so", "Path of libthreechains_ucx.so.", false,
     [](Config& c, std::string_view v) { return c.network.fabric_plugin = v, Status{}; }},
    {files, "pmix-plugin", "FILE", "beside libthreechains.so", "Path of libthreechains_pmix.so.", false,
     [](Config& c, std::string_view v) { return c.bootstrap.pmix_plugin = v, Status{}; }},
    {files, "tls-plugin", "FILE", "beside libthreechains.so", "Path of libthreechains_tls.so.", false,
     [](Config& c, std::string_view v) { return c.network.tls_plugin = v, Status{}; }},
    {files, "compiler", "FILE", "../libexec/threechains of libthreechains.so",
     "Path of ifunc-toolchain, for compile-for.", false, text<&Config::compiler>},
};

}  // namespace

std::span<const Option> options() noexcept { return table; }

// ---- Config

namespace {

std::string process_label() {
  char host[65] = {};
  if (::gethostname(host, sizeof host - 1) != 0) return fmt::format("pid{}", ::getpid());
  return fmt::format("{}:{}", host, ::getpid());
}

}  // namespace

Config Config::defaults() {
  Config config;
  config.name = process_label();
  config.path.emplace_back(".");
  if (const char* path = std::getenv("TC_IFUNC_PATH"); path != nullptr)
    for (const auto& directory : split(path, ':')) config.path.emplace_back(directory);
  if (const char* name = std::getenv("TC_TRANSPORT"); name != nullptr)
    if (const auto choice = transport::parse_choice(name)) config.network.choice = *choice;
  if (const char* threads = std::getenv("TC_THREADS"); threads != nullptr) (void)config.set("threads", threads);
  if (const char* isolate = std::getenv("TC_ISOLATE"); isolate != nullptr) (void)config.set("isolate", isolate);
  return config;
}

Status Config::set(std::string_view key, std::string_view value) {
  std::string keys;
  for (const auto& option : options()) {
    if (option.name == key) {
      auto done = option.set(*this, value);
      return done ? Status{} : fail(done.error().code, "{} is {}", key, done.error().message);
    }
    keys += (keys.empty() ? "" : ", ") + std::string(option.name);
  }
  return fail(TC_ERR_INVALID, "there is no option '{}'; there are: {}", key, keys);
}

}  // namespace tc::node
