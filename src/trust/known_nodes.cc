// SPDX-License-Identifier: Apache-2.0
#include "trust/known_nodes.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "trust/private_file.h"

namespace tc::trust {

namespace {

constexpr size_t max_file_bytes = 1024 * 1024;
constexpr size_t max_address_bytes = 300;

struct KnownNode {
  std::string address;
  PublicKey key;
};

bool is_address(std::string_view address) noexcept {
  return !address.empty() && address.size() <= max_address_bytes && address.front() != '#' &&
         std::ranges::all_of(address, [](char letter) { return letter > ' ' && letter <= '~'; });
}

Result<KnownNode> parse_line(std::string_view line) {
  const auto blank = std::min(line.find(' '), line.size());
  const auto address = line.substr(0, blank);
  if (!is_address(address) || blank == line.size())
    return fail(TC_ERR_INVALID, "it is no address and key with one blank between them");
  TC_ASSIGN(const auto key, PublicKey::parse(line.substr(blank + 1)));
  return KnownNode{std::string(address), key};
}

Result<std::vector<KnownNode>> read(const std::filesystem::path& file) {
  TC_ASSIGN(const auto text, read_policy(file, max_file_bytes));
  std::vector<KnownNode> nodes;
  std::string_view rest = text;
  for (unsigned number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    auto node = parse_line(rest.substr(0, end));
    if (!node) return context(fmt::format("{}, line {}", file.string(), number), std::move(node).error());
    nodes.push_back(std::move(*node));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return nodes;
}

Status write(const std::filesystem::path& file, const std::vector<KnownNode>& nodes) {
  std::string text;
  for (const auto& node : nodes) text += fmt::format("{} {}\n", node.address, node.key.text());
  if (text.size() > max_file_bytes)
    return fail(TC_ERR_TOO_LARGE, "{} would be {} bytes when at most {} are allowed: `ifunc key forget ADDRESS`",
                file.string(), text.size(), max_file_bytes);
  return write_guarded(file, text, Replace::any);
}

// A numeric address as the kernel prints it. An IPv4 address that is mapped into IPv6 becomes IPv4. Empty: `host` is
// not numeric.
std::string canonical_number(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> guard(found, &::freeaddrinfo);
  char text[NI_MAXHOST];
  if (::getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  std::string number = text;
  if (constexpr std::string_view mapped = "::ffff:"; number.starts_with(mapped) && number.contains('.'))
    number.erase(0, mapped.size());
  return number;
}

auto find_in(auto& nodes, std::string_view address) {
  return std::ranges::find_if(
      nodes, [at = canonical_address(address)](const auto& node) { return canonical_address(node.address) == at; });
}

}  // namespace

std::string canonical_address(std::string_view address) {
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos || address.contains('/')) return std::string(address);
  auto host = std::string(address.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (!host.empty() && host.back() == '.') host.pop_back();
  std::ranges::transform(host, host.begin(), [](unsigned char letter) { return std::tolower(letter); });
  if (host == "localhost") host = "127.0.0.1";
  if (auto number = canonical_number(host); !number.empty()) host = std::move(number);
  if (host.contains(':')) host = "[" + host + "]";
  return host + std::string(address.substr(colon));
}

Result<std::optional<PublicKey>> KnownNodes::find(std::string_view address) const {
  TC_ASSIGN(const auto nodes, read(file_));
  const auto at = find_in(nodes, address);
  return at == nodes.end() ? std::nullopt : std::optional(at->key);
}

Status KnownNodes::remember(std::string_view address, const PublicKey& key) const {
  if (!is_address(address)) return fail(TC_ERR_INVALID, "an address of {} bytes cannot be remembered", address.size());
  TC_ASSIGN(const auto lock, FileLock::of(file_));
  TC_ASSIGN(auto nodes, read(file_));
  if (const auto at = find_in(nodes, address); at != nodes.end()) {
    if (at->key == key) return {};
    return fail(TC_ERR_BUSY, "{} knows {} for {}, and not {}", file_.string(), at->key.text(), address, key.text());
  }
  nodes.push_back({canonical_address(address), key});
  return write(file_, nodes);
}

Result<bool> KnownNodes::forget(std::string_view address) const {
  TC_ASSIGN(const auto lock, FileLock::of(file_));
  TC_ASSIGN(auto nodes, read(file_));
  const auto at = canonical_address(address);
  if (std::erase_if(nodes, [&](const auto& node) { return canonical_address(node.address) == at; }) == 0) return false;
  TC_CHECK(write(file_, nodes));
  return true;
}

}  // namespace tc::trust
