// SPDX-License-Identifier: Apache-2.0
//
// `ifunc send`: sends one ifunc to a node and prints what it answers.
#include <fcntl.h>
#include <threechains/status.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "ifunc/arguments.h"
#include "ifunc/attempt.h"
#include "ifunc/commands.h"
#include "ifunc/serve_options.h"
#include "trust/key_file.h"
#include "trust/known_nodes.h"

namespace tc::command {
namespace {

constexpr size_t largest_input = 256u << 20;  // what a node accepts at most, by default

struct SendOptions {
  std::string ifunc;
  std::string target;
  std::string payload;
  std::string payload_file;
  std::string hex;
  bool from_stdin = false;
  bool raw = false;
  bool hex_out = false;
  bool no_reply = false;
  uint32_t timeout_ms = 5000;
  uint64_t repeat = 1;
  uint16_t hops = 64;
  uint16_t fanout = 1024;
  std::string listen;
  std::string transport;
  std::string log = "warn";
  ServeOptions identity;
};

// The key that a node has answered with, by the words of Authority::may_meet(); nothing when it was refused for another
// reason.
std::optional<trust::PublicKey> key_in_question(const std::string& refusal) {
  constexpr std::string_view before = "it answers with key ",
                             behind = ", which is not known here, and first-contact is ask: compare";
  const auto end = refusal.find(behind), begin = refusal.rfind(before, end);
  if (end == std::string::npos || begin == std::string::npos) return {};
  const auto from = begin + before.size();
  const auto key = trust::PublicKey::parse(std::string_view(refusal).substr(from, end - from));
  return key ? std::optional(*key) : std::nullopt;
}

// Not standard input, which may be the payload.
bool is_confirmed(const Fd& terminal, const std::string& question) {
  for (std::string_view rest = question; !rest.empty();) {
    const auto written = ::write(terminal.get(), rest.data(), rest.size());
    if (written <= 0) return false;
    rest.remove_prefix(static_cast<size_t>(written));
  }
  std::array<char, 100> answer;
  const auto got = ::read(terminal.get(), answer.data(), answer.size());
  return got > 0 && std::string_view(answer.data(), static_cast<size_t>(got)).starts_with("yes\n");
}

// A connection to `address` ended with `refusal`. If that was because first-contact is ask, shows the node's key at the
// terminal, as ssh does with a host, and remembers it when it is the right one: then connect again. Otherwise returns
// `refusal`, also when there is no terminal.
Status ask_about(const Error& refusal, const std::string& address) {
  const auto key = refusal.code == TC_ERR_DENIED ? key_in_question(refusal.message) : std::nullopt;
  if (!key) return fail(refusal);
  const Fd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!terminal) return fail(refusal);
  const auto question = fmt::format(
      "{} is not known here. It answers with key\n  {}\nCompare it with `ifunc key show` there. Is it the right one? "
      "It "
      "is remembered then (yes/no): ",
      address, key->text());
  if (!is_confirmed(terminal, question)) return fail(refusal);
  TC_ASSIGN(const auto home, trust::home());
  return trust::KnownNodes(home / "known-nodes").remember(address, *key);
}

Result<Bytes> read_stdin() {
  Bytes bytes;
  std::byte buffer[64 * 1024];
  while (true) {
    const size_t got = std::fread(buffer, 1, sizeof buffer, stdin);
    if (got == 0) break;
    bytes.insert(bytes.end(), buffer, buffer + got);
    if (bytes.size() > largest_input)
      return fail(TC_ERR_TOO_LARGE, "stdin holds more than the {} bytes that a payload may have", largest_input);
  }
  return bytes;
}

Result<Bytes> source_args(const SendOptions& options) {
  if (options.from_stdin) return read_stdin();
  if (!options.payload_file.empty()) return read_file(options.payload_file, largest_input);
  if (!options.hex.empty()) return parse_hex(options.hex);
  const auto text = as_bytes(options.payload);
  return Bytes(text.begin(), text.end());
}

// A file when it looks like one; else a name to be looked up along $TC_IFUNC_PATH.
Result<threechains::Ifunc> register_ifunc(threechains::Node& node, const std::string& ifunc) {
  if (!ifunc.contains('/') && !ifunc.ends_with(".ifunc") && !std::filesystem::exists(ifunc))
    return attempt([&] { return node.load(ifunc); });
  TC_ASSIGN(const auto bytes, read_file(ifunc, largest_input));
  if (bytes.empty()) return fail(TC_ERR_MALFORMED, "{}: not an ifunc bundle: it is empty", ifunc);
  return attempt(ifunc, [&] { return node.load(std::span(bytes)); });
}

void print_reply(std::span<const std::byte> bytes, const SendOptions& options) {
  if (bytes.empty()) return;
  if (options.hex_out) {
    std::printf("%s\n", to_hex(bytes).c_str());
    return;
  }
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  const bool ended = bytes.back() == std::byte{'\n'};
  if (!options.raw && !ended && isatty(STDOUT_FILENO)) std::putchar('\n');
}

Status call(threechains::Endpoint& endpoint, const threechains::Message& message, const SendOptions& options) {
  const threechains::milliseconds limit(options.timeout_ms);
  TC_ASSIGN(const auto future, attempt([&] { return endpoint.call(message, limit); }));
  // A little longer than the call itself, whose own error at its deadline says more.
  if (!future.wait(limit + threechains::milliseconds(200)))
    return fail(TC_ERR_TIMEOUT, "no answer from {} within {} ms", endpoint.peer(), options.timeout_ms);
  auto bytes = attempt([&] { return future.bytes(threechains::milliseconds(0)); });
  if (!bytes) return context(tc_status_name(bytes.error().code), std::move(bytes).error());
  print_reply(*bytes, options);
  return {};
}

// The address at which nodes that the ifunc was forwarded to deliver the answer. Other machines can reach no port of ours
// unless --listen says so.
Result<std::string> answer_address(const std::string& target, const SendOptions& options) {
  if (!options.listen.empty()) return options.listen;
  if (is_path(target)) return "127.0.0.1:0";
  TC_ASSIGN(const auto address, parse_address(target));
  return is_loopback(address) ? "127.0.0.1:0" : "none";
}

// Connects until the timeout, because a node that was started a moment ago may not listen yet. Only TC_ERR_DISCONNECTED
// is tried again: the address refuses connections. A node that refuses us has another status.
Result<threechains::Endpoint> connect(threechains::Node& node, const std::string& address, uint32_t timeout_ms) {
  constexpr auto pause = std::chrono::milliseconds(20);
  const auto deadline = Deadline::after_ms(timeout_ms);
  while (true) {
    const threechains::milliseconds left((deadline.remaining_ns() + 999'999) / 1'000'000);
    auto endpoint = attempt([&] { return node.connect(address, left); });
    if (endpoint || endpoint.error().code != TC_ERR_DISCONNECTED || left <= pause) return endpoint;
    std::this_thread::sleep_for(pause);
  }
}

threechains::Config config_of(const SendOptions& options, const std::string& listen) {
  threechains::Config config;
  // No code runs in this process: it only waits for an answer.
  config.set("objects", "off").set("bitcode", "off");
  config.set("listen", listen).set("log", options.log);
  if (!options.transport.empty()) config.set("transport", options.transport);
  config.set("hops", std::to_string(options.hops)).set("fan-out", std::to_string(options.fanout));
  for (const auto& [name, value] : options.identity.settings) config.set(name, value);
  return config;
}

Status send(const SendOptions& options) {
  TC_ASSIGN(const auto address, resolve_target(options.target, std::getenv("TC_CLUSTER_ADDRESSES")));
  TC_ASSIGN(auto arguments, source_args(options));
  TC_ASSIGN(const auto listen, answer_address(address, options));
  TC_ASSIGN(auto node, attempt([&] { return threechains::Node(config_of(options, listen)); }));
  TC_ASSIGN(const auto ifunc, register_ifunc(node, options.ifunc));
  const threechains::milliseconds limit(options.timeout_ms);
  TC_ASSIGN(const auto message, attempt([&] { return ifunc.message(arguments.data(), arguments.size()); }));
  auto connected = connect(node, address, options.timeout_ms);
  if (!connected) {
    TC_CHECK(ask_about(connected.error(), address));
    connected = connect(node, address, options.timeout_ms);
  }
  TC_ASSIGN(auto endpoint, std::move(connected));
  endpoint.set_timeout(limit);
  for (uint64_t i = 0; i < options.repeat; ++i)
    TC_CHECK(options.no_reply ? attempt([&] { endpoint.send(message); }) : call(endpoint, message, options));
  if (options.no_reply) TC_CHECK(attempt([&] { endpoint.flush(limit); }));
  std::fflush(stdout);
  // Everything has been answered or flushed, so a disconnect that fails changes nothing for the caller.
  (void)attempt([&] { endpoint.close(limit); });
  return {};
}

}  // namespace

void add_send(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("send", "Send an ifunc to a node, run it there and print its reply");
  sub->footer(
      "The payload becomes the ifunc's source args: its payload functions run here and build what is sent; without\n"
      "them it is sent as it is. Exit code 0 means that the ifunc ran and did not fail.\n\n"
      "  ifunc send hello.ifunc 127.0.0.1:41234 --payload world\n"
      "  ifunc send grep.ifunc node7.example:7000 --stdin < pattern");
  auto options = std::make_shared<SendOptions>();
  sub->add_option("IFUNC", options->ifunc, "An .ifunc file (see `ifunc build`), or a name in $TC_IFUNC_PATH")
      ->required();
  sub->add_option("TARGET", options->target,
                  "ADDRESS:PORT or unix:PATH of a node, or its number inside `ifunc cluster`")
      ->required();
  auto* input = sub->add_option_group("payload", "Where the payload comes from; empty without any of these");
  input->add_option("--payload", options->payload, "This text")->type_name("TEXT");
  input->add_option("--payload-file", options->payload_file, "The bytes of a file")->type_name("FILE");
  input->add_option("--hex", options->hex, "Bytes in hexadecimal digits")->type_name("HEX");
  input->add_flag("--stdin", options->from_stdin, "Everything from standard input");
  input->require_option(0, 1);
  sub->add_option(
         "--timeout", options->timeout_ms,
         "Milliseconds to wait for the connection, also while nothing listens at TARGET yet, and for each reply")
      ->capture_default_str();
  auto* raw = sub->add_flag("--raw", options->raw, "Print the reply's bytes and nothing else, on a terminal too");
  sub->add_flag("--hex-out", options->hex_out, "Print the reply in hexadecimal digits")->excludes(raw);
  sub->add_flag("--no-reply", options->no_reply, "Do not ask for a reply; only wait until the ifunc has run");
  sub->add_option("--repeat", options->repeat, "Send it this number of times")->capture_default_str();
  sub->add_option("--hops", options->hops, "How often the ifunc may be forwarded")->capture_default_str();
  sub->add_option("--fan-out", options->fanout, "How many calls it may start, together with all that it starts")
      ->capture_default_str();
  sub->add_option("--listen", options->listen,
                  "Where a node to which the ifunc was forwarded can bring the answer: `127.0.0.1:0` when TARGET is on "
                  "this machine, else none")
      ->type_name("ADDRESS:PORT");
  sub->add_option("--transport", options->transport,
                  "How frames reach the node. `auto`, unless TC_TRANSPORT is set: shared memory or TCP")
      ->check(CLI::IsMember({"auto", "shm", "unix", "tcp", "ucx", "ucx-put"}));
  sub->add_option("--log", options->log, "Level of messages on stderr")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug"}))
      ->capture_default_str();
  options->identity.add_identity_to(*sub);
  sub->callback([options, &exit_code] {
    if (auto status = send(*options); !status) {
      std::fprintf(stderr, "ifunc send: %s\n", status.error().message.c_str());
      exit_code = status.error().code == TC_ERR_INVALID ? 2 : 1;
    }
  });
}

}  // namespace tc::command
