// SPDX-License-Identifier: Apache-2.0
#include "trust/known_nodes.h"

#include <algorithm>

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

}  // namespace

Result<std::optional<PublicKey>> KnownNodes::find(std::string_view address) const {
  TC_ASSIGN(const auto nodes, read(file_));
  const auto at = std::ranges::find(nodes, address, &KnownNode::address);
  return at == nodes.end() ? std::nullopt : std::optional(at->key);
}

Status KnownNodes::remember(std::string_view address, const PublicKey& key) const {
  if (!is_address(address)) return fail(TC_ERR_INVALID, "an address of {} bytes cannot be remembered", address.size());
  TC_ASSIGN(const auto lock, FileLock::of(file_));
  TC_ASSIGN(auto nodes, read(file_));
  if (const auto at = std::ranges::find(nodes, address, &KnownNode::address); at != nodes.end()) {
    if (at->key == key) return {};
    return fail(TC_ERR_BUSY, "{} knows {} for {}, and not {}", file_.string(), at->key.text(), address, key.text());
  }
  nodes.push_back({std::string(address), key});
  return write(file_, nodes);
}

Result<bool> KnownNodes::forget(std::string_view address) const {
  TC_ASSIGN(const auto lock, FileLock::of(file_));
  TC_ASSIGN(auto nodes, read(file_));
  if (std::erase_if(nodes, [&](const auto& node) { return node.address == address; }) == 0) return false;
  TC_CHECK(write(file_, nodes));
  return true;
}

}  // namespace tc::trust
