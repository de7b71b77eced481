// SPDX-License-Identifier: Apache-2.0
//
// A grant is one line of the keyring: a key and its rights on this node. A grant can only narrow what the node's
// options allow to every peer. For example, a line cannot allow a library that the node forbids. docs/keys.md lists the
// fields.
//
//     ana ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo run=signed read=table*,log libs=none hosts=10.0.0.0/8
//
// Threads: any; plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address_range.h"
#include "trust/key_pair.h"

namespace tc::trust {

using Time = std::chrono::sys_seconds;

// Which code a peer may run: no code, code that a key of the keyring signed, or any code.
enum class Run : uint8_t { none, signed_code, any };
// Where a peer's code runs: in the process of the node, or only in a cell.
enum class Where : uint8_t { process, cell };

// The names that a field of a line allows. A '*' at the end of a name stands for any text.
class Names {
 public:
  static Names all() { return {}; }
  static Names of(std::vector<std::string> patterns);
  bool contains(std::string_view name) const noexcept;
  bool is_all() const noexcept { return !patterns_; }
  const std::vector<std::string>& patterns() const noexcept;  // is_all() must be false
  bool operator==(const Names& other) const noexcept { return patterns_ == other.patterns_; }

 private:
  std::optional<std::vector<std::string>> patterns_;  // nothing: all names
};

// True: `name` can name a key. Such a name is 1 to 64 letters, digits, '-', '_' and '.', and does not begin with '.'.
bool is_key_name(std::string_view name) noexcept;

// Writes "2027-01-31T12:00:00Z".
std::string to_text(Time time);
// Reads the same form, or a date alone, which means its first second in UTC. TC_ERR_INVALID.
Result<Time> parse_time(std::string_view text);

struct Grant {
  std::string name;  // label, unique in the keyring
  PublicKey key;
  unsigned line = 0;                    // number in the keyring's file, from 1; 0: it is in no file
  Run run = Run::signed_code;           // run=signed|any|none
  Where where = Where::process;         // in=process|cell
  Names read = Names::all();            // read=NAMES: named data it may read; without write=, it may write none
  Names write = Names::all();           // write=NAMES: named data it may read and write
  Names libraries = Names::all();       // libs=NAMES
  Names exports = Names::all();         // exports=NAMES: symbols that its libraries may export to other code
  std::vector<AddressRange> hosts;      // hosts=RANGES: where it may connect from; empty: anywhere
  std::vector<std::string> at;          // at=ADDRESSES: where only this key may answer
  std::optional<uint64_t> code_budget;  // code=BYTES: limit of the code from its links that this node keeps
  std::optional<uint32_t> rate;         // rate=NUMBER: limit of messages a second, for all its links together
  std::optional<Time> until;            // until=2027-01-31 or until=2027-01-31T12:00:00Z: it has no rights from then on
  std::optional<Time> revoked;          // revoked=DATE: it has no rights; the line stays
};

// Do both lines let code of the same key do the same? Where it may connect from, and how much it may send, is no part of that.
bool is_same_for_code(const Grant& one, const Grant& other) noexcept;

// Reads one line of the keyring, without its line feed. TC_ERR_INVALID names the wrong field.
Result<Grant> parse_grant(std::string_view line);
// Writes the line that parse_grant() reads back as this grant.
std::string to_line(const Grant& grant);
// The part of the line behind name and key. It has only the fields that differ from the defaults.
std::string fields_of(const Grant& grant);
// Replaces some fields of the grant, which are written as in a line ("run=any rate=7"). All other fields stay.
// TC_ERR_INVALID: a field is wrong.
Result<Grant> with_fields(const Grant& grant, std::string_view fields);

}  // namespace tc::trust
