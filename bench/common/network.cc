// SPDX-License-Identifier: Apache-2.0
#include "common/network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/process.h"

namespace tc::bench {

namespace {

constexpr const char* own_namespace = "/proc/thread-self/ns/net";
constexpr uint64_t running_ms = 10'000;
constexpr uint64_t ip_ms = 60'000;

// What `ip netns exec` does: UCX finds network devices in /sys, which belongs to the namespace that it was mounted in.
bool see_own_devices() noexcept {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr) == 0 &&
         ::umount2("/sys", MNT_DETACH) == 0 && ::mount("dapc", "/sys", "sysfs", 0, nullptr) == 0;
}

// Runs `ip -batch` on `commands` in the namespace `fd`.
Status configure(int fd, const std::string& commands) {
  const Fd input(::memfd_create("ip-batch", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(commands.size());
  if (!input || ::pwrite(input.get(), commands.data(), commands.size(), 0) != size)
    return fail(TC_ERR_IO, "the commands for ip cannot be written: {}", system_words(errno));
  const auto enter = [fd] { return ::setns(fd, CLONE_NEWNET) == 0; };
  const auto finished =
      run_program({"ip", "-batch", "-"}, {.input = input.get(), .errors = Output::discarded, .before_exec = enter},
                  Deadline::after_ms(ip_ms));
  if (!finished && finished.error().code == TC_ERR_NOT_FOUND)
    return fail(TC_ERR_UNSUPPORTED, "the ip tool (iproute2) is missing");
  if (!finished) return fail(finished.error());
  if (!finished->exit.success()) return fail(TC_ERR_UNSUPPORTED, "`ip` cannot join network namespaces here");
  return {};
}

// Until the device runs, UCX reports that there is no such device. The kernel notices in the background that the other
// end of a new pair is up: after 1 ms as a rule, 50 ms when other processes do the same, a second at worst.
Status wait_until_eth0_runs() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(TC_ERR_UNSUPPORTED, "a socket in a network namespace: {}", std::strerror(errno));
  ifreq device{};
  std::strcpy(device.ifr_name, "eth0");
  const auto deadline = Deadline::after_ms(running_ms);
  bool runs = false;
  do {
    runs = ::ioctl(fd, SIOCGIFFLAGS, &device) == 0 && (device.ifr_flags & IFF_RUNNING) != 0;
    if (!runs) ::usleep(500);
  } while (!runs && !deadline.passed());
  ::close(fd);
  if (runs) return {};
  return fail(TC_ERR_UNSUPPORTED, "eth0 of a network namespace does not run {} ms after it was set up", running_ms);
}

}  // namespace

std::string Network::client_address() { return "10.99.0.1"; }
std::string Network::server_address(uint32_t index) { return fmt::format("10.99.0.{}", index + 2); }

Result<int> Network::new_namespace() {
  if (::unshare(CLONE_NEWNET) != 0)
    return fail(TC_ERR_UNSUPPORTED, "network namespaces cannot be made: {}", std::strerror(errno));
  const int fd = ::open(own_namespace, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(TC_ERR_UNSUPPORTED, "{}: {}", own_namespace, std::strerror(errno));
  held_.push_back(fd);
  return fd;
}

Status Network::make(uint32_t servers) {
  TC_ASSIGN(const int bridge, new_namespace());
  std::string joints = "link add br0 type bridge\nlink set br0 up\n";
  for (uint32_t i = 0; i <= servers; ++i) {
    TC_ASSIGN(const int fd, new_namespace());
    joints += fmt::format("link add v{} type veth peer name eth0 netns /proc/{}/fd/{}\nlink set v{} master br0 up\n", i,
                          ::getpid(), fd, i);
  }
  TC_CHECK(configure(bridge, joints));
  for (uint32_t i = 0; i <= servers; ++i)
    TC_CHECK(configure(held_[i + 1], fmt::format("link set lo up\naddr add {}/24 dev eth0\nlink set eth0 up\n",
                                                 i == 0 ? client_address() : server_address(i - 1))));
  for (uint32_t i = 0; i <= servers; ++i) {
    if (::setns(held_[i + 1], CLONE_NEWNET) != 0)
      return fail(TC_ERR_UNSUPPORTED, "a network namespace cannot be entered: {}", std::strerror(errno));
    TC_CHECK(wait_until_eth0_runs());
  }
  return {};
}

Result<std::unique_ptr<Network>> Network::create(uint32_t servers) {
  if (::geteuid() != 0) return fail(TC_ERR_UNSUPPORTED, "network namespaces need root");
  const int before = ::open(own_namespace, O_RDONLY | O_CLOEXEC);
  if (before < 0) return fail(TC_ERR_UNSUPPORTED, "{}: {}", own_namespace, std::strerror(errno));
  std::unique_ptr<Network> network(new Network);
  auto made = network->make(servers);
  if (made && (::setns(network->held_[1], CLONE_NEWNET) != 0 || !see_own_devices()))
    made = fail(TC_ERR_UNSUPPORTED, "/sys cannot be mounted for a network namespace: {}", std::strerror(errno));
  if (!made) (void)::setns(before, CLONE_NEWNET);
  ::close(before);
  if (!made) return fail(std::move(made).error());
  return network;
}

Network::~Network() {
  for (const int fd : held_) ::close(fd);
}

bool Network::enter(uint32_t index) const noexcept {
  return ::setns(held_[index + 2], CLONE_NEWNET) == 0 && see_own_devices();
}

ChosenNetwork choose_network(bool loopback, uint32_t servers) {
  ChosenNetwork chosen;
  if (loopback) {
    chosen.why_none = "--loopback was given";
  } else if (auto network = Network::create(servers)) {
    chosen.network = std::move(*network);
  } else {
    chosen.why_none = network.error().message;
  }
  ::setenv("UCX_NET_DEVICES", chosen.network != nullptr ? "eth0" : "lo", 1);
  return chosen;
}

std::string describe_network(const std::string& transport, const ChosenNetwork& chosen) {
  const auto* const carrier = transport.starts_with("ucx-") ? ", ifuncs carried by UCX" : "";
  if (transport.ends_with("shm")) return fmt::format("shared memory{}", carrier);
  const auto* const tcp = transport == "tls" ? "Encrypted TCP" : "TCP";
  if (chosen.network != nullptr) return fmt::format("{} between network namespaces{}", tcp, carrier);
  return fmt::format("{} on loopback{} (no namespaces: {})", tcp, carrier, chosen.why_none);
}

}  // namespace tc::bench
