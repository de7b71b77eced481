// SPDX-License-Identifier: Apache-2.0
//
// Ranges of IP addresses in the usual notation: "10.0.0.0/8", "fd00::/8"; an address alone is a range with one
// address.
//
// Threads: any; plain values.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tc {

class AddressRange {
 public:
  // TC_ERR_INVALID: the text is no address or range, or has bits behind its prefix ("10.0.0.1/8").
  static Result<AddressRange> parse(std::string_view text);

  // `host`: a numeric address, as the kernel reports it. An IPv4 address that is mapped into IPv6 counts as IPv4.
  bool contains(std::string_view host) const noexcept;
  // The text that parse() read.
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::array<std::byte, 16> first_{};  // an IPv4 address as ::ffff:a.b.c.d
  unsigned prefix_bits_ = 128;
};

}  // namespace tc
