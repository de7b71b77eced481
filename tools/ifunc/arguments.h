// SPDX-License-Identifier: Apache-2.0
//
// Parses values of the command line: sizes, hexadecimal bytes, addresses, NAME=FILE pairs. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tc::command {

// "4096", "64K", "16M", "2G" (powers of 1024).
Result<uint64_t> parse_size(std::string_view text);

// "00ff 10" to bytes; blanks between the digits are allowed.
Result<Bytes> parse_hex(std::string_view text);
std::string to_hex(ByteView bytes);

// "NAME=FILE" or "NAME=FILE:ro".
struct DataOption {
  std::string name;
  std::string file;
  bool read_only = false;
};
Result<DataOption> parse_data(std::string_view text);

// "NAME=BYTES", with a size as parse_size() reads it, above 0.
struct ScratchOption {
  std::string name;
  uint64_t bytes = 0;
};
Result<ScratchOption> parse_scratch(std::string_view text);

struct HostPort {
  std::string host;  // without the brackets of "[::1]:7000"
  uint16_t port = 0;
};
Result<HostPort> parse_address(std::string_view text);
// Is it "unix:PATH", which is reached on this machine alone?
bool is_path(std::string_view address) noexcept;

// Can only processes on this machine reach that address? Names other than "localhost" count as not: what they
// mean is decided elsewhere.
bool is_loopback(const HostPort& address);

// The parts between commas; none for an empty text.
std::vector<std::string> split_commas(std::string_view text);

// What TARGET means: an address as it is, or a number to be looked up in `cluster_addresses` (may be null),
// which `ifunc cluster` puts in the environment of its command.
Result<std::string> resolve_target(std::string_view target, const char* cluster_addresses);

}  // namespace tc::command
