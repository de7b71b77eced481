// SPDX-License-Identifier: Apache-2.0
#include "ifunc/arguments.h"

#include <arpa/inet.h>

#include <charconv>

namespace tc::command {
namespace {

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && at == end && !text.empty();
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  auto digits = text;
  unsigned shift = 0;
  if (!digits.empty()) {
    switch (digits.back()) {
      case 'k':
      case 'K': shift = 10; break;
      case 'm':
      case 'M': shift = 20; break;
      case 'g':
      case 'G': shift = 30; break;
      default: break;
    }
    if (shift != 0) digits.remove_suffix(1);
  }
  uint64_t value = 0;
  if (!parse_number(digits, value) || value > (UINT64_MAX >> shift))
    return fail(TC_ERR_INVALID, "'{}' is no size: write bytes, or a number followed by K, M or G", text);
  return value << shift;
}

Result<Bytes> parse_hex(std::string_view text) {
  Bytes bytes;
  int high = -1;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\t' || c == ':') continue;
    const int digit = hex_digit(c);
    if (digit < 0) return fail(TC_ERR_INVALID, "'{}' is no hexadecimal digit in '{}'", c, text);
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<std::byte>(high * 16 + digit));
      high = -1;
    }
  }
  if (high >= 0) return fail(TC_ERR_INVALID, "'{}' has an odd number of hexadecimal digits", text);
  return bytes;
}

std::string to_hex(ByteView bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const auto byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

Result<DataOption> parse_data(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    return fail(TC_ERR_INVALID, "'{}' is not NAME=FILE", text);
  DataOption option{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)), false};
  if (option.file.ends_with(":ro")) {
    option.file.resize(option.file.size() - 3);
    option.read_only = true;
  }
  return option;
}

Result<ScratchOption> parse_scratch(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return fail(TC_ERR_INVALID, "'{}' is not NAME=BYTES", text);
  TC_ASSIGN(const auto bytes, parse_size(text.substr(equals + 1)));
  if (bytes == 0) return fail(TC_ERR_INVALID, "'{}': scratch memory of 0 bytes holds nothing", text);
  return ScratchOption{std::string(text.substr(0, equals)), bytes};
}

Result<HostPort> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  HostPort address;
  if (colon == std::string_view::npos || colon == 0 || !parse_number(text.substr(colon + 1), address.port))
    return fail(TC_ERR_INVALID, "'{}' is not ADDRESS:PORT with a port from 0 to 65535", text);
  auto host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return fail(TC_ERR_INVALID, "'{}' has no address before its port", text);
  address.host = host;
  return address;
}

bool is_path(std::string_view address) noexcept { return address.starts_with("unix:"); }

bool is_loopback(const HostPort& address) {
  if (address.host == "localhost" || address.host == "::1") return true;
  in_addr v4{};
  return inet_pton(AF_INET, address.host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return parts;
}

Result<std::string> resolve_target(std::string_view target, const char* cluster_addresses) {
  size_t number = 0;
  if (!parse_number(target, number)) {
    if (!is_path(target)) TC_CHECK(parse_address(target));
    return std::string(target);
  }
  if (cluster_addresses == nullptr)
    return fail(TC_ERR_INVALID,
                "target {} is a node number, which only has a meaning inside `ifunc cluster N -- COMMAND`; outside, "
                "write ADDRESS:PORT",
                number);
  const auto addresses = split_commas(cluster_addresses);
  if (number >= addresses.size())
    return fail(TC_ERR_NOT_FOUND, "there is no node {}: the cluster has {}, numbered from 0", number, addresses.size());
  return addresses[number];
}

}  // namespace tc::command
