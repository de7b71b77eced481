// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/advertise.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <memory>

#include "node/bootstrap/bootstrap.h"

namespace tc::node::bootstrap {

namespace {

// The address of an interface as text; empty when it is of another family or reaches the neighbours only.
std::string text_of(const sockaddr& address, int family) {
  char text[INET6_ADDRSTRLEN];
  if (address.sa_family != family) return {};
  if (family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    if (::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text) == nullptr) return {};
    return text;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return {};
  if (::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text) == nullptr) return {};
  return fmt::format("[{}]", text);
}

}  // namespace

std::string first_routable(const ifaddrs* interfaces, int family) {
  for (const auto* entry = interfaces; entry != nullptr; entry = entry->ifa_next) {
    constexpr auto wanted = static_cast<unsigned>(IFF_UP | IFF_RUNNING);
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_LOOPBACK) != 0 || (entry->ifa_flags & wanted) != wanted)
      continue;
    if (auto text = text_of(*entry->ifa_addr, family); !text.empty()) return text;
  }
  return {};
}

Result<std::string> advertised_address(std::string_view bound, std::string_view wish) {
  const auto colon = bound.rfind(':');
  if (colon == std::string_view::npos) return std::string(wish.empty() ? bound : wish);  // not an address of TCP
  const auto host = bound.substr(0, colon), port = bound.substr(colon + 1);
  if (!wish.empty()) {
    TC_CHECK(check_address(wish, "advertise"));
    const bool has_port = wish.find(':') != std::string_view::npos && !wish.ends_with(']');
    return has_port ? std::string(wish) : fmt::format("{}:{}", wish, port);
  }
  if (host != "0.0.0.0" && host != "[::]") return std::string(bound);
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) list = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::string found;
  if (host == "[::]") found = first_routable(list, AF_INET6);
  if (found.empty()) found = first_routable(list, AF_INET);
  return fmt::format("{}:{}", found.empty() ? "127.0.0.1" : found, port);
}

}  // namespace tc::node::bootstrap
