// SPDX-License-Identifier: Apache-2.0
#include "ifunc/service.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/fd.h"
#include "base/log_sink.h"

namespace tc::command {

namespace {

// As the library calls a node that has no name.
std::string node_name(const ServeOptions& options) {
  if (auto name = options.get("name"); !name.empty()) return name;
  char host[65] = {};
  if (::gethostname(host, sizeof host - 1) != 0) return fmt::format("pid{}", ::getpid());
  return fmt::format("{}:{}", host, ::getpid());
}

// A line feed would begin another variable.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& letter : line)
    if (letter == '\n') letter = ' ';
  return line;
}

}  // namespace

spdlog::level::level_enum level_of(const std::string& log) {
  return log == "off" ? spdlog::level::off : spdlog::level::from_str(log);
}

LogFormat log_format_of(const ServeOptions& options) {
  const auto set = options.get("log-format");
  const auto format = set == "text"      ? std::optional(LogFormat::text)
                      : set == "json"    ? std::optional(LogFormat::json)
                      : set == "journal" ? std::optional(LogFormat::journal)
                                         : std::nullopt;
  return log_format_of(format, STDERR_FILENO, std::getenv("JOURNAL_STREAM"));
}

std::shared_ptr<spdlog::logger> make_service_log(const ServeOptions& options) {
  auto log = std::make_shared<spdlog::logger>(node_name(options), std::make_shared<LogSink>(STDERR_FILENO));
  log->set_formatter(std::make_unique<LogFormatter>(log_format_of(options)));
  const auto level = options.get("log");
  log->set_level(level.empty() ? spdlog::level::warn : level_of(level));
  log->set_error_handler([](const std::string&) {});  // a line for which there is no memory
  return log;
}

Supervisor Supervisor::from_environment() {
  const char* const socket = std::getenv("NOTIFY_SOCKET");
  return Supervisor(socket != nullptr ? socket : "");
}

void Supervisor::ready(std::string_view status) const noexcept try {
  send(status.empty() ? "READY=1" : fmt::format("READY=1\nSTATUS={}", one_line(status)));
} catch (const std::bad_alloc&) {
  send("READY=1");
}

void Supervisor::reloading() const noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  char text[64];
  const auto end = fmt::format_to_n(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC={}",
                                    int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000);
  send({text, end.size});
}

void Supervisor::stopping(std::string_view status) const noexcept try {
  send(fmt::format("STOPPING=1\nSTATUS={}", one_line(status)));
} catch (const std::bad_alloc&) {
  send("STOPPING=1");
}

void Supervisor::send(std::string_view state) const noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool is_name = !socket_.empty() && (socket_[0] == '/' || socket_[0] == '@');
  if (!is_name || socket_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const Fd from(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!from) return;
  (void)::sendto(from.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace tc::command
