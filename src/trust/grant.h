// SPDX-License-Identifier: Apache-2.0
//
// One line of the keyring: a key, and what it may do here. A grant only narrows what the node allows to everybody: a
// library that the node does not allow is not allowed by a line either. docs/keys.md lists the fields.
//
//     ana ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo run=signed read=table*,log libs=none hosts=10.0.0.0/8
//
// Thread: any; plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address_range.h"
#include "trust/public_key.h"

namespace tc::trust {

using Time = std::chrono::sys_seconds;

// What a peer may run: nothing; code that is signed by a key of the keyring; any code.
enum class Run : uint8_t { none, signed_code, any };
// Where its code runs: in the process of the node, or in a cell only.
enum class Where : uint8_t { process, cell };

// Names that a field of a line allows. A '*' at the end of a name stands for any that begins so.
class Names {
 public:
  static Names all() { return {}; }
  static Names of(std::vector<std::string> patterns);
  bool contains(std::string_view name) const noexcept;
  bool is_all() const noexcept { return !patterns_; }
  const std::vector<std::string>& patterns() const noexcept;  // not of all()

 private:
  std::optional<std::vector<std::string>> patterns_;  // nothing: all names
};

// May it stand for a key? 1 to 64 letters, digits, '-', '_', '.', not '.' first.
bool is_key_name(std::string_view name) noexcept;

// "2027-01-31T12:00:00Z", and from it or from a date alone, which means its first second in UTC. TC_ERR_INVALID.
std::string to_text(Time time);
Result<Time> parse_time(std::string_view text);

struct Grant {
  std::string name;  // label, unique in the keyring
  PublicKey key;
  unsigned line = 0;                    // of the keyring's file, from 1; 0: of no file
  Run run = Run::signed_code;           // run=signed|any|none
  Where where = Where::process;         // in=process|cell
  Names read = Names::all();            // read=NAMES: named data it may read; alone, it may write none
  Names write = Names::all();           // write=NAMES: named data it may read and write
  Names libraries = Names::all();       // libs=NAMES
  Names exports = Names::all();         // exports=NAMES: symbols that a library of its may export to others
  std::vector<AddressRange> hosts;      // hosts=RANGES: where it may connect from; empty: anywhere
  std::vector<std::string> at;          // at=ADDRESSES: where its key answers, and no other
  std::optional<uint64_t> code_budget;  // code=BYTES: of code that its links brought and this node keeps
  std::optional<uint32_t> rate;         // rate=NUMBER: of messages a second of all its links
  std::optional<Time> until;    // until=2027-01-31 or until=2027-01-31T12:00:00Z: it may do nothing from then on
  std::optional<Time> revoked;  // revoked=DATE: it may do nothing; the line stays
};

// One line of the keyring, without its line feed. TC_ERR_INVALID: it names the field that is wrong.
Result<Grant> parse_grant(std::string_view line);
// The line that parse_grant() reads back as this grant.
std::string to_line(const Grant& grant);
// The part of it behind name and key: only what differs from the defaults.
std::string fields_of(const Grant& grant);
// The same grant with these fields, written as in a line ("run=any rate=7"); it keeps its others. TC_ERR_INVALID: one of them
// is wrong.
Result<Grant> with_fields(const Grant& grant, std::string_view fields);

}  // namespace tc::trust
