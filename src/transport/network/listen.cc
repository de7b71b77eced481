// SPDX-License-Identifier: Apache-2.0
//
// Where the network listens.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "transport/network/network.h"

namespace tc::transport {

Result<std::string> Network::listen(std::string_view address) {
  if (address.starts_with(unix_prefix)) return listen_on_path(address.substr(unix_prefix.size()));
  TC_ASSIGN(const auto found, resolve(address, true));
  auto socket = listen_at(found.front());
  if (!socket) return context(fmt::format("listening at {}", address), std::move(socket).error());
  auto name = local_address(*socket).text();
  TC_CHECK(admission_.open(std::move(*socket), false));
  open_local_listener(name);
  return name;
}

// The port is ours, so the Unix socket's name, which follows from it, should be free. If another user has taken the
// name, peers reach us by the port only.
void Network::open_local_listener(const std::string& listening) {
  auto socket = listen_at(SocketAddress::local_listener_of(listening, can_use_rings_));
  auto opened = socket ? admission_.open(std::move(*socket), true) : fail(socket.error());
  if (!opened)
    events.on_warning(
        fmt::format("no process of this host can reach {} by a Unix socket or shared memory, only by TCP: its Unix "
                    "socket is not available: {}",
                    listening, opened.error().message));
}

Result<std::string> Network::listen_on_path(std::string_view path) {
  TC_ASSIGN(const auto address, SocketAddress::at_path(path));
  const std::string file(path);
  struct stat found{};
  if (::lstat(file.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) {
    if (connect_to(address))
      return fail(TC_ERR_IO, "listening at unix:{}: another process listens there already", path);
    (void)::unlink(file.c_str());  // left behind by a process that died
  }
  auto socket = listen_at(address);
  if (!socket) return context(fmt::format("listening at unix:{}", path), std::move(socket).error());
  (void)::chmod(file.c_str(), S_IRUSR | S_IWUSR);  // other users would be refused; this stops them earlier
  paths_.push_back(file);
  TC_CHECK(admission_.open(std::move(*socket), true));
  return std::string(unix_prefix) + file;
}

}  // namespace tc::transport
