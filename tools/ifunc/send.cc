// SPDX-License-Identifier: Apache-2.0
//
// `ifunc send`: sends one ifunc to a node and prints what it answers.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "ifunc/arguments.h"
#include "ifunc/commands.h"
#include "ifunc/handles.h"

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
};

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
Result<tc_ifunc_t*> register_ifunc(tc_node_t* node, const std::string& ifunc) {
  tc_ifunc_t* handle = nullptr;
  if (!ifunc.contains('/') && !ifunc.ends_with(".ifunc") && !std::filesystem::exists(ifunc)) {
    TC_CHECK(checked(tc_ifunc_register(node, ifunc.c_str(), &handle)));
    return handle;
  }
  TC_ASSIGN(const auto bytes, read_file(ifunc, largest_input));
  if (auto status = checked(tc_ifunc_register_memory(node, bytes.data(), bytes.size(), &handle)); !status)
    return context(ifunc, std::move(status).error());
  return handle;
}

void print_reply(const tc_future_t* future, const SendOptions& options) {
  size_t size = 0;
  const void* bytes = tc_future_bytes(future, &size);
  if (bytes == nullptr || size == 0) return;
  if (options.hex_out) {
    std::printf("%s\n", to_hex({static_cast<const std::byte*>(bytes), size}).c_str());
    return;
  }
  std::fwrite(bytes, 1, size, stdout);
  const bool ended = static_cast<const char*>(bytes)[size - 1] == '\n';
  if (!options.raw && !ended && isatty(STDOUT_FILENO)) std::putchar('\n');
}

Status call(tc_endpoint_t* endpoint, tc_message_t* message, const SendOptions& options) {
  tc_future_t* handle = nullptr;
  TC_CHECK(checked(tc_endpoint_call(endpoint, message, options.timeout_ms, &handle)));
  const Future future(handle);
  // A little longer than the call itself: what it says when its deadline passes is worth more than that we waited.
  if (tc_future_wait(handle, options.timeout_ms + 200) != TC_OK)
    return fail(TC_ERR_TIMEOUT, "no answer from {} within {} ms", tc_endpoint_peer(endpoint), options.timeout_ms);
  if (const auto status = tc_future_status(handle); status != TC_OK)
    return fail(status, "{}: {}", tc_status_name(status), tc_error_message());
  print_reply(handle, options);
  return {};
}

// Where nodes that the ifunc was forwarded to bring its answer. Other machines get no port of ours unless asked for.
Result<std::string> answer_address(const std::string& target, const SendOptions& options) {
  if (!options.listen.empty()) return options.listen;
  if (is_path(target)) return "127.0.0.1:0";
  TC_ASSIGN(const auto address, parse_address(target));
  return is_loopback(address) ? "127.0.0.1:0" : "none";
}

// Connects until the timeout, because a node that was started a moment ago may not listen yet. Only TC_ERR_DISCONNECTED
// is tried again: the address refuses connections. A node that refuses us has another status.
Result<tc_endpoint_t*> connect(tc_node_t* node, const std::string& address, uint32_t timeout_ms) {
  constexpr auto pause = std::chrono::milliseconds(20);
  const auto deadline = Deadline::after_ms(timeout_ms);
  while (true) {
    const auto left_ms = static_cast<uint32_t>((deadline.remaining_ns() + 999'999) / 1'000'000);
    tc_endpoint_t* endpoint = nullptr;
    auto status = checked(tc_node_connect(node, address.c_str(), left_ms, &endpoint));
    if (status) return endpoint;
    if (status.error().code != TC_ERR_DISCONNECTED || left_ms <= pause.count())
      return std::unexpected(std::move(status).error());
    std::this_thread::sleep_for(pause);
  }
}

Status send(const SendOptions& options) {
  TC_ASSIGN(const auto address, resolve_target(options.target, std::getenv("TC_CLUSTER_ADDRESSES")));
  TC_ASSIGN(auto arguments, source_args(options));
  TC_ASSIGN(const auto listen, answer_address(address, options));
  ConfigBuilder config;
  // Nobody's code runs here: we only wait for an answer.
  config.set("objects", "off").set("bitcode", "off");
  config.set("listen", listen).set("log", options.log);
  if (!options.transport.empty()) config.set("transport", options.transport);
  config.set("hops", std::to_string(options.hops)).set("fan-out", std::to_string(options.fanout));
  TC_ASSIGN(const Node node, config.create());
  TC_ASSIGN(tc_ifunc_t * ifunc, register_ifunc(node.get(), options.ifunc));

  tc_message_t* made = nullptr;
  TC_CHECK(checked(tc_message_create(ifunc, arguments.data(), arguments.size(), &made)));
  const Message message(made);
  TC_ASSIGN(auto* const endpoint, connect(node.get(), address, options.timeout_ms));
  tc_endpoint_set_timeout(endpoint, options.timeout_ms);
  for (uint64_t i = 0; i < options.repeat; ++i)
    TC_CHECK(options.no_reply ? checked(tc_endpoint_send(endpoint, made)) : call(endpoint, made, options));
  if (options.no_reply) TC_CHECK(checked(tc_endpoint_flush(endpoint, options.timeout_ms)));
  std::fflush(stdout);
  // All that was sent has been answered or flushed: a failure to disconnect changes nothing for the caller.
  (void)tc_endpoint_close(endpoint, options.timeout_ms);
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
  sub->add_option("--repeat", options->repeat, "Send it so many times")->capture_default_str();
  sub->add_option("--hops", options->hops, "How often the ifunc may be forwarded")->capture_default_str();
  sub->add_option("--fan-out", options->fanout, "How many calls it may start, together with all that it starts")
      ->capture_default_str();
  sub->add_option("--listen", options->listen,
                  "Where a node to which the ifunc was forwarded can bring the answer: `127.0.0.1:0` when TARGET is on "
                  "this machine, else none")
      ->type_name("ADDRESS:PORT");
  sub->add_option("--transport", options->transport,
                  "How frames reach the node. `auto`, unless TC_TRANSPORT is set: shared memory or TCP")
      ->check(CLI::IsMember({"auto", "shm", "tcp", "ucx", "ucx-put"}));
  sub->add_option("--log", options->log, "Level of messages on stderr")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug"}))
      ->capture_default_str();
  sub->callback([options, &exit_code] {
    if (auto status = send(*options); !status) {
      std::fprintf(stderr, "ifunc send: %s\n", status.error().message.c_str());
      exit_code = status.error().code == TC_ERR_INVALID ? 2 : 1;
    }
  });
}

}  // namespace tc::command
