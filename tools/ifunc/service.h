// SPDX-License-Identifier: Apache-2.0
//
// What `ifunc serve` says about its own life: to its log, and to the program that supervises it as systemd does.
//
// Threads: any.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/log_format.h"
#include "ifunc/serve_options.h"

namespace tc::command {

// A log beside that of the node, which there may not be yet, or no more: the same place, level, format and name.
std::shared_ptr<spdlog::logger> make_service_log(const ServeOptions& options);

// A value of option log.
spdlog::level::level_enum level_of(const std::string& log);

// The option log-format, or what it means for standard error when it is not set.
LogFormat log_format_of(const ServeOptions& options);

// Tells a supervisor about the state of this process, by sd_notify(3)'s protocol: one datagram for each message, to the
// socket that $NOTIFY_SOCKET names. Does nothing where there is none. It never waits.
class Supervisor {
 public:
  // `socket`: a path, or a name of an abstract socket, which begins with '@'. Empty: there is nobody to tell.
  explicit Supervisor(std::string_view socket) : socket_(socket) {}
  static Supervisor from_environment();

  // Peers can connect. With an empty `status` the last one stays.
  void ready(std::string_view status) const noexcept;
  // ready() comes when it is done.
  void reloading() const noexcept;
  void stopping(std::string_view status) const noexcept;

 private:
  void send(std::string_view state) const noexcept;

  const std::string socket_;
};

}  // namespace tc::command
