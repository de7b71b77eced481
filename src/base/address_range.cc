// SPDX-License-Identifier: Apache-2.0
#include "base/address_range.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>
#include <optional>

namespace tc {

namespace {

using Address = std::array<std::byte, 16>;
constexpr unsigned mapped_bits = 96;  // in front of an IPv4 address that is mapped into IPv6

struct Parsed {
  Address bytes{};
  bool is_v4 = false;
};

std::optional<Parsed> parse_address(std::string_view text) noexcept {
  char name[INET6_ADDRSTRLEN];
  if (text.size() >= sizeof name) return {};
  std::memcpy(name, text.data(), text.size());
  name[text.size()] = '\0';
  Parsed parsed;
  if (inet_pton(AF_INET6, name, parsed.bytes.data()) == 1) return parsed;
  if (inet_pton(AF_INET, name, parsed.bytes.data() + mapped_bits / 8) != 1) return {};
  parsed.bytes[10] = parsed.bytes[11] = std::byte{0xff};
  parsed.is_v4 = true;
  return parsed;
}

bool bit_of(const Address& address, unsigned bit) noexcept {
  return (address[bit / 8] >> (7 - bit % 8) & std::byte{1}) != std::byte{0};
}

}  // namespace

Result<AddressRange> AddressRange::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  if (!address) return fail(TC_ERR_INVALID, "'{}' when it is an address or a range as 10.0.0.0/8 or fd00::/8", text);
  AddressRange range;
  range.text_ = text;
  range.first_ = address->bytes;
  if (slash != std::string_view::npos) {
    const auto digits = text.substr(slash + 1);
    const unsigned most = address->is_v4 ? 32 : 128;
    unsigned bits = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc{} || end != digits.data() + digits.size() || bits > most)
      return fail(TC_ERR_INVALID, "'{}' when the number behind its slash is 0 to {}", text, most);
    range.prefix_bits_ = bits + (address->is_v4 ? mapped_bits : 0);
  }
  for (unsigned bit = range.prefix_bits_; bit < 128; ++bit)
    if (bit_of(range.first_, bit))
      return fail(TC_ERR_INVALID, "'{}' when the address of a range is its first: it has bits behind the first {}",
                  text, range.prefix_bits_ - (address->is_v4 ? mapped_bits : 0));
  return range;
}

bool AddressRange::contains(std::string_view host) const noexcept {
  const auto address = parse_address(host);
  if (!address) return false;
  for (unsigned bit = 0; bit < prefix_bits_; ++bit)
    if (bit_of(address->bytes, bit) != bit_of(first_, bit)) return false;
  return true;
}

}  // namespace tc
