// SPDX-License-Identifier: Apache-2.0
#include "common/network.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <vector>

namespace tc::bench {
namespace {

enum Found { running, not_running, no_network };

Found look() {
  const auto network = Network::create(0);
  if (!network) return no_network;
  ifreq device{};
  std::strcpy(device.ifr_name, "eth0");
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  return ::ioctl(fd, SIOCGIFFLAGS, &device) == 0 && (device.ifr_flags & IFF_RUNNING) != 0 ? running : not_running;
}

// A process that makes a network cannot return to its old one, so child processes make them. Many do so at once, which
// delays the kernel's work of joining the devices.
TEST(Network, its_device_is_usable_as_soon_as_it_is_made) {
  std::vector<pid_t> children(64);
  for (auto& pid : children) {
    pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) ::_exit(look());
  }
  std::map<int, int> found;
  for (const auto pid : children) {
    int state = 0;
    ASSERT_EQ(::waitpid(pid, &state, 0), pid);
    ++found[WIFEXITED(state) ? WEXITSTATUS(state) : -1];
  }
  if (found[no_network] == static_cast<int>(children.size())) GTEST_SKIP() << "network namespaces cannot be made here";
  EXPECT_EQ(found[running], static_cast<int>(children.size())) << found[not_running] << " do not run";
}

}  // namespace
}  // namespace tc::bench
